"""The incomplete gamma and beta functions, by series and continued fractions.

They need a number of turns that depends on the arguments, so they are functions with vector forms:
all numbers of a vector go on until none of them needs another turn. Float32 is computed in float64,
with fewer turns. Factors such as ``x**a exp(-x) / gamma(a + 1)`` are small differences of large
numbers in their exponents; ``log(1 + u) - u`` and what is left of Stirling's series keep those
small that are far from 0.

References:
    NIST Digital Library of Mathematical Functions, 8.7.1, 8.9.2, 8.12, 8.17.22, https://dlmf.nist.gov
    N. M. Temme, The asymptotic expansion of the incomplete gamma functions, SIAM Journal on
    Mathematical Analysis 10, 1979
    W. J. Lentz, Generating Bessel functions in Mie scattering calculations using continued
    fractions, Applied Optics 15, 1976
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from headrace_cpu.fusion.functions.coefficients import LOG
from headrace_cpu.fusion.functions.emitter import Emitter, Value, in_double
from headrace_cpu.fusion.functions.error_function import erfc
from headrace_cpu.fusion.functions.exponential import exp, expm1
from headrace_cpu.fusion.functions.forms import call_formed, repeat, where_any
from headrace_cpu.fusion.functions.gamma import (
    FAR,
    digamma_positive,
    lgamma_of_next,
    lgamma_positive,
)
from headrace_cpu.fusion.functions.gamma_coefficients import LGAMMA_FAR, TEMME
from headrace_cpu.fusion.functions.logarithm import log, log1p

# From this a on, and where x is as close to it, Temme's expansion needs few terms.
_TEMME_FROM, _TEMME_WITHIN = 20.0, 0.29
# Turns of a series or a fraction at most. They need about 6 times the square root of an argument.
_TURNS = 5000
_TURNS_OF_BETA = 20000
_LOW, _HIGH = math.sqrt(0.5), math.sqrt(2.0)


def _tolerance(e: Emitter) -> float:
    """Return what may be left out, relative to the sum."""
    return 2.0**-30 if e.single else 2.0**-51


def _and(e: Emitter, *conditions: Value) -> Value:
    found = conditions[0]
    for each in conditions[1:]:
        found = e.all_of(found, each)
    return found


def _log_less(e: Emitter, u: Value, logarithm: Value) -> Value:
    """Return ``log(1 + u) - u``, precise near 0, where the logarithm itself is known."""
    s = e.div(u, e.add(u, 2.0))
    z = e.mul(s, s)
    # log(1 + u) = 2 s + s z q(z), and u is 2 s / (1 - s).
    near = e.fma(e.mul(s, z), e.polynomial(z, e.of(LOG)), e.neg(e.mul(s, u)))
    small = e.all_of(e.compare(u, ">", _LOW - 1), e.compare(u, "<", _HIGH - 1))
    return e.select(small, near, e.sub(logarithm, u))


def _stirling(e: Emitter, a: Value) -> Value:
    """Return what is left of lgamma(a) without Stirling's main terms, a from 3.5 on."""
    inverse = e.div(1.0, a)
    return e.mul(inverse, e.polynomial(e.mul(inverse, inverse), e.of(LGAMMA_FAR)))


# -- the incomplete gamma function


def _density(e: Emitter, a: Value, x: Value) -> Value:
    """Return ``x**a exp(-x) / gamma(a + 1)`` of positive finite numbers."""
    large = e.compare(a, ">=", FAR)
    logarithm = log(e, e.select(large, e.div(x, a), x))
    u = e.div(e.sub(x, a), a)
    far = e.sub(e.mul(a, _log_less(e, u, logarithm)), _stirling(e, e.at_least(a, FAR)))
    near = e.sub(e.fma(a, logarithm, e.neg(x)), lgamma_of_next(e, e.at_most(a, FAR)))
    scale = e.select(large, e.div(1.0, e.sqrt(e.mul(a, 2 * math.pi))), 1.0)
    return e.mul(exp(e, e.select(large, far, near)), scale)


def _series(e: Emitter, a: Value, x: Value) -> Value:
    """Return the sum of ``x**n / ((a + 1) ... (a + n))``."""
    tolerance = _tolerance(e)

    def turn(n: Value, values: Sequence[Value]) -> tuple[list[Value], Value]:
        term, total = values
        term = e.mul(term, e.div(x, e.add(a, n)))
        total = e.add(total, term)
        return [term, total], e.compare(term, ">", e.mul(total, tolerance))

    return repeat(e, (1.0, 1.0), turn, _TURNS)[1]


