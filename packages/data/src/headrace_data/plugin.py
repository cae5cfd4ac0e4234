"""What headrace-data adds to Headrace: the namespace ``data``, imported on first use."""

from __future__ import annotations

from typing import TYPE_CHECKING

from headrace.extend import hookimpl

if TYPE_CHECKING:
    from headrace.extend import KernelRegistry, NameRegistry

# The version of the plugin interface that this is written for.
headrace_api = 1


@hookimpl
def headrace_declare_ops() -> None:
    """Declare the ops."""
    # lazy: a program without them declares none
    from importlib import import_module

    import_module("headrace_data.ops.pipelines")


@hookimpl
def headrace_register_names(registry: NameRegistry) -> None:
    """Add ``headrace.data``."""
    registry.add("data", "headrace_data")


@hookimpl
def headrace_register_kernels(registry: KernelRegistry) -> None:
    """Add the kernels of pipelines, which run on the host."""
    registry.add_later("cpu", "headrace_data.kernels:KERNELS")
