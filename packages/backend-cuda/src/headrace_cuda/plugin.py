"""The plugin: what the package gives to Headrace. Imports no GPU library."""

from __future__ import annotations

from headrace.extend import (
    Device,
    DeviceName,
    DeviceRegistry,
    KernelRegistry,
    SettingRegistry,
    hookimpl,
)

# Cuda devices are preferred to all others where a program does not choose.
PRIORITY = 200

# What arrays on a GPU can hold. CuPy has no bfloat16, and strings live on the host.
DTYPES = (
    *("float16", "float32", "float64", "complex64", "complex128", "bool"),
    *("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"),
)

# The version of the plugin interface that this is written for.
headrace_api = 1


@hookimpl
def headrace_register_settings(registry: SettingRegistry) -> None:
    """Add what the package reads from the environment."""
    # lazy: an entry point is imported with every plugin, and must cost nothing
    from headrace_cuda.settings import SETTINGS

    registry.add(*SETTINGS)


@hookimpl
def headrace_register_devices(registry: DeviceRegistry) -> None:
    """Add the kind "cuda"."""
    # lazy: an entry point is imported with every plugin, and must cost nothing
    from headrace_cuda.options import OPTIONS

    registry.add(
        "cuda",
        count=_count,
        factory=_open,
        priority=PRIORITY,
        why_none=_why_none,
        dtypes=DTYPES,
        options=OPTIONS,
    )


@hookimpl
def headrace_register_kernels(registry: KernelRegistry) -> None:
    """Add the array-module kernels, and those that only a GPU has."""
    # lazy: an entry point is imported with every plugin, and must cost nothing
    from headrace_cuda.kernels import cuda_kernels

    registry.add("cuda", cuda_kernels())


@hookimpl
def headrace_diagnose() -> dict[str, object]:
    """Say what there is, and what is in the way."""
    # lazy: an entry point is imported with every plugin, and must cost nothing
    from headrace_cuda.availability import diagnose

    return diagnose()


def _count() -> int:
    # lazy: an entry point is imported with every plugin, and must cost nothing
    from headrace_cuda.availability import availability

    return availability().count


def _why_none() -> str:
    # lazy: an entry point is imported with every plugin, and must cost nothing
    from headrace_cuda.availability import availability

    return availability().why_none


def _open(name: DeviceName) -> Device:
    # lazy: an entry point is imported with every plugin, and must cost nothing
    from headrace_cuda.device import CudaDevice

    return CudaDevice(name)
