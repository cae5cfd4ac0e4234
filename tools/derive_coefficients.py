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
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

import mpmath as mp
import numpy as np

# One of mpmath's numbers, which have no types.
Number: TypeAlias = "mp.mpf"
Real: TypeAlias = Callable[[Number], Number]

mp.mp.dps = 45

FOLDER = Path(__file__).parents[1] / "packages/backend-cpu/src/headrace_cpu/fusion/functions"
TARGET = FOLDER / "coefficients.py"


@dataclass(frozen=True)
class Fit:
    """One polynomial: `p(x) ~ function(x)` on an interval, with the error times `weight(x)`.

    Attributes:
        name: What the coefficients are called.
        grade: The format that they are rounded to, or `single`: float64 for results in float32.
        function: What is approximated.
        weight: What an error of the polynomial makes of the result, relative to it.
        low: Where the interval begins.
        high: Where it ends.
        terms: How many coefficients there are, from that of x**0 on.
    """

    name: str
    grade: str
    function: Real
    weight: Real
    low: Number
    high: Number
    terms: int


@dataclass(frozen=True)
class Ratio:
    """A quotient of polynomials: `p(x) / q(x) ~ function(x)`, errors relative to the function.

    Attributes:
        name: What the coefficients of p are called; those of q have "_UNDER" behind it.
        grade: As in `Fit`.
        function: What is approximated.
        low: Where the interval begins.
        high: Where it ends.
        terms: How many coefficients p has.
        under: How many q has beside the first, which is 1.
    """

    name: str
    grade: str
    function: Real
    low: Number
    high: Number
    terms: int
    under: int


def rounded(value: Number, grade: str) -> Number:
    """Return the nearest number of a grade's format."""
    bits = 24 if grade == "float32" else 53
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

    def error(coefficients: list[Number]) -> Number:
        return max(abs(e) for e in grid.errors(coefficients))

    best = _remez(grid, [], fit.terms)
    done: list[Number] = []
    for place in range(fit.terms):
        done = [*done, rounded(best[place], fit.grade)]
        # Where 0 is inside of the interval, a fit of higher powers alone may fail.
        anew = _remez(grid, done, fit.terms - len(done))
        best = min(anew, done + best[place + 1 :], key=error)
    return done, error(done)


def solve_under(ratio: Ratio) -> list[Number]:
    """Return the rounded coefficients of a quotient's denominator.

    They are those of the least squares of ``p - f q``, weighted with the q of the round before.
    """
    count = 6 * (ratio.terms + ratio.under)
    middle, half = (ratio.high + ratio.low) / 2, (ratio.high - ratio.low) / 2
    places = [middle - half * mp.cos(mp.pi * (2 * i + 1) / (2 * count)) for i in range(count)]
    values = [ratio.function(x) for x in places]
    under = [mp.mpf(1)]
    for _ in range(8):
        rows = mp.matrix(count, ratio.terms + ratio.under)
        right = mp.matrix(count, 1)
        for row, (x, value) in enumerate(zip(places, values, strict=True)):
            weight = 1 / (value * mp.polyval(under[::-1], x))
            for power in range(ratio.terms):
                rows[row, power] = weight * x**power
            for power in range(ratio.under):
                rows[row, ratio.terms + power] = -weight * value * x ** (power + 1)
            right[row] = weight * value
        solution = mp.lu_solve(rows, right)
        under = [mp.mpf(1), *(solution[ratio.terms + i] for i in range(ratio.under))]
    return [rounded(each, ratio.grade) for each in under]


def solve_ratio(ratio: Ratio) -> tuple[list[Number], list[Number], Number]:
    """Return the rounded coefficients of both polynomials of a quotient, and its largest error."""
    under = solve_under(ratio)

    def product(x: Number) -> Number:
        return ratio.function(x) * mp.polyval(under[::-1], x)

    fit = Fit(
        ratio.name,
        ratio.grade,
        product,
        lambda x: 1 / product(x),
        ratio.low,
        ratio.high,
        ratio.terms,
    )
    over, error = solve(fit)
    return over, under, error


