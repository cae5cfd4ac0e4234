"""Elementwise ops: arithmetic, rounding, comparisons, logic and choice, with broadcasting."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from headrace import dtypes
from headrace.dtypes import DType
from headrace.errors import DTypeError, ShapeError
from headrace.graph.convert import (
    contains_tensor,
    convert_to_tensor,
    is_python_literal,
    natural_dtype,
)
from headrace.graph.schema import OPERATORS
from headrace.graph.scopes import name_scope
from headrace.graph.spec import TensorSpec
from headrace.graph.tensor import Tensor
from headrace.ops.conversion import cast
from headrace.ops.declare import Spec, op
from headrace.ops.kinds import Bool, Floating, Inexact, Numeric, Real, Same, Summable
from headrace.ops.pointwise import DISCRETE, compared, joined, like, pointwise

# -- arithmetic


@pointwise("Add", in_place=[(0, 0), (0, 1)])
def add(x: Summable, y: Summable) -> Spec:
    """Sum ``x + y``, elementwise with broadcasting; strings are joined."""
    return joined(x, y)


@pointwise("Sub", in_place=[(0, 0), (0, 1)], public="subtract")
def subtract(x: Numeric, y: Numeric) -> Spec:
    """Difference ``x - y``, elementwise with broadcasting."""
    return joined(x, y)


@pointwise("Mul", in_place=[(0, 0), (0, 1)], public="multiply")
def multiply(x: Numeric, y: Numeric) -> Spec:
    """Product ``x * y``, elementwise with broadcasting."""
    return joined(x, y)


@pointwise("MulNoNan", public="multiply_no_nan")
def multiply_no_nan(x: Inexact, y: Inexact) -> Spec:
    """Product ``x * y`` that is 0 wherever ``y`` is 0, even if ``x`` is infinite or NaN."""
    return joined(x, y)


@pointwise("Div", in_place=[(0, 0), (0, 1)], public="realdiv")
def realdiv(x: Inexact, y: Inexact) -> Spec:
    """Quotient ``x / y`` of floating or complex tensors; infinities and NaN where ``y`` is 0."""
    return joined(x, y)


@pointwise("DivNoNan", public="")
def _div_no_nan(x: Inexact, y: Inexact) -> Spec:
    """Quotient of floating or complex tensors that is 0 wherever ``y`` is 0."""
    return joined(x, y)


def divide(x: Any, y: Any, name: str | None = None) -> Tensor:
    """Quotient ``x / y``, elementwise with broadcasting; integers are divided as floats.

    Args:
        x: [...], numeric. 8 and 16 bit integers are divided as float32, wider ones as float64.
        y: [...], the dtype of ``x``.
        name: The name of the operation.

    Returns:
        The broadcast shape, floating or complex.
    """
    return realdiv(*_as_floats(x, y), name=name)


truediv = divide
OPERATORS["truediv"] = divide


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
    return floordiv(x, y, name=name) if whole else realdiv(x, y, name=name)


def _data_dtype(value: Any) -> DType:
    tensor = value if isinstance(value, Tensor) else None
    if tensor is None and (contains_tensor(value) or hasattr(value, "_as_tensor")):
        return getattr(value, "dtype", None) or convert_to_tensor(value).dtype
    return natural_dtype(value) if tensor is None else tensor.dtype


_OR_RAISES = "the dtype of ``x``; an integer divided by 0 raises when it runs"


@pointwise("FloorDiv", gives=_OR_RAISES, no_gradient=DISCRETE)
def floordiv(x: Real, y: Real) -> Spec:
    """Quotient rounded towards minus infinity, elementwise with broadcasting."""
    return joined(x, y)


@pointwise("TruncateDiv", gives=_OR_RAISES, no_gradient=DISCRETE)
def truncatediv(x: Real, y: Real) -> Spec:
    """Quotient rounded towards 0, as C divides integers; elementwise with broadcasting."""
    return joined(x, y)


@pointwise("FloorMod", gives=_OR_RAISES)
def floormod(x: Real, y: Real) -> Spec:
    """Remainder of the division rounded towards minus infinity; has the sign of ``y``."""
    return joined(x, y)


@pointwise("TruncateMod", gives=_OR_RAISES)
def truncatemod(x: Real, y: Real) -> Spec:
    """Remainder of the division rounded towards 0; has the sign of ``x``."""
    return joined(x, y)


@pointwise("Pow", public="pow")
def power(x: Numeric, y: Numeric) -> Spec:
    """Power ``x ** y``, elementwise with broadcasting.

    Integers raised to a negative power raise when they run.
    """
    return joined(x, y)


@pointwise("Maximum")
def maximum(x: Real, y: Real) -> Spec:
    """The larger of ``x`` and ``y``, elementwise with broadcasting; NaN where either is."""
    return joined(x, y)


@pointwise("Minimum")
def minimum(x: Real, y: Real) -> Spec:
    """The smaller of ``x`` and ``y``, elementwise with broadcasting; NaN where either is."""
    return joined(x, y)


@pointwise("Neg", sparse=True, in_place=[(0, 0)], public="negative")
def negative(x: Numeric) -> Spec:
    """Negation ``-x``."""
    return like(x)


@pointwise("Abs", public="")
def real_abs(x: Real) -> Spec:
    """Absolute value of real numbers."""
    return like(x)


@pointwise("Sign", public="")
def real_sign(x: Real) -> Spec:
    """-1, 0 or 1 as ``x`` is negative, zero or positive; NaN where ``x`` is."""
    return like(x)


@pointwise("Square", sparse=True, in_place=[(0, 0)])
def square(x: Numeric) -> Spec:
    """Square ``x * x``."""
    return like(x)


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


@pointwise("Reciprocal", in_place=[(0, 0)])
def reciprocal(x: Inexact) -> Spec:
    """``1 / x``; infinite where ``x`` is 0."""
    return like(x)


@pointwise("NextAfter", no_gradient=DISCRETE, public="nextafter")
def nextafter(x1: Floating, x2: Floating) -> Spec:
    """The float next to ``x1`` in the direction of ``x2``, elementwise with broadcasting."""
    if x1.dtype.itemsize < 4:
        raise DTypeError(f"nextafter takes float32 and float64, got {x1.dtype}")
    return joined(x1, x2)


@pointwise("Conj", public="")
def _conj(x: Inexact) -> Spec:
    """Complex conjugate."""
    return like(x)


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


@op("AddN", in_place=[(0, 0)])
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


@pointwise("Floor", no_gradient=DISCRETE)
def floor(x: Floating) -> Spec:
    """The largest whole number that is not larger than ``x``."""
    return like(x)


@pointwise("Ceil", no_gradient=DISCRETE)
def ceil(x: Floating) -> Spec:
    """The smallest whole number that is not smaller than ``x``."""
    return like(x)


@pointwise("Rint", no_gradient=DISCRETE)
def rint(x: Floating) -> Spec:
    """The whole number nearest to ``x``, the even one of two."""
    return like(x)


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
    return tensor if tensor.dtype.is_integer else rint(tensor, name=name)


# -- comparisons and logic


@pointwise("Equal", gives="bool", no_gradient=DISCRETE)
def equal(x: Same, y: Same) -> Spec:
    """Whether ``x == y``, elementwise with broadcasting; NaN equals nothing."""
    return compared(x, y)


@pointwise("NotEqual", gives="bool", no_gradient=DISCRETE)
def not_equal(x: Same, y: Same) -> Spec:
    """Whether ``x != y``, elementwise with broadcasting; NaN differs from everything."""
    return compared(x, y)


@pointwise("Less", gives="bool", no_gradient=DISCRETE)
def less(x: Real, y: Real) -> Spec:
    """Whether ``x < y``, elementwise with broadcasting."""
    return compared(x, y)


@pointwise("LessEqual", gives="bool", no_gradient=DISCRETE)
def less_equal(x: Real, y: Real) -> Spec:
    """Whether ``x <= y``, elementwise with broadcasting."""
    return compared(x, y)


@pointwise("Greater", gives="bool", no_gradient=DISCRETE)
def greater(x: Real, y: Real) -> Spec:
    """Whether ``x > y``, elementwise with broadcasting."""
    return compared(x, y)


@pointwise("GreaterEqual", gives="bool", no_gradient=DISCRETE)
def greater_equal(x: Real, y: Real) -> Spec:
    """Whether ``x >= y``, elementwise with broadcasting."""
    return compared(x, y)


@pointwise("LogicalAnd", no_gradient=DISCRETE)
def logical_and(x: Bool, y: Bool) -> Spec:
    """Whether both hold, elementwise with broadcasting."""
    return compared(x, y)


@pointwise("LogicalOr", no_gradient=DISCRETE)
def logical_or(x: Bool, y: Bool) -> Spec:
    """Whether at least one holds, elementwise with broadcasting."""
    return compared(x, y)


@pointwise("LogicalXor", no_gradient=DISCRETE)
def logical_xor(x: Bool, y: Bool) -> Spec:
    """Whether exactly one holds, elementwise with broadcasting."""
    return compared(x, y)


@pointwise("LogicalNot", no_gradient=DISCRETE)
def logical_not(x: Bool) -> Spec:
    """Whether ``x`` does not hold."""
    return like(x)


@pointwise("IsNan", gives="bool", no_gradient=DISCRETE)
def is_nan(x: Floating) -> Spec:
    """Whether ``x`` is NaN."""
    return compared(x)


@pointwise("IsInf", gives="bool", no_gradient=DISCRETE)
def is_inf(x: Floating) -> Spec:
    """Whether ``x`` is infinite."""
    return compared(x)


@pointwise("IsFinite", gives="bool", no_gradient=DISCRETE)
def is_finite(x: Floating) -> Spec:
    """Whether ``x`` is neither infinite nor NaN."""
    return compared(x)


@pointwise("Select", public="where_v2")
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
