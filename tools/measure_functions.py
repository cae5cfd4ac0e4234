"""Measures the errors of the elementary functions: `python tools/measure_functions.py`.

Prints the rows of the table in docs/reference/elementary-functions.md. An error is given in units
in the last place of the exact result, of which there are fewer below the smallest normal number.
Results in float32 are compared with NumPy's and SciPy's in float64; those in float64 with C's in
long double where that has 64 bits (x86), or with mpmath's.

The special functions of several numbers are measured in the ranges in which they are used.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import mpmath as mp
import numpy as np
import scipy.special  # noqa: TID253

from headrace_cpu.fusion.vocabulary import ELEMENTARY_FUNCTIONS
from headrace_cpu.native.build import build
from headrace_cpu.native.memory import address
from headrace_cpu.native.source import KernelSource
from headrace_cpu.native.threads import launch

Array = Any
Reference = Callable[..., Array]

LONG_DOUBLE = np.finfo(np.longdouble).nmant >= 63


def _sigmoid(x: Array) -> Array:
    decay = np.exp(-np.abs(x))
    return np.where(x >= 0, 1, decay) / (1 + decay)


def _softplus(x: Array) -> Array:
    return np.where(np.isnan(x), x, np.maximum(x, 0) + np.log1p(np.exp(-np.abs(x))))


# What is right for numbers of a wider format than those of the function.
UNARY: dict[str, Reference] = {
    "Acos": np.arccos,
    "Acosh": np.arccosh,
    "Asin": np.arcsin,
    "Asinh": np.arcsinh,
    "Atan": np.arctan,
    "Atanh": np.arctanh,
    "BesselI0": lambda x: np.where(np.isinf(x), np.inf, scipy.special.i0(x)),
    "BesselI0e": scipy.special.i0e,
    "BesselI1": lambda x: np.where(np.isinf(x), x, scipy.special.i1(x)),
    "BesselI1e": scipy.special.i1e,
    "Cos": np.cos,
    "Cosh": np.cosh,
    "Digamma": lambda x: np.where(x == 0, np.nan, scipy.special.digamma(x)),
    "Erf": scipy.special.erf,
    "Erfc": scipy.special.erfc,
    "Erfinv": scipy.special.erfinv,
    "Exp": np.exp,
    "Expm1": np.expm1,
    "Lgamma": lambda x: np.where(np.isinf(x), np.inf, scipy.special.gammaln(x)),
    "Log": np.log,
    "Log1p": np.log1p,
    "Ndtri": scipy.special.ndtri,
    "Rsqrt": lambda x: 1 / np.sqrt(x),
    "Sigmoid": _sigmoid,
    "Sin": np.sin,
    "Sinh": np.sinh,
    "Softplus": _softplus,
    "Tan": np.tan,
    "Tanh": np.tanh,
}
BINARY: dict[str, Reference] = {"Atan2": np.arctan2, "Pow": np.power}
# Both have zeros between negative whole numbers. Float64 has no digits for small relative errors
# there: errors are in units of 1, where results are smaller.
_IN_UNITS_OF_ONE = frozenset({"Digamma", "Lgamma"})


def _bounded(function: Any) -> Any:
    """Return a function that is constant beyond 1000, where mpmath refuses numbers."""
    return lambda x: function(min(max(x, mp.mpf(-1000)), mp.mpf(1000)))


def _lgamma(x: Any) -> Any:
    if mp.isinf(x) or (x <= 0 and mp.isint(x)):
        return mp.inf
    return mp.re(mp.loggamma(x))


def _digamma(x: Any) -> Any:
    if x <= 0 and (mp.isinf(x) or mp.isint(x)):
        return mp.nan
    return mp.psi(0, x)


def _inverse_erfc(rest: Any) -> Any:
    """Return where erfc is a number below 1, by Newton's method."""
    if rest > 0.5:
        return mp.erfinv(1 - rest)
    y = mp.sqrt(-mp.log(rest)) * mp.mpf("0.85")
    for _ in range(60):
        value = mp.erfc(y)
        step = mp.log(value / rest) * value * mp.sqrt(mp.pi) / 2 * mp.exp(y * y)
        y += step
        if abs(step) < mp.mpf("1e-25") * y:
            break
    return y


