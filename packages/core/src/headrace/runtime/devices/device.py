"""What a device is to the runtime: arrays of some module, and ways to and from host memory."""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import Any, Protocol

import numpy as np

from headrace.device_name import DeviceName

HostArray = np.ndarray[Any, np.dtype[Any]]


class Device(Protocol):
    """A device that runs kernels, holds their results, and moves them to and from the host.

    What it may offer beyond that is in ``headrace.runtime.devices.capabilities``.

    Attributes:
        name: The full name.
        xp: The array module of its arrays: ``numpy``, ``cupy``, or one like them.
    """

    name: DeviceName
    xp: Any

    def from_host(self, array: HostArray) -> Any:
        """Return a device array with the contents of a host array; may share memory with it."""

    def to_host(self, array: Any) -> HostArray:
        """Return a host array with the contents of a device array; may share memory with it."""

    def activate(self) -> AbstractContextManager[Any] | None:
        """Return a context in which kernels of a step run, None where none is needed."""

    def synchronize(self) -> None:
        """Wait until all work that was started on the device is done."""

    def describe(self) -> dict[str, object]:
        """Return facts for ``python -m headrace doctor``."""
