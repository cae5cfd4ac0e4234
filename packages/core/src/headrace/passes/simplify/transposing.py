"""Rules for transpositions: merged, moved past elementwise ops, and left to matrix products."""

from __future__ import annotations

from headrace.passes.simplify.matching import inner, ints_of, only_user, perm_of
from headrace.passes.simplify.replacement import Replacement
from headrace.passes.simplify.rules import ELEMENTWISE, RuleTable
from headrace.passes.simplify.workgraph import Node, Value

RULES = RuleTable()


@RULES.add("known-order", "TransposeBy", reason="the order of the axes is known before the step")
def _known_order(node: Node, replacement: Replacement) -> Value | None:
    perm = ints_of(node.inputs[1])
    if perm is None:
        return None
    return replacement.add("Transpose", node.inputs[0], perm=tuple(perm))


@RULES.add("transpose-nothing", "Transpose", reason="every axis stays where it is")
def _transpose_nothing(node: Node, replacement: Replacement) -> Value | None:
    perm = perm_of(node)
    return node.inputs[0] if perm is not None and list(perm) == sorted(perm) else None


@RULES.add("transpose-of-transpose", "Transpose", reason="two orders of axes are one")
def _transpose_of_transpose(node: Node, replacement: Replacement) -> Value | None:
    first = inner(node.inputs[0], "Transpose")
    second = perm_of(node)
    before = None if first is None else perm_of(first)
    if first is None or second is None or before is None:
        return None
    order = tuple(before[p] for p in second)
    x = first.inputs[0]
    return x if list(order) == sorted(order) else replacement.add("Transpose", x, perm=order)


@RULES.add(
    *("transpose-units", "Transpose"),
    reason="axes of one element move without moving elements: another shape only",
)
def _transpose_units(node: Node, replacement: Replacement) -> Value | None:
    x, perm, dims = node.inputs[0], perm_of(node), Value(node, 0).dims
    if x.dims is None or perm is None or dims is None or 0 in dims:
        return None
    long = [p for p in perm if x.dims[p] != 1]
    return replacement.reshape(x, dims) if long == sorted(long) else None


def _swaps_last(node: Node | None) -> bool:
    perm = None if node is None else perm_of(node)
    if perm is None or len(perm) < 2:
        return False
    rank = len(perm)
    return perm == (*range(rank - 2), rank - 1, rank - 2)


@RULES.add(
    *("transposed-operand", "MatMul"),
    after=("Transpose",),
    reason="products read their operands transposed if asked to",
)
def _transposed_operand(node: Node, replacement: Replacement) -> Value | None:
    a, b = (inner(v, "Transpose") for v in node.inputs)
    swap_a, swap_b = _swaps_last(a), _swaps_last(b)
    if not (swap_a or swap_b):
        return None
    left = a.inputs[0] if a is not None and swap_a else node.inputs[0]
    right = b.inputs[0] if b is not None and swap_b else node.inputs[1]
    return replacement.add(
        "MatMul",
        left,
        right,
        transpose_a=node.attrs["transpose_a"] != swap_a,
        transpose_b=node.attrs["transpose_b"] != swap_b,
    )


@RULES.add(
    *("transposed-product", "Transpose"),
    reason="the transposed product is that of the transposed operands in the other order; within "
    "rounding",
)
def _transposed_product(node: Node, replacement: Replacement) -> Value | None:
    product = inner(node.inputs[0], "MatMul")
    if product is None or not _swaps_last(node) or not only_user(product):
        return None
    a, b = product.inputs
    return replacement.add(
        "MatMul",
        b,
        a,
        transpose_a=not product.attrs["transpose_b"],
        transpose_b=not product.attrs["transpose_a"],
    )


@RULES.add(
    *("transpose-past-elementwise", "Transpose"),
    reason="elementwise ops do not care about the order of the axes; done where it undoes the "
    "transpositions of their inputs",
)
def _transpose_past_elementwise(node: Node, replacement: Replacement) -> Value | None:
    middle = node.inputs[0].node
    perm = perm_of(node)
    usable = middle.schema.elementwise and not middle.controls and not middle.fixed
    if not usable or perm is None or not only_user(middle):
        return None
    inputs = [_undone(value, perm) for value in middle.inputs]
    known = [v for v in inputs if v is not None]
    if len(known) < len(inputs) or all(v.rank == 0 for v in known):
        return None
    grouped = middle.schema.group(known, middle.arity)
    made = replacement.add(middle.type, *grouped, **middle.attrs)
    return made if made.rank == len(perm) else None


def _undone(value: Value, perm: tuple[int, ...]) -> Value | None:
    """Return a value before a transposition that ``perm`` undoes; a scalar as it is."""
    if value.rank == 0:
        return value
    first = inner(value, "Transpose")
    before = None if first is None else perm_of(first)
    if first is None or before is None or len(before) != len(perm):
        return None
    order = [before[p] for p in perm]
    return first.inputs[0] if order == sorted(order) else None


@RULES.add(
    *("transposed-operands", ELEMENTWISE),
    after=("Transpose",),
    reason="operands in one order of axes are combined before it: one transposition for two",
)
def _transposed_operands(node: Node, replacement: Replacement) -> Value | None:
    if len(node.inputs) < 2:
        return None
    found = [None if v.rank == 0 else inner(v, "Transpose") for v in node.inputs]
    moved = [t for t in found if t is not None]
    if len(set(moved)) < 2 or any(not only_user(t) for t in moved):
        return None
    orders = {perm_of(t) for t in moved}
    scalars = all(t is not None or v.rank == 0 for t, v in zip(found, node.inputs, strict=True))
    if len(orders) != 1 or None in orders or not scalars:
        return None
    inputs = [v if t is None else t.inputs[0] for t, v in zip(found, node.inputs, strict=True)]
    return replacement.add("Transpose", replacement.again(inputs), perm=orders.pop())
