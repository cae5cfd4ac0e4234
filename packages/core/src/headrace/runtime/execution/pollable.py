"""What says ahead whether it would make a step wait."""

from __future__ import annotations

from typing import Any, Protocol, runtime_checkable


@runtime_checkable
class Pollable(Protocol):
    """A resource that knows whether an operation on it would be answered at once.

    A reader does, which has records in memory, or stands within a file. Steps that run again and
    again are gone on with in the thread that has ended their wait where all that they wait for
    is so (``repeated_runs.py``).
    """

    def is_ready(self, *asked: Any) -> bool:
        """Return whether an operation would be answered without waiting for anybody.

        What has to be computed, or read from a file of a file system, is waited for as ever.

        Args:
            asked: The values of the inputs of the operation that follow the resource.
        """
        ...
