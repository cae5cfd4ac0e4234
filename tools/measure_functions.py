"""Measures the errors of the elementary functions: `python tools/measure_functions.py`.

Prints the rows of the table in docs/reference/elementary-functions.md. An error is given in units
in the last place of the exact result, of which there are fewer below the smallest normal number.
Results in float32 are compared with NumPy's and SciPy's in float64; those in float64 with C's in
long double where that has 64 bits (x86), or with mpmath's.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterator
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
    "Cos": np.cos,
    "Cosh": np.cosh,
    "Erf": scipy.special.erf,
    "Erfc": scipy.special.erfc,
    "Exp": np.exp,
    "Expm1": np.expm1,
    "Log": np.log,
    "Log1p": np.log1p,
    "Rsqrt": lambda x: 1 / np.sqrt(x),
    "Sigmoid": _sigmoid,
    "Sin": np.sin,
    "Sinh": np.sinh,
    "Softplus": _softplus,
    "Tan": np.tan,
    "Tanh": np.tanh,
}
BINARY: dict[str, Reference] = {"Atan2": np.arctan2, "Pow": np.power}
# Those that long double has no function for.
_BY_MPMATH = {"Erf": mp.erf, "Erfc": mp.erfc}


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
    arity = arity or (2 if op in BINARY else 1)
    (place,) = build([source_of_loop(op, dtype, arity, result or dtype)])

    def run(*arrays: Array) -> None:
        given = [array.size for array in arrays[:1]] + [address(array) for array in arrays]
        block = np.array(given, np.int64)
        launch(place, address(block))()

    return run


def _by_mpmath(function: Callable[[Any], Any], x: Array) -> Array:
    result = np.empty(x.shape, np.longdouble)
    with mp.workdps(30):
        for i, value in enumerate(x.tolist()):
            # Its erfc refuses huge numbers, of which all functions here are constant.
            exact = function(mp.mpf(min(max(value, -1e3), 1e3)))
            high = float(exact)
            rest = float(exact - high) if np.isfinite(high) else 0.0
            result[i] = np.longdouble(high) + np.longdouble(rest)
    return result


def reference(op: str, arguments: tuple[Array, ...]) -> Array:
    """Return results in a format wider than that of the arguments."""
    with np.errstate(all="ignore"):
        if arguments[0].dtype == np.float32:
            function = UNARY.get(op) or BINARY[op]
            return function(*[x.astype(np.float64) for x in arguments])
        if op in _BY_MPMATH:
            return _by_mpmath(_BY_MPMATH[op], arguments[0])
        function = UNARY.get(op) or BINARY[op]
        return function(*[x.astype(np.longdouble) for x in arguments])


def errors(got: Array, want: Array) -> Array:
    """Return the error of each result in units in the last place, infinite where it is no number.

    An infinite result stands for the number after the largest, and so do larger exact results.
    """
    info = np.finfo(got.dtype)
    wide = want.dtype.type
    beyond = np.ldexp(wide(1), info.maxexp)
    with np.errstate(all="ignore"):
        size = np.clip(np.abs(want), wide(info.tiny), wide(info.max))
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
    if op in _BY_MPMATH and dtype == "float64":
        return (np.concatenate([sample(dtype, 1500), np.linspace(-7, 28, 2000)]),)
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
    error = errors(got, reference(op, arguments))
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
    for op in chosen.ops or sorted([*UNARY, *BINARY]):
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
