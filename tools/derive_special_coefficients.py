"""Derives the polynomials of special functions: `python tools/derive_special_coefficients.py`.

They are found as those of the elementary functions are, see `derive_coefficients`; denominators of
quotients by least squares first.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

import mpmath as mp
from derive_coefficients import (
    FOLDER,
    HEAD,
    Fit,
    Number,
    Ratio,
    Real,
    parts_of,
    render,
    render_constants,
    with_limit,
)

_GAMMA_FAR = mp.mpf("3.5")


def _about_gamma(name: str, grade: str, function: Real, low: str, terms: int) -> Fit:
    """Fit q in f(x) = q((x - m) / (x + m)), m = 1.3125, on x from `low` to 3.5."""
    m = mp.mpf("1.3125")

    def of_place(z: Number) -> Number:
        return function(m * (1 + z) / (1 - z))

    ends = [(mp.mpf(x) - m) / (mp.mpf(x) + m) for x in (low, _GAMMA_FAR)]
    return Fit(name, grade, of_place, lambda z: 1 / of_place(z), ends[0], ends[1], terms)


def _lgamma(grade: str, terms: int) -> Fit:
    """Fit q in lgamma(x) = (x - 1) (x - 2) q(z), on x from 0.5 to 3.5."""

    def ratio(x: Number) -> Number:
        if abs(x - 1) < mp.mpf("1e-30") or abs(x - 2) < mp.mpf("1e-30"):
            return mp.psi(0, x) / (2 * x - 3)
        return mp.loggamma(x) / ((x - 1) * (x - 2))

    return _about_gamma("LGAMMA", grade, ratio, "0.4995", terms)


def _digamma_root() -> Number:
    return mp.findroot(lambda x: mp.psi(0, x), mp.mpf("1.4616321449683623"))


def _digamma(grade: str, terms: int) -> Fit:
    """Fit q in digamma(x) = (x - root) q(z), on x from 1 to 3.5."""
    root = _digamma_root()

    def ratio(x: Number) -> Number:
        near = abs(x - root) < mp.mpf("1e-30")
        return mp.psi(1, x) if near else mp.psi(0, x) / (x - root)

    return _about_gamma("DIGAMMA", grade, ratio, "0.9995", terms)


def _of_far(name: str, grade: str, rest: Real, limit: Number, share: Real, terms: int) -> Fit:
    """Fit q(w), w = 1 / x**2, to what is left of a series of Stirling's from 3.5 on."""

    def at(w: Number) -> Number:
        return 1 / mp.sqrt(w)

    return Fit(
        name,
        grade,
        with_limit(lambda w: rest(at(w)), limit),
        with_limit(lambda w: share(at(w)), mp.mpf(0)),
        mp.mpf(0),
        1 / _GAMMA_FAR**2 * mp.mpf("1.0005"),
        terms,
    )


def _lgamma_far(grade: str, terms: int) -> Fit:
    """Fit q in lgamma(x) = (x - 1/2) log(x) - x + log(2 pi) / 2 + q(w) / x."""

    def rest(x: Number) -> Number:
        return (mp.loggamma(x) - (x - 0.5) * mp.log(x) + x - mp.log(2 * mp.pi) / 2) * x

    return _of_far(
        "LGAMMA_FAR", grade, rest, mp.mpf(1) / 12, lambda x: 1 / (x * mp.loggamma(x)), terms
    )


def _digamma_far(grade: str, terms: int) -> Fit:
    """Fit q in digamma(x) = log(x) - 1 / (2 x) + w q(w)."""

    def rest(x: Number) -> Number:
        return (mp.psi(0, x) - mp.log(x) + 1 / (2 * x)) * x * x

    return _of_far(
        "DIGAMMA_FAR", grade, rest, -mp.mpf(1) / 12, lambda x: 1 / (x * x * mp.psi(0, x)), terms
    )


def _trigamma(grade: str, terms: int) -> Fit:
    """Fit q in psi'(x) = q(z), on x from 1 to 3.5."""
    return _about_gamma("TRIGAMMA", grade, lambda x: mp.psi(1, x), "0.9995", terms)


def _trigamma_far(grade: str, terms: int) -> Fit:
    """Fit q in psi'(x) = 1 / x + 1 / (2 x**2) + w / x q(w)."""

    def rest(x: Number) -> Number:
        return (mp.psi(1, x) - 1 / x - 1 / (2 * x * x)) * x**3

    return _of_far(
        "TRIGAMMA_FAR", grade, rest, mp.mpf(1) / 6, lambda x: 1 / (x**3 * mp.psi(1, x)), terms
    )


