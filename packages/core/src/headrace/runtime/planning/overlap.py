"""Loops whose iterations overlap: which operations of one iteration need what of the one before.

An operation of an iteration can run as soon as the values that it takes are there, though others of
the iteration before still run or wait, as in the frames of TensorFlow (Yu et al., Dynamic Control
Flow in Large-Scale Machine Learning, EuroSys 2018, section 4.3). Here the body is a plan; so it is
the plan's nodes that wait for some of the loop's variables, and fill others.

That pays where something waits, or calls the program's own code, before all that waits in the
iteration before has ended. Whatever does more than compute keeps the order of the iterations:

* What changes something, and what reads it where the loop changes anything, waits until the
  iterations before are done. So nothing is changed that an iteration before, which fails, would
  have left as it was.
* What draws random numbers, or observes something, waits for what does so in the iteration before.
* Calls of the program's own code keep no order, as within a step. What is to keep one says so with
  data or control dependencies, and functions that are traced do.
"""

from __future__ import annotations

from enum import IntEnum

from headrace.graph.operation import Operation
from headrace.records import dataclass
from headrace.runtime.builtin import ARGUMENTS, RESULTS
from headrace.runtime.execution.plan import Mode, Plan, PlanNode
from headrace.runtime.regions.region import is_handle
from headrace.runtime.transfers.rendezvous import Edge

# What moves values, whatever its schema says of effects.
_ENDS = frozenset((*ARGUMENTS, *RESULTS, "Send", "Recv"))


class Order(IntEnum):
    """What an operation waits for of the iteration before, besides the values that it takes."""

    FREE = 0  # nothing
    DRAWS = 1  # what draws or observes there, too
    READS = 2  # all of it, where the loop changes anything
    CHANGES = 3  # all of it


@dataclass(frozen=True, slots=True, eq=False)
class OverlappedLoop:
    """A loop whose iterations overlap, with the nodes of its body by their places in its plan.

    Attributes:
        body: The plan of the body. Its first arguments are the loop's variables, of which its first
            results are the next values.
        cond: The plan of the condition, which takes the variables first.
        variables: How many variables there are.
        most: How many iterations may be under way at a time.
        takers: For each variable the nodes that take it.
        fills: For each node the variables that it fills.
        last: The nodes that wait until the iterations before are done.
        drawing: The nodes that wait for those that draw in the iteration before.
        asked: The variables that the condition takes.
        asked_last: Whether the condition waits until the iterations before are done.
    """

    body: Plan
    cond: Plan
    variables: int
    most: int
    takers: tuple[tuple[int, ...], ...]
    fills: tuple[tuple[int, ...], ...]
    last: tuple[int, ...]
    drawing: tuple[int, ...]
    asked: tuple[int, ...]
    asked_last: bool


def overlapped_loop(
    op: Operation, cond: Plan, body: Plan, variables: int, *, counted: bool
) -> OverlappedLoop | None:
    """Return how the iterations of a loop overlap; None where they run one after the other.

    Args:
        op: The ``While``.
        cond: The plan of its condition.
        body: The plan of its body.
        variables: How many of the body's first arguments are the first results of the iteration
            before.
        counted: Whether it is known before the first iteration how many there are.
    """
    most = op.attrs["parallel_iterations"]
    if most < 2 or not body.waits or _crosses_tasks(body) or _crosses_tasks(cond):
        return None
    orders = [_order_of_node(node) for node in body.nodes]
    of_cond = max(map(_order_of_node, cond.nodes), default=Order.FREE)
    changes = Order.CHANGES in (*orders, of_cond)
    least = Order.READS if changes else Order.CHANGES
    takes = [_taken(node, variables) for node in body.nodes]
    loop = OverlappedLoop(
        body,
        cond,
        variables,
        most,
        tuple(tuple(i for i, t in enumerate(takes) if v in t) for v in range(variables)),
        tuple(_filled(node, variables) for node in body.nodes),
        tuple(i for i, order in enumerate(orders) if order >= least),
        tuple(i for i, order in enumerate(orders) if order is Order.DRAWS),
        tuple(sorted({v for node in cond.nodes for v in _taken(node, variables)})),
        of_cond >= least or of_cond is Order.DRAWS,
    )
    return loop if _gains(loop, counted) else None


def _crosses_tasks(plan: Plan) -> bool:
    """Whether a plan sends to another task, or receives.

    Between tasks iterations have no names: both ends go through them in the same order.
    """
    ends: dict[str, set[Edge]] = {"Send": set(), "Recv": set()}
    for node in plan.nodes:
        for op in node.ops:
            if op.type in ends:
                ends[op.type].add(Edge.of(op))
        if any(map(_crosses_tasks, node.inner)):
            return True
    return ends["Send"] != ends["Recv"]


def _order_of_node(node: PlanNode) -> Order:
    if node.inner:
        nodes = (inner for plan in node.inner for inner in plan.nodes)
        return max(map(_order_of_node, nodes), default=Order.FREE)
    return max(map(order_of, node.ops), default=Order.FREE)


def order_of(op: Operation) -> Order:
    """Return what an operation that holds no function waits for of the iteration before."""
    schema = op.schema
    if schema.calls_out or op.type in _ENDS or is_handle(op):
        return Order.FREE
    if schema.changes or schema.blocking or op.holds_state:
        return Order.CHANGES
    if "reads" in schema.effects:
        return Order.READS
    return Order.DRAWS if schema.effects else Order.FREE


def _taken(node: PlanNode, variables: int) -> tuple[int, ...]:
    """Return the variables that a node takes from the step, not from other nodes."""
    if node.region is not None:
        return tuple(i for i in node.region.feeds if i < variables)
    index = node.op.attrs["index"] if node.op.type in ARGUMENTS else variables
    return (index,) if index < variables else ()


def _filled(node: PlanNode, variables: int) -> tuple[int, ...]:
    if node.region is not None:
        return tuple(i for i in node.region.fetches if i < variables)
    index = node.op.attrs["index"] if node.op.type in RESULTS else variables
    return (index,) if index < variables else ()


def _gains(loop: OverlappedLoop, counted: bool) -> bool:
    """Whether something that waits need not wait for all that waits in the iteration before."""
    nodes = loop.body.nodes
    waiting = [i for i, node in enumerate(nodes) if _may_wait(node)]
    after: list[int] = [0] * len(nodes)
    for i in range(len(nodes) - 1, -1, -1):
        after[i] = 1 << i
        for user in nodes[i].users:
            after[i] |= after[user]
    of_waiting = sum(1 << i for i in waiting)
    whole = (1 << len(nodes)) - 1
    needs_turn = {*loop.last, *loop.drawing}
    for i in waiting:
        filled = {v for j in range(len(nodes)) if after[i] >> j & 1 for v in loop.fills[j]}
        begun = {j for v in filled for j in loop.takers[v]}
        begun.update(loop.last)
        if needs_turn.intersection(j for j in loop.drawing if after[i] >> j & 1):
            begun.update(loop.drawing)
        asks = not counted and (loop.asked_last or not filled.isdisjoint(loop.asked))
        held_up = whole if asks else 0
        for j in begun:
            held_up |= after[j]
        if of_waiting & ~held_up:
            return True
    return False


def _may_wait(node: PlanNode) -> bool:
    return node.mode in (Mode.BLOCKING, Mode.CALLS_OUT) or any(plan.waits for plan in node.inner)
