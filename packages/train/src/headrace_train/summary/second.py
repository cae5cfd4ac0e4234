"""What TensorFlow 1.15 has of its second kind of summaries, which graphs here do not have."""

from __future__ import annotations

from typing import Any

from headrace.errors import FailedPreconditionError


def all_v2_summary_ops() -> list[Any]:
    """Return the summary operations of the second kind in the default graph: none."""
    return []


def initialize(graph: Any = None, session: Any = None) -> None:
    """Refuse: there are no summaries of the second kind, and no writer of them to initialize.

    Args:
        graph: Not used.
        session: Not used.

    Raises:
        FailedPreconditionError: always.
    """
    del graph, session
    raise FailedPreconditionError(
        "No default SummaryWriter found: summaries are written by hr.summary.FileWriter"
    )