def _fraction(e: Emitter, a: Value, x: Value) -> Value:
    """Return ``1 / (x + 1 - a - 1 (1 - a) / (x + 3 - a - 2 (2 - a) / (x + 5 - a - ...)))``."""
    tolerance = _tolerance(e)
    begin = e.sub(e.add(x, 1.0), a)
    d = e.div(1.0, begin)

    def turn(n: Value, values: Sequence[Value]) -> tuple[list[Value], Value]:
        c, d, h = values
        part = e.mul(n, e.sub(a, n))
        b = e.add(begin, e.add(n, n))
        c = e.add(b, e.div(part, c))
        d = e.div(1.0, e.fma(part, d, b))
        step = e.mul(c, d)
        more = e.compare(e.abs(e.sub(step, 1.0)), ">", tolerance)
        return [c, d, e.mul(h, step)], more

    return repeat(e, (1e150, d, d), turn, _TURNS)[2]


def _of_small(e: Emitter, a: Value, x: Value) -> Value:
    """Return the upper function of a small a and x, which is small beside 1."""
    tolerance = _tolerance(e)
    minus = e.neg(x)

    def turn(n: Value, values: Sequence[Value]) -> tuple[list[Value], Value]:
        power, total = values
        power = e.mul(power, e.div(minus, n))
        term = e.div(power, e.add(a, n))
        total = e.add(total, term)
        return [power, total], e.compare(e.abs(term), ">", e.mul(e.abs(total), tolerance))

    total = repeat(e, (1.0, 0.0), turn, _TURNS)[1]
    exponent = e.fma(a, log(e, x), e.neg(lgamma_of_next(e, a)))
    return e.sub(e.neg(expm1(e, exponent)), e.mul(e.mul(exp(e, exponent), a), total))


def _expansion(e: Emitter, a: Value, x: Value) -> Value:
    """Return the smaller of both functions by Temme's expansion, the lower one where x < a."""
    u = e.div(e.sub(x, a), a)
    half_square = e.neg(_log_less(e, u, u))
    root = e.sqrt(e.add(half_square, half_square))
    below = e.compare(x, "<", a)
    place = e.select(below, e.neg(root), root)
    inverse = e.div(1.0, a)
    rows = [e.polynomial(place, row) for row in TEMME["single" if e.single else "float64"]]
    total = rows[-1]
    for row in reversed(rows[:-1]):
        total = e.fma(total, inverse, row)
    exponent = e.mul(a, half_square)
    rest = e.div(e.mul(exp(e, e.neg(exponent)), total), e.sqrt(e.mul(a, 2 * math.pi)))
    return e.fma(erfc(e, e.sqrt(exponent)), 0.5, e.select(below, e.neg(rest), rest))


