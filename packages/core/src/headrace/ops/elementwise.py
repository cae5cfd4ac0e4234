"""Elementwise ops: arithmetic, comparisons, logic and elementary functions, with broadcasting."""

from __future__ import annotations

from typing import Any

from headrace import dtypes
from headrace.dtypes import DType, as_dtype
from headrace.errors import DTypeError, ShapeError
from headrace.graph.convert import (
    as_tensor,
    contains_tensor,
    convert_to_tensor,
    is_python_literal,
    natural_dtype,
)
from headrace.graph.schema import OPERATORS
from headrace.graph.spec import TensorSpec, like
from headrace.graph.tensor import Tensor
from headrace.ops.declare import Spec, op
from headrace.ops.kinds import Anything, Bool, Floating, Inexact, Numeric, Real, Same
from headrace.shapes import Shape, broadcast

_DISCRETE = "the result is piecewise constant"


def _joined(x: TensorSpec, y: TensorSpec) -> TensorSpec:
    return TensorSpec(x.dtype, broadcast(x.shape, y.shape))


def _compared(x: TensorSpec, y: TensorSpec) -> TensorSpec:
    return TensorSpec(dtypes.bool_, broadcast(x.shape, y.shape))


# -- arithmetic


@op("Add", elementwise=True, in_place=[(0, 0), (0, 1)])
def add(x: Numeric, y: Numeric) -> Spec:
    """Sum ``x + y``, elementwise with broadcasting.

    Args:
        x: [...], numeric.
        y: [...], the dtype of ``x``.

    Returns:
        The broadcast shape, the dtype of ``x``.
    """
    return _joined(x, y)


@op("Sub", elementwise=True, in_place=[(0, 0), (0, 1)], public="subtract")
def subtract(x: Numeric, y: Numeric) -> Spec:
    """Difference ``x - y``, elementwise with broadcasting.

    Args:
        x: [...], numeric.
        y: [...], the dtype of ``x``.

    Returns:
        The broadcast shape, the dtype of ``x``.
    """
    return _joined(x, y)


@op("Mul", elementwise=True, in_place=[(0, 0), (0, 1)], public="multiply")
def multiply(x: Numeric, y: Numeric) -> Spec:
    """Product ``x * y``, elementwise with broadcasting.

    Args:
        x: [...], numeric.
        y: [...], the dtype of ``x``.

    Returns:
        The broadcast shape, the dtype of ``x``.
    """
    return _joined(x, y)


@op("Div", elementwise=True, in_place=[(0, 0), (0, 1)], public="")
def _divide(x: Inexact, y: Inexact) -> Spec:
    """Quotient ``x / y`` of floating or complex tensors, elementwise with broadcasting.

    Args:
        x: [...], floating or complex.
        y: [...], the dtype of ``x``.

    Returns:
        The broadcast shape, the dtype of ``x``; infinities and NaN where ``y`` is 0.
    """
    return _joined(x, y)


def divide(x: Any, y: Any, name: str | None = None) -> Tensor:
    """Quotient ``x / y``, elementwise with broadcasting; integers are divided as floats.

    Args:
        x: [...], numeric. 8 and 16 bit integers are divided as float32, wider ones as float64.
        y: [...], the dtype of ``x``.
        name: The name of the operation.

    Returns:
        The broadcast shape, floating or complex.
    """
    dtype = _data_dtype(x)
    other = _data_dtype(y)
    if dtype.is_integer and other.is_integer:
        # Python's numbers take the dtype of the tensors they meet, and make nothing wider.
        sizes = [d.itemsize for v, d in ((x, dtype), (y, other)) if not is_python_literal(v)]
        wide = dtypes.float32 if sizes and max(sizes) <= 2 else dtypes.float64
        return _divide(cast(x, wide), cast(y, wide), name=name)
    return _divide(x, y, name=name)


truediv = divide
OPERATORS["truediv"] = divide


