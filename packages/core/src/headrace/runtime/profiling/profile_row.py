"""A row of a profile: what one kernel, or one type of operation, took."""

from __future__ import annotations

from headrace.records import dataclass


@dataclass(frozen=True, slots=True)
class ProfileRow:
    """What one kernel, or one type of operation, took.

    Attributes:
        name: The kernel's name, or the type.
        computes: The types of the operations that it computes.
        calls: How often it ran.
        seconds: The time of all calls together.
        share: That time as a part of all kernels' and operations' time.
        bytes: Bytes read and written in all calls.
        flops: Floating-point operations in all calls, None where nobody counts them.
        line: The user's line, empty for rows of several lines.
        limit_seconds: The least time in which the device could move these bytes and compute these
            operations; None where it is not known.
        memory_bound: Whether moving the bytes takes longer of the two.
        compiled: Whether it is a kernel of the device's own making, not an op's plain kernel.
        waits: Whether the time is that of waiting, as for a queue.
    """

    name: str
    computes: str
    calls: int
    seconds: float
    share: float
    bytes: int
    flops: int | None
    line: str = ""
    limit_seconds: float | None = None
    memory_bound: bool = False
    compiled: bool = False
    waits: bool = False

    @property
    def of_limit(self) -> float | None:
        """The least possible time as a part of the time taken: 1 is as quick as the machine.

        It may be more than 1, where caches hold the bytes, or the algorithm needs fewer operations
        than are counted.
        """
        if self.limit_seconds is None or not self.seconds:
            return None
        return self.limit_seconds / self.seconds

    @property
    def mean(self) -> float:
        """Seconds of one call."""
        return self.seconds / self.calls

    @property
    def bytes_per_second(self) -> float:
        """Bytes read and written in a second."""
        return self.bytes / self.seconds if self.seconds else 0.0

    @property
    def flops_per_second(self) -> float | None:
        """Floating-point operations in a second."""
        if self.flops is None:
            return None
        return self.flops / self.seconds if self.seconds else 0.0
