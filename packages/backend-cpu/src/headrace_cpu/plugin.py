"""The plugin: what the package gives to Headrace. Imports nothing heavy."""

from __future__ import annotations

from headrace.extend import (
    Device,
    DeviceName,
    DeviceRegistry,
    KernelRegistry,
    SettingRegistry,
    hookimpl,
)

# The device that is always there, and the last choice where a program does not choose.
PRIORITY = 0

# The modules of core that declare the ops of ``headrace_cpu.kernels.rare``.
RARE_FAMILIES = tuple(
    f"headrace.ops.{family}"
    for family in (
        "accumulator",
        "barrier",
        "lookup",
        "mutex",
        "python_call",
        "queue",
        "session_tensor",
        "sets",
        "sparse_cross",
        "sparse_text",
        "staging",
        "text",
        "text_convert",
        "text_hash",
        "text_pieces",
    )
)

# The version of the plugin interface that this is written for.
headrace_api = 1


@hookimpl
def headrace_register_devices(registry: DeviceRegistry) -> None:
    """Add the kind "cpu"."""
    # lazy: an entry point is imported with every plugin, and must cost nothing
    from headrace_cpu.options import OPTIONS

    registry.add(
        "cpu",
        count=_count,
        factory=_open,
        priority=PRIORITY,
        why_none=lambda: "",
        options=OPTIONS,
        virtual=True,
    )


@hookimpl
def headrace_register_settings(registry: SettingRegistry) -> None:
    """Add what the package reads from the environment."""
    # lazy: an entry point is imported with every plugin, and must cost nothing
    from headrace_cpu.settings import SETTINGS

    registry.add(*SETTINGS)


@hookimpl
def headrace_register_kernels(registry: KernelRegistry) -> None:
    """Add the NumPy kernels."""
    # lazy: an entry point is imported with every plugin, and must cost nothing
    from headrace_cpu.kernels import ARRAY_KERNELS, CPU_KERNELS, PREPARED_KERNELS, STATE_KERNELS
    from headrace_cpu.native_loops.table import KERNELS as NATIVE_LOOPS
    from headrace_cpu.onednn.listed import KERNELS as LISTED

    registry.add("cpu", (*CPU_KERNELS, *NATIVE_LOOPS, *LISTED))
    registry.add_later("cpu", "headrace_cpu.kernels.rare:ALL_KERNELS", RARE_FAMILIES)
    registry.add_for_array_modules((*ARRAY_KERNELS, *STATE_KERNELS, *PREPARED_KERNELS))


@hookimpl
def headrace_diagnose() -> dict[str, object]:
    """Say which libraries the kernels run on."""
    # lazy: an entry point is imported with every plugin, and must cost nothing
    from headrace_cpu.diagnosis import diagnose

    return diagnose()


def _count() -> int:
    # lazy: an entry point is imported with every plugin, and must cost nothing
    from headrace_cpu.settings import CPU_DEVICES

    return CPU_DEVICES.read()


def _open(name: DeviceName) -> Device:
    # lazy: an entry point is imported with every plugin, and must cost nothing
    from headrace_cpu.device import CpuDevice

    return CpuDevice(name)
