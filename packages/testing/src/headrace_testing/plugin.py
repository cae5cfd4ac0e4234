"""What headrace-testing adds to Headrace: the namespace ``testing``, imported on first use."""

from __future__ import annotations

from typing import TYPE_CHECKING

from headrace.extend import hookimpl

if TYPE_CHECKING:
    from headrace.extend import NameRegistry

# The version of the plugin interface that this is written for.
headrace_api = 1


@hookimpl
def headrace_register_names(registry: NameRegistry) -> None:
    """Add ``headrace.testing``."""
    registry.add("testing", "headrace.testing")
