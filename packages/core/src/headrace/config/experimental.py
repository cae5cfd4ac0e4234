"""``hr.config.experimental``: the devices of the machine, and which of them sessions have."""

from collections.abc import Sequence as _Sequence
from typing import Any as _Any
from typing import NamedTuple as _NamedTuple

from headrace.arguments import items as _items
from headrace.config.state import STATE as _STATE
from headrace.device_name import kind_called as _kind_called
from headrace.errors import ArgumentTypeError as _ArgumentTypeError
from headrace.errors import AttributeValueError as _AttributeValueError
from headrace.errors import UnimplementedError as _UnimplementedError
from headrace.errors import shown as _shown
from headrace.graph.graph import Graph as _Graph

__all__ = [
    "VirtualDeviceConfiguration",
    "get_device_policy",
    "get_memory_growth",
    "get_synchronous_execution",
    "get_virtual_device_configuration",
    "get_visible_devices",
    "list_logical_devices",
    "list_physical_devices",
    "set_device_policy",
    "set_memory_growth",
    "set_synchronous_execution",
    "set_virtual_device_configuration",
    "set_visible_devices",
]


class PhysicalDevice(_NamedTuple):
    """A device of the machine: ``name``, and ``device_type``, "CPU" or "GPU"."""

    name: str
    device_type: str


class LogicalDevice(_NamedTuple):
    """A device of sessions: ``name``, and ``device_type``, "CPU" or "GPU"."""

    name: str
    device_type: str


class VirtualDeviceConfiguration(_NamedTuple):
    """One of the devices that sessions have for one of the machine.

    ``memory_limit`` is its memory in megabytes, which must be None.
    """

    memory_limit: int | None = None


def list_physical_devices(device_type: str | None = None) -> list[PhysicalDevice]:
    """Return the devices of the machine.

    Args:
        device_type: "CPU" or "GPU"; None for all.
    """
    # lazy: few programs ask
    from headrace.runtime.engine import Engine
    from headrace.session.device_attributes import attributes_of

    machine = Engine().machine()
    found = []
    for device in machine.devices:
        # All CPUs of a process are names for its one processor.
        if not device.index or device.kind not in machine.virtual:
            kind = attributes_of(device, machine.client).device_type
            found.append(PhysicalDevice(f"/physical_device:{kind}:{device.index}", kind))
    return [device for device in found if device_type in (None, device.device_type)]


def list_logical_devices(device_type: str | None = None) -> list[LogicalDevice]:
    """Return the devices of sessions that are opened without a configuration.

    Args:
        device_type: "CPU" or "GPU"; None for all.
    """
    # lazy: few programs ask
    from headrace.session.session import Session

    with Session(graph=_Graph()) as session:
        found = [LogicalDevice(d.name, d.device_type) for d in session.list_devices()]
    return [device for device in found if device_type in (None, device.device_type)]


def get_visible_devices(device_type: str | None = None) -> list[PhysicalDevice]:
    """Return the devices of the machine that sessions have.

    Args:
        device_type: "CPU" or "GPU"; None for all.
    """
    found = []
    for device in list_physical_devices(device_type):
        count = _STATE.counts.get(_kind_called(device.device_type))
        if count is None or _number(device) < count:
            found.append(device)
    return found


def set_visible_devices(devices: _Any, device_type: str | None = None) -> None:
    """Say which devices of the machine sessions have.

    Args:
        devices: A device, or a list of some: of each kind the first ones. Of CPUs, at least one.
        device_type: The kind that is meant; all kinds if None.

    Raises:
        AttributeValueError: if something is no device of the machine, or of another kind.
        UnimplementedError: if they are not the first ones: ``CUDA_VISIBLE_DEVICES`` chooses others.
        ConfigError: if no CPU is left, on which feeds and fetches live.
    """
    one = isinstance(devices, PhysicalDevice)
    chosen = [devices] if one else _items(devices, "devices")
    counts = dict(_STATE.counts)
    for kind in dict.fromkeys(d.device_type for d in list_physical_devices(device_type)):
        there = list_physical_devices(kind)
        wanted = [device for device in there if device in chosen]
        if wanted != there[: len(wanted)]:
            raise _UnimplementedError(
                f"sessions have the first devices of a kind, got {_shown(chosen)}: choose others "
                "by CUDA_VISIBLE_DEVICES"
            )
        if len(wanted) < len(there):
            counts[_kind_called(kind)] = len(wanted)
        elif counts.get(_kind_called(kind), 0) < len(there):
            counts.pop(_kind_called(kind), None)
    for device in chosen:
        _check(device)
        if device_type not in (None, device.device_type):
            raise _AttributeValueError(f"{_shown(device)} is no device of type {device_type}")
    _STATE.change(counts=counts)