def _incomplete_gamma(e: Emitter, a: Value, x: Value, *, upper: bool) -> Value:
    positive = e.all_of(e.compare(a, ">", 0.0), e.compare(x, ">", 0.0))
    finite = e.all_of(e.compare(a, "<", math.inf), e.compare(x, "<", math.inf))
    usual = e.all_of(positive, finite)
    shape, bound = e.select(usual, a, 1.0), e.select(usual, x, 0.5)
    near = e.compare(e.abs(e.sub(bound, shape)), "<", e.mul(shape, _TEMME_WITHIN))
    by_expansion = e.all_of(near, e.compare(shape, ">=", _TEMME_FROM))
    is_small = e.compare(bound, "<=", 1.1)
    # Where the upper function is so close to 1 that the lower one is a small difference.
    little = e.select(
        e.compare(bound, "<=", 0.5),
        e.div(-0.4, log(e, e.at_most(bound, 0.5))),
        e.mul(bound, 0.75),
    )
    by_small = e.all_of(is_small, e.compare(shape, "<=", little))
    rest = e.builder.not_(e.either(by_expansion, by_small))
    low = e.either(is_small, e.compare(bound, "<=", shape))
    by_series = e.all_of(rest, low)
    by_fraction = e.all_of(rest, e.builder.not_(low))
    density = _density(e, shape, bound)

    def summed() -> Value:
        few = e.select(by_series, bound, 0.0)
        return e.mul(density, _series(e, shape, few))

    def divided() -> Value:
        first, second = e.select(by_fraction, shape, 1.0), e.select(by_fraction, bound, 40.0)
        return e.mul(e.mul(density, shape), _fraction(e, first, second))

    def of_small() -> Value:
        first, second = e.select(by_small, shape, 0.1), e.select(by_small, bound, 0.1)
        return _of_small(e, first, second)

    def expanded() -> Value:
        first, second = e.select(by_expansion, shape, 32.0), e.select(by_expansion, bound, 32.0)
        return _expansion(e, first, second)

    zero = e.constant(0.0)
    value = where_any(e, by_series, zero, summed)
    value = where_any(e, by_fraction, value, divided)
    value = where_any(e, by_small, value, of_small)
    value = where_any(e, by_expansion, value, expanded)
    # Which of both functions the value is.
    is_upper = e.select(
        by_expansion,
        e.select(e.compare(bound, "<", shape), 0.0, 1.0),
        e.select(by_series, 0.0, 1.0),
    )
    other = e.sub(1.0, value)
    found = e.compare(is_upper, "==", 1.0 if upper else 0.0)
    value = e.select(found, value, other)
    at_zero, at_end = (1.0, 0.0) if upper else (0.0, 1.0)
    value = e.select(e.compare(x, "==", math.inf), at_end, value)
    both = e.compare(x, "==", math.inf)
    value = e.select(
        e.compare(a, "==", math.inf), e.select(both, math.nan, e.constant(at_zero)), value
    )
    value = e.select(e.compare(x, "==", 0.0), at_zero, value)
    valid = e.all_of(e.compare(a, ">", 0.0), e.compare(x, ">=", 0.0))
    value = e.select(valid, value, math.nan)
    # The lower one is an integral over nothing there, whatever a is.
    return value if upper else e.select(e.compare(x, "==", 0.0), 0.0, value)


@in_double
def _igamma(e: Emitter, a: Value, x: Value) -> Value:
    return _incomplete_gamma(e, a, x, upper=False)


@in_double
def _igammac(e: Emitter, a: Value, x: Value) -> Value:
    return _incomplete_gamma(e, a, x, upper=True)


def igamma(e: Emitter, a: Value, x: Value) -> Value:
    """Return the lower incomplete gamma function."""
    return call_formed(e, "headrace_igamma", (a, x), _igamma)


def igammac(e: Emitter, a: Value, x: Value) -> Value:
    """Return the upper incomplete gamma function."""
    return call_formed(e, "headrace_igammac", (a, x), _igammac)


# -- its derivative with respect to a


def _slope_by_series(e: Emitter, a: Value, x: Value) -> tuple[Value, Value]:
    """Return the sum of the series, and its derivative with respect to a."""
    tolerance = _tolerance(e)

    def turn(n: Value, values: Sequence[Value]) -> tuple[list[Value], Value]:
        term, slope, total, total_slope = values
        inverse = e.div(1.0, e.add(a, n))
        ratio = e.mul(x, inverse)
        slope = e.mul(ratio, e.sub(slope, e.mul(term, inverse)))
        term = e.mul(term, ratio)
        total_slope = e.add(total_slope, slope)
        more = e.compare(e.abs(slope), ">", e.mul(e.abs(total_slope), tolerance))
        return [term, slope, e.add(total, term), total_slope], more

    found = repeat(e, (1.0, 0.0, 1.0, 0.0), turn, _TURNS)
    return found[2], found[3]


def _slope_by_fraction(e: Emitter, a: Value, x: Value) -> tuple[Value, Value]:
    """Return the continued fraction by Lentz's algorithm, and its derivative."""
    tolerance = _tolerance(e)
    begin = e.sub(e.add(x, 1.0), a)
    d = e.div(1.0, begin)
    d_slope = e.mul(d, d)

    def turn(n: Value, values: Sequence[Value]) -> tuple[list[Value], Value]:
        c, c_slope, d, d_slope, h, h_slope = values
        part = e.mul(n, e.sub(a, n))
        b = e.add(begin, e.add(n, n))
        inverse = e.div(1.0, c)
        moved = e.mul(e.sub(n, e.mul(e.mul(part, c_slope), inverse)), inverse)
        c_slope = e.sub(moved, 1.0)
        c = e.fma(part, inverse, b)
        under_slope = e.sub(e.fma(n, d, e.mul(part, d_slope)), 1.0)
        d = e.div(1.0, e.fma(part, d, b))
        d_slope = e.neg(e.mul(under_slope, e.mul(d, d)))
        step = e.mul(c, d)
        step_slope = e.fma(c_slope, d, e.mul(c, d_slope))
        h_slope = e.fma(h_slope, step, e.mul(h, step_slope))
        h = e.mul(h, step)
        change = e.add(e.abs(e.sub(step, 1.0)), e.abs(e.mul(step_slope, h)))
        bound = e.mul(e.add(e.abs(h_slope), e.abs(h)), tolerance)
        more = e.either(
            e.compare(e.abs(e.sub(step, 1.0)), ">", tolerance), e.compare(change, ">", bound)
        )
        return [c, c_slope, d, d_slope, h, h_slope], more

    found = repeat(e, (1e150, 0.0, d, d_slope, d, d_slope), turn, _TURNS)
    return found[4], found[5]


