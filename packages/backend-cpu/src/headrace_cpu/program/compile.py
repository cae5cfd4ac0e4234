"""Compiling a segment: claims, order, memory, source."""

from __future__ import annotations

import os
import resource

from headrace.graph.operation import Operation
from headrace.runtime.segment import Segment, is_handle
from headrace_cpu.program.claims import Claims
from headrace_cpu.program.lifetimes import place_buffers
from headrace_cpu.program.lower import lower
from headrace_cpu.program.program import Program
from headrace_cpu.program.schedule import Item, schedule
from headrace_cpu.program.settings import CompileSettings
from headrace_cpu.program.values import Values, is_native, is_unchecked


def compile_segment(segment: Segment) -> Program:
    """Return the program of a segment."""
    program = _compiled(segment, claimed=segment.options.optimize)
    if program.arena_bytes > _memory() // 2:
        # Plain kernels allocate as they go, and refuse what cannot be.
        program = _compiled(segment, claimed=False)
    return program


def _compiled(segment: Segment, *, claimed: bool) -> Program:
    settings = CompileSettings.of(segment.options)
    operations = [op for op in segment.graph.operations if not _is_given(op)]
    closed = [op for op in operations if not _is_open(op)]
    claims = Claims(operations, segment.outputs, closed)
    if claimed:
        claim(claims, settings)
    items = arranged(claims, settings) if claimed else schedule(claims)
    values = Values(segment, items)
    places = place_buffers(items, values)
    return Program(segment, items, values, places, lower(segment, items, values), settings)


def _memory() -> int:
    """Return how many bytes this process may have: the machine's, or its own limit."""
    machine = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    own, _ = resource.getrlimit(resource.RLIMIT_AS)
    return machine if own == resource.RLIM_INFINITY else min(machine, own)


def claim(claims: Claims, settings: CompileSettings) -> None:
    """Let instructions claim what they compute, the most special ones first."""
    from headrace_cpu.fusion.group import claim_fused
    from headrace_cpu.onednn.claim import claim_onednn
    from headrace_cpu.products.claim import claim_products, claim_uneven
    from headrace_cpu.products.claim_short import claim_short
    from headrace_cpu.windows.claim import claim_windows
    from headrace_cpu.winograd.claim import claim_winograd

    claim_uneven(claims, settings)
    claim_winograd(claims, settings)
    claim_short(claims, settings)
    claim_onednn(claims, settings)
    claim_windows(claims, settings)
    claim_products(claims, settings)
    claim_fused(claims, settings)


def arranged(claims: Claims, settings: CompileSettings) -> list[Item]:
    """Return the items of a program in their order, with what prepares what several share."""
    from headrace_cpu.products.packing import pack_shared

    return pack_shared(schedule(claims), settings.threads)


def _is_given(op: Operation) -> bool:
    """Whether an operation's value is there before the program runs."""
    return op.type == "Feed" or (op.type == "Const" and not op.control_inputs) or is_handle(op)


def _is_open(op: Operation) -> bool:
    """Whether instructions can compute an operation: it works on numbers of known shapes."""
    return not is_unchecked(op) and all(
        is_native(tensor) or (tensor.dtype.kind == "resource" and tensor in op.inputs)
        for tensor in (*op.inputs, *op.outputs)
    )