def get_memory_growth(device: _Any) -> bool:
    """Return whether a GPU takes memory as it is needed, as it always does here.

    Args:
        device: A GPU of ``list_physical_devices``.

    Raises:
        AttributeValueError: if it is none.
    """
    _check(device, "GPU")
    return _STATE.grows.get(device, True)


def set_memory_growth(device: _Any, enable: bool) -> None:
    """Have a GPU take memory as it is needed, as it always does here.

    Args:
        device: A GPU of ``list_physical_devices``.
        enable: Is only kept for ``get_memory_growth``.

    Raises:
        AttributeValueError: if it is none.
    """
    _check(device, "GPU")
    _STATE.grows[device] = bool(enable)


def get_virtual_device_configuration(device: _Any) -> list[VirtualDeviceConfiguration] | None:
    """Return what ``set_virtual_device_configuration`` said of a device, None if nothing.

    Args:
        device: A device of ``list_physical_devices``.
    """
    _check(device)
    count = _STATE.counts.get(_kind_called(device.device_type))
    if device.device_type != "CPU" or count is None:
        return None
    return [VirtualDeviceConfiguration()] * count


def set_virtual_device_configuration(
    device: _Any, virtual_devices: _Sequence[VirtualDeviceConfiguration]
) -> None:
    """Say how many devices sessions have for one of the machine.

    Args:
        device: The CPU of ``list_physical_devices``.
        virtual_devices: One for each device, without a limit of memory.

    Raises:
        AttributeValueError: if it is no device, or a CPU's memory is to be limited.
        UnimplementedError: if it is a GPU.
    """
    _check(device)
    several = _items(virtual_devices, "virtual_devices")
    for one in several:
        if not isinstance(one, VirtualDeviceConfiguration):
            raise _ArgumentTypeError(
                "virtual_devices must be hr.config.experimental.VirtualDeviceConfiguration, got "
                f"{_shown(one)}"
            )
    if device.device_type != "CPU":
        raise _UnimplementedError(
            f"{device.name} is one device of sessions: only CPUs are several, with which programs "
            "for several devices are tried"
        )
    if any(one.memory_limit is not None for one in several):
        raise _AttributeValueError("the memory of CPUs cannot be limited: leave memory_limit out")
    _STATE.change(counts={**_STATE.counts, "cpu": len(several)})


def get_device_policy() -> str:
    """Return "silent": what an operation takes is moved to its device."""
    return "silent"


def set_device_policy(device_policy: str | None) -> None:
    """Do nothing: it is about eager execution.

    Args:
        device_policy: "silent", "silent_for_int32", "warn", "explicit" or None.

    Raises:
        AttributeValueError: if it is something else.
    """
    if device_policy not in (None, "silent", "silent_for_int32", "warn", "explicit"):
        raise _AttributeValueError(f"there is no device policy {_shown(device_policy)}")


def get_synchronous_execution() -> bool:
    """Return True: a run of a session ends when everything is done."""
    return True


def set_synchronous_execution(enable: bool) -> None:
    """Do nothing: it is about eager execution.

    Args:
        enable: Whether TensorFlow would wait for each operation.
    """
    del enable


def _check(device: _Any, device_type: str | None = None) -> None:
    if not isinstance(device, PhysicalDevice) or device not in list_physical_devices():
        raise _AttributeValueError(
            f"{_shown(device)} is no device of hr.config.experimental.list_physical_devices()"
        )
    if device_type not in (None, device.device_type):
        raise _AttributeValueError(f"{device.name} is no {device_type}, whose memory could grow")


def _number(device: PhysicalDevice) -> int:
    return int(device.name.rpartition(":")[2])