def _erfinv(x: Any) -> Any:
    if mp.isnan(x) or abs(x) > 1:
        return mp.nan
    if abs(x) < 0.5:
        return mp.erfinv(x)
    return mp.sign(x) * (_inverse_erfc(1 - abs(x)) if abs(x) < 1 else mp.inf)


def _ndtri(p: Any) -> Any:
    if mp.isnan(p) or not 0 <= p <= 1:
        return mp.nan
    if p in (0, 1):
        return mp.inf if p else -mp.inf
    if abs(p - 0.5) < 0.25:
        return mp.sqrt(2) * mp.erfinv(2 * p - 1)
    size = mp.sqrt(2) * _inverse_erfc(2 * min(p, 1 - p))
    return size if p > 0.5 else -size


def _bessel(order: int, *, scaled: bool) -> Any:
    def function(x: Any) -> Any:
        size = abs(x)
        if mp.isnan(x):
            return x
        sign = mp.sign(x) ** order
        if mp.isinf(size):
            return sign * (0 if scaled else mp.inf)
        if size < 1e4:
            return mp.besseli(order, x) * (mp.exp(-size) if scaled else 1)
        # Five terms of the series at infinity have all digits.
        term = total = mp.mpf(1)
        for n in range(1, 5):
            term *= ((2 * n - 1) ** 2 - 4 * order) / (8 * n * size)
            total += term
        growth = mp.mpf(1) if scaled else mp.exp(min(size, mp.mpf(10**5)))
        return sign * growth * total / mp.sqrt(2 * mp.pi * size)

    return function


# Those that long double has no function for.
_BY_MPMATH = {
    "BesselI0": _bessel(0, scaled=False),
    "BesselI0e": _bessel(0, scaled=True),
    "BesselI1": _bessel(1, scaled=False),
    "BesselI1e": _bessel(1, scaled=True),
    "Digamma": _digamma,
    "Erf": _bounded(mp.erf),
    "Erfc": _bounded(mp.erfc),
    "Erfinv": _erfinv,
    "Lgamma": _lgamma,
    "Ndtri": _ndtri,
}
# Numbers of which their values are no less usual than those of other ranges.
_USUAL = {
    "Digamma": (-30.0, 30.0),
    "Erfinv": (-1.0, 1.0),
    "Lgamma": (-30.0, 30.0),
    "Ndtri": (0.0, 1.0),
}


@dataclass(frozen=True)
class Special:
    """A special function of several numbers.

    Attributes:
        wide: It on arrays of float64, to compare float32 with.
        exact: It on numbers of mpmath.
        draw: Returns arguments, of ``(rng, count)``.
    """

    wide: Reference
    exact: Callable[..., Any]
    draw: Callable[[np.random.Generator, int], tuple[Array, ...]]


def _shapes(rng: np.random.Generator, count: int, high: float) -> Array:
    small = rng.uniform(0.01, 3, count)
    return np.where(rng.random(count) < 0.4, small, np.exp(rng.uniform(0, np.log(high), count)))


def _about(rng: np.random.Generator, a: Array) -> Array:
    """Return bounds that are of the size of shapes, and some that are not."""
    near = a + 3 * np.sqrt(a) * rng.normal(size=a.size)
    other = a * rng.uniform(0.1, 3, a.size)
    return np.abs(np.where(rng.random(a.size) < 0.7, near, other)) + 1e-3


def _gamma_pairs(rng: np.random.Generator, count: int) -> tuple[Array, ...]:
    a = _shapes(rng, count, 300)
    return a, _about(rng, a)


def _beta_triples(rng: np.random.Generator, count: int) -> tuple[Array, ...]:
    a, b = _shapes(rng, count, 100), _shapes(rng, count, 100)
    return a, b, rng.beta(np.maximum(a, 0.3), np.maximum(b, 0.3))


