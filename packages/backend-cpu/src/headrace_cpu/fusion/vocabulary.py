"""The functions that fused kernels call: elementary functions, by the type of an op and a dtype."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from headrace_cpu.native.source import MAX_BUFFERS, Vocabulary

if TYPE_CHECKING:
    from headrace_cpu.fusion.functions import Written
    from headrace_cpu.native.instructions import Maker


def _functions() -> Mapping[Any, Any]:
    # lazy: it needs LLVM, which few processes load: kernels come from the cache
    from headrace_cpu.fusion.functions import WRITTEN

    return {(op, dtype): _call_of(written, dtype) for (op, dtype), written in WRITTEN.items()}


def _call_of(written: Written, dtype: str) -> Maker:
    """Return what writes a function of numbers of a dtype: its result is one, or a boolean."""
    # lazy: it needs LLVM, which few processes load: kernels come from the cache
    from headrace_cpu.fusion.functions.emitter import FLOAT32, FLOAT64, Emitter
    from headrace_cpu.native.instructions import TYPES, Held, Machine

    form = FLOAT32 if dtype == FLOAT32.dtype else FLOAT64

    def make(machine: Machine, args: Sequence[Held]) -> Held:
        written_before = len(machine.builder.block.instructions)
        value = written(Emitter(machine.builder, form), *(arg.value for arg in args))
        for each in machine.builder.block.instructions[written_before:]:
            if each.opname == "load":
                # Of a table of constants, which no store of a kernel touches. Unmarked, it keeps
                # the loop from being vectorised.
                machine.mark(each, MAX_BUFFERS - 1)
        return Held("b8" if value.type == TYPES["b8"] else args[0].code, value)

    return make


ELEMENTARY_FUNCTIONS = Vocabulary(
    ("headrace_cpu.fusion.functions", "headrace_cpu.fusion.vocabulary"), _functions
)
