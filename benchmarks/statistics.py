"""Medians, ratios and the agreement of losses: numbers in, numbers out."""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Summary:
    """Median and range of a participant's rounds, in seconds."""

    median: float
    low: float
    high: float


def summarise(seconds: Sequence[float]) -> Summary:
    """Summarise the times of a participant's rounds.

    Args:
        seconds: one time per round, at least one.

    Returns:
        Their median, minimum and maximum.
    """
    if not seconds:
        raise ValueError("no rounds to summarise: expected at least one time, got none")
    return Summary(statistics.median(seconds), min(seconds), max(seconds))


def ratio(value: float, reference: float | None) -> float | None:
    """Return ``value / reference``, None where there is no usable reference."""
    if reference is None or reference <= 0:
        return None
    return value / reference


def disagreeing(losses: Mapping[str, float], tolerance: float) -> list[str]:
    """Name the participants whose final loss is not that of the others.

    Args:
        losses: final loss per participant.
        tolerance: largest distance from the median, relative to the median.

    Returns:
        The participants that are further from the median of all finite losses, or whose loss is
        not finite, in the order given.
    """
    finite = [loss for loss in losses.values() if math.isfinite(loss)]
    if not finite:
        return list(losses)
    # The lower median is the loss of a participant; the mean of two that differ is nobody's.
    middle = statistics.median_low(finite)
    allowed = tolerance * abs(middle)
    return [
        name
        for name, loss in losses.items()
        if not math.isfinite(loss) or abs(loss - middle) > allowed
    ]