def _lower(a: Any, x: Any) -> Any:
    return mp.gammainc(a, 0, x, regularized=True)


def _upper(a: Any, x: Any) -> Any:
    return mp.gammainc(a, x, mp.inf, regularized=True)


def _slope(a: Any, x: Any) -> Any:
    with mp.workdps(50):
        # The one of both that is small where its slope is.
        of = _lower if x < a else _upper
        slope = mp.diff(lambda at: of(at, x), a, h=mp.mpf("1e-18"))
        return slope if x < a else -slope


def _slope_wide(a: Array, x: Array) -> Array:
    from headrace_cpu.kernels.special import igamma_grad_a

    return igamma_grad_a(np, a, x)


def _polygamma_wide(n: Array, x: Array) -> Array:
    return np.where(n == 1, scipy.special.zeta(2, x), scipy.special.polygamma(n, x))


def _zeta_pairs(rng: np.random.Generator, count: int) -> tuple[Array, ...]:
    return rng.uniform(1.001, 12, count), _shapes(rng, count, 100)


def _polygamma_pairs(rng: np.random.Generator, count: int) -> tuple[Array, ...]:
    return rng.integers(1, 6, count).astype(np.float64), _shapes(rng, count, 100)


SPECIALS: dict[str, Special] = {
    "Betainc": Special(
        scipy.special.betainc,
        lambda a, b, x: mp.betainc(a, b, 0, x, regularized=True),
        _beta_triples,
    ),
    "Igamma": Special(scipy.special.gammainc, _lower, _gamma_pairs),
    "IgammaGradA": Special(_slope_wide, _slope, _gamma_pairs),
    "Igammac": Special(scipy.special.gammaincc, _upper, _gamma_pairs),
    "Polygamma": Special(_polygamma_wide, lambda n, x: mp.psi(int(n), x), _polygamma_pairs),
    "Zeta": Special(scipy.special.zeta, mp.zeta, _zeta_pairs),
}


def arity_of(op: str) -> int:
    """Return how many numbers a function takes that is measured."""
    if op == "Betainc":
        return 3
    return 2 if op in BINARY or op in SPECIALS else 1


def source_of_loop(op: str, dtype: str, arity: int, result: str) -> KernelSource:
    """Return a kernel that applies a function to arrays, one element after the other.

    The words of its block are the number of elements, the addresses of the arguments, and that of
    the results.
    """
    codes = {"float32": "f32", "float64": "f64", "bool_": "b8"}
    places = "".join(f"    p{i} = word(block, {1 + i})\n" for i in range(arity + 1))
    loads = (f"load_{codes[dtype]}(p{i}, i, {i})" for i in range(arity))
    text = f"""\
function = FUNCTIONS["{op}", "{dtype}"]


def loop(block):
    count = word(block, 0)
{places}    for i in range(count):
        store_{codes[result]}(p{arity}, i, function({", ".join(loads)}), {arity})
"""
    return KernelSource("loop", text, vocabulary=ELEMENTARY_FUNCTIONS)


def loop_of(op: str, dtype: str, result: str | None = None, arity: int = 0) -> Callable[..., Any]:
    """Return a compiled loop over contiguous arrays: those of arguments, then that of results.

    Args:
        op: The function.
        dtype: Of its arguments.
        result: Of its results, None for that of the arguments.
        arity: How many arguments it takes, where it is none of those that are measured.
    """
    arity = arity or arity_of(op)
    (place,) = build([source_of_loop(op, dtype, arity, result or dtype)])

    def run(*arrays: Array) -> None:
        given = [array.size for array in arrays[:1]] + [address(array) for array in arrays]
        block = np.array(given, np.int64)
        launch(place, address(block))()

    return run