def _sinpi(terms: int) -> Fit:
    """Fit q in sin(pi x) = x q(z), z = x**2, on x from 0 to 1/2."""

    def ratio(z: Number) -> Number:
        x = mp.sqrt(z)
        return mp.pi if z == 0 else mp.sin(mp.pi * x) / x

    end = mp.mpf("0.25")
    return Fit("SINPI", "float64", ratio, lambda z: 1 / ratio(z), mp.mpf(0), end, terms)


def _cospi(terms: int) -> Fit:
    """Fit q in cos(pi x) = q(z), z = x**2, on x from 0 to 1/2."""
    return Fit(
        "COSPI",
        "float64",
        lambda z: mp.cos(mp.pi * mp.sqrt(z)),
        lambda z: mp.mpf(1),
        mp.mpf(0),
        mp.mpf("0.25"),
        terms,
    )


def _inverse_erfc(logarithm: Number) -> Number:
    """Return where the logarithm of erfc is that, by Newton's method."""
    y = mp.sqrt(-logarithm) * mp.mpf("0.85")
    for _ in range(100):
        value = mp.erfc(y)
        step = (mp.log(value) - logarithm) * value * mp.sqrt(mp.pi) / 2 * mp.exp(y * y)
        y += step
        if abs(step) < mp.mpf("1e-40") * y:
            break
    return y


def _quantile(grade: str, terms: int) -> Fit:
    """Fit q in erfinv(x) = x q(w), w = -log(1 - x**2), up to 1 - x = exp(-4)."""

    def ratio(w: Number) -> Number:
        if w == 0:
            return mp.sqrt(mp.pi) / 2
        x = mp.sqrt(-mp.expm1(-w))
        y = mp.erfinv(x) if x < 0.5 else _inverse_erfc(-w - mp.log1p(x))
        return y / x

    end = 4 - mp.log(2 - mp.exp(-4))
    return Fit(
        "QUANTILE",
        grade,
        ratio,
        lambda w: 1 / ratio(w),
        mp.mpf(0),
        end * mp.mpf("1.0005"),
        terms,
    )


def _quantile_far(name: str, grade: str, low: str, high: str, terms: int) -> Ratio:
    """Fit p and q in the inverse of erfc at exp(-s**2) = p(s - low) / q(s - low)."""

    def inverse(place: Number) -> Number:
        return _inverse_erfc(-((place + mp.mpf(low)) ** 2))

    return Ratio(
        name,
        grade,
        inverse,
        mp.mpf("-0.001"),
        mp.mpf(high) - mp.mpf(low),
        terms,
        terms - 1,
    )


def _bessel(name: str, order: int, grade: str, terms: int) -> Fit:
    """Fit q in i(x) = (x / 2)**order (1 + t q(t)), t = x**2 / 4, on x from 0 to 8."""

    def whole(t: Number) -> Number:
        return mp.besseli(order, 2 * mp.sqrt(t)) / mp.sqrt(t) ** order

    return Fit(
        name,
        grade,
        with_limit(lambda t: (whole(t) - 1) / t, mp.mpf(1) / (1 + order)),
        with_limit(lambda t: t / whole(t), mp.mpf(0)),
        mp.mpf(0),
        mp.mpf("16.001"),
        terms,
    )


def _bessel_far(name: str, order: int, grade: str, terms: int) -> Fit:
    """Fit q in exp(-x) i(x) sqrt(x) = q(16 / x - 1), on x from 8 on."""

    def scaled(v: Number) -> Number:
        if v <= -1:
            return 1 / mp.sqrt(2 * mp.pi)
        x = 16 / (v + 1)
        return mp.besseli(order, x) * mp.exp(-x) * mp.sqrt(x)

    return Fit(name, grade, scaled, lambda v: 1 / scaled(v), mp.mpf(-1), mp.mpf("1.0005"), terms)


def gamma_fits() -> list[Fit]:
    """List every polynomial about the gamma function."""
    return [
        _lgamma("float32", 12),
        _lgamma("float64", 27),
        _lgamma_far("float32", 3),
        _lgamma_far("float64", 10),
        _digamma("float32", 9),
        _digamma("float64", 20),
        _digamma_far("float32", 3),
        _digamma_far("float64", 10),
        _trigamma("single", 11),
        _trigamma("float64", 23),
        _trigamma_far("single", 4),
        _trigamma_far("float64", 11),
        _sinpi(9),
        _cospi(10),
    ]


