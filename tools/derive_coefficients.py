"""Derives the polynomials of the elementary functions: `python tools/derive_coefficients.py`.

Each polynomial is the best one in the maximum norm, relative to the function that it serves, found
by the exchange algorithm of Remez on a dense grid of Chebyshev points. Its coefficients are then
rounded to the format one after another, from the lowest: after each, the others are fitted anew, so
that they make up for the rounding (the idea of Brisebarre and Chevillard, 2007, in a simpler form).

References:
    Remez, "Sur la détermination des polynômes d'approximation de degré donné", 1934.
    Muller, "Elementary Functions: Algorithms and Implementation", 3rd edition, 2016, chapter 3.
    Brisebarre and Chevillard, "Efficient polynomial L-infinity approximations", ARITH 2007.
    Shepherd and Laframboise, "Chebyshev approximation of (1 + 2x) exp(x^2) erfc x in
    0 <= x < infinity", Mathematics of Computation 36, 1981 (the shape of the fit of erfc).
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

import mpmath as mp
import numpy as np

# One of mpmath's numbers, which have no types.
Number: TypeAlias = "mp.mpf"
Real: TypeAlias = Callable[[Number], Number]

mp.mp.dps = 45

TARGET = (
    Path(__file__).parents[1]
    / "packages/backend-cpu/src/headrace_cpu/fusion/functions/coefficients.py"
)


@dataclass(frozen=True)
class Fit:
    """One polynomial: `p(x) ~ function(x)` on an interval, with the error times `weight(x)`.

    Attributes:
        name: What the coefficients are called.
        dtype: The format that they are rounded to.
        function: What is approximated.
        weight: What an error of the polynomial makes of the result, relative to it.
        low: Where the interval begins.
        high: Where it ends.
        terms: How many coefficients there are, from that of x**0 on.
    """

    name: str
    dtype: str
    function: Real
    weight: Real
    low: Number
    high: Number
    terms: int


def rounded(value: Number, dtype: str) -> Number:
    """Return the nearest number of a dtype."""
    bits = 24 if dtype == "float32" else 53
    if value == 0:
        return value
    with mp.workprec(bits):
        return +value


class _Grid:
    """A fit's values on Chebyshev points, which are dense where errors are largest: at the ends."""

    def __init__(self, fit: Fit) -> None:
        count = 40 * (fit.terms + 2)
        middle, half = (fit.high + fit.low) / 2, (fit.high - fit.low) / 2
        angles = [mp.pi * i / (count - 1) for i in range(count)]
        self.x = [middle - half * mp.cos(angle) for angle in angles]
        self.value = [fit.function(x) for x in self.x]
        self.weight = [abs(fit.weight(x)) for x in self.x]

    def errors(self, coefficients: list[Number]) -> list[Number]:
        """Return the weighted error at each point."""
        reverse = coefficients[::-1]
        return [
            w * (v - mp.polyval(reverse, x))
            for x, v, w in zip(self.x, self.value, self.weight, strict=True)
        ]


def _extremes(errors: list[Number], count: int) -> list[int]:
    """Return `count` places of alternating errors, the largest of each run of one sign."""
    places: list[int] = []
    for i, error in enumerate(errors):
        if places and (error > 0) == (errors[places[-1]] > 0):
            if abs(error) > abs(errors[places[-1]]):
                places[-1] = i
        else:
            places.append(i)
    while len(places) > count:
        # Drop the smaller of both ends, which keeps the signs alternating.
        drop = 0 if abs(errors[places[0]]) < abs(errors[places[-1]]) else -1
        places.pop(drop)
    return places


def _remez(grid: _Grid, fixed: list[Number], free: int) -> list[Number]:
    """Fit `free` coefficients beside `fixed` lower ones."""
    if free == 0:
        return fixed
    first = len(fixed)
    count = free + 1
    size = len(grid.x)
    places = [
        min(size - 1, max(0, round((size - 1) * (2 * i + 1) / (2 * count)))) for i in range(count)
    ]
    reverse = fixed[::-1] or [mp.mpf(0)]
    best, least = fixed + [mp.mpf(0)] * free, mp.inf
    for _ in range(25):
        rows = mp.matrix(count, count)
        right = mp.matrix(count, 1)
        for row, place in enumerate(places):
            x, w = grid.x[place], grid.weight[place]
            for column in range(free):
                rows[row, column] = w * x ** (first + column)
            rows[row, free] = (-1) ** row
            right[row] = w * (grid.value[place] - mp.polyval(reverse, x))
        solution = mp.lu_solve(rows, right)
        candidate = fixed + [solution[i] for i in range(free)]
        errors = grid.errors(candidate)
        worst = max(abs(e) for e in errors)
        if worst < least:
            best, least = candidate, worst
        if worst <= abs(solution[free]) * mp.mpf("1.002"):
            break
        places = _extremes(errors, count)
        if len(places) < count:  # the fixed coefficients leave no alternation
            break
    return best