def _by_mpmath(function: Callable[..., Any], arguments: tuple[Array, ...]) -> Array:
    result = np.empty(arguments[0].shape, np.longdouble)
    with mp.workdps(30):
        for i, values in enumerate(zip(*[x.tolist() for x in arguments], strict=True)):
            exact = function(*map(mp.mpf, values))
            high = float(exact)
            rest = float(exact - high) if np.isfinite(high) else 0.0
            result[i] = np.longdouble(high) + np.longdouble(rest)
    return result


def reference(op: str, arguments: tuple[Array, ...]) -> Array:
    """Return results in a format wider than that of the arguments."""
    with np.errstate(all="ignore"):
        if arguments[0].dtype == np.float32:
            function = UNARY.get(op) or BINARY.get(op) or SPECIALS[op].wide
            return function(*[x.astype(np.float64) for x in arguments])
        if op in _BY_MPMATH:
            return _by_mpmath(_BY_MPMATH[op], arguments)
        if op in SPECIALS:
            return _by_mpmath(SPECIALS[op].exact, arguments)
        function = UNARY.get(op) or BINARY[op]
        return function(*[x.astype(np.longdouble) for x in arguments])


def errors(got: Array, want: Array, least: Array | float = 0.0) -> Array:
    """Return the error of each result in units in the last place, infinite where it is no number.

    An infinite result stands for the number after the largest, and so do larger exact results.

    Args:
        got: The results.
        want: The exact results.
        least: Results below it are measured in its units.
    """
    info = np.finfo(got.dtype)
    wide = want.dtype.type
    beyond = np.ldexp(wide(1), info.maxexp)
    with np.errstate(all="ignore"):
        size = np.clip(np.maximum(np.abs(want), least), wide(info.tiny), wide(info.max))
        unit = np.ldexp(wide(1), np.frexp(size)[1] - 1 - info.nmant)
        near = np.clip(got.astype(want.dtype), -beyond, beyond) - np.clip(want, -beyond, beyond)
        error = np.abs(near) / unit
    exact = np.isinf(want) | np.isnan(want)
    same = (got == want) | (np.isnan(got) & np.isnan(want))
    error = np.where(exact, np.where(same, 0.0, np.inf), error)
    with np.errstate(over="ignore"):
        return np.where(np.isnan(error), np.inf, error).astype(np.float64)


_ENDS = [0.0, 1e-45, 1e-38, 0.25, 0.5, 0.55, 1.0, 1.5, 2.0, np.pi, 9.0, 18.0, 40.0, 88.7, 104.0]


def special(dtype: str) -> Array:
    """Return numbers at which functions end or change their form, and those beside them."""
    info = np.finfo(dtype)
    limits = [709.7, 745.2, info.tiny, info.smallest_subnormal, info.max, np.inf, np.nan]
    positive = np.array(_ENDS + limits, dtype)
    with np.errstate(all="ignore"):
        beside = [np.nextafter(positive, end) for end in positive[[0, -2]]]
    return np.concatenate([sign * part for part in (positive, *beside) for sign in (1, -1)])