def with_limit(function: Real, value_at_zero: Number) -> Real:
    """Return a function with the hole at 0 filled in."""
    return lambda x: value_at_zero if x == 0 else function(x)


_HALF_LN2 = mp.log(2) / 2 * mp.mpf("1.0005")
_LOW_LOG, _HIGH_LOG = mp.sqrt(mp.mpf("0.5")) - 1, mp.sqrt(mp.mpf(2)) - 1


def _exp_rest(x: Number) -> Number:
    return (mp.expm1(x) - x) / x**2


def _exp(name: str, grade: str, relative_to: Real, terms: int) -> Fit:
    """Fit q in exp(x) = 1 + x + x**2 q(x)."""
    return Fit(
        name,
        grade,
        with_limit(_exp_rest, mp.mpf("0.5")),
        with_limit(lambda x: x**2 / relative_to(x), mp.mpf(0)),
        -_HALF_LN2,
        _HALF_LN2,
        terms,
    )


def _log_narrow(terms: int) -> Fit:
    """Fit q in log(1 + x) = x - x**2 / 2 + x**3 q(x)."""
    return Fit(
        "LOG",
        "float32",
        with_limit(lambda x: (mp.log1p(x) - x + x**2 / 2) / x**3, mp.mpf(1) / 3),
        with_limit(lambda x: x**3 / mp.log1p(x), mp.mpf(0)),
        _LOW_LOG,
        _HIGH_LOG,
        terms,
    )


def _log_wide(grade: str, terms: int) -> Fit:
    """Fit q in log((1 + s) / (1 - s)) = 2 s + s z q(z), z = s**2."""
    end = (_HIGH_LOG / (2 + _HIGH_LOG)) ** 2 * mp.mpf("1.0005")
    return Fit(
        "LOG",
        grade,
        with_limit(lambda z: (2 * mp.atanh(mp.sqrt(z)) / mp.sqrt(z) - 2) / z, mp.mpf(2) / 3),
        lambda z: z / 2,
        mp.mpf(0),
        end,
        terms,
    )


def _odd(name: str, grade: str, function: Real, first: Number, end: Number, terms: int) -> Fit:
    """Fit q in f(x) = x + x z q(z), z = x**2, on x from 0 to `end`."""

    def rest(z: Number) -> Number:
        x = mp.sqrt(z)
        return (function(x) / x - 1) / z

    return Fit(
        name,
        grade,
        with_limit(rest, first),
        with_limit(lambda z: z * mp.sqrt(z) / function(mp.sqrt(z)), mp.mpf(0)),
        mp.mpf(0),
        mp.mpf(end) ** 2 * mp.mpf("1.0005"),
        terms,
    )


def _log_rest(grade: str, terms: int) -> Fit:
    """Fit q in log((1 + s) / (1 - s)) = 2 s + 2 s z / 3 + s z**2 q(z), z = s**2."""
    end = (_HIGH_LOG / (2 + _HIGH_LOG)) ** 2 * mp.mpf("1.0005")

    def rest(z: Number) -> Number:
        s = mp.sqrt(z)
        return ((2 * mp.atanh(s) / s - 2) / z - mp.mpf(2) / 3) / z

    return Fit(
        "LOG_REST",
        grade,
        with_limit(rest, mp.mpf(2) / 5),
        lambda z: z * z / 2,
        mp.mpf(0),
        end,
        terms,
    )


def _cos(grade: str, terms: int) -> Fit:
    """Fit q in cos(x) = 1 - z / 2 + z**2 q(z), z = x**2."""
    return Fit(
        "COS",
        grade,
        with_limit(lambda z: (mp.cos(mp.sqrt(z)) - 1 + z / 2) / z**2, mp.mpf(1) / 24),
        lambda z: z**2,
        mp.mpf(0),
        (mp.pi / 4) ** 2 * mp.mpf("1.001"),
        terms,
    )


