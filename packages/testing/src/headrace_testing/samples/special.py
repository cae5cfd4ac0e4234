"""Samples of special functions, against mpmath, which computes them in any precision."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from headrace.errors import DTypeError, ShapeError
from headrace_testing.inputs import array, integers, uniform
from headrace_testing.sample import Reject, Row, Sample
from headrace_testing.samples.elementwise import FLOATS, SPECIAL, Oracle

_PLAIN = ("float32", "float64")
_NAN, _INF = np.nan, np.inf


def _by_mpmath(function: Callable[..., Any]) -> Oracle:
    """Return an oracle of a function of mpmath and of numbers."""

    def oracle(*arrays: Any) -> Any:
        # Loading it takes as long as the rest of the kit.
        import mpmath

        wide = np.broadcast_arrays(*arrays)
        made = np.empty(wide[0].shape)
        with mpmath.workdps(30):
            for at in np.ndindex(made.shape):
                made[at] = float(function(mpmath, *(mpmath.mpf(float(a[at])) for a in wide)))
        return made

    return oracle


def _row(op: str, function: Callable[..., Any], *inputs: Any, **options: Any) -> Sample:
    return Sample(op, list(inputs), oracle=_by_mpmath(function), **options)


def _edges(op: str, *values: float) -> Sample:
    """Return a sample of the special values NaN, inf, -inf, 0, -0, 1 and -1."""
    by_value = dict(zip([_INF, -_INF, 0.0, 1.0, -1.0], values, strict=True))

    def oracle(x: Any) -> Any:
        return np.array([by_value.get(float(v), _NAN) for v in x.flat]).reshape(x.shape)

    return Sample(op, [SPECIAL], oracle=oracle, dtypes=FLOATS, grad=False, label="special")


ERRORS: list[Row] = [
    _row("Erf", lambda m, x: m.erf(x), uniform((4, 5), -3, 3)),
    _edges("Erf", 1, -1, 0, 0.8427007929497149, -0.8427007929497149),
    _row("Erfc", lambda m, x: m.erfc(x), uniform((4, 5), -3, 3)),
    _row("Erfc", lambda m, x: m.erfc(x), array([4.0, 9.0]), dtypes=_PLAIN, label="tail"),
    _edges("Erfc", 0, 2, 1, 0.15729920705028513, 1.8427007929497149),
    _row("Erfinv", lambda m, x: m.erfinv(x), uniform((4, 5), -0.9, 0.9), dtypes=_PLAIN),
    _edges("Erfinv", _NAN, _NAN, 0, _INF, -_INF),
    _row(
        "Ndtri",
        lambda m, x: m.sqrt(2) * m.erfinv(2 * x - 1),
        uniform((4, 5), 0.05, 0.95),
        dtypes=_PLAIN,
    ),
    _edges("Ndtri", _NAN, _NAN, -_INF, _INF, _NAN),
]

GAMMA: list[Row] = [
    _row("Lgamma", lambda m, x: m.log(abs(m.gamma(x))), uniform((4, 5), 0.2, 5)),
    _row(
        "Lgamma",
        lambda m, x: m.log(abs(m.gamma(x))),
        array([-0.5, -2.3, 30.0, 1e4]),
        dtypes=_PLAIN,
        grad=False,
        label="wide",
    ),
    _edges("Lgamma", _INF, _INF, _INF, 0, _INF),
    _row("Digamma", lambda m, x: m.digamma(x), uniform((4, 5), 0.3, 5)),
    _row(
        "Digamma",
        lambda m, x: m.digamma(x),
        array([-0.5, -2.3, 30.0, 1e4]),
        dtypes=_PLAIN,
        grad=False,
        label="wide",
    ),
    _row(
        "Polygamma",
        lambda m, a, x: m.polygamma(int(a), x),
        array([[0.0], [1.0], [2.0], [5.0]]),
        uniform((3,), 0.5, 5),
        dtypes=_PLAIN,
        grad=("x",),
    ),
    Sample(
        "Polygamma",
        [array([-1.0, 0.5, _NAN]), array([2.0, 2.0, 2.0])],
        oracle=lambda a, x: np.full(np.broadcast_shapes(a.shape, x.shape), _NAN),
        dtypes=FLOATS,
        grad=False,
        label="outside",
    ),
    _row(
        "Zeta",
        lambda m, x, q: m.zeta(x, q),
        uniform((3, 1), 1.5, 6),
        uniform((4,), 0.5, 4),
        dtypes=_PLAIN,
        grad=("q",),
    ),
]


def _lower(m: Any, a: Any, x: Any) -> Any:
    if not (a > 0 and x >= 0):
        return m.nan
    return m.gammainc(a, 0, x, regularized=True)


def _upper(m: Any, a: Any, x: Any) -> Any:
    if not (a > 0 and x >= 0):
        return m.nan
    return m.gammainc(a, x, m.inf, regularized=True)


def _slope(m: Any, a: Any, x: Any) -> Any:
    if not (a > 0 and x >= 0):
        return m.nan
    return m.diff(lambda b: _lower(m, b, x), a)


def _beta(m: Any, a: Any, b: Any, x: Any) -> Any:
    if not (a > 0 and b > 0 and 0 <= x <= 1):
        return m.nan
    return m.betainc(a, b, 0, x, regularized=True)


_OUTSIDE = (array([-1.0, 0.0, 1.0, _NAN, 2.0]), array([1.0, 1.0, -1.0, 1.0, _NAN]))
_WIDE = (array([[0.01], [1.0], [60.0]]), array([1e-3, 0.5, 1.5, 40.0, 61.0, 120.0]))

INCOMPLETE: list[Row] = [
    row
    for op, oracle in (("Igamma", _lower), ("Igammac", _upper))
    for row in (
        _row(op, oracle, uniform((3, 1), 0.3, 5), uniform((4,), 0.3, 6), grad=("x",)),
        _row(
            op,
            oracle,
            uniform((3, 1), 0.3, 5),
            uniform((4,), 0.3, 6),
            dtypes=_PLAIN,
            grad=("a",),
            second_order=False,
            label="shape",
        ),
        _row(op, oracle, *_WIDE, dtypes=_PLAIN, grad=False, label="wide", tolerance=2e-5),
        _row(op, oracle, *_OUTSIDE, dtypes=FLOATS, grad=False, label="outside"),
    )
]

INCOMPLETE += [
    _row("IgammaGradA", _slope, uniform((3, 1), 0.3, 5), uniform((4,), 0.3, 6), grad=False),
    _row("IgammaGradA", _slope, *_WIDE, dtypes=("float64",), grad=False, label="wide"),
    Sample(
        "IgammaGradA",
        [array([0.5, 3.0, 2.0]), array([0.0, _INF, 0.0])],
        oracle=lambda a, x: np.zeros(np.broadcast_shapes(a.shape, x.shape)),
        dtypes=FLOATS,
        grad=False,
        label="ends",
    ),
    _row("IgammaGradA", _slope, *_OUTSIDE, dtypes=FLOATS, grad=False, label="outside"),
    _row(
        "Betainc",
        _beta,
        uniform((3, 1), 0.5, 4),
        uniform((3, 1), 0.5, 4),
        uniform((4,), 0.1, 0.9),
        grad=("x",),
    ),
    _row(
        "Betainc",
        _beta,
        array([-1.0, 1.0, 1.0, _NAN]),
        array([1.0, 0.0, 1.0, 1.0]),
        array([0.5, 0.5, 1.5, 0.5]),
        dtypes=FLOATS,
        grad=False,
        label="outside",
    ),
]

BESSEL: list[Row] = [
    _row("BesselI0", lambda m, x: m.besseli(0, x), uniform((4, 5), -6, 6)),
    _row("BesselI1", lambda m, x: m.besseli(1, x), uniform((4, 5), -6, 6)),
    _row("BesselI1", lambda m, x: m.besseli(1, x), array([0.0]), second_order=False, label="zero"),
    _row("BesselI0e", lambda m, x: m.exp(-abs(x)) * m.besseli(0, x), uniform((4, 5), -6, 6)),
    _row("BesselI1e", lambda m, x: m.exp(-abs(x)) * m.besseli(1, x), uniform((4, 5), -6, 6)),
    Sample(
        "BesselI1e",
        [array([0.0])],
        oracle=lambda x: np.zeros(x.shape),
        dtypes=_PLAIN,
        grad=False,
        label="zero",
    ),
    _edges("BesselI0e", 0, 0, 1, 0.46575960759364043, 0.46575960759364043),
    _edges("BesselI1e", 0, 0, 0, 0.2079104153497085, -0.2079104153497085),
]

REJECTS: list[Row] = [
    Reject("Erf", [integers((2,), 0, 9)], error=DTypeError, match="floating, got int32"),
    Reject("Lgamma", [array([1j], "complex64")], error=DTypeError, match="floating, got complex64"),
    Reject(
        "Igamma",
        [array([1.0, 2.0], "float32"), array([1.0, 2.0, 3.0], "float32")],
        error=ShapeError,
        match="broadcast",
    ),
]

SAMPLES: list[Row] = [*ERRORS, *GAMMA, *INCOMPLETE, *BESSEL, *REJECTS]
