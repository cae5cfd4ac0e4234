"""Axes: the round numbers at which a scale has its marks."""

from __future__ import annotations

import math


def marks(end: float, count: int) -> list[float]:
    """Return round numbers from 0 to at most ``end``.

    Args:
        end: Where the scale ends, > 0.
        count: About how many marks there may be.
    """
    rough = end / max(1, count)
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(f * power for f in (1.0, 2.0, 5.0, 10.0) if f * power >= rough * 0.999)
    return [i * step for i in range(int(end / step * 1.0001) + 1)]
