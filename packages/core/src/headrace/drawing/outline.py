"""What a drawing of a graph shows: operations collapsed by name scope to a number of boxes.

Constants and the nodes to which nearly everything is tied would hide the structure: they are set
aside, and named on the boxes that use them.
"""

from __future__ import annotations

import heapq
import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field

from headrace.arguments import text, whole
from headrace.drawing.text import brief_value
from headrace.graph.graph import Graph
from headrace.graph.operation import Operation

# As many as one takes in at a glance.
MAX_BOXES = 40
# A grouping node that waits for this many others is set aside.
_MANY_CONTROLS = 6
# So is a box that is tied to this many others, and to more than a third of all.
_MANY_NEIGHBOURS = 12
_NUMBERED = re.compile(r"(.*?)(_\d+)?", re.DOTALL)


@dataclass(eq=False)
class Box:
    """A box of the drawing: one operation, or several under one name.

    Attributes:
        name: The operation's name, or the scope's.
        kind: "op", "variable", "scope", or "group" (operations of like names, or all the rest).
        operations: All that it stands for.
        children: The boxes inside, where it is drawn open.
        links: For each pair of children: the tensors that flow from the one to the other, None
            among them for control edges.
        aside: Short names of what it uses of the nodes set aside.
        parent: The open box around it.
    """

    name: str
    kind: str
    operations: list[Operation]
    children: list[Box] = field(default_factory=list)
    links: dict[tuple[Box, Box], list[str | None]] = field(default_factory=dict)
    aside: list[str] = field(default_factory=list)
    parent: Box | None = None

    @property
    def label(self) -> str:
        """The last part of its name."""
        return self.name.rpartition("/")[2] or self.name


@dataclass
class Outline:
    """What to draw.

    Attributes:
        root: An open box with all of it.
        aside: Boxes set aside that are not constants.
        constants: Number of constants set aside.
    """

    root: Box
    aside: list[Box]
    constants: int


def outline(graph: Graph, scope: str = "", max_boxes: int = MAX_BOXES) -> Outline:
    """Return what to draw of the operations in a name scope.

    Args:
        graph: The graph.
        scope: The scope, without a trailing slash; all operations if empty.
        max_boxes: How many boxes to draw at most.

    Raises:
        ArgumentTypeError: if the scope is no string, or ``max_boxes`` no whole number.
    """
    text(scope, "scope")
    chosen = [o for o in graph.operations if not scope or o.name.startswith(f"{scope}/")]
    consumed = {t.op for op in chosen for t in op.inputs}
    constants = {
        op for op in chosen if op.type == "Const" and op in consumed and not op.control_inputs
    }
    shown = [op for op in chosen if op not in constants]
    root = Box(scope, "scope", shown)
    _open_scopes(root, max(1, whole(max_boxes, "max_boxes")))
    where = {op: box for box in _leaves(root) for op in box.operations}
    _link(where)
    aside = _set_aside(root)
    for box in _leaves(root):
        if box.kind == "op":
            op = box.operations[0]
            box.aside = [*_constant_inputs(op, constants), *box.aside]
    return Outline(root, aside, len(constants))


def _leaves(box: Box) -> Iterable[Box]:
    if not box.children:
        yield box
    for child in box.children:
        yield from _leaves(child)


# -- scopes


def _open_scopes(root: Box, budget: int) -> None:
    """Open scopes, outer and small ones first, while the boxes stay within the budget."""
    root.children = _grouped(_children(root), budget)
    total = len(root.children)
    queue: list[tuple[int, int, int, Box]] = []
    serial = 0

    def enqueue(box: Box, depth: int) -> None:
        nonlocal serial
        for child in box.children:
            child.parent = box
            if child.kind == "scope":
                serial += 1
                heapq.heappush(queue, (depth, len(child.operations), serial, child))

    enqueue(root, 0)
    while queue:
        depth, _, _, box = heapq.heappop(queue)
        children = _children(box)
        if total + len(children) - 1 <= budget:
            box.children = children
            total += len(children) - 1
            enqueue(box, depth + 1)


