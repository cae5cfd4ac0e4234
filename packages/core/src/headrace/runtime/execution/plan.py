"""Plans: a step's nodes in an order in which they can run, with kernels and slots resolved.

Every value of a step has a slot, a number. A node knows the slots that it reads and writes, and
the call that computes it; nothing is looked up by name while a step runs.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import field
from enum import IntEnum
from typing import TYPE_CHECKING, Any

from headrace.graph.operation import Operation
from headrace.plugins.ownership import CORE, Provider
from headrace.records import dataclass
from headrace.runtime.failures import StateUses
from headrace.runtime.regions.region import Program, RegionCall
from headrace.runtime.transfers.rendezvous import Edge
from headrace.runtime.transfers.send_receive import Receiver, Sender

if TYPE_CHECKING:
    from headrace.runtime.execution.chain import Chain
    from headrace.runtime.execution.parallel import ParallelRuns


class Mode(IntEnum):
    """How a node's call is made."""

    PLAIN = 0  # call(*values)
    STEP = 1  # call(step, *values)
    BLOCKING = 2  # call(step, done, *values)
    SEND = 3  # call(step, value), also for a dead value
    MERGE = 4  # f(index) makes the second output; the first is the first living value
    INVOKES = 5  # call(*values) is a generator of runs of other plans
    CALLS_OUT = 6  # call(*values), which may wait


@dataclass(slots=True, eq=False)
class PlanNode:
    """One node of a plan.

    Attributes:
        op: The operation, for messages; of a region, its first.
        mode: How ``call`` is made.
        call: What computes the node.
        inputs: Slots of its values.
        controls: Slots of operations that it waits for.
        outputs: Slots that it fills.
        control: The slot that tells others that it has run.
        single: Whether there is one output, whose value ``call`` may return without a sequence.
        frees: Slots that nothing reads after this node, in the order of the plan.
        users: Indices of the nodes that wait for this one.
        waits: How many nodes it waits for.
        region: The region that it is, None for a node of one operation.
        inner: The plans of the functions that it holds.
        provider: Who provides what it calls.
    """

    op: Operation
    mode: Mode
    call: Callable[..., Any]
    inputs: tuple[int, ...]
    controls: tuple[int, ...]
    outputs: tuple[int, ...]
    control: int
    single: bool
    frees: tuple[int, ...] = ()
    users: list[int] = field(default_factory=list)
    waits: int = 0
    region: RegionCall | None = None
    inner: tuple[Plan, ...] = ()
    provider: Provider = CORE

    @property
    def ops(self) -> tuple[Operation, ...]:
        """The operations that it runs."""
        return (self.op,) if self.region is None else self.region.operations


@dataclass(frozen=True, slots=True, eq=False)
class Stretch:
    """Nodes of a plan that run one after the other, and what they wait for together.

    Attributes:
        receivers: What is received before.
        edges: The transfers of that.
        slots: For each the slot that it fills, -1 where nobody reads it.
        nodes: What runs then; nothing of it waits.
        waiting: The nodes of what is received.
        departure: What is sent after that, None for nothing.
        stays: Whether what is received goes into its slots as it is.
    """

    receivers: tuple[Receiver, ...]
    edges: tuple[Edge, ...]
    slots: tuple[int, ...]
    nodes: tuple[PlanNode, ...]
    waiting: tuple[PlanNode, ...]
    departure: Departure | None = None
    stays: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class Departure:
    """What a stretch sends when all else of it has run.

    Attributes:
        nodes: The nodes that send.
        senders: What they call.
        edges: The transfers.
        slots: The slot of each value.
        frees: Slots that nothing reads any more then.
        stays: Whether arrays are sent as they are.
    """

    nodes: tuple[PlanNode, ...]
    senders: tuple[Sender, ...]
    edges: tuple[Edge, ...]
    slots: tuple[int, ...]
    frees: tuple[int, ...]
    stays: bool


