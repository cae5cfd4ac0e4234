"""A plugin that pretends to have GPUs: the kernels of the real one on ``FakeCudaDevice``.

Tests give it to a ``PluginHost`` of their own; no entry point names it.
"""

from __future__ import annotations

from typing import Any

from headrace.extend import DeviceRegistry, KernelRegistry, hookimpl
from headrace_cpu.kernels.random import host_bits
from headrace_cuda.kernels import cuda_kernels
from headrace_cuda.plugin import DTYPES, PRIORITY
from headrace_cuda.testing.device import FakeCudaDevice

COUNT = 2


@hookimpl
def headrace_register_devices(registry: DeviceRegistry) -> None:
    """Add the kind "cuda"."""
    registry.add(
        "cuda", count=lambda: COUNT, factory=FakeCudaDevice, priority=PRIORITY, dtypes=DTYPES
    )


@hookimpl
def headrace_register_kernels(registry: KernelRegistry) -> None:
    """Add the kernels of the cuda devices, with bits that NumPy makes."""
    registry.add("cuda", cuda_kernels(_bits))


def _bits(xp: Any, key: tuple[int, int], counter: int, count: int) -> Any:
    return xp.asarray(host_bits(xp, key, counter, count))