def _children(box: Box) -> list[Box]:
    """Return the boxes one level inside a scope, in the order of their first operations."""
    prefix = len(box.name) + 1 if box.name else 0
    found: dict[tuple[str, bool], Box] = {}
    for op in box.operations:
        head, slash, _ = op.name[prefix:].partition("/")
        name = op.name[:prefix] + head
        # The handle of a variable has the name of the scope of what belongs to it.
        inside = bool(slash) or op.type == "VarHandle"
        known = found.get((name, inside))
        if known is None:
            found[name, inside] = Box(name, "scope" if inside else "op", [op])
        else:
            known.operations.append(op)
    return [_narrowed(child) for child in found.values()]


def _narrowed(box: Box) -> Box:
    """Return a scope as what it is in truth: a variable, a single operation, or a scope."""
    if box.kind == "scope" and any(
        op.type == "VarHandle" and op.name == box.name for op in box.operations
    ):
        box.kind = "variable"
    elif box.kind == "scope" and len(box.operations) == 1:
        return Box(box.operations[0].name, "op", box.operations)
    return box


def _grouped(children: list[Box], budget: int) -> list[Box]:
    """Return at most ``budget`` boxes: those with names that differ in their number, as one."""
    if len(children) <= budget:
        return children
    groups: dict[tuple[str, str], list[Box]] = {}
    for child in children:
        stem = _NUMBERED.fullmatch(child.name)
        key = stem[1] if stem is not None else child.name
        kind = child.operations[0].type if child.kind == "op" else child.kind
        groups.setdefault((key, kind), []).append(child)
    boxes = [
        members[0]
        if len(members) == 1
        else Box(key, "group", [op for m in members for op in m.operations])
        for (key, _), members in groups.items()
    ]
    if len(boxes) <= budget:
        return boxes
    rest = [op for box in boxes[budget - 1 :] for op in box.operations]
    return [*boxes[: budget - 1], Box("all others", "group", rest)]


# -- edges


def _link(where: dict[Operation, Box]) -> None:
    for op, box in where.items():
        for tensor in op.inputs:
            if tensor.op in where:
                _connect(where[tensor.op], box, f"{tensor.name} {tensor.spec}")
        for other in op.control_inputs:
            if other in where:
                _connect(where[other], box, None)


def _connect(source: Box, target: Box, tensor: str | None) -> None:
    """Add an edge between the two boxes that stand side by side in one open box."""
    if source is target:
        return
    ups, downs = _chain(source), _chain(target)
    for a, b in zip(ups, downs, strict=False):
        if a is not b:
            assert a.parent is not None
            a.parent.links.setdefault((a, b), []).append(tensor)
            return


def _chain(box: Box) -> list[Box]:
    """Return the boxes from the outermost down to ``box``."""
    chain = [box]
    while chain[-1].parent is not None:
        chain.append(chain[-1].parent)
    return chain[::-1]


def _set_aside(root: Box) -> list[Box]:
    """Take out the boxes to which too many others are tied; return them."""
    aside: list[Box] = []
    boxes = [root]
    while boxes:
        box = boxes.pop()
        boxes += [child for child in box.children if child.children]
        degree = Counter(end for pair in box.links for end in pair)
        many = max(_MANY_NEIGHBOURS, len(box.children) // 3)
        taken = {child for child in box.children if degree[child] > many or _is_bookkeeping(child)}
        if not taken or len(taken) == len(box.children):
            continue
        for source, target in box.links:
            if source in taken and target not in taken and target.kind == "op":
                target.aside.append(source.label)
        box.links = {pair: v for pair, v in box.links.items() if taken.isdisjoint(pair)}
        aside += [child for child in box.children if child in taken]
        box.children = [child for child in box.children if child not in taken]
    return aside


def _is_bookkeeping(box: Box) -> bool:
    op = box.operations[0]
    return box.kind == "op" and op.type == "NoOp" and len(op.control_inputs) >= _MANY_CONTROLS


def _constant_inputs(op: Operation, constants: set[Operation]) -> list[str]:
    return [brief_value(t.op.attrs["value"]) for t in op.inputs if t.op in constants]
