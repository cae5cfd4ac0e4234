"""The transforms of F(2x2, 3x3): two by two results of a 3x3 filter by 16 multiplications.

A tile of 4x4 inputs and the filter are transformed, multiplied element by element, and the products
transformed back:  ``Y = A'[(G g G') * (B' d B)]A``, where the direct way takes 36 multiplications.
Each function is one of the matrices, applied to a sequence; ``both_ways`` applies it to columns and
to rows. They work on anything that can be added, subtracted and multiplied by a number.

References:
    S. Winograd, Arithmetic Complexity of Computations, SIAM 1980.
    A. Lavin and S. Gray, Fast Algorithms for Convolutional Neural Networks, CVPR 2016, section 4.1.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import chain
from typing import Any

# Results along a side, taps, and what they take in.
OUT, TAPS, IN = 2, 3, 4
POSITIONS = IN * IN

Transform = Callable[[Sequence[Any]], list[Any]]


def inputs(d: Sequence[Any]) -> list[Any]:
    """Return ``B' d``."""
    return [d[0] - d[2], d[1] + d[2], d[2] - d[1], d[1] - d[3]]


def taps(g: Sequence[Any]) -> list[Any]:
    """Return ``G g``."""
    outer, inner = (g[0] + g[2]) * 0.5, g[1] * 0.5
    return [g[0], outer + inner, outer - inner, g[2]]


def results(m: Sequence[Any]) -> list[Any]:
    """Return ``A' m``."""
    return [m[0] + m[1] + m[2], m[1] - m[2] - m[3]]


def results_back(y: Sequence[Any]) -> list[Any]:
    """Return ``A y``: the gradient of the products."""
    return [y[0], y[0] + y[1], y[0] - y[1], -y[1]]


def taps_back(u: Sequence[Any]) -> list[Any]:
    """Return ``G' u``: the gradient of the taps."""
    both, apart = (u[1] + u[2]) * 0.5, (u[1] - u[2]) * 0.5
    return [u[0] + both, apart, both + u[3]]


def both_ways(transform: Transform, square: Sequence[Sequence[Any]]) -> list[Any]:
    """Apply a transform to the columns of a square and then to the rows; return row after row."""
    columns = [transform(column) for column in zip(*square, strict=True)]
    return list(chain.from_iterable(transform(row) for row in zip(*columns, strict=True)))
