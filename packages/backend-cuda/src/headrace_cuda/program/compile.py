"""Compiling a region for a GPU: matches, order, memory, graphs, source."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Sequence
from typing import Any

from headrace import Operation
from headrace.errors import HeadraceError
from headrace.extend.devices import Region
from headrace_cpu.for_backends import (
    Matches,
    Unfit,
    Values,
    built,
    fusible,
    give_up,
    is_given,
    is_open,
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
    operations = [op for op in region.graph.operations if not is_given(op)]
    matches = Matches(operations, region.outputs, _closed(region, operations))
    if matched:
        match(matches, settings, MATCHERS)
        maker = FusedMaker(settings.platform)
        match_fused(matches, settings, maker)
        _match_alone(matches, settings, maker)
    single = schedule(matches)
    values = Values(region, single)
    places = place_buffers(single, values)
    # What is measured runs by itself.
    apart = region.options.recorder is not None
    items = grouped(single, values, settings.platform, region.outputs, single=apart)
    lowered = lower(region, items, values)
    given = region, items, values, places, lowered, settings, settings.platform, memory, single
    return CudaProgram(*given)


def _match_alone(matches: Matches, settings: CudaSettings, maker: FusedMaker) -> None:
    """Give operations a kernel that no group took, such as a transposition that is reshaped.

    By itself each would end a graph. What only shows memory in another shape needs none.
    """
    for number, op in enumerate(matches.operations):
        if not matches.free(op) or op.schema.view or not fusible(op):
            continue
        wanted = [t for t in op.outputs if matches.needed_outside(t, (op,))]
        with contextlib.suppress(Unfit):
            builder = functools.partial(built, [op])
            matches.add(maker.kernel([op], builder, wanted, settings, f"alone_{number}"))


def _closed(region: Region, operations: Sequence[Operation]) -> list[Operation]:
    """Return the operations that no instruction may compute."""
    return [
        op for op in operations if op in region.reserved or not is_open(op) or not is_written(op)
    ]