def _erf(grade: str, terms: int) -> Fit:
    """Fit q in erf(x) = x + x q(z), z = x**2, on x from 0 to 1."""
    slope = 2 / mp.sqrt(mp.pi)

    def ratio(z: Number) -> Number:
        return slope if z == 0 else mp.erf(mp.sqrt(z)) / mp.sqrt(z)

    return Fit(
        "ERF",
        grade,
        lambda z: ratio(z) - 1,
        lambda z: 1 / ratio(z),
        mp.mpf(0),
        mp.mpf("1.0005"),
        terms,
    )


def _erf_far(grade: str, terms: int) -> Fit:
    """Fit q in erf(x) = 1 - exp(x q(x)), on x from 1 to where it rounds to 1."""
    return Fit(
        "ERF_FAR",
        grade,
        lambda x: mp.log(mp.erfc(x)) / x,
        lambda x: x * mp.erfc(x) / mp.erf(x),
        mp.mpf("0.9995"),
        mp.mpf("4.0005"),
        terms,
    )


def _erfc(grade: str, high: str, terms: int) -> Fit:
    """Fit q in (1 + 2 x) exp(x**2) erfc(x) = q((x - 3.75) / (x + 3.75)), on x from 0.5."""
    middle = mp.mpf("3.75")

    def scaled(t: Number) -> Number:
        x = middle * (1 + t) / (1 - t)
        return (1 + 2 * x) * mp.exp(x * x) * mp.erfc(x)

    ends = [(mp.mpf(x) - middle) / (mp.mpf(x) + middle) for x in ("0.4995", high)]
    return Fit("ERFC", grade, scaled, lambda t: 1 / scaled(t), ends[0], ends[1], terms)


def fits() -> list[Fit]:
    """List every polynomial."""
    third, sixth = mp.mpf(1) / 3, mp.mpf(1) / 6
    split, eighth = mp.mpf("0.55"), mp.pi / 4
    octant = mp.sqrt(mp.mpf(2)) - 1
    return [
        _exp("EXP", "float32", mp.exp, 5),
        _exp("EXP", "float64", mp.exp, 11),
        _exp("EXP", "single", mp.exp, 6),
        _exp("EXPM1", "float32", mp.expm1, 6),
        _exp("EXPM1", "float64", mp.expm1, 11),
        _log_narrow(8),
        _log_wide("float64", 7),
        _log_wide("single", 5),
        _log_rest("float32", 3),
        _log_rest("float64", 7),
        _odd("TANH", "float32", mp.tanh, -third, split, 5),
        _odd("TANH", "float64", mp.tanh, -third, split, 10),
        _odd("SINH", "float32", mp.sinh, sixth, mp.mpf(1), 4),
        _odd("SINH", "single", mp.sinh, sixth, mp.mpf(1), 4),
        _odd("SINH", "float64", mp.sinh, sixth, mp.mpf(1), 7),
        _odd("SIN", "float32", mp.sin, -sixth, eighth, 4),
        _odd("SIN", "single", mp.sin, -sixth, eighth, 4),
        _odd("SIN", "float64", mp.sin, -sixth, eighth, 7),
        _cos("float32", 3),
        _cos("single", 3),
        _cos("float64", 6),
        _odd("ATAN", "float32", mp.atan, -third, octant, 5),
        _odd("ATAN", "single", mp.atan, -third, octant, 5),
        _odd("ATAN", "float64", mp.atan, -third, octant, 11),
        _odd("ASIN", "float32", mp.asin, sixth, mp.mpf("0.5"), 5),
        _odd("ASIN", "single", mp.asin, sixth, mp.mpf("0.5"), 6),
        _odd("ASIN", "float64", mp.asin, sixth, mp.mpf("0.5"), 13),
        _erf("float32", 7),
        _erf("single", 7),
        _erf("float64", 14),
        _erf_far("float32", 8),
        _erfc("float32", "11", 10),
        _erfc("single", "11", 12),
        _erfc("float64", "28", 24),
    ]


