"""What the devices of this task can do, for profiles."""

from __future__ import annotations

from collections.abc import Callable

from headrace.placement.place import Machine
from headrace.plugins.host import host
from headrace.runtime.devices.limits import MachineLimits
from headrace.runtime.profiling.profile import LimitsOf


def limits_on(machine: Machine, threads: int | None) -> LimitsOf:
    """Return the function that tells what a device can do, by its name.

    Args:
        machine: The devices, of which those of other tasks are not known here.
        threads: How many threads a step may use; None for as many as it wants.
    """
    here = (machine.client.job, machine.client.task)
    own = {str(name): name for name in machine.devices if (name.job, name.task) == here}
    known: dict[str, MachineLimits | None] = {}

    def limits_of(device: str) -> MachineLimits | None:
        if device not in known:
            name = own.get(device)
            known[device] = None if name is None else host().limits(name, threads)
        return known[device]

    return limits_of


def limits_by_kind(machine: Machine, threads: int | None) -> Callable[[str], MachineLimits | None]:
    """Return the function that tells what a kind of device can do, as one in this task does.

    Args:
        machine: The devices.
        threads: As for ``limits_on``.
    """
    of = limits_on(machine, threads)
    home = machine.client.task_name
    first = {d.kind: str(d) for d in reversed(machine.devices) if home.matches(d)}
    return lambda kind: of(first[kind]) if kind in first else None
