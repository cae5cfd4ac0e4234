"""Samples of roots, exponentials, logarithms, trigonometric and hyperbolic functions."""

from __future__ import annotations

import numpy as np

from headrace.errors import DTypeError
from headrace_testing.inputs import array, integers, uniform
from headrace_testing.sample import Reject, Row, Sample
from headrace_testing.samples.elementwise import (
    COMPLEX,
    FLOATS,
    SPECIAL_PAIRS,
    Oracle,
    binary,
    unary,
)


def plane(op: str, oracle: Oracle) -> Sample:
    """Return a sample of complex numbers of all four quadrants."""
    return Sample(op, [uniform((3, 4), -2, 2)], oracle=oracle, dtypes=COMPLEX, label="plane")


def _near(op: str, oracle: Oracle, *values: float) -> Sample:
    return Sample(
        op,
        [array(list(values))],
        oracle=oracle,
        dtypes=("float32", "float64"),
        grad=False,
        label="far" if abs(values[0]) > 1 else "small",
    )


FUNCTIONS: list[Row] = [
    *unary("Sqrt", np.sqrt, 0.2, 4),
    plane("Sqrt", np.sqrt),
    *unary("Rsqrt", lambda x: 1 / np.sqrt(x), 0.2, 4),
    *unary("Exp", np.exp, -3, 3),
    _near("Exp", np.exp, -1e4, -50.0, 0.0, 50.0, 1e4),
    *unary("Expm1", np.expm1, -2, 2),
    _near("Expm1", np.expm1, 1e-10, -1e-7, 1e-5),
    *unary("Log", np.log, 0.2, 4),
    plane("Log", np.log),
    *unary("Log1p", np.log1p, -0.8, 3),
    _near("Log1p", np.log1p, 1e-10, -1e-7, 1e-5),
    *unary("Sin", np.sin, -3, 3),
    *unary("Cos", np.cos, -3, 3),
    *unary("Tan", lambda x: np.sin(x) / np.cos(x), -1.2, 1.2),
    *unary("Asin", np.arcsin, -0.9, 0.9, away_from=0.0),
    *unary("Acos", np.arccos, -0.9, 0.9, away_from=0.0),
    *unary("Atan", np.arctan, -3, 3, away_from=0.0),
    *unary("Sinh", lambda x: np.exp(x) / 2 - np.exp(-x) / 2, -2, 2, special=np.sinh),
    *unary("Cosh", lambda x: np.exp(x) / 2 + np.exp(-x) / 2, -2, 2),
    *unary("Tanh", np.tanh, -2, 2),
    *unary("Asinh", np.arcsinh, -3, 3, away_from=0.0),
    *unary("Acosh", np.arccosh, 1.2, 4),
    *unary("Atanh", np.arctanh, -0.9, 0.9, away_from=0.0),
    *unary("Sigmoid", lambda x: 1 / (1 + np.exp(-x)), -4, 4),
    Sample(
        "Sigmoid",
        [array([-1e4, -80.0, 80.0, 1e4])],
        oracle=lambda x: np.where(x > 0, 1.0, 0.0),
        dtypes=FLOATS,
        grad=False,
        label="large",
    ),
]


def _xlogy(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    return np.where(x == 0, 0, x * np.log(np.where(x == 0, 1, y)))


def _xdivy(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    return np.where(x == 0, 0, x / np.where(x == 0, 1, y))


OF_TWO: list[Row] = [
    *binary("Atan2", np.arctan2, -3, 3, away_from=0.0),
    Sample("Atan2", SPECIAL_PAIRS, oracle=np.arctan2, dtypes=FLOATS, grad=False, label="special"),
    *binary("Xlogy", _xlogy, 0.3, 3),
    Sample("Xlogy", SPECIAL_PAIRS, oracle=_xlogy, dtypes=FLOATS, grad=False, label="special"),
    Sample(
        "Xlogy", [array([0.0, 0.0]), array([0.5, 2.0])], oracle=_xlogy, grad=False, label="zero"
    ),
    *binary("Xdivy", _xdivy, 0.3, 3),
    Sample("Xdivy", SPECIAL_PAIRS, oracle=_xdivy, dtypes=FLOATS, grad=False, label="special"),
]

REJECTS: list[Row] = [
    Reject("Exp", [integers((2,), 0, 9)], error=DTypeError, match="floating or complex, got int32"),
    Reject(
        "Atan2", [array([1j], "complex64")] * 2, error=DTypeError, match="floating, got complex64"
    ),
]

SAMPLES: list[Row] = [*FUNCTIONS, *OF_TWO, *REJECTS]
