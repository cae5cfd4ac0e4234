"""What a machine can do at most, beside which profiles show what kernels did."""

from __future__ import annotations

from headrace.records import dataclass


@dataclass(frozen=True, slots=True)
class MachineLimits:
    """The most that a device did in a second when it was measured.

    Attributes:
        bytes_per_second: Bytes read from and written to its memory, by a sum of arrays far larger
            than its caches.
        flops_per_second: Floating-point operations of a large float32 matmul.
    """

    bytes_per_second: float
    flops_per_second: float

    def seconds(self, moved: float, computed: float) -> float:
        """Return the least time for moving so many bytes and computing so many operations.

        Both happen at once, so the longer of the two counts. Less is possible where the bytes lie
        in caches, or where an algorithm needs fewer operations than are counted, as for
        convolutions.
        """
        return max(moved / self.bytes_per_second, computed / self.flops_per_second)
