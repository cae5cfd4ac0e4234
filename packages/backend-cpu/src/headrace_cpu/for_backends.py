"""What the CPU's compiler shares with other backends that compile regions.

Backends take it from here alone: matching, the schedule, the memory plan, the lowering to a
function, and the groups of fused operations with their nodes and loop nests. What writes code for a
processor is not among it.
"""

from headrace_cpu.fusion.build import Builder, Unfit
from headrace_cpu.fusion.fusion_group import built, fusible, writes_of
from headrace_cpu.fusion.group import match_fused
from headrace_cpu.fusion.hazards import variable_of
from headrace_cpu.fusion.interpret import data_inputs
from headrace_cpu.fusion.nodes import BYTES, FLOATS, Refusal, uniform_value
from headrace_cpu.fusion.schedule import Root, Schedule, make_schedule
from headrace_cpu.fusion.space import Space, Store, Value, make_space
from headrace_cpu.native import memory
from headrace_cpu.native.compiler import give_up
from headrace_cpu.native.threads import Share
from headrace_cpu.program.compilation import Compilation
from headrace_cpu.program.describe import describe
from headrace_cpu.program.environment import ENVIRONMENT, Taken, promised
from headrace_cpu.program.implementation import Implementation
from headrace_cpu.program.instruction import Addresses, Bound, Instruction
from headrace_cpu.program.lifetimes import Places, place_buffers
from headrace_cpu.program.lower import Lowered, lower
from headrace_cpu.program.matches import Matches
from headrace_cpu.program.matching import Candidate, Matcher, match
from headrace_cpu.program.patterns import all_float32, chains, shape_of
from headrace_cpu.program.program import Program, ProgramAddresses
from headrace_cpu.program.schedule import Item, schedule
from headrace_cpu.program.settings import CompileSettings
from headrace_cpu.program.values import Values, is_given, is_open

__all__ = [
    "BYTES",
    "ENVIRONMENT",
    "FLOATS",
    "Addresses",
    "Bound",
    "Builder",
    "Candidate",
    "Compilation",
    "CompileSettings",
    "Implementation",
    "Instruction",
    "Item",
    "Lowered",
    "Matcher",
    "Matches",
    "Places",
    "Program",
    "ProgramAddresses",
    "Refusal",
    "Root",
    "Schedule",
    "Share",
    "Space",
    "Store",
    "Taken",
    "Unfit",
    "Value",
    "Values",
    "all_float32",
    "built",
    "chains",
    "data_inputs",
    "describe",
    "fusible",
    "give_up",
    "is_given",
    "is_open",
    "lower",
    "make_schedule",
    "make_space",
    "match",
    "match_fused",
    "memory",
    "place_buffers",
    "promised",
    "schedule",
    "shape_of",
    "uniform_value",
    "variable_of",
    "writes_of",
]
