"""``eager.context`` and ``tf2``: there are graphs only, and version 1."""

from __future__ import annotations

from contextlib import nullcontext
from typing import Any


def executing_eagerly() -> bool:
    """Tell whether operations run as they are made: never."""
    return False


def in_graph_mode() -> bool:
    """Tell whether operations are added to a graph: always."""
    return True


def in_eager_mode() -> bool:
    """Tell whether operations run as they are made: never."""
    return False


def graph_mode() -> Any:
    """Enter graphs, where we are."""
    return nullcontext()


def enabled() -> bool:
    """Tell whether TensorFlow 2's behaviour is on: never."""
    return False
