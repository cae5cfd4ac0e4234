"""What a session tells of its devices."""

from __future__ import annotations

import os

from headrace.device_name import DeviceName
from headrace.records import dataclass


@dataclass(frozen=True, slots=True)
class DeviceAttributes:
    """A device of a session.

    Attributes:
        name: Its full name.
        device_type: Its kind, in capitals, ``"CPU"`` or ``"GPU"``.
        memory_limit_bytes: The memory of the machine for a CPU of this process, 0 where it is not
            known.
    """

    name: str
    device_type: str
    memory_limit_bytes: int


def attributes_of(device: DeviceName, client: DeviceName) -> DeviceAttributes:
    """Return what is told of a device; ``client`` is that of the session's process."""
    kind = device.kind or ""
    own = kind == client.kind and device.task_name == client.task_name
    limit = _memory() if own else 0
    return DeviceAttributes(str(device), "GPU" if kind == "cuda" else kind.upper(), limit)


def _memory() -> int:
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, OSError, ValueError):
        return 0
