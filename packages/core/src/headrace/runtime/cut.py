"""Cutting a plan's operations into units: what runs at one go, and what runs by itself.

Operations that wait for the same things form a segment, which a device may compile as a whole.
Two rules keep segments from holding anything up, or waiting for themselves by way of others:

* A *source* is an operation that may wait, or decides whether what follows is dead (a receive, a
  dequeue, a switch, a merge). An operation's label is the set of sources that it depends on
  directly, counting from the last ones; operations of one segment have one label. So a segment
  starts when the last of its sources has come, and its operations are all dead or all alive.
* What holds functions (a call, a condition, a loop) runs by itself, and what depends on it belongs
  to a later *level*.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass, field
from enum import Enum

from headrace.graph.operation import Operation


class Role(Enum):
    """What an operation is to cutting."""

    INSIDE = "may be part of a segment"
    SHARED = "a constant or handle, of which every unit has its own"
    SOURCE = "may wait, or may be dead"
    HOLDER = "holds functions"
    ALONE = "runs by itself, and nothing follows from it"


@dataclass(slots=True, eq=False)
class Unit:
    """Operations that run at one go.

    Attributes:
        ops: In an order in which they can run.
        segment: Whether they may be compiled together.
    """

    ops: list[Operation] = field(default_factory=list)
    segment: bool = False


_NONE: frozenset[Hashable] = frozenset()


def cut(
    order: Sequence[Operation],
    role: Callable[[Operation], Role],
    extra: Callable[[Operation], Iterable[Operation]] = lambda op: (),
) -> list[Unit]:
    """Return the units of a plan, in an order in which they can run.

    Args:
        order: The operations, in an order in which they can run.
        role: What each of them is to cutting.
        extra: What an operation waits for besides its inputs and control inputs.
    """
    labels: dict[Hashable, tuple[frozenset[Hashable], int]] = {}
    unions: dict[tuple[frozenset[Hashable], frozenset[Hashable]], frozenset[Hashable]] = {}
    segments: dict[Hashable, Unit] = {}
    unit_of: dict[Operation, Unit] = {}
    units: list[Unit] = []
    for op in order:
        kind = role(op)
        if kind is Role.SHARED:
            continue
        sources, level = _NONE, 0
        for needed in (*op.inputs, *op.control_inputs):
            more, depth = labels.get(needed, (_NONE, 0))
            if more is not sources and more:
                pair = (sources, more)
                sources = unions.get(pair) or unions.setdefault(pair, sources | more)
            level = max(level, depth)
        if kind is Role.INSIDE:
            key = (op.device_name, sources, level)
            unit = segments.get(key)
            if unit is None:
                unit = segments[key] = Unit(segment=True)
                units.append(unit)
            unit.ops.append(op)
        else:
            unit = Unit([op])
            units.append(unit)
        unit_of[op] = unit
        labels[op] = (frozenset([op]), level) if kind is Role.SOURCE else (sources, level)
        for tensor in op.outputs:
            if kind is Role.SOURCE:
                # Of the outputs of a switch one is dead, so each is a source of its own.
                labels[tensor] = (frozenset([tensor if len(op.outputs) > 1 else op]), level)
            else:
                labels[tensor] = (sources, level + (kind is Role.HOLDER))
        if kind is Role.HOLDER:
            labels[op] = (sources, level + 1)
    return _sorted(units, unit_of, extra)


def _sorted(
    units: list[Unit],
    unit_of: dict[Operation, Unit],
    extra: Callable[[Operation], Iterable[Operation]],
) -> list[Unit]:
    """Sort units so that each follows those that it waits for."""
    waits: dict[Unit, int] = {}
    users: dict[Unit, list[Unit]] = {unit: [] for unit in units}
    for unit in units:
        needed: dict[Unit, None] = {}
        for op in unit.ops:
            for other in (*(t.op for t in op.inputs), *op.control_inputs, *extra(op)):
                before = unit_of.get(other)
                if before is not None and before is not unit:
                    needed[before] = None
        waits[unit] = len(needed)
        for before in needed:
            users[before].append(unit)
    ready = [unit for unit in reversed(units) if not waits[unit]]
    found: list[Unit] = []
    while ready:
        unit = ready.pop()
        found.append(unit)
        for user in users[unit]:
            waits[user] -= 1
            if not waits[user]:
                ready.append(user)
    assert len(found) == len(units), "units wait for each other"
    return found
