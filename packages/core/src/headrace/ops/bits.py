"""Bitwise ops on integers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from headrace import dtypes
from headrace.graph.convert import as_tensor
from headrace.graph.dispatch import KINDS
from headrace.graph.schema import OPERATORS
from headrace.graph.tensor import Tensor
from headrace.ops.declare import Spec
from headrace.ops.elementwise import logical_and, logical_not, logical_or, logical_xor
from headrace.ops.kinds import Integer
from headrace.ops.pointwise import joined, like, pointwise

_BITS = "bits of integers have no derivative"


@pointwise(
    "BitwiseAnd",
    exact=True,
    commutative=True,
    no_gradient=_BITS,
    expression=lambda s, x, y: x & y,
    public="bitwise.bitwise_and",
)
def bitwise_and(x: Integer, y: Integer) -> Spec:
    """The bits that are set in both, elementwise with broadcasting."""
    return joined(x, y)


@pointwise(
    "BitwiseOr",
    exact=True,
    commutative=True,
    no_gradient=_BITS,
    expression=lambda s, x, y: x | y,
    public="bitwise.bitwise_or",
)
def bitwise_or(x: Integer, y: Integer) -> Spec:
    """The bits that are set in at least one, elementwise with broadcasting."""
    return joined(x, y)


@pointwise(
    "BitwiseXor",
    exact=True,
    commutative=True,
    no_gradient=_BITS,
    expression=lambda s, x, y: x ^ y,
    public="bitwise.bitwise_xor",
)
def bitwise_xor(x: Integer, y: Integer) -> Spec:
    """The bits that are set in exactly one, elementwise with broadcasting."""
    return joined(x, y)


@pointwise(
    "Invert",
    exact=True,
    no_gradient=_BITS,
    expression=lambda s, x: ~x,
    public="bitwise.invert",
)
def invert(x: Integer) -> Spec:
    """All bits flipped."""
    return like(x)


@pointwise(
    "LeftShift",
    no_gradient=_BITS,
    expression=lambda s, x, y: s.left_shift(x, y),
    public="bitwise.left_shift",
)
def left_shift(x: Integer, y: Integer) -> Spec:
    """``x`` shifted left by ``y`` bits, elementwise with broadcasting.

    Shifts below 0 count as 0, and those by all bits or more as one bit less than all.
    """
    return joined(x, y)


@pointwise(
    "RightShift",
    no_gradient=_BITS,
    expression=lambda s, x, y: s.right_shift(x, y),
    public="bitwise.right_shift",
)
def right_shift(x: Integer, y: Integer) -> Spec:
    """``x`` shifted right by ``y`` bits, elementwise with broadcasting; keeps the sign.

    Shifts below 0 count as 0, and those by all bits or more as one bit less than all.
    """
    return joined(x, y)


@pointwise("PopulationCount", gives="uint8", no_gradient=_BITS, public="bitwise.population_count")
def population_count(x: Integer) -> Spec:
    """How many bits are set, in two's complement."""
    return joined(x, dtype=dtypes.uint8)


def _operator(logical: Callable[..., Tensor], bitwise: Callable[..., Tensor]) -> Any:
    """Return what an operator of Python does: logic on bool, and bits on integers."""

    def apply(*operands: Any, name: str | None = None) -> Tensor:
        tensors = (v if type(v) in KINDS else as_tensor(v) for v in operands)
        dtype = next(t.dtype for t in tensors if t is not None)
        return (bitwise if dtype.is_integer else logical)(*operands, name=name)

    return apply


OPERATORS["and"] = _operator(logical_and, bitwise_and)
OPERATORS["or"] = _operator(logical_or, bitwise_or)
OPERATORS["xor"] = _operator(logical_xor, bitwise_xor)
OPERATORS["invert"] = _operator(logical_not, invert)
