"""Compiling a region for a GPU: matches, order, memory, graphs, source."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from headrace import Operation
from headrace.errors import HeadraceError
from headrace.extend.devices import Region, is_handle
from headrace_cpu.for_backends import (
    Matches,
    Values,
    give_up,
    is_native,
    is_unchecked,
    lower,
    match,
    match_fused,
    place_buffers,
    schedule,
)
from headrace_cuda.fusion.kernel import FusedMaker
from headrace_cuda.fusion.text import is_written
from headrace_cuda.program.grouping import grouped
from headrace_cuda.program.matchers import MATCHERS
from headrace_cuda.program.memory import DeviceMemory
from headrace_cuda.program.platform import Platform
from headrace_cuda.program.program import CudaProgram, HostToHost
from headrace_cuda.program.settings import CudaSettings


def compile_region(
    region: Region, platform: Platform, memory: DeviceMemory, activate: Any
) -> HostToHost:
    """Return what runs a region.

    Args:
        region: The region.
        platform: The GPU.
        memory: Its memory.
        activate: Returns a context in which the GPU is used.
    """
    settings = CudaSettings.on(platform, region.options)

    def make(*, matched: bool) -> CudaProgram:
        if matched and region.options.optimize:
            try:
                return _program(region, settings, memory, matched=True)
            except HeadraceError as error:
                # What does not compile runs node by node, as it did before.
                give_up((op.type for op in region.graph.operations), error, settings.verify)
        return _program(region, settings, memory, matched=False)

    return HostToHost(region, make, activate, platform, settings.compile_after)


def _program(
    region: Region, settings: CudaSettings, memory: DeviceMemory, *, matched: bool
) -> CudaProgram:
    operations = [op for op in region.graph.operations if not _is_given(op)]
    matches = Matches(operations, region.outputs, _closed(region, operations))
    if matched:
        match(matches, settings, MATCHERS)
        match_fused(matches, settings, FusedMaker(settings.platform))
    single = schedule(matches)
    values = Values(region, single)
    places = place_buffers(single, values)
    # What is measured runs by itself.
    apart = region.options.recorder is not None
    items = grouped(single, values, settings.platform, region.outputs, single=apart)
    lowered = lower(region, items, values)
    given = region, items, values, places, lowered, settings, settings.platform, memory, single
    return CudaProgram(*given)


def _closed(region: Region, operations: Sequence[Operation]) -> list[Operation]:
    """Return the operations that no instruction may compute."""
    return [
        op for op in operations if op in region.reserved or not _is_open(op) or not is_written(op)
    ]


def _is_given(op: Operation) -> bool:
    """Whether an operation's value is there before the program runs."""
    return op.type == "Feed" or (op.type == "Const" and not op.control_inputs) or is_handle(op)


def _is_open(op: Operation) -> bool:
    """Whether instructions can compute an operation: it works on numbers of known shapes."""
    return not is_unchecked(op) and all(
        is_native(tensor) or (tensor.dtype.kind == "resource" and tensor in op.inputs)
        for tensor in (*op.inputs, *op.outputs)
    )
