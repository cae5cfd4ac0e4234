"""A plugin that pretends to have GPUs which compile steps, as the real ones do.

Tests give it to a ``PluginHost`` of their own; no entry point names it.
"""

from __future__ import annotations

from headrace.extend import DeviceRegistry, hookimpl
from headrace_cuda.options import OPTIONS
from headrace_cuda.plugin import DTYPES, PRIORITY
from headrace_cuda.testing.device import CompilingFakeCudaDevice
from headrace_cuda.testing.plugin import COUNT, headrace_register_kernels

__all__ = ["headrace_register_devices", "headrace_register_kernels"]


@hookimpl
def headrace_register_devices(registry: DeviceRegistry) -> None:
    """Add the kind "cuda"."""
    registry.add(
        "cuda",
        count=lambda: COUNT,
        factory=CompilingFakeCudaDevice,
        priority=PRIORITY,
        dtypes=DTYPES,
        options=OPTIONS,
    )
