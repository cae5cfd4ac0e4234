"""The cumulative distribution function of the standard normal distribution, and its logarithm.

Abramowitz and Stegun, Handbook of Mathematical Functions, 1964, 26.2.12 far out.
"""

from __future__ import annotations

import math
from typing import Any

from headrace.dtypes import float32, float64
from headrace.errors import DTypeError
from headrace.graph.tensor import Tensor
from headrace.ops.complex import abs_
from headrace.ops.elementwise import maximum, minimum, select, square
from headrace.ops.special import erf, erfc
from headrace.ops.transcendental import log

# Below the first the series is used, above the second 1 - x for log(1 + x): by dtype.
_LIMITS = {float32: (-10.0, 5.0), float64: (-20.0, 8.0)}
_TERMS = 8


def ndtr(x: Any) -> Tensor:
    """Return how probable it is that a standard normal sample is at most ``x``."""
    half = 0.5 * math.sqrt(2.0)
    w = x * half
    size = abs_(w)
    # erfc loses nothing where erf is near 1.
    near = 1.0 + erf(w)
    far = select(w > 0.0, 2.0 - erfc(size), erfc(size))
    found: Tensor = 0.5 * select(size < half, near, far)
    return found


def log_ndtr(x: Any) -> Tensor:
    """Return the logarithm of ``ndtr``, also where that is 0.

    Raises:
        DTypeError: if ``x`` is neither float32 nor float64.
    """
    if x.dtype not in _LIMITS:
        raise DTypeError(f"log_ndtr takes float32 and float64, got {x.dtype.name}")
    lower, upper = _LIMITS[x.dtype]
    # What is not chosen must have no infinite derivative, either.
    middle = log(ndtr(maximum(minimum(x, upper), lower)))
    left = _far_left(minimum(x, lower))
    return select(x > upper, -ndtr(-maximum(x, upper)), select(x > lower, middle, left))


def _far_left(x: Any) -> Any:
    """Return the logarithm for x well below 0, by the asymptotic series."""
    inverse = 1.0 / square(x)
    total, term = 1.0 - inverse, -inverse
    for n in range(2, _TERMS + 1):
        term = term * (-(2 * n - 1.0)) * inverse
        total = total + term
    return -0.5 * square(x) - log(-x) - 0.5 * math.log(2.0 * math.pi) + log(total)
