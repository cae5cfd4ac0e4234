"""What operations and transfers are taken to cost, where placement goes by cost."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, final

from headrace.arguments import mapping, real
from headrace.device_name import DeviceName
from headrace.errors import ConfigError, PlacementError, shown
from headrace.records import dataclass


@dataclass(frozen=True, slots=True)
class DeviceSpeed:
    """How fast a device is.

    Attributes:
        bytes_per_second: Bytes that it reads and writes in its memory.
        flops_per_second: Floating-point operations.
        operation_s: What each operation costs beside, in seconds: to start it, mostly.
    """

    bytes_per_second: float
    flops_per_second: float
    operation_s: float = 1e-6

    def __post_init__(self) -> None:
        _check_numbers(self, bytes_per_second=True, flops_per_second=True, operation_s=False)


@dataclass(frozen=True, slots=True)
class LinkSpeed:
    """How fast values pass from one device to another.

    Attributes:
        bytes_per_second: Bytes that pass.
        transfer_s: What each transfer costs beside, in seconds.
    """

    bytes_per_second: float
    transfer_s: float = 0.0

    def __post_init__(self) -> None:
        _check_numbers(self, bytes_per_second=True, transfer_s=False)


@dataclass(frozen=True, slots=True)
class Measured:
    """What a kernel took.

    Attributes:
        device: Where it ran.
        operations: What it computes, by name.
        seconds: The time of a step, in which it may have run several times.
    """

    device: DeviceName
    operations: tuple[str, ...]
    seconds: float


@final
class CostModel:
    """What a session takes operations and transfers to cost, to place operations by it.

    ``hr.Config(placement_costs=hr.CostModel())`` has a session choose devices so that a step is
    done as early as it can be by this model, among the devices for which the program leaves the
    choice. State, and what uses it, stays together on one device, and where an earlier step put
    it.

    What an operation takes is, from the first of these that is known: what the program says, what
    was measured on the device, what was measured on another device times how much slower this one
    should be, and what the bytes and floating-point operations that its shapes tell take at the
    device's speed.

    Example:
        ::

            metadata = hr.RunMetadata()
            traced = hr.RunOptions(trace_level=hr.RunOptions.FULL_TRACE)
            session.run(train, feeds, options=traced, run_metadata=metadata)
            ...
            costs = hr.CostModel(measured=metadata)
            with hr.Session(target, config=hr.Config(placement_costs=costs)) as session:
                ...

    Attributes:
        seconds: Seconds by operation, for devices in part; a device that says nothing is all.
        measured: What kernels took, as it was measured.
        sizes: Bytes by the names of tensors.
        speeds: Pairs of a device in part and its speed; the first that matches counts.
        links: Two devices in part, and the speed between them in both directions.
        unknown_size: What a dimension counts as of which nobody knows the size, and how many rounds
            a loop is taken to make.
        across_tasks: Whether operations without state that ask for no job may run on other tasks.
    """

    __slots__ = ("across_tasks", "links", "measured", "seconds", "sizes", "speeds", "unknown_size")

    def __init__(
        self,
        measured: Any = (),
        *,
        seconds: Mapping[str, Any] | None = None,
        sizes: Mapping[str, int] | None = None,
        speeds: Mapping[str, DeviceSpeed] | None = None,
        links: Mapping[tuple[str, str], LinkSpeed] | None = None,
        unknown_size: int = 64,
        across_tasks: bool = False,
    ) -> None:
        """Make a model.

        Args:
            measured: An ``hr.RunMetadata`` of a traced run, or several, of which the mean counts.
                A kernel of several operations is divided among them by what they should take.
            seconds: Seconds by the names of operations: a number for all devices, or numbers by
                device, whole or in part.
            sizes: Bytes by the names of tensors, over what their shapes tell.
            speeds: Speeds by device, whole or in part. Others are measured, where they are in this
                process, or taken to be as fast as those of their kind that are.
            links: Speeds between two devices, whole or in part, in both directions. Others are
                taken to pass 10 GB/s and 10 us for each transfer within a task, and 3 GB/s and
                30 us between tasks.
            unknown_size: As the attribute.
            across_tasks: As the attribute.

        Raises:
            ConfigError: if something is of the wrong kind.
        """
        self.measured = _measured(measured)
        self.seconds = {
            _name(name): _by_device(name, given)
            for name, given in mapping(seconds, "seconds").items()
        }
        self.sizes = {
            _name(name): _number(f"sizes[{shown(name)}]", size)
            for name, size in mapping(sizes, "sizes").items()
        }
        self.speeds = tuple(
            _speed(name, speed) for name, speed in mapping(speeds, "speeds").items()
        )
        self.links = tuple(_link(names, link) for names, link in mapping(links, "links").items())
        if type(unknown_size) is not int or unknown_size < 1:
            raise ConfigError(
                f"unknown_size must be a whole number from 1 on, got {shown(unknown_size)}"
            )
        if not isinstance(across_tasks, bool):
            raise ConfigError(f"across_tasks must be True or False, got {shown(across_tasks)}")
        self.unknown_size = unknown_size
        self.across_tasks = across_tasks

    def __repr__(self) -> str:
        said, measured = len(self.seconds), len(self.measured)
        return f"<CostModel: times of {said} operations, {measured} kernels measured>"


def as_costs(given: Any) -> CostModel | None:
    """Return what ``Config(placement_costs=...)`` says: a model, or None.

    Raises:
        ConfigError: if it is something else.
    """
    if given is None or isinstance(given, CostModel):
        return given
    raise ConfigError(f"placement_costs must be an hr.CostModel, got {shown(given)}")


def _measured(given: Any) -> tuple[Measured, ...]:
    several = given if isinstance(given, list | tuple) else [given]
    totals: dict[tuple[DeviceName, tuple[str, ...]], float] = {}
    for metadata in several:
        stats = getattr(metadata, "step_stats", None)
        if stats is None:
            raise ConfigError(
                f"measured must be an hr.RunMetadata, or a list of them, got {shown(metadata)}"
            )
        if not stats.dev_stats:
            raise ConfigError(
                "measured holds no times: run the step with "
                "hr.RunOptions(trace_level=hr.RunOptions.FULL_TRACE)"
            )
        for device in stats.dev_stats:
            name = DeviceName.parse(device.device)
            for node in device.node_stats:
                key = (name, node.computes or (node.node_name,))
                took = node.op_end_rel_nanos - node.op_start_rel_nanos
                totals[key] = totals.get(key, 0.0) + took / 1e9
    return tuple(
        Measured(device, operations, total / len(several))
        for (device, operations), total in totals.items()
    )


def _by_device(name: Any, given: Any) -> tuple[tuple[DeviceName, float], ...]:
    label = f"seconds[{shown(name)}]"
    if not isinstance(given, Mapping):
        return ((DeviceName(), _number(label, given)),)
    pairs = mapping(given, label).items()
    return tuple((_device(d), _number(f"{label}[{shown(d)}]", value)) for d, value in pairs)


def _number(label: str, value: Any) -> float:
    found = real(value, label)
    if not 0 <= found < float("inf"):
        raise ConfigError(f"{label} must be a number from 0 on, got {shown(value)}")
    return found


def _name(name: Any) -> str:
    if not isinstance(name, str):
        raise ConfigError(f"expected the name of an operation or a tensor, got {shown(name)}")
    return name


def _device(name: Any) -> DeviceName:
    try:
        return DeviceName.parse(name)
    except PlacementError as error:
        raise ConfigError(str(error)) from None


def _speed(name: Any, speed: Any) -> tuple[DeviceName, DeviceSpeed]:
    _check(speed, DeviceSpeed, f"speeds[{shown(name)}]")
    return _device(name), speed


def _link(names: Any, link: Any) -> tuple[DeviceName, DeviceName, LinkSpeed]:
    if not isinstance(names, tuple) or len(names) != 2:
        raise ConfigError(f"links are between pairs of devices, got {shown(names)}")
    _check(link, LinkSpeed, f"links[{shown(names)}]")
    return _device(names[0]), _device(names[1]), link


def _check(value: Any, kind: type, label: str) -> None:
    if not isinstance(value, kind):
        raise ConfigError(f"{label} must be an hr.{kind.__name__}, got {shown(value)}")


def _check_numbers(speed: DeviceSpeed | LinkSpeed, **least: bool) -> None:
    for name, above in least.items():
        value = getattr(speed, name)
        label = f"{name} of an hr.{type(speed).__name__}"
        number = real(value, label)
        if not (number > 0 if above else number >= 0) or not number < float("inf"):
            bound = "above 0" if above else "from 0 on"
            raise ConfigError(f"{label} must be a number {bound}, got {shown(value)}")