def _data_dtype(value: Any) -> DType:
    tensor = value if isinstance(value, Tensor) else None
    if tensor is None and (contains_tensor(value) or hasattr(value, "_as_tensor")):
        return getattr(value, "dtype", None) or convert_to_tensor(value).dtype
    return natural_dtype(value) if tensor is None else tensor.dtype


@op("FloorDiv", elementwise=True, no_gradient=_DISCRETE)
def floordiv(x: Real, y: Real) -> Spec:
    """Quotient rounded towards minus infinity, elementwise with broadcasting.

    Args:
        x: [...], real.
        y: [...], the dtype of ``x``.

    Returns:
        The broadcast shape, the dtype of ``x``. An integer divided by 0 raises when it runs.
    """
    return _joined(x, y)


@op("FloorMod", elementwise=True)
def floormod(x: Real, y: Real) -> Spec:
    """Remainder of the division rounded towards minus infinity; has the sign of ``y``.

    Args:
        x: [...], real.
        y: [...], the dtype of ``x``.

    Returns:
        The broadcast shape, the dtype of ``x``. An integer divided by 0 raises when it runs.
    """
    return _joined(x, y)


@op("Pow", elementwise=True, public="pow")
def power(x: Numeric, y: Numeric) -> Spec:
    """Power ``x ** y``, elementwise with broadcasting.

    Args:
        x: [...], numeric.
        y: [...], the dtype of ``x``. Integers raised to a negative power raise when they run.

    Returns:
        The broadcast shape, the dtype of ``x``.
    """
    return _joined(x, y)


@op("Maximum", elementwise=True)
def maximum(x: Real, y: Real) -> Spec:
    """The larger of ``x`` and ``y``, elementwise with broadcasting; NaN where either is.

    Args:
        x: [...], real.
        y: [...], the dtype of ``x``.

    Returns:
        The broadcast shape, the dtype of ``x``.
    """
    return _joined(x, y)


@op("Minimum", elementwise=True)
def minimum(x: Real, y: Real) -> Spec:
    """The smaller of ``x`` and ``y``, elementwise with broadcasting; NaN where either is.

    Args:
        x: [...], real.
        y: [...], the dtype of ``x``.

    Returns:
        The broadcast shape, the dtype of ``x``.
    """
    return _joined(x, y)


@op("Neg", elementwise=True, in_place=[(0, 0)], public="negative")
def negative(x: Numeric) -> Spec:
    """Negation ``-x``.

    Args:
        x: [...], numeric.

    Returns:
        [...], the dtype of ``x``.
    """
    return like(x)


@op("Abs", elementwise=True, public="abs")
def absolute(x: Real) -> Spec:
    """Absolute value ``|x|``.

    Args:
        x: [...], real.

    Returns:
        [...], the dtype of ``x``.
    """
    return like(x)


@op("Sign", elementwise=True, no_gradient=_DISCRETE)
def sign(x: Real) -> Spec:
    """-1, 0 or 1 as ``x`` is negative, zero or positive; NaN where ``x`` is.

    Args:
        x: [...], real.

    Returns:
        [...], the dtype of ``x``.
    """
    return like(x)


@op("Square", elementwise=True, in_place=[(0, 0)])
def square(x: Numeric) -> Spec:
    """Square ``x * x``.

    Args:
        x: [...], numeric.

    Returns:
        [...], the dtype of ``x``.
    """
    return like(x)


@op("Sqrt", elementwise=True, in_place=[(0, 0)])
def sqrt(x: Inexact) -> Spec:
    """Square root; NaN for negative real numbers.

    Args:
        x: [...], floating or complex.

    Returns:
        [...], the dtype of ``x``.
    """
    return like(x)


@op("Exp", elementwise=True, in_place=[(0, 0)])
def exp(x: Inexact) -> Spec:
    """Exponential ``e ** x``.

    Args:
        x: [...], floating or complex.

    Returns:
        [...], the dtype of ``x``.
    """
    return like(x)


@op("Log", elementwise=True, in_place=[(0, 0)])
def log(x: Inexact) -> Spec:
    """Natural logarithm; minus infinity at 0 and NaN for negative real numbers.

    Args:
        x: [...], floating or complex.

    Returns:
        [...], the dtype of ``x``.
    """
    return like(x)


