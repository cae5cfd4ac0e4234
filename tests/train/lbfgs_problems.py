"""Problems for L-BFGS, each written twice: in NumPy, for SciPy, and as a graph.

The data of Misra1a and Thurber, the starts and the certified sums of squares are facts from NIST's
Statistical Reference Datasets, https://www.itl.nist.gov/div898/strd/nls/nls_main.shtml (public
domain). As in most uses of such models, parameters are measured in units of about their size.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

import headrace as hr


@dataclass(frozen=True)
class Problem:
    """A loss of a vector.

    Attributes:
        name: What it is called.
        start: Where the search starts.
        loss: The loss of a vector, in terms of the functions of a namespace.
        certified: The value of the minimum where somebody else certifies one.
    """

    name: str
    start: np.ndarray
    loss: Callable[[Any, Any], Any]
    certified: float | None = None


class Plain:
    """The functions of losses, in NumPy."""

    exp = staticmethod(np.exp)
    tanh = staticmethod(np.tanh)
    log1p = staticmethod(np.log1p)
    total = staticmethod(np.sum)
    matmul = staticmethod(np.matmul)
    reshape = staticmethod(np.reshape)


class Built:
    """The same, as operations."""

    exp = staticmethod(lambda x: hr.exp(x))
    tanh = staticmethod(lambda x: hr.tanh(x))
    log1p = staticmethod(lambda x: hr.log1p(x))
    total = staticmethod(lambda x: hr.reduce_sum(x))
    matmul = staticmethod(lambda a, b: hr.matmul(a, b))
    reshape = staticmethod(lambda x, shape: hr.reshape(x, list(shape)))


def _rosenbrock(b, _):
    return 100 * (b[1] - b[0] * b[0]) ** 2 + (1 - b[0]) ** 2


def _numbers(text):
    return np.array([float(word) for word in text.split()])


_MISRA_Y = _numbers(
    """10.07 14.73 17.94 23.93 29.61 35.18 40.02 44.82 50.76 55.05 61.01 66.40 75.47 81.78"""
)
_MISRA_X = _numbers(
    """77.6 114.9 141.1 190.8 239.9 289.0 332.8 378.4 434.8 477.3 536.8 593.1 689.1 760.0"""
)


def _misra1a(b, f):
    x = _MISRA_X
    return f.total((_MISRA_Y - 100 * b[0] * (1 - f.exp(-1e-4 * b[1] * x))) ** 2)


_THURBER_Y = _numbers(
    """80.574 84.248 87.264 87.195 89.076 89.608 89.868 90.101 92.405 95.854 100.696 101.060
    401.672 390.724 567.534 635.316 733.054 759.087 894.206 990.785 1090.109 1080.914 1122.643
    1178.351 1260.531 1273.514 1288.339 1327.543 1353.863 1414.509 1425.208 1421.384 1442.962
    1464.350 1468.705 1447.894 1457.628"""
)
_THURBER_X = _numbers(
    """-3.067 -2.981 -2.921 -2.912 -2.840 -2.797 -2.702 -2.699 -2.633 -2.481 -2.363 -2.322
    -1.501 -1.460 -1.274 -1.212 -1.100 -1.046 -0.915 -0.714 -0.566 -0.545 -0.400 -0.309
    -0.109 -0.103 0.010 0.119 0.377 0.790 0.963 1.006 1.115 1.572 1.841 2.047 2.200"""
)


def _thurber(b, f):
    x = _THURBER_X
    above = 1000 * b[0] + x * (1000 * b[1] + x * (500 * b[2] + x * (100 * b[3])))
    below = 1 + x * (b[4] + x * (0.5 * b[5] + x * (0.05 * b[6])))
    return f.total((_THURBER_Y - above / below) ** 2)


_RNG = np.random.default_rng(20)
_X = _RNG.normal(size=[200, 12])
_SIDE = np.sign(_X @ _RNG.normal(size=12) + _RNG.normal(size=200))


def _logistic(b, f):
    z = _SIDE * f.reshape(f.matmul(_X, f.reshape(b, (12, 1))), (200,))
    return f.total(f.log1p(f.exp(-z))) + 0.05 * f.total(b * b)


_T = np.linspace(-2, 2, 40)[:, None]
_WAVE = np.sin(2 * _T)


def _net(b, f):
    first, bias, second = b[:6], b[6:12], b[12:18]
    hidden = f.tanh(f.matmul(_T, f.reshape(first, (1, 6))) + bias)
    out = f.matmul(hidden, f.reshape(second, (6, 1)))
    return f.total((out - _WAVE) ** 2) + 0.1 * f.total(b * b)


PROBLEMS = [
    Problem("rosenbrock", np.array([-1.2, 1.0]), _rosenbrock, 0.0),
    Problem("misra1a", np.array([5.0, 1.0]), _misra1a, 1.2455138894e-01),
    Problem("thurber", np.array([1.3, 1.5, 1.0, 0.75, 1.0, 0.8, 1.0]), _thurber, 5.6427082397e03),
    Problem("logistic", np.zeros(12), _logistic),
    Problem("net", np.random.default_rng(1).normal(size=18), _net),
]
