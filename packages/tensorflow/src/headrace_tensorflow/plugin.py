"""What headrace-tensorflow adds to Headrace: a namespace and a command, both ``tensorflow``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from headrace.extend import hookimpl

if TYPE_CHECKING:
    from headrace.extend import CommandRegistry, NameRegistry

# The version of the plugin interface that this is written for.
headrace_api = 1


@hookimpl
def headrace_register_names(registry: NameRegistry) -> None:
    """Add ``headrace.tensorflow``."""
    registry.add("tensorflow", "headrace_tensorflow")


@hookimpl
def headrace_register_commands(registry: CommandRegistry) -> None:
    """Add ``python -m headrace tensorflow``."""
    registry.add(
        "tensorflow",
        "headrace_tensorflow.command:main",
        "run a program that imports tensorflow, with Headrace in its place",
    )