@in_double
def _igamma_grad_a(e: Emitter, a: Value, x: Value) -> Value:
    usable = _and(
        e,
        e.compare(a, ">", 0.0),
        e.compare(x, ">", 0.0),
        e.compare(a, "<", math.inf),
        e.compare(x, "<", math.inf),
    )
    shape, bound = e.select(usable, a, 1.0), e.select(usable, x, 0.5)
    small = e.either(e.compare(bound, "<=", 1.0), e.compare(bound, "<=", shape))
    density = _density(e, shape, bound)
    slope = log(e, bound)
    of_next = e.sub(slope, digamma_positive(e, shape, of_next=True))
    of_this = e.sub(slope, digamma_positive(e, shape, of_next=False))

    def summed() -> Value:
        total, total_slope = _slope_by_series(e, shape, e.select(small, bound, 0.0))
        return e.mul(density, e.fma(total, of_next, total_slope))

    def divided() -> Value:
        first, second = e.select(small, 1.0, shape), e.select(small, 40.0, bound)
        total, total_slope = _slope_by_fraction(e, first, second)
        return e.neg(e.mul(e.mul(density, shape), e.fma(total, of_this, total_slope)))

    value = where_any(e, small, e.constant(0.0), summed)
    value = where_any(e, e.builder.not_(small), value, divided)
    # At both ends of its range the function does not depend on a, as an integral over nothing.
    edge = e.either(e.compare(x, "==", math.inf), e.compare(a, "==", math.inf))
    edge = _and(e, edge, e.compare(a, ">", 0.0), e.compare(x, ">=", 0.0))
    edge = e.either(edge, e.compare(x, "==", 0.0))
    return e.select(usable, value, e.select(edge, e.constant(0.0), math.nan))


def igamma_grad_a(e: Emitter, a: Value, x: Value) -> Value:
    """Return the derivative of the incomplete gamma function with respect to a."""
    return call_formed(e, "headrace_igamma_grad_a", (a, x), _igamma_grad_a)


# -- the incomplete beta function


def _beta_density(e: Emitter, a: Value, b: Value, x: Value) -> Value:
    """Return ``x**a (1 - x)**b gamma(a + b) / (gamma(a) gamma(b))``."""
    y = e.sub(1.0, x)
    log_x, log_y = log(e, x), log1p(e, e.neg(x))
    a_large, b_large = e.compare(a, ">=", FAR), e.compare(b, ">=", FAR)
    total = e.add(a, b)
    left_a, left_b = _stirling(e, e.at_least(a, FAR)), _stirling(e, e.at_least(b, FAR))
    left = _stirling(e, e.at_least(total, FAR))
    # Both large: a log(x / x0) + b log(y / y0), where x0 = a / (a + b) and y0 = b / (a + b).
    product, lost = e.exact_product(x, b)
    other, other_lost = e.exact_product(a, y)
    way = e.add(e.sub(product, other), e.sub(lost, other_lost))
    u, v = e.div(way, a), e.div(e.neg(way), b)
    inside = e.select(e.all_of(a_large, b_large), total, 2.0)
    of_x = _log_less(e, u, e.sub(log_x, log(e, e.div(a, total))))
    of_y = _log_less(e, v, e.sub(log_y, log(e, e.div(b, total))))
    both = e.fma(a, of_x, e.mul(b, of_y))
    both = e.add(both, e.sub(left, e.add(left_a, left_b)))
    scale = e.sqrt(e.mul(a, e.div(b, e.mul(inside, 2 * math.pi))))
    # One large: gamma(large) / gamma(large + small) by Stirling's series.
    large, small = e.select(a_large, a, b), e.select(a_large, b, a)
    left_large = e.select(a_large, left_a, left_b)
    spread = e.fma(
        e.sub(large, 0.5),
        log1p(e, e.div(small, large)),
        e.mul(small, e.sub(log(e, total), 1.0)),
    )
    gammas = e.sub(e.add(spread, e.sub(left, left_large)), _lgamma_small(e, small))
    # None is.
    few = e.sub(
        e.sub(lgamma_positive(e, e.at_most(total, 2 * FAR)), _lgamma_small(e, a)),
        _lgamma_small(e, b),
    )
    one = e.either(a_large, b_large)
    exponent = e.fma(a, log_x, e.fma(b, log_y, e.select(one, gammas, few)))
    are_both = e.all_of(a_large, b_large)
    exponent = e.select(are_both, both, exponent)
    return e.mul(exp(e, exponent), e.select(are_both, scale, 1.0))