def readers(nodes: Sequence[PlanNode], slots: Sequence[Any]) -> tuple[int, ...]:
    """Return how many inputs of nodes take the value of each slot, -1 of presets, which stay."""
    found = [0 if value is None else -1 for value in slots]
    for node in nodes:
        for slot in node.inputs:
            found[slot] += found[slot] >= 0
    return tuple(found)


def stretches(nodes: Sequence[PlanNode]) -> tuple[Stretch, ...]:
    """Return the stretches of a plan that waits for receives only, in their order."""
    found: list[Stretch] = []
    runs = itertools.groupby(nodes, lambda node: isinstance(node.call, Receiver))
    waiting: tuple[PlanNode, ...] = ()
    for receives, group in runs:
        if receives:
            waiting = tuple(group)
        else:
            found.append(_stretch(waiting, tuple(group)))
            waiting = ()
    return (*found, _stretch(waiting, ())) if waiting else tuple(found)


def _stretch(waiting: tuple[PlanNode, ...], nodes: tuple[PlanNode, ...]) -> Stretch:
    receivers = tuple(node.call for node in waiting if isinstance(node.call, Receiver))
    edges = tuple(receiver.edge for receiver in receivers)
    slots = tuple(-1 if node.frees else node.outputs[0] for node in waiting)
    stays = all(receiver.stays for receiver in receivers)
    last = len(nodes)
    while last and isinstance(nodes[last - 1].call, Sender):
        last -= 1
    if last == len(nodes):
        return Stretch(receivers, edges, slots, nodes, waiting, None, stays)
    return Stretch(receivers, edges, slots, nodes[:last], waiting, _departure(nodes[last:]), stays)


def _departure(nodes: tuple[PlanNode, ...]) -> Departure:
    senders = tuple(node.call for node in nodes if isinstance(node.call, Sender))
    return Departure(
        nodes,
        senders,
        tuple(sender.edge for sender in senders),
        tuple(node.inputs[0] for node in nodes),
        tuple(slot for node in nodes for slot in node.frees),
        all(sender.stays for sender in senders),
    )


@dataclass(frozen=True, slots=True, eq=False)
class Plan:
    """What one process does in one step.

    Attributes:
        nodes: In an order in which each comes after what it waits for.
        slots: What the slots hold before the step: constants, handles, and None.
        fetches: How many values the step hands back.
        waits: Whether a node may wait for something outside.
        branches: Whether values may be dead.
        in_turn: Whether its nodes can run in their order, whatever they wait for.
        contexts: What makes the contexts in which it runs: those of its devices, and those that
            options of devices ask for.
        transfers: Whether values cross between its devices, also inside functions.
        state_uses: The operations that take a resource: the type of each, and the resource.
        whole: Runs the plan from feeds to fetches, where it is one region and nothing else.
        stretches: The nodes once more, where they run in their order.
        most_calls: How many calls of the program's own code may run at one time; None for any
            number.
        beside: Runs nodes that take long on several threads, where that is asked for.
        first: The places of the nodes that wait for no other.
        missing: For how many others each node waits.
        readers: How many inputs take the value of each slot; -1 where it belongs to the plan.
        chain: The nodes once more, where each that waits needs the one before it.
        loops: Whether there are loops inside of its regions.
    """

    nodes: tuple[PlanNode, ...]
    slots: tuple[Any, ...]
    fetches: int
    waits: bool
    branches: bool
    contexts: tuple[Callable[[], AbstractContextManager[Any] | None], ...]
    transfers: bool = False
    state_uses: StateUses = ()
    whole: Program | None = None
    in_turn: bool = False
    stretches: tuple[Stretch, ...] = ()
    most_calls: int | None = None
    beside: ParallelRuns | None = None
    first: tuple[int, ...] = ()
    missing: tuple[int, ...] = ()
    readers: tuple[int, ...] = ()
    chain: Chain | None = None
    loops: bool = False

    @property
    def operations(self) -> list[Operation]:
        """All operations that it runs."""
        return [op for node in self.nodes for op in node.ops]
