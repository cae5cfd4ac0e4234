"""Device names taken apart."""

from __future__ import annotations

from typing import Any, Self

from headrace.device_name import DeviceName
from headrace.errors import ArgumentTypeError, shown


class DeviceSpec:
    """The parts of a device name, each open where it is None.

    ``hr.device`` takes one in place of a name.

    Attributes:
        job: The job, such as ``"ps"``.
        replica: Which replica of the job; it is not part of names here.
        task: The index of the task in its job.
        device_type: The kind, such as ``"CPU"``.
        device_index: The index among the task's devices of that kind.
    """

    def __init__(
        self,
        job: str | None = None,
        replica: int | None = None,
        task: int | None = None,
        device_type: str | None = None,
        device_index: int | None = None,
    ) -> None:
        """Make a name of parts.

        Args:
            job: The job.
            replica: The replica.
            task: The task.
            device_type: The kind of device; ``"cpu"`` and ``"gpu"`` are written in capitals.
            device_index: The index of the device.

        Raises:
            ArgumentTypeError: if a job or kind is no string, or an index no integer.
        """
        for label, text in (("job", job), ("device_type", device_type)):
            if text is not None and not isinstance(text, str):
                raise ArgumentTypeError(f"{label} must be a string or None, got {shown(text)}")
        for label, number in (("replica", replica), ("task", task), ("device_index", device_index)):
            if number is not None and not isinstance(number, int):
                raise ArgumentTypeError(f"{label} must be an integer or None, got {shown(number)}")
        self.job, self.replica, self.task = job, replica, task
        upper = device_type in ("cpu", "gpu")
        self.device_type = device_type.upper() if upper and device_type else device_type
        self.device_index = device_index

    @classmethod
    def from_string(cls, spec: str) -> Self:
        """Return the parts of a name.

        Raises:
            PlacementError: if it is no device name.
        """
        return cls().parse_from_string(spec)

    def parse_from_string(self, spec: str) -> Self:
        """Take the parts of a name in place of those that it has, and return it.

        Raises:
            PlacementError: if it is no device name.
        """
        parts = [part for part in spec.split("/") if part]
        replicas = [part for part in parts if part.startswith("replica:")]
        name = DeviceName.parse("/".join(["", *(p for p in parts if p not in replicas)]))
        kind = {"cuda": "GPU"}.get(name.kind or "", name.kind)
        # Kinds that nobody knows stay as they are spelled.
        spelled = [word for part in parts for word in part.split(":") if word.lower() == kind]
        kind = spelled[-1] if spelled else kind
        replica = int(replicas[0].partition(":")[2]) if replicas else None
        DeviceSpec.__init__(self, name.job, replica, name.task, kind, name.index)
        return self

    def merge_from(self, dev: DeviceSpec) -> None:
        """Take the parts of another name that are not open in it."""
        self.__dict__.update(self.make_merged_spec(dev).__dict__)

    def make_merged_spec(self, dev: DeviceSpec) -> DeviceSpec:
        """Return this name with the parts of another that are not open in that one."""
        return self.replace(**{k: v for k, v in dev.__dict__.items() if v is not None})

    def replace(self, **kwargs: Any) -> DeviceSpec:
        """Return this name with other parts."""
        return DeviceSpec(**{**self.__dict__, **kwargs})

    def to_string(self) -> str:
        """Return the name, such as ``"/job:ps/task:1/device:CPU:0"``."""
        pairs = (("job", self.job), ("replica", self.replica), ("task", self.task))
        parts = "".join(f"/{label}:{value}" for label, value in pairs if value is not None)
        if self.device_type is None:
            return parts
        index = "*" if self.device_index is None else self.device_index
        return f"{parts}/device:{self.device_type}:{index}"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, DeviceSpec) and self.to_string() == other.to_string()

    def __hash__(self) -> int:
        return hash(self.to_string())

    def __repr__(self) -> str:
        return f"DeviceSpec({self.to_string()!r})"
