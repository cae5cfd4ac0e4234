"""The numbers on which the formula is computed, and what is compared of the results."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

COUNT = 1 << 22
STEPS = 20
LEAD_IN = 3

Array = npt.NDArray[np.float32]


def arrays() -> tuple[Array, Array, Array]:
    """Return a, b and c, each [COUNT] float32 and normally distributed."""
    rng = np.random.default_rng(0)
    made = [rng.standard_normal(COUNT, np.float32) for _ in range(3)]
    return made[0], made[1], made[2]


def feeds() -> list[tuple[()]]:
    """Return the feeds of one round: a, b and c stay where they are, and nothing is fed."""
    return [()] * STEPS


def checksum(result: npt.ArrayLike) -> float:
    """Return the mean distance from zero, in float64; it stands for the loss."""
    return float(np.abs(np.asarray(result, np.float64)).mean())