def other_fits() -> list[Fit | Ratio]:
    """List every polynomial about quantiles and Bessel functions."""
    return [
        _quantile("float32", 9),
        _quantile("float64", 19),
        _quantile_far("QUANTILE_FAR", "float32", "2", "10.3", 5),
        _quantile_far("QUANTILE_FAR", "float64", "2", "6.13", 9),
        _quantile_far("QUANTILE_END", "float64", "6.125", "27.4", 9),
        _bessel("BESSEL_I0", 0, "float32", 9),
        _bessel("BESSEL_I0", 0, "float64", 15),
        _bessel("BESSEL_I1", 1, "float32", 9),
        _bessel("BESSEL_I1", 1, "float64", 15),
        _bessel_far("BESSEL_I0_FAR", 0, "float32", 6),
        _bessel_far("BESSEL_I0_FAR", 0, "float64", 25),
        _bessel_far("BESSEL_I1_FAR", 1, "float32", 6),
        _bessel_far("BESSEL_I1_FAR", 1, "float64", 25),
    ]


def constants() -> dict[str, list[Number]]:
    """Return constants, in parts or in lists."""
    with mp.workprec(1400):
        return {
            "DIGAMMA_ROOT_FLOAT32": parts_of(_digamma_root(), (24, 24)),
            "DIGAMMA_ROOT": parts_of(_digamma_root(), (53, 53)),
            # B(2 j) / (2 j)!, j from 1 on.
            "ZETA": [mp.bernoulli(2 * j) / mp.factorial(2 * j) for j in range(1, 13)],
        }


def temme(digits: int) -> list[list[Number]]:
    """Return the coefficients of Temme's expansion, rows by powers of 1 / a, of places up to 0.33.

    See 8.12.10 to 8.12.13 in the Digital Library of Mathematical Functions; rows are for a from 20.

    Args:
        digits: Binary ones that matter.
    """
    count = 60
    alpha = [mp.mpf(0), mp.mpf(1)]
    for n in range(2, count):
        products = sum(j * alpha[j] * alpha[n - j + 1] for j in range(2, n))
        alpha.append((alpha[n - 1] - products) / (n + 1))
    # gamma(a) without Stirling's main terms is the exponential of the series of lgamma.
    series = [mp.mpf(0)] * count
    for n in range(1, count // 2):
        series[2 * n - 1] = mp.bernoulli(2 * n) / (2 * n * (2 * n - 1))
    gamma = [mp.mpf(1)]
    for n in range(1, count):
        gamma.append(sum(j * series[j] * gamma[n - j] for j in range(1, n + 1)) / n)
    first = [mp.mpf(-1) / 3, *((n + 2) * alpha[n + 2] for n in range(1, count - 2))]
    rows, row = [], first
    for k in range(count):
        if k:
            row = [
                (-1) ** k * gamma[k] * first[n] + (n + 2) * row[n + 2] for n in range(len(row) - 2)
            ]
        matters = mp.ldexp(1, -digits) * 20**k
        kept = [n for n, c in enumerate(row) if abs(c) * mp.mpf("0.33") ** n > matters]
        if not kept:
            return rows
        rows.append(row[: max(kept) + 1])
    return rows


def render_temme() -> str:
    """Return the text of Temme's coefficients."""
    text = ""
    for grade, digits in (("float64", 58), ("single", 32)):
        rows = "\n".join(
            "        (\n" + "".join(f"            {float(c)!r},\n" for c in row) + "        ),"
            for row in temme(digits)
        )
        tables = f'    "{grade}": (\n{rows}\n    ),\n'
        text += tables
    return f"TEMME: dict[str, tuple[tuple[float, ...], ...]] = {{\n{text}}}\n"


def main() -> None:
    """Write the modules, or print what one polynomial is."""
    parser = argparse.ArgumentParser(description=str(__doc__).splitlines()[0])
    parser.add_argument("--only", help="print the polynomials of one name, and write nothing")
    only = parser.parse_args().only
    everything: Sequence[Fit | Ratio] = [*gamma_fits(), *other_fits()]
    if only:
        sys.stdout.write(render([fit for fit in everything if fit.name == only]))
        return
    head = HEAD.format(tool=Path(__file__).stem)
    gamma = [render_constants(constants()), render(gamma_fits()), render_temme()]
    (FOLDER / "gamma_coefficients.py").write_text(head + "\n".join(gamma))
    (FOLDER / "special_coefficients.py").write_text(head + render(other_fits()))


if __name__ == "__main__":
    main()