@op("Log1p", elementwise=True, in_place=[(0, 0)])
def log1p(x: Floating) -> Spec:
    """``log(1 + x)``, exact for small ``x``.

    Args:
        x: [...], floating.

    Returns:
        [...], the dtype of ``x``.
    """
    return like(x)


@op("Sin", elementwise=True, in_place=[(0, 0)])
def sin(x: Inexact) -> Spec:
    """Sine of ``x`` radians.

    Args:
        x: [...], floating or complex.

    Returns:
        [...], the dtype of ``x``.
    """
    return like(x)


@op("Cos", elementwise=True, in_place=[(0, 0)])
def cos(x: Inexact) -> Spec:
    """Cosine of ``x`` radians.

    Args:
        x: [...], floating or complex.

    Returns:
        [...], the dtype of ``x``.
    """
    return like(x)


@op("Tanh", elementwise=True, in_place=[(0, 0)])
def tanh(x: Inexact) -> Spec:
    """Hyperbolic tangent.

    Args:
        x: [...], floating or complex.

    Returns:
        [...], the dtype of ``x``.
    """
    return like(x)


@op("Sigmoid", elementwise=True, in_place=[(0, 0)])
def sigmoid(x: Floating) -> Spec:
    """Logistic function ``1 / (1 + exp(-x))``, without overflow.

    Args:
        x: [...], floating.

    Returns:
        [...], the dtype of ``x``.
    """
    return like(x)


@op("Conj", elementwise=True, public="")
def _conj(x: Inexact) -> Spec:
    """Complex conjugate.

    Args:
        x: [...], floating or complex.

    Returns:
        [...], the dtype of ``x``.
    """
    return like(x)


def conj(x: Any, name: str | None = None) -> Tensor:
    """Complex conjugate of ``x``; a real tensor is returned as it is.

    Args:
        x: [...], numeric.
        name: The name of the operation.

    Returns:
        [...], the dtype of ``x``.
    """
    tensor = convert_to_tensor(x)
    return _conj(tensor, name=name) if tensor.dtype.is_complex else tensor


# -- comparisons and logic


@op("Equal", elementwise=True, no_gradient=_DISCRETE)
def equal(x: Same, y: Same) -> Spec:
    """Whether ``x == y``, elementwise with broadcasting; NaN equals nothing.

    Args:
        x: [...], any dtype.
        y: [...], the dtype of ``x``.

    Returns:
        The broadcast shape, bool.
    """
    return _compared(x, y)


@op("NotEqual", elementwise=True, no_gradient=_DISCRETE)
def not_equal(x: Same, y: Same) -> Spec:
    """Whether ``x != y``, elementwise with broadcasting; NaN differs from everything.

    Args:
        x: [...], any dtype.
        y: [...], the dtype of ``x``.

    Returns:
        The broadcast shape, bool.
    """
    return _compared(x, y)


@op("Less", elementwise=True, no_gradient=_DISCRETE)
def less(x: Real, y: Real) -> Spec:
    """Whether ``x < y``, elementwise with broadcasting.

    Args:
        x: [...], real.
        y: [...], the dtype of ``x``.

    Returns:
        The broadcast shape, bool.
    """
    return _compared(x, y)


@op("LessEqual", elementwise=True, no_gradient=_DISCRETE)
def less_equal(x: Real, y: Real) -> Spec:
    """Whether ``x <= y``, elementwise with broadcasting.

    Args:
        x: [...], real.
        y: [...], the dtype of ``x``.

    Returns:
        The broadcast shape, bool.
    """
    return _compared(x, y)


@op("Greater", elementwise=True, no_gradient=_DISCRETE)
def greater(x: Real, y: Real) -> Spec:
    """Whether ``x > y``, elementwise with broadcasting.

    Args:
        x: [...], real.
        y: [...], the dtype of ``x``.

    Returns:
        The broadcast shape, bool.
    """
    return _compared(x, y)


