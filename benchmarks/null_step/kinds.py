"""What a null step takes from each ps."""

from __future__ import annotations

from dataclasses import dataclass

ROWS_TAKEN = 32


@dataclass(frozen=True)
class Kind:
    """The parameters of a null step.

    Attributes:
        shape: Of the parameters, float32.
        sparse: Whether a step takes ``ROWS_TAKEN`` random rows instead of all.
    """

    shape: tuple[int, ...]
    sparse: bool = False


KINDS = {
    "4 B": Kind((1,)),
    "1 MB": Kind((250_000,)),
    "100 MB": Kind((25_000_000,)),
    "1 GB": Kind((250_000_000,)),
    "32 of 10^6 rows": Kind((1_000_000, 16), sparse=True),
}
