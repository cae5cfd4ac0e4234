"""Elementwise ops: arithmetic, rounding, comparisons, logic and choice, with broadcasting."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from headrace import dtypes
from headrace.dtypes import DType
from headrace.errors import ShapeError
from headrace.graph.convert import (
    contains_tensor,
    convert_to_tensor,
    holds_nothing,
    is_python_literal,
    natural_dtype,
)
from headrace.graph.dispatch import dispatched
from headrace.graph.naming import names_result
from headrace.graph.schema import OPERATORS
from headrace.graph.scopes import name_scope
from headrace.graph.spec import TensorSpec
from headrace.graph.tensor import Tensor
from headrace.ops.conversion import cast
from headrace.ops.declare import Spec, op
from headrace.ops.kinds import Bool, Float, Floating, Inexact, Numeric, Real, Same, Summable
from headrace.ops.pointwise import DISCRETE, compared, joined, like, pointwise

# -- arithmetic


@pointwise("Add", exact=True, commutative=True, early=np.add, expression=lambda s, x, y: x + y)
def add(x: Summable, y: Summable) -> Spec:
    """Sum ``x + y``, elementwise with broadcasting; strings are joined."""
    return joined(x, y)


@pointwise(
    "Sub", exact=True, early=np.subtract, expression=lambda s, x, y: x - y, public="subtract"
)
def subtract(x: Numeric, y: Numeric) -> Spec:
    """Difference ``x - y``, elementwise with broadcasting."""
    return joined(x, y)


@pointwise(
    "Mul",
    exact=True,
    commutative=True,
    early=np.multiply,
    expression=lambda s, x, y: x * y,
    public="multiply",
)
def multiply(x: Numeric, y: Numeric) -> Spec:
    """Product ``x * y``, elementwise with broadcasting."""
    return joined(x, y)


@pointwise(
    "MulNoNan", expression=lambda s, x, y: s.where(y == 0, 0, x * y), public="multiply_no_nan"
)
def multiply_no_nan(x: Inexact, y: Inexact) -> Spec:
    """Product ``x * y`` that is 0 wherever ``y`` is 0, even if ``x`` is infinite or NaN."""
    return joined(x, y)


@pointwise(
    "Div", exact=True, node_name="RealDiv", expression=lambda s, x, y: x / y, public="realdiv"
)
def realdiv(x: Inexact, y: Inexact) -> Spec:
    """Quotient ``x / y`` of floating or complex tensors; infinities and NaN where ``y`` is 0."""
    return joined(x, y)


@pointwise("DivNoNan", expression=lambda s, x, y: s.where(y == 0, 0, x / y), public="")
def _div_no_nan(x: Inexact, y: Inexact) -> Spec:
    """Quotient of floating or complex tensors that is 0 wherever ``y`` is 0."""
    return joined(x, y)


@dispatched("x", "y")
def divide(x: Any, y: Any, name: str | None = None) -> Tensor:
    """Quotient ``x / y``, elementwise with broadcasting; integers are divided as floats.

    Args:
        x: [...], numeric. 8 and 16 bit integers are divided as float32, wider ones as float64.
        y: [...], the dtype of ``x``.
        name: The name of the operation.

    Returns:
        The broadcast shape, floating or complex.
    """
    return realdiv(*_as_floats(x, y), name=name or "truediv")


truediv = divide
OPERATORS["truediv"] = divide


@dispatched("x", "y")
def div_no_nan(x: Any, y: Any, name: str | None = None) -> Tensor:
    """Quotient ``x / y`` that is 0 wherever ``y`` is 0, even if ``x`` is infinite or NaN.

    Args:
        x: [...], numeric. 8 and 16 bit integers are divided as float32, wider ones as float64.
        y: [...], the dtype of ``x``.
        name: The name of the operation.

    Returns:
        The broadcast shape, floating or complex.
    """
    return _div_no_nan(*_as_floats(x, y), name=name)


def _as_floats(x: Any, y: Any) -> tuple[Any, Any]:
    """Return what is divided, integers as floats."""
    dtype = _data_dtype(x)
    other = _data_dtype(y)
    # What a list of nothing holds, and plain booleans, are of the dtype of what they meet.
    plain = [v for v in (x, y) if is_python_literal(v)]
    if len(plain) == 1:
        known = other if plain[0] is x else dtype
        met = dtype if plain[0] is x else other
        if known.is_integer and (met.is_bool or holds_nothing(plain[0])):
            dtype = other = known
    if not (dtype.is_integer and other.is_integer):
        return x, y
    # Python's numbers take the dtype of the tensors they meet, and make nothing wider.
    sizes = [d.itemsize for v, d in ((x, dtype), (y, other)) if not is_python_literal(v)]
    wide = dtypes.float32 if sizes and max(sizes) <= 2 else dtypes.float64
    return cast(x, wide), cast(y, wide)


def div(x: Any, y: Any, name: str | None = None) -> Tensor:
    """Quotient as Python 2 has it: rounded towards minus infinity between integers.

    Args:
        x: [...], numeric.
        y: [...], the dtype of ``x``.
        name: The name of the operation.

    Returns:
        The broadcast shape, the dtype of ``x``. An integer divided by 0 raises when it runs.
    """
    whole = _data_dtype(x).is_integer and _data_dtype(y).is_integer
    quotient = floordiv if whole else realdiv
    return quotient(x, y, name=name or "div")


OPERATORS["div"] = div


def _data_dtype(value: Any) -> DType:
    tensor = value if isinstance(value, Tensor) else None
    if tensor is None and (contains_tensor(value) or hasattr(value, "_as_tensor")):
        return getattr(value, "dtype", None) or convert_to_tensor(value).dtype
    return natural_dtype(value) if tensor is None else tensor.dtype


_OR_RAISES = "the dtype of ``x``; an integer divided by 0 raises when it runs"


@pointwise(
    "FloorDiv",
    node_name="floordiv",
    early=np.floor_divide,
    expression=lambda s, x, y: s.floor(x / y),
    gives=_OR_RAISES,
    no_gradient=DISCRETE,
)
def floordiv(x: Real, y: Real) -> Spec:
    """Quotient rounded towards minus infinity, elementwise with broadcasting."""
    return joined(x, y)


@pointwise(
    "TruncateDiv", expression=lambda s, x, y: s.trunc(x / y), gives=_OR_RAISES, no_gradient=DISCRETE
)
def truncatediv(x: Real, y: Real) -> Spec:
    """Quotient rounded towards 0, as C divides integers; elementwise with broadcasting."""
    return joined(x, y)


@pointwise("FloorMod", early=np.mod, gives=_OR_RAISES)
def floormod(x: Real, y: Real) -> Spec:
    """Remainder of the division rounded towards minus infinity; has the sign of ``y``."""
    return joined(x, y)


@pointwise("TruncateMod", gives=_OR_RAISES)
def truncatemod(x: Real, y: Real) -> Spec:
    """Remainder of the division rounded towards 0; has the sign of ``x``."""
    return joined(x, y)


@pointwise("Pow", expression=lambda s, x, y: s.pow(x, y), public="pow")
def power(x: Numeric, y: Numeric) -> Spec:
    """Power ``x ** y``, elementwise with broadcasting.

    Integers raised to a negative power raise when they run.
    """
    return joined(x, y)


@pointwise("Maximum", exact=True, early=np.maximum, expression=lambda s, x, y: s.maximum(x, y))
def maximum(x: Real, y: Real) -> Spec:
    """The larger of ``x`` and ``y``, elementwise with broadcasting; NaN where either is."""
    return joined(x, y)


@pointwise("Minimum", exact=True, early=np.minimum, expression=lambda s, x, y: s.minimum(x, y))
def minimum(x: Real, y: Real) -> Spec:
    """The smaller of ``x`` and ``y``, elementwise with broadcasting; NaN where either is."""
    return joined(x, y)


@pointwise(
    "Neg", exact=True, early=np.negative, expression=lambda s, x: -x, sparse=True, public="negative"
)
def negative(x: Numeric) -> Spec:
    """Negation ``-x``."""
    return like(x)


@pointwise("Abs", exact=True, nonnegative=True, expression=lambda s, x: abs(x), public="")
def real_abs(x: Real) -> Spec:
    """Absolute value of real numbers."""
    return like(x)


def _sign_of(s: Any, x: Any) -> Any:
    below = s.where(x < 0, -1, x)
    # What is neither above nor below 0 is 0 or NaN: itself, but not -0.
    return s.where(x > 0, 1, s.where(x == 0, 0, below))


@pointwise("Sign", exact=True, expression=_sign_of, public="")
def real_sign(x: Real) -> Spec:
    """-1, 0 or 1 as ``x`` is negative, zero or positive; NaN where ``x`` is."""
    return like(x)


@pointwise("Square", exact=True, nonnegative=True, expression=lambda s, x: x * x, sparse=True)
def square(x: Numeric) -> Spec:
    """Square ``x * x``."""
    return like(x)


@dispatched("x", "y")
@names_result
def squared_difference(x: Any, y: Any, name: str | None = None) -> Tensor:
    """``(x - y) * conj(x - y)``, elementwise with broadcasting.

    Args:
        x: [...], numeric.
        y: [...], the dtype of ``x``.
        name: The name of the operations.

    Returns:
        The broadcast shape, the dtype of ``x``.
    """
    with name_scope(name, "SquaredDifference"):
        difference = subtract(x, y)
        if difference.dtype.is_complex:
            return multiply(difference, conj(difference))
        return square(difference)


@pointwise("Reciprocal", exact=True, expression=lambda s, x: 1 / x)
def reciprocal(x: Inexact) -> Spec:
    """``1 / x``; infinite where ``x`` is 0."""
    return like(x)


@pointwise("NextAfter", public="nextafter")
def nextafter(x1: Float, x2: Float) -> Spec:
    """The float next to ``x1`` in the direction of ``x2``, elementwise with broadcasting."""
    return joined(x1, x2)


@pointwise("Conj", aliases=["x"], public="")
def _conj(x: Inexact) -> Spec:
    """Complex conjugate."""
    return like(x)


@dispatched("x")
def conj(x: Any, name: str | None = None) -> Tensor:
    """Complex conjugate of ``x``; a real tensor is returned as it is.

    Args:
        x: [...], numeric.
        name: The name of the operation.

    Returns:
        [...], the dtype of ``x``.

    Raises:
        DTypeError: if ``x`` is not numeric.
    """
    tensor = convert_to_tensor(x)
    if tensor.dtype.is_floating or tensor.dtype.is_integer:
        return tensor
    return _conj(tensor, name=name)


def _sum_of(s: Any, inputs: list[Any]) -> Any:
    total = inputs[0]
    for x in inputs[1:]:
        total = total + x
    return total


@op("AddN", elements_of="inputs", expression=_sum_of)
def add_n(inputs: Sequence[Numeric]) -> Spec:
    """Sum of any number of tensors of one shape, added from first to last.

    Args:
        inputs: At least one tensor [...], numeric, all of one shape and dtype.

    Returns:
        [...], the dtype of the inputs.

    Raises:
        ShapeError: if the shapes differ: they are not broadcast.
    """
    shape = inputs[0].shape
    for i, spec in enumerate(inputs):
        if not shape.is_compatible_with(spec.shape):
            raise ShapeError(f"inputs must have one shape, got {spec.shape} at {i} after {shape}")
        shape = shape.merge_with(spec.shape)
    return TensorSpec(inputs[0].dtype, shape)


# -- rounding


@pointwise("Floor", exact=True, expression=lambda s, x: s.floor(x), no_gradient=DISCRETE)
def floor(x: Floating) -> Spec:
    """The largest whole number that is not larger than ``x``."""
    return like(x)


@pointwise("Ceil", exact=True, expression=lambda s, x: s.ceil(x), no_gradient=DISCRETE)
def ceil(x: Floating) -> Spec:
    """The smallest whole number that is not smaller than ``x``."""
    return like(x)


@pointwise("Rint", exact=True, expression=lambda s, x: s.rint(x), no_gradient=DISCRETE)
def rint(x: Floating) -> Spec:
    """The whole number nearest to ``x``, the even one of two."""
    return like(x)


@dispatched("x")
def round(x: Any, name: str | None = None) -> Tensor:
    """Round to the nearest whole number, to the even one of two.

    Args:
        x: [...], numeric. Integers are returned as they are.
        name: The name of the operation.

    Returns:
        [...], the dtype of ``x``.

    Raises:
        DTypeError: if ``x`` is bool, complex or string.
    """
    tensor = convert_to_tensor(x)
    return tensor if tensor.dtype.is_integer else rint(tensor, name=name or "Round")


# -- comparisons and logic


@pointwise(
    "Equal",
    exact=True,
    commutative=True,
    expression=lambda s, x, y: x == y,
    gives="bool",
    no_gradient=DISCRETE,
)
def equal(x: Same, y: Same) -> Spec:
    """Whether ``x == y``, elementwise with broadcasting; NaN equals nothing."""
    return compared(x, y)


@pointwise(
    "NotEqual",
    exact=True,
    commutative=True,
    expression=lambda s, x, y: x != y,
    gives="bool",
    no_gradient=DISCRETE,
)
def not_equal(x: Same, y: Same) -> Spec:
    """Whether ``x != y``, elementwise with broadcasting; NaN differs from everything."""
    return compared(x, y)


@pointwise("Less", exact=True, expression=lambda s, x, y: x < y, gives="bool", no_gradient=DISCRETE)
def less(x: Real, y: Real) -> Spec:
    """Whether ``x < y``, elementwise with broadcasting."""
    return compared(x, y)


@pointwise(
    "LessEqual", exact=True, expression=lambda s, x, y: x <= y, gives="bool", no_gradient=DISCRETE
)
def less_equal(x: Real, y: Real) -> Spec:
    """Whether ``x <= y``, elementwise with broadcasting."""
    return compared(x, y)


@pointwise(
    "Greater", exact=True, expression=lambda s, x, y: x > y, gives="bool", no_gradient=DISCRETE
)
def greater(x: Real, y: Real) -> Spec:
    """Whether ``x > y``, elementwise with broadcasting."""
    return compared(x, y)


@pointwise(
    "GreaterEqual",
    exact=True,
    expression=lambda s, x, y: x >= y,
    gives="bool",
    no_gradient=DISCRETE,
)
def greater_equal(x: Real, y: Real) -> Spec:
    """Whether ``x >= y``, elementwise with broadcasting."""
    return compared(x, y)


@pointwise(
    "LogicalAnd",
    exact=True,
    commutative=True,
    expression=lambda s, x, y: x & y,
    no_gradient=DISCRETE,
)
def logical_and(x: Bool, y: Bool) -> Spec:
    """Whether both hold, elementwise with broadcasting."""
    return compared(x, y)


@pointwise(
    "LogicalOr",
    exact=True,
    commutative=True,
    expression=lambda s, x, y: x | y,
    no_gradient=DISCRETE,
)
def logical_or(x: Bool, y: Bool) -> Spec:
    """Whether at least one holds, elementwise with broadcasting."""
    return compared(x, y)


@pointwise(
    "LogicalXor",
    exact=True,
    commutative=True,
    expression=lambda s, x, y: x ^ y,
    no_gradient=DISCRETE,
)
def logical_xor(x: Bool, y: Bool) -> Spec:
    """Whether exactly one holds, elementwise with broadcasting."""
    return compared(x, y)


@pointwise("LogicalNot", exact=True, expression=lambda s, x: ~x, no_gradient=DISCRETE)
def logical_not(x: Bool) -> Spec:
    """Whether ``x`` does not hold."""
    return like(x)


@pointwise("IsNan", exact=True, expression=lambda s, x: x != x, gives="bool", no_gradient=DISCRETE)
def is_nan(x: Floating) -> Spec:
    """Whether ``x`` is NaN."""
    return compared(x)


@pointwise(
    "IsInf",
    exact=True,
    expression=lambda s, x: abs(x) == math.inf,
    gives="bool",
    no_gradient=DISCRETE,
)
def is_inf(x: Floating) -> Spec:
    """Whether ``x`` is infinite."""
    return compared(x)


@pointwise(
    "IsFinite",
    exact=True,
    expression=lambda s, x: abs(x) < math.inf,
    gives="bool",
    no_gradient=DISCRETE,
)
def is_finite(x: Floating) -> Spec:
    """Whether ``x`` is neither infinite nor NaN."""
    return compared(x)


@pointwise(
    "Select",
    exact=True,
    early=np.where,
    expression=lambda s, condition, x, y: s.where(condition, x, y),
    public="",
)
def select(condition: Bool, x: Same, y: Same) -> Spec:
    """``x`` where ``condition`` holds and ``y`` elsewhere, with broadcasting.

    Args:
        condition: [...], bool.
        x: [...], any dtype.
        y: [...], the dtype of ``x``.

    Returns:
        The broadcast shape, the dtype of ``x``.
    """
    return joined(x, condition, y)