def sample(dtype: str, count: int, seed: int = 0) -> Array:
    """Return numbers of every exponent, and more of those that occur."""
    rng = np.random.default_rng(seed)
    unsigned = np.dtype(dtype).str.replace("f", "u")
    parts = [rng.integers(0, np.iinfo(unsigned).max, count, unsigned, endpoint=True).view(dtype)]
    scales = (1e-3, 0.3, 1.0, 3.0, 20.0, 110.0, 800.0)
    parts += [rng.uniform(-s, s, count // 7).astype(dtype) for s in scales]
    parts += [rng.uniform(0.5, 1.5, count // 7).astype(dtype), special(dtype)]
    return np.concatenate(parts)


def sample_pairs(op: str, dtype: str, count: int) -> tuple[Array, Array]:
    """Return pairs of numbers, among them all pairs of special ones."""
    rng = np.random.default_rng(1)
    first, second = np.meshgrid(special(dtype), special(dtype))
    if op == "Pow":
        bases = [np.exp(rng.uniform(-5, 5, count)), rng.uniform(0.9, 1.1, count)]
        bases.append(rng.integers(-50, 50, count).astype(np.float64))
        powers = [rng.uniform(-60, 60, count), rng.uniform(-3000, 3000, count)]
        powers.append(rng.integers(-12, 12, count).astype(np.float64))
    else:
        bases = [rng.normal(size=count), np.exp(rng.uniform(-80, 80, count))]
        powers = [rng.normal(size=count), np.exp(rng.uniform(-80, 80, count))]
    anything = sample(dtype, count, 2), sample(dtype, count, 3)
    with np.errstate(all="ignore"):
        left = np.concatenate([*bases, anything[0], first.ravel()]).astype(dtype)
        return left, np.concatenate([*powers, anything[1], second.ravel()]).astype(dtype)


def arguments_of(op: str, dtype: str, count: int) -> tuple[Array, ...]:
    """Return the arguments to measure a function with."""
    if op in BINARY:
        return sample_pairs(op, dtype, count)
    rng = np.random.default_rng(4)
    if op in SPECIALS:
        drawn = SPECIALS[op].draw(rng, count // 200 if dtype == "float64" else count // 4)
        return tuple(x.astype(dtype) for x in drawn)
    if op in _USUAL:
        few = count // 100 if dtype == "float64" else count
        low, high = _USUAL[op]
        ends = [1 - np.exp(rng.uniform(-36, 0, few)), np.exp(rng.uniform(-80, 0, few))]
        parts = [rng.uniform(low, high, few), *ends, rng.uniform(0.3, 4, few)]
        return (np.concatenate([sample(dtype, few), *(x.astype(dtype) for x in parts)]),)
    if op in _BY_MPMATH and dtype == "float64":
        return (np.concatenate([sample(dtype, count // 100), np.linspace(-7, 28, 2000)]),)
    return (sample(dtype, count),)


def all_float32() -> Iterator[Array]:
    """Return all numbers of float32, part by part."""
    part = 1 << 22
    for start in range(0, 1 << 32, part):
        yield np.arange(start, start + part, dtype=np.uint64).astype(np.uint32).view(np.float32)


def measure(
    op: str, loop: Callable[..., Any], arguments: tuple[Array, ...]
) -> tuple[float, tuple[float, ...]]:
    """Return the largest error, and where it is."""
    got = np.empty_like(arguments[0])
    loop(*arguments, got)
    least: Array | float = 0.0
    if op in _IN_UNITS_OF_ONE and got.dtype == np.float64:
        least = np.where(arguments[0] < 0, 1.0, 0.0)
    error = errors(got, reference(op, arguments), least)
    place = int(np.argmax(error))
    return float(error[place]), tuple(float(x[place]) for x in arguments)


def measure_all(op: str, loop: Callable[..., Any]) -> tuple[float, tuple[float, ...]]:
    """Return the largest error of a function of one float32, over all of them, and where it is."""
    return max(measure(op, loop, (x,)) for x in all_float32())


def main() -> None:
    """Print a row for each function."""
    parser = argparse.ArgumentParser(description=str(__doc__).splitlines()[0])
    parser.add_argument("ops", nargs="*", help="of these only")
    parser.add_argument("--all", action="store_true", help="all numbers of float32")
    parser.add_argument("--count", type=int, default=2_000_000, help="how many random numbers")
    parser.add_argument("--dtypes", nargs="+", default=["float32", "float64"])
    chosen = parser.parse_args()
    for op in chosen.ops or sorted([*UNARY, *BINARY, *SPECIALS]):
        for dtype in chosen.dtypes:
            loop = loop_of(op, dtype)
            if chosen.all and dtype == "float32" and op in UNARY:
                found = measure_all(op, loop)
            else:
                found = measure(op, loop, arguments_of(op, dtype, chosen.count))
            where = ", ".join(f"{x:.9g}" if dtype == "float32" else repr(x) for x in found[1])
            sys.stdout.write(f"| {op} | {dtype} | {found[0]:.3f} | {where} |\n")
            sys.stdout.flush()


if __name__ == "__main__":
    main()
