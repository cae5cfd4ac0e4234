"""Curves of how full the queues of pipelines are: where one stays empty, steps wait for input."""

from __future__ import annotations

from typing import Any

import headrace as hr
from headrace_train import summary


def summarize_fullness(
    queue: Any, capacity: int, least: int | None = None, *, name: str | None = None
) -> None:
    """Add a summary of how much of a queue is filled, which ``hr.summary.merge_all`` finds.

    Args:
        queue: The queue.
        capacity: How many elements it holds. A queue without a limit gets no summary.
        least: How many of them stay in it, and are not counted; None where none have to.
        name: The summary's name.
    """
    room = capacity - (least or 0)
    if room < 1:
        return
    if name is None:
        over = "fraction_of" if least is None else f"fraction_over_{least}_of"
        name = f"{over}_{room}_full"
    size = queue.size()
    filled = size if least is None else hr.maximum(0, size - least)
    summary.scalar(name, hr.cast(filled, hr.float32) * (1.0 / room))
