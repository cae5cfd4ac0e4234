"""What headrace-io adds to Headrace: the namespace ``io``, names elsewhere, and kernels."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from headrace.extend import hookimpl

if TYPE_CHECKING:
    from headrace.extend import KernelRegistry, NameRegistry
    from headrace.extend.passes import PassContext, PassRegistry, StepGraph
    from headrace.extend.translations import TranslationRegistry

# The version of the plugin interface that this is written for.
headrace_api = 1

# Where no op of the package was declared, there is nothing for its pass to do.
_OPS = "headrace_io.ops"


@hookimpl
def headrace_declare_ops() -> None:
    """Declare the ops."""
    # lazy: a program without them declares none
    from importlib import import_module

    import_module("headrace_io.ops")


@hookimpl
def headrace_register_names(registry: NameRegistry) -> None:
    """Add ``headrace.io``, and names elsewhere."""
    # lazy: an entry point is imported with every plugin, and must cost nothing
    from headrace_io.names import targets

    for name, target in targets().items():
        registry.add(name, target)


@hookimpl
def headrace_register_kernels(registry: KernelRegistry) -> None:
    """Add the kernels, which run on the host."""
    for part in ("decoding", "files", "images", "messages", "parsing", "readers"):
        registry.add_later("cpu", f"headrace_io.kernels.{part}:KERNELS")


@hookimpl
def headrace_register_passes(registry: PassRegistry) -> None:
    """Add the pass that spares keys and strings that nobody looks at."""
    registry.add_pass("whole", _spare_unlooked, name="spare-unlooked")


def _spare_unlooked(step: StepGraph, context: PassContext) -> StepGraph:
    if _OPS not in sys.modules:
        return step
    # lazy: most programs read no records
    from headrace_io.unused_outputs import spare_unlooked

    return spare_unlooked(step, context)


@hookimpl
def headrace_register_translations(registry: TranslationRegistry) -> None:
    """Add the rows of core's and this package's ops."""
    # lazy: only programs that read TensorFlow's graphs need them
    from headrace_io.translation.table import translations

    registry.add(translations())
