"""What a session needs of whatever runs its steps: this process, or a cluster."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from headrace.device_name import DeviceName
from headrace.graph.graph import Graph
from headrace.placement.place import Machine
from headrace.runtime.devices.device import HostArray


class RegisteredStep(Protocol):
    """A partitioned step that is ready to run any number of times, from any thread."""

    def run(self, feeds: Sequence[HostArray], timeout: float | None = None) -> list[Any]:
        """Run one step.

        Args:
            feeds: One array per feed.
            timeout: After how many seconds a step that waits ends with a
                ``DeadlineExceededError``; None for never.

        Returns:
            One host array, or DEAD, per fetch; the caller owns them.
        """


class Runtime(Protocol):
    """Where the steps of a session run.

    It may have an ``order``, too: an ``Order`` of the steps of all sessions that share variables
    with this one. Without, its session has no fences, and asks for no consistency.
    """

    def machine(self) -> Machine:
        """Return the devices to place on."""

    def register(self, partitions: Mapping[DeviceName, Graph], fetches: int) -> RegisteredStep:
        """Make the partitions of a step ready to run.

        Args:
            partitions: The graph of each device.
            fetches: How many fetches the step has.
        """

    def close(self, reason: BaseException | None = None) -> None:
        """End all steps that still run, and release what was registered."""
