"""Clustering: a plan's operations in units, of which each runs in one call, or by itself.

Operations that wait for the same things form a region, which a device may compile as a whole.
Two rules keep regions from holding anything up, or waiting for themselves by way of others:

* A *source* is an operation that may wait, or decides whether what follows is dead (a receive, a
  dequeue, a switch, a merge). An operation's label is the set of sources that it depends on
  directly, counting from the last ones; operations of one region have one label. So a region
  starts when the last of its sources has come, and its operations are all dead or all alive.
* Receives that are waited for together are one source. Where a plan waits for them in phases, one
  phase after the other, what depends on a later one depends on the earlier ones, too.
* What holds functions (a call, a condition, a loop) runs by itself, and what depends on it belongs
  to a later *level*.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum

from headrace.device_name import DeviceName
from headrace.graph.operation import Operation
from headrace.topological_sort import in_order


class Role(Enum):
    """What an operation is to cutting."""

    INSIDE = "may be part of a region"
    SHARED = "a constant, handle or argument, of which every unit has its own"
    SOURCE = "may wait, or may be dead"
    HOLDER = "holds functions"
    ALONE = "runs by itself, and nothing follows from it"


@dataclass(slots=True, eq=False)
class Unit:
    """Operations that run at one go.

    Attributes:
        ops: In an order in which they can run.
        region: Whether they may be compiled together.
    """

    ops: list[Operation] = field(default_factory=list)
    region: bool = False


class Phase(int):
    """Names the receives of one phase, in a plan that waits for one phase after the other."""

    __slots__ = ()


_NONE: frozenset[Hashable] = frozenset()


def cluster(
    order: Sequence[Operation],
    role: Callable[[Operation], Role],
    extra: Callable[[Operation], Iterable[Operation]] = lambda op: (),
    joint: Callable[[Operation], Hashable | None] = lambda op: None,
    parts: Mapping[DeviceName, DeviceName] | None = None,
) -> list[Unit]:
    """Return the units of a plan, in an order in which they can run.

    Args:
        order: The operations, in an order in which they can run.
        role: What each of them is to cutting.
        extra: What an operation waits for besides its inputs and control inputs.
        joint: Of a source, what stands for all that are waited for together, a ``Phase`` where
            there is one phase after the other; None where it is waited for by itself. Of an
            operation inside of a region, the phase that it waits for without need; of a shared
            one, what its value is waited for with; else None.
        parts: For each device the one that compiles what is on it; None where each does.
    """
    labels: dict[Hashable, tuple[frozenset[Hashable], int]] = {}
    unions: dict[tuple[frozenset[Hashable], frozenset[Hashable]], frozenset[Hashable]] = {}
    regions: dict[Hashable, Unit] = {}
    # Where the last operation inside of a region went, by what decides that.
    at: tuple[DeviceName | None, frozenset[Hashable], int] = (None, _NONE, -1)
    last = Unit(region=True)
    unit_of: dict[Operation, Unit] = {}
    units: list[Unit] = []
    for op in order:
        kind = role(op)
        if kind is Role.SHARED:
            awaited = joint(op)
            if awaited is not None:
                labels.update(dict.fromkeys((op, *op.outputs), (frozenset([awaited]), 0)))
            continue
        sources, level = _NONE, 0
        for needed in (*op.inputs, *op.control_inputs) if op.control_inputs else op.inputs:
            known = labels.get(needed)
            if known is None:
                continue
            more, depth = known
            if more is not sources and more:
                pair = (sources, more)
                sources = unions.get(pair) or unions.setdefault(pair, _union(*pair))
            if depth > level:
                level = depth
        if kind is Role.INSIDE:
            late = joint(op)
            if late is not None:
                sources = _union(sources, frozenset([late]))
            device = op.device_name if parts is None else parts[op.device_name]
            if level != at[2] or sources is not at[1] or device is not at[0]:
                at = (device, sources, level)
                if at not in regions:
                    regions[at] = Unit(region=True)
                    units.append(regions[at])
                last = regions[at]
            unit = last
            unit.ops.append(op)
        else:
            unit = Unit([op])
            units.append(unit)
        unit_of[op] = unit
        if kind is Role.INSIDE:
            if level or sources:
                labels.update(dict.fromkeys((op, *op.outputs), (sources, level)))
            continue
        name = joint(op) if kind is Role.SOURCE else None
        alone = frozenset([op if name is None else name])
        labels[op] = (alone, level) if kind is Role.SOURCE else (sources, level)
        for tensor in op.outputs:
            if kind is Role.SOURCE:
                # Of the outputs of a switch one is dead, so each is a source of its own. Those of
                # what waits come together.
                labels[tensor] = (frozenset([tensor]) if op.type == "Switch" else alone, level)
            else:
                labels[tensor] = (sources, level + (kind is Role.HOLDER))
        if kind is Role.HOLDER:
            labels[op] = (sources, level + 1)
    return _sorted(units, unit_of, extra)


def _union(left: frozenset[Hashable], right: frozenset[Hashable]) -> frozenset[Hashable]:
    both = left | right
    phases = [source for source in both if isinstance(source, Phase)]
    return both.difference(phases) | {max(phases)} if len(phases) > 1 else both


def _sorted(
    units: list[Unit],
    unit_of: dict[Operation, Unit],
    extra: Callable[[Operation], Iterable[Operation]],
) -> list[Unit]:
    """Sort units so that each follows those that it waits for."""
    needed: dict[Unit, dict[Unit, None]] = {}
    for unit in units:
        found: dict[Unit, None] = {}
        for op in unit.ops:
            for tensor in op.inputs:
                other = unit_of.get(tensor.op)
                if other is not unit and other is not None:
                    found[other] = None
            for waited in (*op.control_inputs, *extra(op)):
                other = unit_of.get(waited)
                if other is not unit and other is not None:
                    found[other] = None
        needed[unit] = found
    return in_order(units, needed.__getitem__)
