"""Rules for reductions."""

from __future__ import annotations

import math
from collections.abc import Sequence

from headrace.passes.simplify.matching import axes_of, inner, only_user, perm_of
from headrace.passes.simplify.replacement import Replacement
from headrace.passes.simplify.rules import RuleTable
from headrace.passes.simplify.workgraph import Node, Value

RULES = RuleTable()

_ALL = (
    *("ReduceSum", "ReduceMean", "ReduceProd", "ReduceMax", "ReduceMin"),
    *("ReduceAll", "ReduceAny"),
)


@RULES.add(
    "reduce-single",
    *_ALL,
    reason="no axis, or axes of one element, leave the elements; which zero a sum of zeros is was "
    "never certain",
)
def _reduce_single(node: Node, replacement: Replacement) -> Value | None:
    x, dims, axes = node.inputs[0], Value(node, 0).dims, axes_of(node)
    if axes == ():
        return x
    if dims is None or x.dims is None or axes is None:
        return None
    return replacement.reshape(x, dims) if all(x.dims[axis] == 1 for axis in axes) else None


@RULES.add(
    *("reduce-of-reduce", *_ALL),
    reason="folding axes one after the other folds them all; sums and means within rounding",
)
def _reduce_of_reduce(node: Node, replacement: Replacement) -> Value | None:
    first = inner(node.inputs[0], node.type)
    dims = Value(node, 0).dims
    if first is None or dims is None or not only_user(first):
        return None
    if node.type == "ReduceMean" and node.specs[0].dtype.is_integer:
        return None
    x, before, after = first.inputs[0], axes_of(first), axes_of(node)
    if before is None or after is None or (node.type == "ReduceMean" and x.dims is None):
        return None
    rank = x.rank or 0
    # Which axis of ``x`` each axis in between is.
    between = [a for a in range(rank) if first.attrs["keepdims"] or a not in before]
    axes = tuple(sorted({*before, *(between[a] for a in after)}))
    return replacement.reshape(replacement.add(node.type, x, axis=axes, keepdims=False), dims)


def _spread_axes(x: tuple[int, ...], wide: tuple[int, ...]) -> list[int]:
    """Return the axes of ``wide`` along which a tensor of the shape ``x`` was repeated."""
    lead = len(wide) - len(x)
    return [a for a, d in enumerate(wide) if d != (x[a - lead] if a >= lead else 1)]


def _folded_source(node: Node, replacement: Replacement) -> tuple[Value, int] | None:
    """Return what is left to repeat no more, and how many equal elements each one stands for.

    The first is the reduction of what the input repeats, over the other axes alone, in the
    shape of the result; None where the input repeats nothing along the folded axes.
    """
    spread = inner(node.inputs[0], "BroadcastTo", "Fill")
    dims, wide, axes = Value(node, 0).dims, node.inputs[0].dims, axes_of(node)
    if spread is None or dims is None or wide is None or axes is None:
        return None
    x = spread.inputs[spread.type == "Fill"]
    if x.dims is None or 0 in wide:
        return None
    repeated = [a for a in _spread_axes(x.dims, wide) if a in axes]
    if not repeated:
        return None
    lead = len(wide) - len(x.dims)
    count = math.prod(wide[a] for a in repeated)
    rest = tuple(a - lead for a in axes if a >= lead and a not in repeated)
    folded = replacement.add(node.type, x, axis=rest, keepdims=True) if rest else x
    return _arranged(replacement, folded, axes, lead, node.attrs["keepdims"], dims), count


def _arranged(
    replacement: Replacement,
    x: Value,
    axes: Sequence[int],
    lead: int,
    keepdims: bool,
    dims: tuple[int, ...],
) -> Value:
    """Drop folded axes of size 1, and repeat along those that were not folded."""
    sizes = (1,) * lead + (x.dims or ())
    kept = [1 if a in axes else d for a, d in enumerate(sizes)]
    if not keepdims:
        kept = [d for a, d in enumerate(kept) if a not in axes]
    return replacement.broadcast(replacement.reshape(x, kept), dims)


@RULES.add(
    *("sum-of-broadcast", "ReduceSum"),
    reason="the sum of n equal elements is n times the element, with fewer roundings",
)
def _sum_of_broadcast(node: Node, replacement: Replacement) -> Value | None:
    dtype = node.specs[0].dtype
    found = _folded_source(node, replacement)
    if found is None or dtype.is_complex:
        return None
    source, count = found
    if dtype.is_floating and count > 2**dtype.significand:
        return None
    if dtype.is_integer and count > dtype.max:
        return None
    return replacement.add("Mul", source, replacement.constant(count, dtype))


@RULES.add(
    *("fold-of-broadcast", "ReduceMean", "ReduceMax", "ReduceMin", "ReduceAll", "ReduceAny"),
    reason="the mean, largest and smallest of equal elements are the element itself",
)
def _fold_of_broadcast(node: Node, replacement: Replacement) -> Value | None:
    if node.specs[0].dtype.is_complex:
        return None
    found = _folded_source(node, replacement)
    return None if found is None else found[0]


@RULES.add(
    *("reduce-of-transpose", *_ALL),
    after=("Transpose",),
    reason="the other axes are folded instead; sums within rounding, since their order differs",
)
def _reduce_of_transpose(node: Node, replacement: Replacement) -> Value | None:
    moved = inner(node.inputs[0], "Transpose")
    axes = axes_of(node)
    order = None if moved is None else perm_of(moved)
    if moved is None or axes is None or order is None:
        return None
    kept = [order[a] for a in range(len(order)) if a not in axes]
    if kept != sorted(kept) or (
        node.attrs["keepdims"] and sorted(order[a] for a in axes) != [*axes]
    ):
        return None
    folded = tuple(sorted(order[a] for a in axes))
    return replacement.add(node.type, moved.inputs[0], axis=folded, keepdims=node.attrs["keepdims"])


@RULES.add("sum-to-shape", "SumToShape", reason="the axes that it folds are known before the step")
def _sum_to_shape(node: Node, replacement: Replacement) -> Value | None:
    x, dims = node.inputs[0], Value(node, 0).dims
    if x.dims is None or dims is None:
        shape = inner(node.inputs[1], "Shape")
        return x if shape is not None and shape.inputs[0] == x else None
    if x.dims == dims:
        return x
    if len(dims) > len(x.dims):
        return None
    return replacement.reshape(
        replacement.add("ReduceSum", x, axis=tuple(_spread_axes(dims, x.dims)), keepdims=True), dims
    )
