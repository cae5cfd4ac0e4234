"""What headrace-train adds to Headrace: the namespace ``train``, imported on first use."""

from __future__ import annotations

from typing import TYPE_CHECKING

from headrace.extend import hookimpl

if TYPE_CHECKING:
    from headrace.extend import NameRegistry


@hookimpl
def headrace_register_names(registry: NameRegistry) -> None:
    """Add ``headrace.train``."""
    registry.add("train", "headrace_train")
