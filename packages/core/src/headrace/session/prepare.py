"""Preparing a step: from fetches and feeds to partitions that are ready to run."""

from __future__ import annotations

from collections.abc import Sequence

from headrace.device_name import DeviceName
from headrace.errors import FeedError, shorten
from headrace.graph.graph import Graph
from headrace.graph.operation import Operation
from headrace.graph.tensor import Tensor
from headrace.partition.partition import partition
from headrace.passes.dedupe import dedupe
from headrace.passes.fold import fold
from headrace.passes.inline import inline_calls
from headrace.passes.prune import extract, prune
from headrace.passes.step_graph import StepGraph, verify
from headrace.placement.place import Machine, Placement
from headrace.plugins.registries import KernelRegistry
from headrace.runtime.nested import evaluate
from headrace.session.config import Config
from headrace.session.spread import place_spread


def step_graph(
    feeds: Sequence[Tensor],
    fetches: Sequence[Tensor],
    targets: Sequence[Operation],
    kernels: KernelRegistry,
    config: Config,
) -> StepGraph:
    """Return the graph of a step after all passes.

    Raises:
        FeedError: if a placeholder that the step needs is not fed; names all of them.
    """
    step = inline_calls(extract(feeds, fetches, targets))
    missing = _placeholders(step)
    if missing:
        lines = ["a value must be fed for each of these placeholders, which the step needs:"]
        lines += [f"  {op.outputs[0].name} {op.outputs[0].spec} at {op.site}" for op in missing]
        raise FeedError(shorten(lines))
    if config.options.optimize:
        step = fold(step, lambda op, inputs: evaluate(op, inputs, kernels))
        _check(step, config)
        step = prune(dedupe(step))
    _check(step, config)
    return step


def missing_feeds(
    feeds: Sequence[Tensor], fetches: Sequence[Tensor], targets: Sequence[Operation]
) -> list[Tensor]:
    """Return the placeholders that a step needs besides its feeds."""
    names = {op.name for op in _placeholders(inline_calls(extract(feeds, fetches, targets)))}
    graph = next(iter((*(t.graph for t in fetches), *(op.graph for op in targets))), None)
    return [] if graph is None else [op.outputs[0] for op in graph.operations if op.name in names]


def _placeholders(step: StepGraph) -> list[Operation]:
    return [op for op in step.graph.operations if op.type == "Placeholder"]


def _check(step: StepGraph, config: Config) -> None:
    if config.verify:
        verify(step)


def place_and_partition(
    step: StepGraph,
    machine: Machine,
    graph: Graph,
    pinned: dict[str, DeviceName],
    *,
    optimize: bool = True,
) -> dict[DeviceName, Graph]:
    """Place a step and split it by device; arguments as for ``place_step``."""
    step, placement = place_step(step, machine, graph, pinned, optimize=optimize)
    return partition(step, placement, machine.client)


def place_step(
    step: StepGraph,
    machine: Machine,
    graph: Graph,
    pinned: dict[str, DeviceName],
    *,
    optimize: bool = True,
) -> tuple[StepGraph, Placement]:
    """Return a step, with what holds operations for several tasks spread, and all devices.

    Args:
        step: The step.
        machine: The devices.
        graph: The program's graph, of which all users of the step's state are considered.
        pinned: Devices of state placed by earlier steps; those of this step are added.
        optimize: Whether to simplify the bodies of loops that run on several tasks.
    """
    users: dict[str, list[Operation]] = {}
    handles = {op.name for op in step.graph.operations if _yields_handle(op)}
    if handles - pinned.keys():
        for op in graph.operations:
            for tensor in op.inputs:
                if tensor.op.name in handles:
                    users.setdefault(tensor.op.name, []).append(op)
    step, placement = place_spread(step, machine, pinned, users, optimize=optimize)
    for op in step.graph.operations:
        if op.name in handles:
            pinned[op.name] = placement[op]
    return step, placement


def _yields_handle(op: Operation) -> bool:
    return any(t.dtype.kind == "resource" for t in op.outputs)
