"""Compiling a region: matches, order, memory, source."""

from __future__ import annotations

import os
import resource

from headrace.extend.devices import Region
from headrace_cpu.fusion.group import match_fused
from headrace_cpu.matmul.packing import pack_shared
from headrace_cpu.native.heap import keep_freed_memory
from headrace_cpu.program.call_sequence import in_sequences
from headrace_cpu.program.lifetimes import place_buffers
from headrace_cpu.program.lower import lower
from headrace_cpu.program.matchers import MATCHERS
from headrace_cpu.program.matches import Matches
from headrace_cpu.program.matching import match
from headrace_cpu.program.program import Program
from headrace_cpu.program.schedule import Item, schedule
from headrace_cpu.program.settings import CompileSettings
from headrace_cpu.program.values import Values, is_given, is_open


def compile_region(region: Region) -> Program:
    """Return the program of a region."""
    keep_freed_memory()
    program = _compiled(region, matched=region.options.optimize)
    if program.arena_bytes > _memory() // 2:
        # Plain kernels allocate as they go, and refuse what cannot be.
        program = _compiled(region, matched=False)
    return program


def _compiled(region: Region, *, matched: bool) -> Program:
    settings = CompileSettings.of(region.options)
    operations = [op for op in region.graph.operations if not is_given(op)]
    read = {*region.outputs, *(t for op in operations for t in op.inputs)}
    closed = [op for op in operations if op in region.reserved or not is_open(op, read)]
    matches = Matches(operations, region.outputs, closed)
    if matched:
        match_all(matches, settings)
    items = arranged(matches, settings) if matched else schedule(matches)
    values = Values(region, items)
    places = place_buffers(items, values)
    lowered = lower(region, in_sequences(items, values, region), values)
    return Program(region, items, values, places, lowered, settings)


def _memory() -> int:
    """Return how many bytes this process may have: the machine's, or its own limit."""
    machine = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    own, _ = resource.getrlimit(resource.RLIMIT_AS)
    return machine if own == resource.RLIM_INFINITY else min(machine, own)


def match_all(matches: Matches, settings: CompileSettings) -> None:
    """Let the implementations of the table, and then fused kernels, take a region's operations."""
    match(matches, settings, MATCHERS)
    match_fused(matches, settings)


def arranged(matches: Matches, settings: CompileSettings) -> list[Item]:
    """Return the items of a program in their order, with what prepares what several share."""
    return pack_shared(schedule(matches), settings.threads)
