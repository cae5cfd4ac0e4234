"""How many devices of a kind a session sees, of those that there are."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from headrace.device_name import DeviceName, kind_called
from headrace.errors import ConfigError, ConfigTypeError, shown
from headrace.placement.place import Machine
from headrace.plugins.host import host
from headrace.settings import nearest

# The kind on whose first device feeds and fetches live.
_CLIENT_KIND = "cpu"
# Virtual devices cost nothing but their names; more than these are a mistake.
_MOST = 4096


def countable() -> set[str]:
    """Return the kinds of devices whose number a program may give."""
    # A GPU may be asked for, or hidden, where there could be none.
    return {*(kind.name for kind in host().devices), kind_called("gpu")}


def checked_counts(given: Any) -> dict[str, int]:
    """Return the numbers of devices that a program asks for, by kind.

    Args:
        given: What it gives: a number for each kind, in capitals or not.

    Raises:
        ConfigError: if it is no dictionary of whole numbers, names a kind that is not there, or
            leaves no device for feeds and fetches.
    """
    if not isinstance(given, Mapping):
        raise ConfigTypeError(
            'device_count must be a dictionary of numbers by kind, as in {"cpu": 2}, got '
            f"{shown(given)}"
        )
    known = countable()
    found: dict[str, int] = {}
    for name, count in given.items():
        kind = kind_called(name) if isinstance(name, str) else ""
        if kind not in known:
            near = nearest(kind, known, alike=0.6)
            meant = f"did you mean {near!r}?" if near else f"there are {', '.join(sorted(known))}"
            raise ConfigError(f"device_count: there is no kind of devices {shown(name)}; {meant}")
        least = int(kind == _CLIENT_KIND)
        if type(count) is not int or not least <= count <= _MOST:
            why = ": feeds and fetches live on the first one" if least else ""
            raised = ConfigError if type(count) is int else ConfigTypeError
            raise raised(
                f"device_count[{shown(name)}] must be a whole number from {least} to {_MOST}{why}, "
                f"got {shown(count)}"
            )
        if found.setdefault(kind, count) != count:
            raise ConfigError(f"device_count says twice how many {kind} devices: {shown(given)}")
    return found


def as_counted(machine: Machine, counts: Mapping[str, int]) -> Machine:
    """Return a machine as a session sees it that says how many devices it wants.

    Each task has at most as many devices of a kind; of virtual ones it has exactly as many.

    Args:
        machine: The machine.
        counts: How many of a kind; kinds that are left out stay as they are.
    """
    if not counts:
        return machine
    there = Counter((device.task_name, device.kind) for device in machine.devices)
    found: list[DeviceName] = []
    for device in machine.devices:
        kind, index = device.kind or "", device.index or 0
        count = counts.get(kind)
        if count is None or index < count:
            found.append(device)
        if kind in machine.virtual and index + 1 == there[device.task_name, kind]:
            found += [
                DeviceName(device.job, device.task, kind, i) for i in range(index + 1, count or 0)
            ]
    hints = dict(machine.hints)
    for kind, count in counts.items():
        if any(has > count for (_, other), has in there.items() if other == kind):
            hints[kind] = f"device_count of the session's Config leaves {count} {kind} devices"
    return replace(machine, devices=tuple(found), hints=hints)
