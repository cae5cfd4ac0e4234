"""What rules ask about nodes: their inputs, constants, axes and uses."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from headrace.ops.reduce import reduced_axes
from headrace.passes.simplify.workgraph import Node, Value

_NDArray = np.ndarray[Any, np.dtype[Any]]

# Larger constants are not looked into, except for whether all their elements are equal.
MAX_LOOKED_INTO = 4096
_MAX_COMPARED = 1 << 20


def inner(value: Value, *types: str) -> Node | None:
    """Return the node that yields a value if it is of one of the types and may be looked through.

    A node with control inputs may not: what replaces it would no longer wait for them.
    """
    node = value.node
    return node if node.type in types and not node.controls and not node.fixed else None


def only_user(node: Node) -> bool:
    """Whether one node alone takes a node's outputs."""
    return len(node.users) == 1 and not node.fetched and not node.waiting


def array_of(value: Value) -> _NDArray | None:
    """Return a constant's value, None for anything else and for large ones."""
    node = value.node
    if node.type != "Const" or node.controls:
        return None
    found: _NDArray = node.attrs["value"]
    return found if found.size <= MAX_LOOKED_INTO else None


def ints_of(value: Value) -> list[int] | None:
    """Return the integers of a constant vector, or of a list that the shape rules know."""
    found = array_of(value)
    return None if found is None or found.ndim != 1 else [int(v) for v in found]


def cannot_fail(node: Node) -> bool:
    """Whether a reshape cannot fail: its shape is known, or is that of a tensor."""
    if node.type != "Reshape" or node.inputs[1].node.type == "Const":
        return True
    return inner(node.inputs[1], "Shape") is not None


def uniform(value: Value) -> Any:
    """Return the scalar that all elements of a value are, None where they are not known equal.

    Looks through constants, fills and repetitions. The result has the value's dtype; zeros of
    both signs are different.
    """
    node = value.node
    # Each step goes up one edge; a chain of repetitions is merged by rules before it gets long.
    for _ in range(4):
        if node.controls:
            return None
        if node.type == "Const":
            return _uniform_constant(node)
        if node.type == "Fill":
            node = node.inputs[1].node
        elif node.schema.view or node.type in ("BroadcastTo", "Tile"):
            node = node.inputs[0].node
        else:
            return None
    return None


def _uniform_constant(node: Node) -> Any:
    if node.uniform is None:
        array: _NDArray = node.attrs["value"]
        node.uniform = False
        if 0 < array.size <= _MAX_COMPARED and array.dtype != object:
            flat = np.ascontiguousarray(array).reshape(-1)
            first = flat[0]
            kind = f"u{flat.itemsize}" if flat.itemsize <= 8 else None
            bits = flat.view(kind) if kind is not None else flat.view("u8").reshape(-1, 2)
            if (bits == bits[0]).all():
                node.uniform = (first,)
    return node.uniform[0] if node.uniform else None


def is_zero(scalar: Any, *, negative: bool | None = None) -> bool:
    """Whether a scalar is 0; of the sign asked for, where one is."""
    if scalar is None or scalar != 0:
        return False
    if negative is None:
        return True
    # Of a complex zero both parts have a sign; none is taken for the one or the other.
    return not isinstance(scalar, np.complexfloating) and negative == (
        math.copysign(1, float(scalar)) < 0
    )


def number_and_other(node: Node) -> Iterator[tuple[Any, Value, Value]]:
    """Yield each input of a binary op that is one number, and the other input.

    Yields triples of the number, the input that it comes from, and the other input.
    """
    x, y = node.inputs
    for value, other in ((y, x), (x, y)):
        scalar = uniform(value)
        if scalar is not None:
            yield scalar, value, other


def keeps_shape(node: Node, value: Value) -> bool:
    """Whether the output of a node has the shape of a value, for certain."""
    mine, given = node.specs[0].shape.dims, value.spec.shape.dims
    if mine is None or given is None or len(mine) != len(given):
        return False
    if None not in given:
        return mine == given
    return _unit_beside(node, value)


def _unit_beside(node: Node, value: Value) -> bool:
    """Whether all other inputs of an elementwise op have one element, and no more axes."""
    if not node.schema.elementwise:
        return False
    rank = value.rank or 0
    others = [v for v in node.inputs if v is not value and v != value]
    return all(
        v.dims is not None and len(v.dims) <= rank and all(d == 1 for d in v.dims) for v in others
    )


def axes_of(node: Node) -> tuple[int, ...] | None:
    """Return the axes that a reduction folds, from the front; None where the rank is not known."""
    rank = node.inputs[0].rank
    return None if rank is None else tuple(sorted(reduced_axes(node.attrs["axis"], rank)))


def class_axis(node: Node) -> int | None:
    """Return the axis of a softmax from the front; None where the rank is not known."""
    rank = node.inputs[0].rank
    axis = node.attrs["axis"]
    if rank is None:
        return None
    return rank - 1 if axis is None else axis % rank


def perm_of(node: Node) -> tuple[int, ...] | None:
    """Return the permutation of a transposition, from the front; None where it is not known."""
    perm: Sequence[int] | None = node.attrs["perm"]
    if perm is not None:
        return tuple(p % len(perm) for p in perm)
    rank = node.inputs[0].rank
    return None if rank is None else tuple(range(rank))[::-1]


def pairs(node: Node) -> tuple[tuple[Value, Value], tuple[Value, Value]]:
    """Return the two inputs of a commutative op in both orders."""
    x, y = node.inputs
    return (x, y), (y, x)
