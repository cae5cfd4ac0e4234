"""Rounds of communication: what the values of a step wait for on other tasks.

A value that crosses from one task to another belongs to a *round*: one more than the last value
from elsewhere on the way to it. Within a step without operations that wait, tasks can therefore
work in phases: whoever has run all that needs values of earlier rounds only can wait for all values
of the next round at once, and nobody waits for itself by way of others. Values of one round that
wait for the same operations besides travel, arrive and are waited for together.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Mapping
from typing import NamedTuple

from headrace.device_name import DeviceName
from headrace.graph.function import functions_within
from headrace.graph.operation import Operation
from headrace.passes.evaluate import kernel_dtype
from headrace.plugins.registries.kernels import KernelRegistry
from headrace.records import dataclass

# Receives that wait for more kinds of operations than fit into this wait by themselves.
_MAX_SOURCES = 62


@dataclass(frozen=True, slots=True)
class Readiness:
    """When an operation can run.

    Attributes:
        round: How many values cross between tasks, one after the other, before it can.
        sources: The operations before it that may wait, each as a bit; -1 where they are too many.
        may_be_dead: Whether it may not run at all.
    """

    round: int = 0
    sources: int = 0
    may_be_dead: bool = False


_AT_ONCE = Readiness()


class Crossing(NamedTuple):
    """What both ends of a transfer know of when it happens.

    Attributes:
        round: The round of the value; 0 if the receiver waits for it by itself.
        sources: The operations before it that may wait, each as a bit.
        may_be_dead: Whether the news may come that there is no value.
    """

    round: int = 0
    sources: int = 0
    may_be_dead: bool = False


def readiness(
    operations: Iterable[Operation],
    placement: Mapping[Operation, DeviceName],
    waits: Callable[[Operation], bool],
) -> dict[Operation, Readiness]:
    """Return when the operations of a step can run.

    Args:
        operations: The operations, each after what it needs.
        placement: Their devices.
        waits: Whether an operation may wait for something outside the step.
    """
    found: dict[Operation, Readiness] = {}
    tasks: dict[Operation, DeviceName] = {}
    count = 0
    for op in operations:
        if op.type == "Const" and not op.control_inputs:
            continue
        task = tasks[op] = placement[op].task_name
        phase, sources = 0, 0
        dead = may_branch(op)
        for needed in dict.fromkeys((*(t.op for t in op.inputs), *op.control_inputs)):
            before = found.get(needed, _AT_ONCE)
            crosses = needed in tasks and tasks[needed] != task
            phase = max(phase, before.round + crosses)
            sources |= before.sources
            dead = dead or before.may_be_dead
        if waits(op):
            sources = sources | 1 << count if count < _MAX_SOURCES else -1
            count += 1
        found[op] = Readiness(phase, sources, dead) if phase or sources or dead else _AT_ONCE
    return found


def may_wait(
    kernels: KernelRegistry, placement: Mapping[Operation, DeviceName]
) -> Callable[[Operation], bool]:
    """Return what tells whether an operation may wait for something outside its step.

    What holds functions may wait inside them, and of what this process has no kernel nothing is
    known.
    """

    def waits(op: Operation) -> bool:
        schema = op.schema
        if schema.blocking or schema.calls_out or any(True for _ in functions_within(op)):
            return True
        if schema.builtin or op.type == "NoOp":
            return False
        found = kernels.candidates(op.type, placement[op].kind or "", kernel_dtype(op))
        return not found or any(kernel.style == "blocking" for kernel in found)

    return waits


def may_branch(op: Operation) -> bool:
    """Whether values may be dead from an operation on."""
    if op.type == "Recv":
        return bool(op.attrs["may_be_dead"])
    return op.schema.may_be_dead or op.type == "Merge"


def crossing(ready: Readiness, source: DeviceName, destination: DeviceName) -> Crossing:
    """Return what is known of the transfer between devices of what an operation yields."""
    within_task = source.task_name == destination.task_name
    if within_task or ready.may_be_dead or ready.sources < 0:
        return Crossing(may_be_dead=ready.may_be_dead)
    return Crossing(ready.round + 1, ready.sources)


def phases(receives: Iterable[Operation]) -> dict[Operation, int] | None:
    """Return which phase each receive of a plan belongs to, from 1 on.

    Returns:
        None where the plan must not wait for its receives in any order: for one of them alone, or
        if what a later round waits for is not all that an earlier one does.
    """
    keys = {op: (op.attrs["round"], op.attrs["sources"]) for op in receives}
    chain = sorted(set(keys.values()))
    chain.sort(key=lambda key: (key[0], key[1].bit_count()))
    if chain and not chain[0][0]:
        return None
    if any(a & ~b for (_, a), (_, b) in itertools.pairwise(chain)):
        return None
    number = {key: i for i, key in enumerate(chain, 1)}
    return {op: number[key] for op, key in keys.items()}