@op("GreaterEqual", elementwise=True, no_gradient=_DISCRETE)
def greater_equal(x: Real, y: Real) -> Spec:
    """Whether ``x >= y``, elementwise with broadcasting.

    Args:
        x: [...], real.
        y: [...], the dtype of ``x``.

    Returns:
        The broadcast shape, bool.
    """
    return _compared(x, y)


@op("LogicalAnd", elementwise=True, no_gradient=_DISCRETE)
def logical_and(x: Bool, y: Bool) -> Spec:
    """Whether both hold, elementwise with broadcasting.

    Args:
        x: [...], bool.
        y: [...], bool.

    Returns:
        The broadcast shape, bool.
    """
    return _compared(x, y)


@op("LogicalOr", elementwise=True, no_gradient=_DISCRETE)
def logical_or(x: Bool, y: Bool) -> Spec:
    """Whether at least one holds, elementwise with broadcasting.

    Args:
        x: [...], bool.
        y: [...], bool.

    Returns:
        The broadcast shape, bool.
    """
    return _compared(x, y)


@op("LogicalXor", elementwise=True, no_gradient=_DISCRETE)
def logical_xor(x: Bool, y: Bool) -> Spec:
    """Whether exactly one holds, elementwise with broadcasting.

    Args:
        x: [...], bool.
        y: [...], bool.

    Returns:
        The broadcast shape, bool.
    """
    return _compared(x, y)


@op("LogicalNot", elementwise=True, no_gradient=_DISCRETE)
def logical_not(x: Bool) -> Spec:
    """Whether ``x`` does not hold.

    Args:
        x: [...], bool.

    Returns:
        [...], bool.
    """
    return like(x)


@op("Select", elementwise=True, public="where")
def where(condition: Bool, x: Same, y: Same) -> Spec:
    """``x`` where ``condition`` holds and ``y`` elsewhere, with broadcasting.

    TensorFlow 1 takes a vector of conditions for one of rows, and NumPy for one of columns: between
    tensors of more dimensions it must be reshaped to say which.

    Args:
        condition: [...], bool.
        x: [...], any dtype.
        y: [...], the dtype of ``x``.

    Returns:
        The broadcast shape, the dtype of ``x``.
    """
    if condition.rank == 1 and x.rank == y.rank and x.rank not in (None, 0, 1):
        raise ShapeError(
            f"a condition of shape {condition.shape} may choose rows or columns of {x.shape}; "
            "reshape it to [-1] and ones for rows, or to ones and [-1] for columns"
        )
    shape: Shape = broadcast(broadcast(condition.shape, x.shape), y.shape)
    return TensorSpec(x.dtype, shape)


# -- conversion


@op("Cast", elementwise=True, public="")
def _cast(x: Anything, dtype: DType) -> Spec:
    """``x`` converted to another dtype.

    Floats become integers by dropping the fraction, numbers become bool by comparing with 0, and
    complex numbers lose their imaginary part.

    Args:
        x: [...], any dtype but string.
        dtype: The dtype of the result.

    Returns:
        [...], ``dtype``.
    """
    if "string" in (x.dtype.kind, dtype.kind):
        raise DTypeError(f"strings are not converted by cast, got {x.dtype} to {dtype}")
    if dtype.kind == "resource":
        raise DTypeError("nothing converts to a resource handle")
    return TensorSpec(dtype, x.shape)


def cast(x: Any, dtype: Any, name: str | None = None) -> Tensor:
    """Convert ``x`` to another dtype; a tensor that has it already is returned as it is.

    Args:
        x: [...], any dtype but string.
        dtype: The dtype of the result, in any form that ``as_dtype`` takes.
        name: The name of the operation.

    Returns:
        [...], ``dtype``.
    """
    wanted = as_dtype(dtype)
    tensor = as_tensor(x)
    if tensor is None:
        tensor = convert_to_tensor(x)
    if tensor.dtype == wanted:
        return tensor
    return _cast(tensor, wanted, name=name)
