"""The plugin: what the package gives to Headrace. Imports nothing heavy."""

from __future__ import annotations

from headrace.extend import Device, DeviceName, DeviceRegistry, KernelRegistry, hookimpl

# The device that is always there, and the last choice where a program does not choose.
PRIORITY = 0


@hookimpl
def headrace_register_devices(registry: DeviceRegistry) -> None:
    """Add the kind "cpu"."""
    registry.add("cpu", count=_count, factory=_open, priority=PRIORITY, why_none=lambda: "")


@hookimpl
def headrace_register_kernels(registry: KernelRegistry) -> None:
    """Add the NumPy kernels."""
    from headrace_cpu.kernels import CPU_KERNELS

    registry.add("cpu", CPU_KERNELS)


@hookimpl
def headrace_diagnose() -> dict[str, object]:
    """Say which libraries the kernels run on."""
    from headrace_cpu.diagnosis import diagnose

    return diagnose()


def _count() -> int:
    from headrace.settings import read_settings

    return read_settings().cpu_devices


def _open(name: DeviceName) -> Device:
    from headrace_cpu.device import CpuDevice

    return CpuDevice(name)
