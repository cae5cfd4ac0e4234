"""A device that pretends to be a GPU."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from headrace.extend.devices import DeviceName, Program, Region
from headrace.extend.kernels import HostArray
from headrace_cuda.device import CudaDevice
from headrace_cuda.program.compile import compile_region
from headrace_cuda.program.memory import DeviceMemory
from headrace_cuda.testing.module import FakeArray, fake_cupy
from headrace_cuda.testing.platform import FakePlatform


class FakeCudaDevice:
    """Has the interface of ``CudaDevice``, and arrays of ``fake_cupy``.

    Attributes:
        name: The full name.
        xp: ``fake_cupy``.
        active: How many contexts of it are entered now.
        unordered_sums: What the real one leaves to chance.
    """

    unordered_sums = CudaDevice.unordered_sums

    def __init__(self, name: DeviceName) -> None:
        self.name = name
        self.xp: Any = fake_cupy
        self.active = 0

    def from_host(self, array: Any) -> FakeArray:
        """Return a copy that pretends to be on the GPU; one that is there stays itself."""
        return array if isinstance(array, FakeArray) else FakeArray(np.array(array))

    def to_host(self, array: Any) -> HostArray:
        """Return a copy on the host."""
        if not isinstance(array, FakeArray):
            raise TypeError(f"expected a device array, got {type(array)}")
        host: HostArray = array.get()
        return host

    @contextmanager
    def activate(self) -> Iterator[None]:
        """Count what is entered."""
        self.active += 1
        try:
            yield
        finally:
            self.active -= 1

    def synchronize(self) -> None:
        """Nothing runs behind the host's back."""

    def describe(self) -> dict[str, object]:
        """Say what it is."""
        return {"name": "a pretended GPU"}


class CompilingFakeCudaDevice(FakeCudaDevice):
    """Compiles regions as the real device does, with kernels that run on the host.

    Attributes:
        platform: What runs them.
    """

    def __init__(self, name: DeviceName) -> None:
        super().__init__(name)
        self.platform = FakePlatform()

    def compile(self, region: Region) -> Program:
        """Return what runs a region of a step."""
        memory = DeviceMemory(self.platform, self.xp.ascontiguousarray)
        return compile_region(region, self.platform, memory, self.activate)
