"""What the operations of a step, and transfers between devices, take by a cost model."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Final, final

from headrace.device_name import DeviceName
from headrace.graph.operation import Operation
from headrace.graph.tensor import Tensor
from headrace.placement.costs import CostModel, DeviceSpeed, LinkSpeed
from headrace.placement.work import Sizes
from headrace.runtime.devices.limits import MachineLimits

# Where nobody says or measures anything: a core of today, and what lies between devices.
_SPEED: Final = DeviceSpeed(10e9, 50e9, 1e-6)
_WITHIN_TASK: Final = LinkSpeed(10e9, 10e-6)
_BETWEEN_TASKS: Final = LinkSpeed(3e9, 30e-6)


@final
class Estimates:
    """A cost model, applied to the operations of a step on the devices of a machine."""

    def __init__(
        self,
        model: CostModel,
        operations: Iterable[Operation],
        limits: Callable[[str], MachineLimits | None],
    ) -> None:
        """Read what the model knows of the operations.

        Args:
            model: The model.
            operations: The operations of the step.
            limits: Returns what devices of a kind can do, as measured; None where it was not.
        """
        self.sizes = Sizes(model.unknown_size, model.sizes)
        self._model = model
        self._limits = limits
        self._speeds: dict[DeviceName, DeviceSpeed] = {}
        self._seconds: dict[tuple[Operation, DeviceName], float] = {}
        self._measured = self._divided({op.name: op for op in operations})

    def seconds(self, op: Operation, device: DeviceName) -> float:
        """Return how long an operation takes on a device."""
        found = self._seconds.get((op, device))
        if found is None:
            found = self._seconds[op, device] = self._looked_up(op, device)
        return found

    def total(self, operations: Iterable[Operation], device: DeviceName) -> float:
        """Return how long operations take one after the other on a device."""
        return sum(self.seconds(op, device) for op in operations)

    def transfer_s(self, tensor: Tensor, source: DeviceName, target: DeviceName) -> float:
        """Return how long a tensor takes from one device to another."""
        link = self._link(source, target)
        return link.transfer_s + self.sizes.bytes(tensor) / link.bytes_per_second

    def _link(self, source: DeviceName, target: DeviceName) -> LinkSpeed:
        for one, other, link in self._model.links:
            if (one.matches(source) and other.matches(target)) or (
                other.matches(source) and one.matches(target)
            ):
                return link
        return _WITHIN_TASK if source.task_name == target.task_name else _BETWEEN_TASKS

    def _looked_up(self, op: Operation, device: DeviceName) -> float:
        for asked, seconds in self._model.seconds.get(op.name, ()):
            if asked.matches(device):
                return seconds
        measured = self._measured.get(op.name)
        if measured is None:
            return self._estimated(op, device)
        if device in measured:
            return measured[device]
        alike = [seconds for other, seconds in measured.items() if other.kind == device.kind]
        if alike:
            return sum(alike) / len(alike)
        other, seconds = next(iter(measured.items()))
        before = self._estimated(op, other)
        return seconds * self._estimated(op, device) / before if before else seconds

    def _estimated(self, op: Operation, device: DeviceName) -> float:
        speed, work = self._speed(device), self.sizes.work(op)
        busy = max(work.bytes / speed.bytes_per_second, work.flops / speed.flops_per_second)
        return busy + work.runs * speed.operation_s

    def _speed(self, device: DeviceName) -> DeviceSpeed:
        found = self._speeds.get(device)
        if found is None:
            said = [speed for name, speed in self._model.speeds if name.matches(device)]
            if said:
                found = said[0]
            elif (limits := self._limits(device.kind or "")) is not None:
                found = DeviceSpeed(limits.bytes_per_second, limits.flops_per_second)
            else:
                found = _SPEED
            self._speeds[device] = found
        return found

    def _divided(self, operations: Mapping[str, Operation]) -> dict[str, dict[DeviceName, float]]:
        """Return the measured times by operation: a kernel's go to what it computes."""
        found: dict[str, dict[DeviceName, float]] = {}
        for kernel in self._model.measured:
            there = [operations[name] for name in kernel.operations if name in operations]
            weights = [self._estimated(op, kernel.device) for op in there]
            whole = sum(weights)
            for op, weight in zip(there, weights, strict=True):
                share = weight / whole if whole else 1 / len(there)
                times = found.setdefault(op.name, {})
                times[kernel.device] = times.get(kernel.device, 0.0) + share * kernel.seconds
        return found