def _lgamma_small(e: Emitter, a: Value) -> Value:
    return lgamma_positive(e, e.at_most(a, FAR))


def _beta_fraction(e: Emitter, a: Value, b: Value, x: Value) -> Value:
    """Return ``1 / (1 + d1 / (1 + d2 / (1 + ...)))``, see 8.17.22."""
    tolerance = _tolerance(e)
    total, above, under = e.add(a, b), e.add(a, 1.0), e.sub(a, 1.0)
    first = e.div(1.0, e.sub(1.0, e.div(e.mul(total, x), above)))

    def turn(m: Value, values: Sequence[Value]) -> tuple[list[Value], Value]:
        c, d, h = values
        twice = e.add(m, m)
        even = e.mul(e.mul(m, e.sub(b, m)), x)
        even = e.div(even, e.mul(e.add(under, twice), e.add(a, twice)))
        d = e.div(1.0, e.fma(even, d, 1.0))
        c = e.add(e.div(even, c), 1.0)
        h = e.mul(h, e.mul(d, c))
        odd = e.mul(e.mul(e.add(a, m), e.add(total, m)), x)
        odd = e.neg(e.div(odd, e.mul(e.add(a, twice), e.add(above, twice))))
        d = e.div(1.0, e.fma(odd, d, 1.0))
        c = e.add(e.div(odd, c), 1.0)
        step = e.mul(d, c)
        more = e.compare(e.abs(e.sub(step, 1.0)), ">", tolerance)
        return [c, d, e.mul(h, step)], more

    return repeat(e, (1.0, first, first), turn, _TURNS_OF_BETA)[2]


@in_double
def _betainc(e: Emitter, a: Value, b: Value, x: Value) -> Value:
    valid = _and(e, e.compare(a, ">", 0.0), e.compare(b, ">", 0.0), e.compare(x, ">=", 0.0))
    valid = e.all_of(valid, e.compare(x, "<=", 1.0))
    inside = _and(
        e,
        valid,
        e.all_of(e.compare(x, ">", 0.0), e.compare(x, "<", 1.0)),
        e.all_of(e.compare(a, "<", math.inf), e.compare(b, "<", math.inf)),
    )
    first, second = e.select(inside, a, 1.0), e.select(inside, b, 1.0)
    place = e.select(inside, x, 0.5)
    density = _beta_density(e, first, second, place)
    turned = e.compare(place, ">", e.div(e.add(first, 1.0), e.add(e.add(first, second), 2.0)))
    one, other = e.select(turned, second, first), e.select(turned, first, second)
    near = e.select(turned, e.sub(1.0, place), place)
    value = e.div(e.mul(density, _beta_fraction(e, one, other, near)), one)
    value = e.select(turned, e.sub(1.0, value), value)
    a_ends, b_ends = e.compare(a, "==", math.inf), e.compare(b, "==", math.inf)
    value = e.select(b_ends, 1.0, e.select(a_ends, 0.0, value))
    value = e.select(e.compare(x, "==", 0.0), 0.0, value)
    value = e.select(e.compare(x, "==", 1.0), 1.0, value)
    return e.select(_and(e, valid, e.builder.not_(e.all_of(a_ends, b_ends))), value, math.nan)


def betainc(e: Emitter, a: Value, b: Value, x: Value) -> Value:
    """Return the incomplete beta function."""
    return call_formed(e, "headrace_betainc", (a, b, x), _betainc)
