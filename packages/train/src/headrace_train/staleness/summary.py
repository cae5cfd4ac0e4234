"""A summary of the staleness of updates of asynchronous training, as a few numbers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from headrace.errors import ShapeError


@dataclass(frozen=True, slots=True)
class StalenessSummary:
    """How stale updates were: how many updates of others came between reading and applying.

    Attributes:
        updates: How many updates were counted.
        mean: Their mean staleness; 0 where there are none.
        median: The staleness that half of them do not exceed.
        high: The staleness that 95 of 100 do not exceed.
        most: The largest.
        open: Whether ``most`` stands for itself and everything above.
    """

    updates: int
    mean: float
    median: int
    high: int
    most: int
    open: bool

    @classmethod
    def of(cls, counts: Any) -> StalenessSummary:
        """Summarize what ``StalenessRecorder.counts`` holds.

        Args:
            counts: [limit + 1], how many updates had the staleness of each index.

        Raises:
            ShapeError: if this is no such array.
        """
        numbers = np.asarray(counts)
        if numbers.ndim != 1 or not numbers.size:
            raise ShapeError(f"counts must be [limit + 1], got shape {list(numbers.shape)}")
        total = int(numbers.sum())
        if not total:
            return cls(0, 0.0, 0, 0, 0, open=False)
        reached = np.cumsum(numbers)
        most = int(np.flatnonzero(numbers)[-1])
        mean = float(numbers @ np.arange(numbers.size)) / total
        median, high = (int(np.searchsorted(reached, q * total)) for q in (0.5, 0.95))
        return cls(total, mean, median, high, most, open=most == numbers.size - 1)

    def __str__(self) -> str:
        """Return it as a line of text."""
        more = " or more" if self.open else ""
        return (
            f"staleness of {self.updates} updates: mean {self.mean:.2f}, median {self.median}, "
            f"95 % at most {self.high}, largest {self.most}{more}"
        )
