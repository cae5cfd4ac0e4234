"""The error function and its complement.

Below 1 a polynomial. Above, the complement is ``exp(-x**2) g(x) / (1 + 2 x)``, where g changes so
little that it is a polynomial of ``(x - 3.75) / (x + 3.75)`` (Shepherd and Laframboise,
"Chebyshev approximation of (1 + 2x) exp(x^2) erfc x", Mathematics of Computation 36, 1981).

In float32 the function itself needs less above 1: it is ``1 - exp(x q(x))`` with a polynomial q, as
the complement is small there, and so are its errors.
"""

from __future__ import annotations

from headrace_cpu.fusion.functions.coefficients import ERF, ERF_FAR, ERFC
from headrace_cpu.fusion.functions.emitter import FLOAT32, Emitter, Value
from headrace_cpu.fusion.functions.exponential import exp_inside, exp_scaled

# Where the complement is 0, or in float32 has long been.
_END = {32: 11.0, 64: 28.0}
_MIDDLE = 3.75
# From where the function rounds to 1 in float32.
_ONE = 4.0


def _below(e: Emitter, x: Value) -> Value:
    """Return erf(x) within +-1."""
    return e.fma(x, e.polynomial(e.mul(x, x), e.of(ERF)), x)


def _complement(e: Emitter, size: Value) -> Value:
    """Return erfc of a number from 1/2 on."""
    size = e.at_most(size, _END[e.form.bits])
    # Where it is subnormal it is rounded but once, at the end.
    doublings = e.form.bias // 2 + 1
    square, lost = e.exact_product(size, size)
    decay = exp_scaled(e, e.neg(square), doublings, e.neg(lost))
    place = e.div(e.sub(size, _MIDDLE), e.add(size, _MIDDLE))
    ratio = e.div(e.polynomial(place, e.of(ERFC)), e.fma(size, 2.0, 1.0))
    return e.mul(e.mul(decay, ratio), 2.0**-doublings)


def erf(e: Emitter, x: Value) -> Value:
    """Return the error function."""
    size = e.abs(x)
    if e.form is FLOAT32:
        end = e.at_most(size, _ONE)
        far = e.sub(1.0, exp_inside(e, e.mul(end, e.polynomial(end, e.of(ERF_FAR)))))
    else:
        far = e.sub(1.0, _complement(e, size))
    return e.select(e.compare(size, "<", 1.0), _below(e, x), e.copysign(far, x))


def erfc(e: Emitter, x: Value) -> Value:
    """Return the complement of the error function."""
    size = e.abs(x)
    tail = _complement(e, size)
    far = e.select(e.compare(x, "<", 0.0), e.sub(2.0, tail), tail)
    return e.select(e.compare(size, "<", 0.5), e.sub(1.0, _below(e, x)), far)
