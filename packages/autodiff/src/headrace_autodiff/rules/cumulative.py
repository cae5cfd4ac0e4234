"""Gradients of cumulative sums and products."""

from __future__ import annotations

from headrace import Operation, Tensor, concat, conj, cumprod, cumsum, equal, exp, zeros_like
from headrace.extend import GradientTable
from headrace.extend.primitives import linear_recurrence, select
from headrace_autodiff.shaping import take

RULES = GradientTable()


@RULES.add("Cumsum")
def _cumsum(op: Operation, grad: Tensor) -> tuple[Tensor]:
    axis, exclusive, reverse = (op.attrs[name] for name in ("axis", "exclusive", "reverse"))
    return (cumsum(grad, axis, exclusive, not reverse),)


@RULES.add("Cumprod")
def _cumprod(op: Operation, grad: Tensor) -> tuple[Tensor]:
    """Multiply the product before each element with what follows from it, without dividing.

    What follows is sum over j of grad[j] * (the product of the elements after i up to j), and
    satisfies a linear recurrence, so zeros do no harm.
    """
    x = op.inputs[0]
    axis, exclusive, reverse = (op.attrs[name] for name in ("axis", "exclusive", "reverse"))
    before = conj(cumprod(x, axis, True, reverse))
    factors = conj(x)
    if exclusive:
        # The element itself is a factor of the results after it only.
        after = _shifted(linear_recurrence(factors, grad, axis, not reverse), axis, not reverse)
    else:
        after = linear_recurrence(_shifted(factors, axis, not reverse), grad, axis, not reverse)
    return (before * after,)


@RULES.add("CumulativeLogsumexp")
def _cumulative_logsumexp(op: Operation, grad: Tensor) -> tuple[Tensor]:
    """Sum the gradients of the results behind each element, with factors that are at most 1.

    The sum over j >= i of grad[j] * exp(y[i] - y[j]) satisfies a linear recurrence.
    """
    axis, reverse = op.attrs["axis"], op.attrs["reverse"]
    x, y = op.inputs[0], op.outputs[0]
    factors = _ratio(y, _shifted(y, axis, not reverse))
    return (_ratio(x, y) * linear_recurrence(factors, grad, axis, not reverse),)


def _ratio(x: Tensor, y: Tensor) -> Tensor:
    """Return ``exp(x - y)``, of equal infinities, too."""
    same = equal(x, y)
    return select(same, 1, exp(select(same, 0, x - y)))


@RULES.add("LinearRecurrence")
def _linear_recurrence(op: Operation, grad: Tensor) -> tuple[Tensor, Tensor]:
    axis, reverse = op.attrs["axis"], op.attrs["reverse"]
    factors = conj(_shifted(op.inputs[0], axis, not reverse))
    terms = linear_recurrence(factors, grad, axis, not reverse)
    return terms * conj(_shifted(op.outputs[0], axis, reverse)), terms


def _shifted(x: Tensor, axis: int, reverse: bool) -> Tensor:
    """Move the elements one place along an axis, towards the end or the start, and a 0 in."""
    if reverse:
        return concat([take(x, axis, 1, None), zeros_like(take(x, axis, 0, 1))], axis)
    # The first element, turned to 0, stands before all but the last.
    return concat([zeros_like(take(x, axis, 0, 1)), take(x, axis, 0, -1)], axis)
