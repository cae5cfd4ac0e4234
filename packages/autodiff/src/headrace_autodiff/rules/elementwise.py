"""Gradients of elementwise ops.

For complex tensors the gradient is that of TensorFlow: the conjugate of the derivative.
"""

from __future__ import annotations

from collections.abc import Sequence

from headrace import (
    IndexedSlices,
    Operation,
    Tensor,
    conj,
    div_no_nan,
    equal,
    floordiv,
    greater,
    greater_equal,
    less_equal,
    log,
    logical_and,
    multiply_no_nan,
    not_equal,
    sign,
    truncatediv,
    zeros_like,
)
from headrace.extend import GradientTable
from headrace.extend.primitives import power, select
from headrace_autodiff.shaping import unbroadcast

RULES = GradientTable()

Pair = tuple[Tensor, Tensor]
Grad = Tensor | IndexedSlices


def _fit(op: Operation, grad_x: Tensor, grad_y: Tensor) -> Pair:
    """Sum both gradients to the shapes of the operands that were broadcast against each other."""
    x, y = op.inputs
    if x is y:
        return grad_x, grad_y
    return unbroadcast(grad_x, x, y.spec.shape), unbroadcast(grad_y, y, x.spec.shape)


# -- arithmetic


@RULES.add("Add")
def _add(op: Operation, grad: Tensor) -> Pair:
    return _fit(op, grad, grad)


@RULES.add("Sub")
def _sub(op: Operation, grad: Tensor) -> Pair:
    return _fit(op, grad, -grad)


@RULES.add("Mul")
def _mul(op: Operation, grad: Tensor) -> Pair:
    x, y = op.inputs
    return _fit(op, grad * conj(y), grad * conj(x))


@RULES.add("Div")
def _div(op: Operation, grad: Tensor) -> Pair:
    # With z = x / y the derivative with respect to y is -z / y; x / y**2 could overflow.
    divisor = conj(op.inputs[1])
    grad_x = grad / divisor
    return _fit(op, grad_x, -(grad_x * conj(op.outputs[0])))


@RULES.add("FloorMod")
def _floormod(op: Operation, grad: Tensor) -> Pair:
    x, y = op.inputs
    return _fit(op, grad, -(grad * floordiv(x, y)))


@RULES.add("TruncateMod")
def _truncatemod(op: Operation, grad: Tensor) -> Pair:
    x, y = op.inputs
    return _fit(op, grad, -(grad * truncatediv(x, y)))


@RULES.add("MulNoNan")
def _mul_no_nan(op: Operation, grad: Tensor) -> Pair:
    x, y = op.inputs
    return _fit(op, multiply_no_nan(grad, conj(y)), multiply_no_nan(conj(x), grad))


@RULES.add("DivNoNan")
def _div_no_nan(op: Operation, grad: Tensor) -> Pair:
    divisor = conj(op.inputs[1])
    grad_x = div_no_nan(grad, divisor)
    return _fit(op, grad_x, -(grad_x * conj(op.outputs[0])))


@RULES.add("Pow")
def _pow(op: Operation, grad: Tensor) -> Pair:
    x, y = (conj(t) for t in op.inputs)
    z = conj(op.outputs[0])
    value = op.inputs[1].spec.value
    if value is not None and bool((value != 0).all()):
        grad_x = grad * y * power(x, y - 1)
    else:
        # 0 ** 0 is 1 like every x ** 0; without care its derivative would be 0 * infinity.
        corner = logical_and(equal(x, 0), equal(y, 0))
        grad_x = select(corner, 0, grad * y * power(select(corner, 1, x), y - 1))
    # A negative base has no real logarithm, and 0 ** y is constant for y > 0.
    usable = not_equal(x, 0) if x.dtype.is_complex else greater(x, 0)
    # The gradient comes first, as the power may be near the end of the dtype's range.
    grad_y = grad * select(usable, z, 0) * log(select(usable, x, 1))
    return _fit(op, grad_x, grad_y)


@RULES.add("Maximum")
def _maximum(op: Operation, grad: Tensor) -> Pair:
    first = greater_equal(*op.inputs)
    return _fit(op, select(first, grad, 0), select(first, 0, grad))


@RULES.add("Minimum")
def _minimum(op: Operation, grad: Tensor) -> Pair:
    first = less_equal(*op.inputs)
    return _fit(op, select(first, grad, 0), select(first, 0, grad))


@RULES.add("Neg", rows=True)
def _neg(op: Operation, grad: Grad) -> tuple[Grad]:
    if isinstance(grad, IndexedSlices):
        return (IndexedSlices(-grad.values, grad.indices, grad.dense_shape),)
    return (-grad,)


@RULES.add("NextAfter")
def _nextafter(op: Operation, grad: Tensor) -> Pair:
    return _fit(op, grad, zeros_like(grad))


@RULES.add("Abs")
def _abs(op: Operation, grad: Tensor) -> tuple[Tensor]:
    return (grad * sign(op.inputs[0]),)


@RULES.add("AddN", rows=True)
def _add_n(op: Operation, grad: Grad) -> list[Grad]:
    return [grad] * len(op.inputs)


@RULES.add("Reciprocal")
def _reciprocal(op: Operation, grad: Tensor) -> tuple[Tensor]:
    y = conj(op.outputs[0])
    # Where no gradient arrives, none leaves, whatever the derivative is.
    return (multiply_no_nan(-(y * y), grad),)


@RULES.add("Sign")
def _sign(op: Operation, grad: Tensor) -> tuple[Tensor]:
    # Zeros rather than none, so that functions of absolute values have second derivatives.
    return (zeros_like(grad),)


@RULES.add("Square")
def _square(op: Operation, grad: Tensor) -> tuple[Tensor]:
    return (grad * (2 * conj(op.inputs[0])),)


@RULES.add("Conj")
def _conj(op: Operation, grad: Tensor) -> tuple[Tensor]:
    return (conj(grad),)


# -- choice


@RULES.add("Select")
def _select(op: Operation, grad: Tensor) -> Sequence[Tensor | None]:
    condition, x, y = op.inputs
    of_x, of_y = select(condition, grad, 0), select(condition, 0, grad)
    marked = of_x.op.graph.piecewise_constant
    if condition.op.index in marked and condition.op.graph is of_x.op.graph:
        marked |= {of_x.op.index, of_y.op.index}
    grad_x = unbroadcast(of_x, x, condition.spec.shape, y.spec.shape)
    grad_y = unbroadcast(of_y, y, condition.spec.shape, x.spec.shape)
    return None, grad_x, grad_y