def solve(fit: Fit) -> tuple[list[Number], Number]:
    """Return the rounded coefficients of a fit, from the lowest, and their largest error."""
    grid = _Grid(fit)
    done: list[Number] = []
    for _ in range(fit.terms):
        candidate = _remez(grid, done, fit.terms - len(done))
        done = [*done, rounded(candidate[len(done)], fit.dtype)]
    return done, max(abs(e) for e in grid.errors(done))


def _series(function: Real, value_at_zero: Number) -> Real:
    """Return a function with the hole at 0 filled in."""
    return lambda x: value_at_zero if x == 0 else function(x)


_HALF_LN2 = mp.log(2) / 2 * mp.mpf("1.0005")
_LOW_LOG, _HIGH_LOG = mp.sqrt(mp.mpf("0.5")) - 1, mp.sqrt(mp.mpf(2)) - 1


def _exp_rest(x: Number) -> Number:
    return (mp.expm1(x) - x) / x**2


def _exp(name: str, dtype: str, relative_to: Real, terms: int) -> Fit:
    """Fit q in exp(x) = 1 + x + x**2 q(x)."""
    return Fit(
        name,
        dtype,
        _series(_exp_rest, mp.mpf("0.5")),
        _series(lambda x: x**2 / relative_to(x), mp.mpf(0)),
        -_HALF_LN2,
        _HALF_LN2,
        terms,
    )


def _log_narrow(terms: int) -> Fit:
    """Fit q in log(1 + x) = x - x**2 / 2 + x**3 q(x)."""
    return Fit(
        "LOG",
        "float32",
        _series(lambda x: (mp.log1p(x) - x + x**2 / 2) / x**3, mp.mpf(1) / 3),
        _series(lambda x: x**3 / mp.log1p(x), mp.mpf(0)),
        _LOW_LOG,
        _HIGH_LOG,
        terms,
    )


def _log_wide(terms: int) -> Fit:
    """Fit q in log((1 + s) / (1 - s)) = 2 s + s z q(z), z = s**2."""
    end = (_HIGH_LOG / (2 + _HIGH_LOG)) ** 2 * mp.mpf("1.0005")
    return Fit(
        "LOG",
        "float64",
        _series(lambda z: (2 * mp.atanh(mp.sqrt(z)) / mp.sqrt(z) - 2) / z, mp.mpf(2) / 3),
        lambda z: z / 2,
        mp.mpf(0),
        end,
        terms,
    )


def _odd(name: str, dtype: str, function: Real, first: Number, end: Number, terms: int) -> Fit:
    """Fit q in f(x) = x + x z q(z), z = x**2, on x from 0 to `end`."""

    def rest(z: Number) -> Number:
        x = mp.sqrt(z)
        return (function(x) / x - 1) / z

    return Fit(
        name,
        dtype,
        _series(rest, first),
        _series(lambda z: z * mp.sqrt(z) / function(mp.sqrt(z)), mp.mpf(0)),
        mp.mpf(0),
        mp.mpf(end) ** 2 * mp.mpf("1.0005"),
        terms,
    )


def fits() -> list[Fit]:
    """List every polynomial."""
    third = mp.mpf(1) / 3
    return [
        _exp("EXP", "float32", mp.exp, 5),
        _exp("EXP", "float64", mp.exp, 11),
        _exp("EXPM1", "float32", mp.expm1, 6),
        _exp("EXPM1", "float64", mp.expm1, 11),
        _log_narrow(8),
        _log_wide(7),
        _odd("TANH", "float32", mp.tanh, -third, mp.mpf("0.55"), 5),
        _odd("TANH", "float64", mp.tanh, -third, mp.mpf("0.55"), 10),
    ]


_HEAD = '''"""Coefficients of polynomials, from that of x**0 on.

Written by tools/derive_coefficients.py, which says what each one approximates. The comment of each
gives the largest error that it makes by itself, relative to the result that it serves.
"""

from __future__ import annotations

'''


def render(chosen: list[Fit]) -> str:
    """Return the text of the module of coefficients."""
    tables: dict[str, dict[str, str]] = {}
    for fit in chosen:
        coefficients, error = solve(fit)
        sys.stderr.write(f"{fit.name} {fit.dtype} 2**{float(mp.log(error, 2)):.1f}\n")
        lines = [f"        # 2**{float(mp.log(error, 2)):.1f}"]
        lines += [f"        {np.float64(float(c))!r}," for c in coefficients]
        text = "\n".join(lines).replace("np.float64(", "").replace("),", ",")
        tables.setdefault(fit.name, {})[fit.dtype] = text
    parts = []
    for name, by_dtype in tables.items():
        rows = "\n".join(f'    "{dtype}": (\n{text}\n    ),' for dtype, text in by_dtype.items())
        parts.append(f"{name}: dict[str, tuple[float, ...]] = {{\n{rows}\n}}\n")
    return _HEAD + "\n".join(parts)


def main() -> None:
    """Write the module, or print what one polynomial is."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", help="print the polynomials of one name, and write nothing")
    only = parser.parse_args().only
    if only:
        sys.stdout.write(render([fit for fit in fits() if fit.name == only]))
        return
    TARGET.write_text(render(fits()))


if __name__ == "__main__":
    main()
