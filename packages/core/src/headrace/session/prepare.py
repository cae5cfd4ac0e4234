"""Preparing a step: from fetches and feeds to partitions that are ready to run."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from headrace.device_name import DeviceName
from headrace.errors import FeedError, shorten
from headrace.graph.graph import Graph
from headrace.graph.operation import Operation
from headrace.graph.tensor import Tensor
from headrace.partition.communication_rounds import may_wait
from headrace.partition.control_joins import joined
from headrace.partition.distributed_control_flow import place_spread
from headrace.partition.partition import partition
from headrace.passes.inline_calls import inline_calls
from headrace.passes.pipeline import Stage
from headrace.passes.prune import extract
from headrace.passes.rewrites import Rewrite
from headrace.passes.step_graph import StepGraph
from headrace.passes.trim_loops import trim_unread
from headrace.placement.device_counts import as_counted
from headrace.placement.place import Machine, Placement
from headrace.plugins.host import host
from headrace.runtime.devices.options import surroundings, within
from headrace.session.config import Config


def machine_as_asked(config: Config, graph: Graph) -> Callable[[Machine], Machine]:
    """Return a function that makes of a machine what the steps of a session are placed on.

    Args:
        config: What the session asks of placement.
        graph: The program's graph.
    """
    soft, compress = config.allow_soft_placement, config.compress_transfers is not None
    counts = config.device_count
    model = config.placement_costs
    if config.placement is None and not (soft or compress or counts or model):
        return lambda machine: machine
    assignment = None
    if config.placement is not None:
        # lazy: few sessions have a policy
        from headrace.placement.assignment import Assignment

        assignment = Assignment(config.placement, graph)

    def as_asked(machine: Machine) -> Machine:
        found = as_counted(machine, counts)
        costs = None
        if model is not None:
            # lazy: few sessions place by cost
            from headrace.placement.cost_placement import Costs
            from headrace.session.limits import limits_by_kind

            costs = Costs(model, limits_by_kind(found, config.threads))
        return replace(found, soft=soft, assignment=assignment, compress=compress, costs=costs)

    return as_asked


def step_graph(
    feeds: Sequence[Tensor],
    fetches: Sequence[Tensor],
    targets: Sequence[Operation],
    machine: Machine,
    config: Config,
    done: frozenset[Operation] = frozenset(),
) -> tuple[StepGraph, tuple[Rewrite, ...]]:
    """Return the graph of a step, ready to be placed, and what passes of plugins did to it.

    Operations that are ``done`` ran in an earlier piece of a partial run.

    Raises:
        FeedError: if a placeholder that the step needs is not fed; names all of them.
        PlacementError: if the placement policy does not fit the program or the devices.
        RaceError: if races are refused, and the step has one.
    """
    # What is computed ahead comes out as it would in the step.
    with within(surroundings(config.device_options, host().devices)):
        return _step_graph(feeds, fetches, targets, machine, config, done)


def _step_graph(
    feeds: Sequence[Tensor],
    fetches: Sequence[Tensor],
    targets: Sequence[Operation],
    machine: Machine,
    config: Config,
    done: frozenset[Operation],
) -> tuple[StepGraph, tuple[Rewrite, ...]]:
    pipeline, checked = machine.pipeline, config.verify
    cut_out = extract(feeds, fetches, targets, done)
    step, rewrites = pipeline.run(Stage.INLINE, cut_out, checked=checked)
    missing = _placeholders(step)
    if missing:
        lines = ["a value must be fed for each of these placeholders, which the step needs:"]
        lines += [f"  {op.outputs[0].name} {op.outputs[0].spec} at {op.site}" for op in missing]
        raise FeedError(shorten(lines))
    if machine.assignment is not None:
        step = machine.assignment.apply(step, machine)
    if config.check_races:
        # lazy: few programs ask
        from headrace.session.races import refuse_races

        roots = (*(t.op for t in fetches), *targets)
        if roots:
            refuse_races(step, roots[0].graph.outermost)
    if config.options.optimize:
        step, more = pipeline.run(Stage.WHOLE, step, checked=checked)
        rewrites += more
    cut_out.replaced_by(step)
    return step, rewrites


def missing_feeds(
    feeds: Sequence[Tensor], fetches: Sequence[Tensor], targets: Sequence[Operation]
) -> list[Tensor]:
    """Return the placeholders that a step needs besides its feeds."""
    step = trim_unread(inline_calls(extract(feeds, fetches, targets)))
    names = {op.name for op in _placeholders(step)}
    graph = next(iter((*(t.graph for t in fetches), *(op.graph for op in targets))), None)
    return [] if graph is None else [op.outputs[0] for op in graph.operations if op.name in names]


def _placeholders(step: StepGraph) -> list[Operation]:
    return [op for op in step.graph.operations if op.type == "Placeholder"]


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
    if len(set(map(machine.part, set(placement.values())))) == 1:
        return partition(step, placement, machine.client, of=machine.part)
    if machine.compress:
        # lazy: few sessions compress
        from headrace.partition.compression import compressed

        step, placement = compressed(step, placement)
    step, placement = joined(step, placement)
    waits = may_wait(machine.kernels, placement)
    return partition(step, placement, machine.client, waits=waits, of=machine.part)


def log_placement(parts: Mapping[DeviceName, Graph]) -> None:
    """Print to the standard error where the operations of a step run."""
    for graph in parts.values():
        for op in graph.operations:
            sys.stderr.write(f"{op.name}: ({op.type}): {op.device_name}\n")


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
    found = {op.name: placement[op] for op in step.graph.operations if op.name in handles}
    new = found.keys() - pinned.keys()
    if new and machine.assignment is not None:
        machine.assignment.check_memory({**pinned, **found}, new)
    pinned.update(found)
    return step, placement


def _yields_handle(op: Operation) -> bool:
    return any(t.dtype.kind == "resource" for t in op.outputs)
