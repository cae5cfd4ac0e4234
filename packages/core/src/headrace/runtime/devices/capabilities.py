"""What a device or a compiled program may offer beyond what each must.

Each capability is a protocol, and whoever needs one asks here: ``isinstance(device,
CompilingDevice)``. Names of methods are written nowhere else.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

if TYPE_CHECKING:
    from headrace.runtime.control_flow.device_loops import LoopForm, Rounds
    from headrace.runtime.devices.device import Device
    from headrace.runtime.devices.limits import MachineLimits
    from headrace.runtime.execution.plan import Plan
    from headrace.runtime.options import Options
    from headrace.runtime.profiling.report import ProgramReport
    from headrace.runtime.regions.region import Program, Region


@runtime_checkable
class CompilingDevice(Protocol):
    """A device that compiles regions of steps.

    It moves values to and from the host in any context.
    """

    def compile(self, region: Region) -> Program:
        """Return what runs a region."""


@runtime_checkable
class LoopingDevice(Protocol):
    """A compiling device whose regions may have loops inside.

    Attributes:
        holds_loops: Whether they may.
    """

    holds_loops: bool


@runtime_checkable
class EagerDevice(Protocol):
    """A compiling device whose programs let outputs go before they end.

    Attributes:
        lets_go: Whether they take what ``Region.early`` says.
    """

    lets_go: bool


@runtime_checkable
class HostDevice(Protocol):
    """A device that may hold its values in the memory of the host, as NumPy's arrays.

    Attributes:
        on_host: Whether it does: ``from_host`` returns what it is given, and so does ``to_host``
            where that is an array.
    """

    on_host: bool


@runtime_checkable
class UnorderedDevice(Protocol):
    """A device that may leave the order of some sums to chance.

    Attributes:
        unordered_sums: Whether it does: what an op that ``accumulates`` adds up on it, in floats,
            comes out in other bits in each run.
    """

    unordered_sums: bool


@runtime_checkable
class LimitedDevice(Protocol):
    """A device that knows what it can do at most, beside which profiles show what kernels did."""

    def limits(self, threads: int | None) -> MachineLimits:
        """Return bytes and floating-point operations in a second, measured once in a process.

        Args:
            threads: How many threads a step may use; None for as many as it wants.
        """


@runtime_checkable
class ThreadedDevice(Protocol):
    """A device whose kernels compute on cores of the host, and may run on several threads."""

    def threads(self, options: Options) -> int:
        """Return how many threads a step may use.

        Args:
            options: The options of its session.
        """


@runtime_checkable
class DescribedProgram(Protocol):
    """A compiled program that tells what it does, for ``Session.explain``.

    Attributes:
        region: What it computes.
    """

    region: Region

    def __call__(self, values: Sequence[Any], /) -> list[Any]:
        """Run it."""

    def describe(self) -> ProgramReport:
        """Return what it does."""


@runtime_checkable
class LoopingProgram(Protocol):
    """A compiled program of the body of a loop that may run many rounds at one go."""

    def rounds(self, form: LoopForm) -> Rounds | str:
        """Return what runs rounds, or why it cannot.

        Args:
            form: How the loop hands values from round to round.
        """


@runtime_checkable
class PlannedProgram(Protocol):
    """A program that runs a plan of its own, as one that is cut where shapes depend on data.

    Attributes:
        plan: The plan.
    """

    plan: Plan

    def __call__(self, values: Sequence[Any], /) -> list[Any]:
        """Run it."""


def holds_loops(device: Device) -> bool:
    """Whether regions of a device may have loops inside."""
    return isinstance(device, LoopingDevice) and device.holds_loops


def lets_outputs_go(device: Device) -> bool:
    """Whether programs of a device let outputs go before they end."""
    return isinstance(device, EagerDevice) and device.lets_go


def holds_host_arrays(device: Device) -> bool:
    """Whether the values of a device are arrays of the host, which move nowhere."""
    return isinstance(device, HostDevice) and device.on_host


def sums_in_any_order(device: Device) -> bool:
    """Whether a device leaves the order of some sums to chance."""
    return isinstance(device, UnorderedDevice) and device.unordered_sums
