"""Names of devices: ``/job:worker/task:1/device:cuda:0``, whole or partial."""

from __future__ import annotations

import re

from headrace.errors import PlacementError, shown
from headrace.records import dataclass

_PART = re.compile(
    r"/(?:(job):([A-Za-z_][A-Za-z0-9_]*)|(task):(\d+|\*)|replica:(?:\d+|\*)"
    r"|(?:device:)?([A-Za-z_][A-Za-z0-9_]*)(?::(\d+|\*))?)"
)
# What TensorFlow's programs call our devices.
_KIND_ALIASES = {"gpu": "cuda"}


def kind_called(name: str) -> str:
    """Return the kind of devices that a program calls so, as in ``"CPU"`` and ``"GPU"``."""
    return _KIND_ALIASES.get(name.lower(), name.lower())


@dataclass(frozen=True, slots=True, order=True)
class DeviceName:
    """A device name of which any part may be left open (None).

    Attributes:
        job: The job, as in ``"ps"``.
        task: The index of the task in its job.
        kind: The device kind, as in ``"cpu"``.
        index: The index among the task's devices of that kind.
    """

    job: str | None = None
    task: int | None = None
    kind: str | None = None
    index: int | None = None

    @classmethod
    def parse(cls, text: str | DeviceName | None) -> DeviceName:
        """Read a name such as ``/job:ps/task:0/device:cpu:0``, ``/cpu:0``, ``cuda`` or ``""``.

        Replicas, of which TensorFlow has one to a task, are left out.

        Raises:
            PlacementError: if ``text`` is no device name.
        """
        if isinstance(text, DeviceName):
            return text
        spelled = getattr(text, "to_string", None)
        if spelled is not None:
            text = spelled()
        if text is None or text == "":
            return cls()
        if not isinstance(text, str):
            raise PlacementError(
                "a device is named by a string such as '/job:ps/task:0/device:cpu:0', got "
                f"{shown(text)}"
            )
        job, task, kind, index = None, None, None, None
        rest = text if text.startswith("/") else f"/{text}"
        position = 0
        while position < len(rest):
            match = _PART.match(rest, position)
            if match is None:
                raise PlacementError(
                    f"{shown(text)} is not a device name; expected parts of "
                    "/job:<name>/task:<index>/device:<kind>:<index>"
                )
            if match[1]:
                job = match[2]
            elif match[3]:
                task = None if match[4] == "*" else int(match[4])
            elif match[5]:
                kind = _KIND_ALIASES.get(match[5].lower(), match[5].lower())
                index = None if match[6] in (None, "*") else int(match[6])
            position = match.end()
        return cls(job, task, kind, index)

    def merged(self, inner: DeviceName) -> DeviceName:
        """Return this name overridden by the parts that ``inner`` states.

        The task stays where the job does, and the index where the kind does.
        """
        kind, index = self.kind, self.index
        if inner.kind is not None:
            index = index if inner.kind == kind and inner.index is None else inner.index
            kind = inner.kind
        job, task = self.job, self.task
        if inner.job is not None:
            task = task if inner.job == job and inner.task is None else inner.task
            job = inner.job
        elif inner.task is not None:
            task = inner.task
        return DeviceName(job, task, kind, index)

    def intersected(self, other: DeviceName) -> DeviceName | None:
        """Return the name that satisfies both, or None where they contradict each other."""
        parts = []
        for mine, theirs in zip(self._parts(), other._parts(), strict=True):
            if mine is not None and theirs is not None and mine != theirs:
                return None
            parts.append(mine if theirs is None else theirs)
        return DeviceName(*parts)  # type: ignore[arg-type]

    def _parts(self) -> tuple[str | int | None, ...]:
        return (self.job, self.task, self.kind, self.index)

    def matches(self, device: DeviceName) -> bool:
        """Whether ``device`` has all the parts that this name states."""
        return self.intersected(device) == device

    @property
    def task_name(self) -> DeviceName:
        """The job and task of this name alone."""
        return DeviceName(self.job, self.task)

    @property
    def is_full(self) -> bool:
        """Whether no part is left open."""
        return None not in (self.job, self.task, self.kind, self.index)

    def __str__(self) -> str:
        text = "" if self.job is None else f"/job:{self.job}"
        if self.task is not None:
            text += f"/task:{self.task}"
        if self.kind is not None:
            text += f"/device:{self.kind}"
            if self.index is not None:
                text += f":{self.index}"
        return text
