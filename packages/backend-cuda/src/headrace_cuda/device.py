"""The device ``cuda:N``: arrays on a GPU, through CuPy."""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import Any

from headrace.errors import DTypeError, NoDeviceError
from headrace.extend.devices import DeviceName, Program, Region
from headrace.extend.kernels import HostArray
from headrace_cuda.availability import availability
from headrace_cuda.hardware import hardware

# What NumPy calls bool, integers, floats and complex numbers; ml_dtypes are of kind "V".
_KINDS = "biufc"


class CudaDevice:
    """One GPU.

    Kernels are started in order on one stream, and run while Python goes on. The host waits where
    a value comes back to it: in fetches and sends, at a switch, and in kernels that check what is
    in their inputs, such as the range of indices.

    Attributes:
        name: The full name.
        xp: ``cupy``.
        unordered_sums: True: threads add up atomically what meets in one place, in the order in
            which they come; see ``Config(deterministic=True)``.
    """

    unordered_sums = True

    def __init__(self, name: DeviceName) -> None:
        """Open the GPU with the index of ``name``.

        Raises:
            NoDeviceError: if this process can use no such GPU.
        """
        found = availability()
        index = name.index or 0
        if index >= found.count:
            reason = found.why_none or f"there are {found.count}"
            raise NoDeviceError(f"cannot open cuda:{index}: {reason}")
        import cupy

        self.name = name
        self.xp: Any = cupy
        self._gpu = found.driver.gpus[index] if index < len(found.driver.gpus) else None
        self._hardware = hardware(index)

    def from_host(self, array: HostArray) -> Any:
        """Return a copy on the GPU; ``array`` may change afterwards. One of the GPU stays itself.

        Raises:
            DTypeError: for strings and bfloat16, which arrays on a GPU cannot hold.
        """
        if isinstance(array, self.xp.ndarray):
            return array
        if array.dtype.kind not in _KINDS:
            kind = "strings" if array.dtype.kind == "O" else str(array.dtype)
            raise DTypeError(
                f"{self.name} cannot hold {kind}: cast them, or place the op on a cpu device"
            )
        with self._hardware.activate():
            return self.xp.array(array)

    def to_host(self, array: Any) -> HostArray:
        """Return a copy on the host, after all that was started before has run."""
        with self._hardware.activate():
            host: HostArray = array.get()
        return host

    def compile(self, region: Region) -> Program:
        """Return what runs a region of a step."""
        # lazy: the compiler is needed by sessions that compile
        from headrace_cuda.gpu import platform_of
        from headrace_cuda.program.compile import compile_region
        from headrace_cuda.program.memory import DeviceMemory

        platform = platform_of(self._hardware)
        memory = DeviceMemory(platform, self.xp.ascontiguousarray)
        return compile_region(region, platform, memory, self._hardware.activate)

    def activate(self) -> AbstractContextManager[Any]:
        """Return a context in which CuPy uses this GPU."""
        return self._hardware.activate()

    def synchronize(self) -> None:
        """Wait until all work that was started on the GPU is done."""
        self._hardware.synchronize()

    def describe(self) -> dict[str, object]:
        """Return facts for ``python -m headrace doctor``."""
        facts: dict[str, object] = {f"memory {k}": v for k, v in self._hardware.memory().items()}
        if self._gpu is not None:
            facts["name"] = self._gpu.name
            facts["compute capability"] = ".".join(map(str, self._gpu.capability))
        return facts