def parts_of(value: Number, bits: Sequence[int]) -> list[Number]:
    """Return a sum of numbers of so many bits that comes close to a value."""
    parts = []
    for width in bits:
        with mp.workprec(width):
            part = +value
        parts.append(part)
        value -= part
    return parts


def _turns(rows: int, bits: Sequence[int]) -> list[Number]:
    """Return the fractions of 2**(32 j) / (2 pi) in parts, row after row."""
    parts = []
    for row in range(rows):
        value = mp.ldexp(1, 32 * row) / (2 * mp.pi)
        parts += parts_of(value - mp.floor(value), bits)
    return parts


def constants() -> dict[str, list[Number]]:
    """Return constants in parts."""
    with mp.workprec(1400):
        return {
            # Whole numbers of 9 and of 12 bits times the first part are exact.
            "LN2_FLOAT32": parts_of(mp.log(2), (15, 24)),
            "LN2_FLOAT64": parts_of(mp.log(2), (41, 53)),
            "PI": parts_of(mp.pi, (53, 53)),
            "HALF_PI_FLOAT32": parts_of(mp.pi / 2, (24, 24, 24)),
            "HALF_PI_FLOAT64": parts_of(mp.pi / 2, (53, 53, 53)),
            "TWO_THIRDS_FLOAT32": parts_of(mp.mpf(2) / 3, (24, 24)),
            "TWO_THIRDS": parts_of(mp.mpf(2) / 3, (53, 53)),
            # Products of the first two parts with a number of float32 are exact.
            "TURNS_SINGLE": _turns(4, (29, 29, 53)),
            "TURNS_FLOAT64": _turns(31, (53, 53, 53, 53)),
        }


HEAD = '''"""Constants in parts, and coefficients of polynomials from that of x**0 on.

Written by tools/{tool}.py, which
says what each one approximates. The comment of each gives the largest error that it makes by
itself, relative to the result that it serves.
"""

from __future__ import annotations

'''


def _rows(coefficients: Sequence[Number], error: Number) -> str:
    """Return the lines of some coefficients."""
    lines = [f"        # 2**{float(mp.log(error, 2)):.1f}"]
    lines += [f"        {np.float64(float(c))!r}," for c in coefficients]
    return "\n".join(lines).replace("np.float64(", "").replace("),", ",")


def render(chosen: Sequence[Fit | Ratio]) -> str:
    """Return the text of the module of coefficients."""
    tables: dict[str, dict[str, str]] = {}
    for fit in chosen:
        if isinstance(fit, Ratio):
            coefficients, under, error = solve_ratio(fit)
            tables.setdefault(f"{fit.name}_UNDER", {})[fit.grade] = _rows(under, error)
        else:
            coefficients, error = solve(fit)
        sys.stderr.write(f"{fit.name} {fit.grade} 2**{float(mp.log(error, 2)):.1f}\n")
        tables.setdefault(fit.name, {})[fit.grade] = _rows(coefficients, error)
    parts = []
    for name, by_grade in tables.items():
        rows = "\n".join(f'    "{grade}": (\n{text}\n    ),' for grade, text in by_grade.items())
        parts.append(f"{name}: dict[str, tuple[float, ...]] = {{\n{rows}\n}}\n")
    return "\n".join(parts)


def render_constants(chosen: Mapping[str, Sequence[Number]]) -> str:
    """Return the text of constants."""
    parts = []
    for name, values in chosen.items():
        rows = "\n".join(f"    {float(value)!r}," for value in values)
        parts.append(f"{name}: tuple[float, ...] = (\n{rows}\n)\n")
    return "\n".join(parts)


def main() -> None:
    """Write the module, or print what one polynomial is."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", help="print the polynomials of one name, and write nothing")
    only = parser.parse_args().only
    if only:
        sys.stdout.write(render([fit for fit in fits() if fit.name == only]))
        return
    head = HEAD.format(tool=Path(__file__).stem)
    TARGET.write_text(head + render_constants(constants()) + "\n" + render(fits()))


if __name__ == "__main__":
    main()
