"""What headrace-serve adds to Headrace: the namespace ``serve``, and the command ``serve``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from headrace.extend import hookimpl

if TYPE_CHECKING:
    from headrace.extend import CommandRegistry, NameRegistry

# The version of the plugin interface that this is written for.
headrace_api = 1


@hookimpl
def headrace_register_names(registry: NameRegistry) -> None:
    """Add ``headrace.serve``."""
    registry.add("serve", "headrace_serve")


@hookimpl
def headrace_register_commands(registry: CommandRegistry) -> None:
    """Add ``python -m headrace serve``."""
    registry.add(
        "serve", "headrace_serve.command:main", "answer for saved models over HTTP, in JSON"
    )
