"""Cells and rows of Markdown tables."""

from __future__ import annotations

from collections.abc import Sequence


def figure(value: float | None) -> str:
    """Write a number with three digits that count."""
    if value is None:
        return ""
    return f"{value:.0f}" if value >= 100 else f"{value:.3g}"


def row(cells: Sequence[str]) -> str:
    """Join cells to a line of a table."""
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"
