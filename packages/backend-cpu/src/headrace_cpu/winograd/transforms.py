"""The transforms of minimal filtering, F(2x2, 3x3) and F(2x2, 5x5).

A tile of inputs and the filter are transformed, multiplied element by element, and the products
transformed back:  ``Y = A'[(G g G') * (B' d B)]A``. Two by two results of a 3x3 filter take 16
multiplications where the direct way takes 36, those of a 5x5 filter 36 where it takes 100. The
matrices evaluate polynomials at points: 0, 1, -1 and infinity for 3x3, and six for 5x5.

Each function is one of the matrices, applied to a sequence; ``both_ways`` applies it to columns and
to rows. They work on anything that can be added, subtracted and multiplied by a number.

References:
    S. Winograd, Arithmetic Complexity of Computations, SIAM 1980.
    A. Lavin and S. Gray, Fast Algorithms for Convolutional Neural Networks, CVPR 2016, section 4.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import chain
from typing import Any

from headrace.extend.records import dataclass

Transform = Callable[[Sequence[Any]], list[Any]]

# Results along a side of a tile.
OUT = 2

# The points of 5x5 besides 0 and infinity are these and their negatives. With the usual 1 and 2 the
# errors of random images were four times as large, those of gradients of filters seven times. The
# squares are exact in float32.
_P, _Q = 0.75, 1.25
_PP, _QQ = _P**2, _Q**2
# The derivative of the polynomial that is 0 at all points, at p and at q.
_NP, _NQ = 2 * _PP * (_PP - _QQ), 2 * _QQ * (_QQ - _PP)


@dataclass(frozen=True, slots=True)
class Scheme:
    """The matrices for filters of one size.

    Attributes:
        filter_size: Elements along a side of the filter.
        inputs: ``B' d``.
        filter: ``G g``.
        results: ``A' m``.
        results_back: ``A y``, the gradient of the products.
        filter_back: ``G' u``, the gradient of the filter.
    """

    filter_size: int
    inputs: Transform
    filter: Transform
    results: Transform
    results_back: Transform
    filter_back: Transform

    @property
    def side(self) -> int:
        """Inputs along a side of a tile."""
        return OUT + self.filter_size - 1

    @property
    def positions(self) -> int:
        """Multiplications for a tile."""
        return self.side**2

    @property
    def name(self) -> str:
        """What it is called."""
        return f"F({OUT}x{OUT}, {self.filter_size}x{self.filter_size})"


def both_ways(transform: Transform, square: Sequence[Sequence[Any]]) -> list[Any]:
    """Apply a transform to the columns of a square and then to the rows; return row after row."""
    columns = [transform(column) for column in zip(*square, strict=True)]
    return list(chain.from_iterable(transform(row) for row in zip(*columns, strict=True)))


def _inputs_3(d: Sequence[Any]) -> list[Any]:
    return [d[0] - d[2], d[1] + d[2], d[2] - d[1], d[1] - d[3]]


def _filter_3(g: Sequence[Any]) -> list[Any]:
    outer, inner = (g[0] + g[2]) * 0.5, g[1] * 0.5
    return [g[0], outer + inner, outer - inner, g[2]]


def _results_3(m: Sequence[Any]) -> list[Any]:
    return [m[0] + m[1] + m[2], m[1] - m[2] - m[3]]


def _results_back_3(y: Sequence[Any]) -> list[Any]:
    return [y[0], y[0] + y[1], y[0] - y[1], -y[1]]


def _filter_back_3(u: Sequence[Any]) -> list[Any]:
    both, apart = (u[1] + u[2]) * 0.5, (u[1] - u[2]) * 0.5
    return [u[0] + both, apart, both + u[3]]


def _inputs_5(d: Sequence[Any]) -> list[Any]:
    even_p, odd_p = d[4] - d[2] * _QQ, (d[3] - d[1] * _QQ) * _P
    even_q, odd_q = d[4] - d[2] * _PP, (d[3] - d[1] * _PP) * _Q
    return [
        d[0] * (_PP * _QQ) - d[2] * (_PP + _QQ) + d[4],
        even_p + odd_p,
        even_p - odd_p,
        even_q + odd_q,
        even_q - odd_q,
        d[1] * (_PP * _QQ) - d[3] * (_PP + _QQ) + d[5],
    ]


def _filter_5(g: Sequence[Any]) -> list[Any]:
    even_p = (g[0] + g[2] * _PP + g[4] * _PP**2) * (1 / _NP)
    even_q = (g[0] + g[2] * _QQ + g[4] * _QQ**2) * (1 / _NQ)
    odd_p, odd_q = (g[1] + g[3] * _PP) * (_P / _NP), (g[1] + g[3] * _QQ) * (_Q / _NQ)
    return [
        g[0] * (1 / (_PP * _QQ)),
        even_p + odd_p,
        even_p - odd_p,
        even_q + odd_q,
        even_q - odd_q,
        g[4],
    ]


def _results_5(m: Sequence[Any]) -> list[Any]:
    return [
        m[0] + (m[1] + m[2]) + (m[3] + m[4]),
        (m[1] - m[2]) * _P + (m[3] - m[4]) * _Q + m[5],
    ]


def _results_back_5(y: Sequence[Any]) -> list[Any]:
    at_p, at_q = y[1] * _P, y[1] * _Q
    return [y[0], y[0] + at_p, y[0] - at_p, y[0] + at_q, y[0] - at_q, y[1]]


def _filter_back_5(u: Sequence[Any]) -> list[Any]:
    both_p, apart_p = (u[1] + u[2]) * (1 / _NP), (u[1] - u[2]) * (_P / _NP)
    both_q, apart_q = (u[3] + u[4]) * (1 / _NQ), (u[3] - u[4]) * (_Q / _NQ)
    return [
        u[0] * (1 / (_PP * _QQ)) + both_p + both_q,
        apart_p + apart_q,
        both_p * _PP + both_q * _QQ,
        apart_p * _PP + apart_q * _QQ,
        both_p * _PP**2 + both_q * _QQ**2 + u[5],
    ]


# By elements along a side of the filter.
SCHEMES = {
    3: Scheme(3, _inputs_3, _filter_3, _results_3, _results_back_3, _filter_back_3),
    5: Scheme(5, _inputs_5, _filter_5, _results_5, _results_back_5, _filter_back_5),
}
