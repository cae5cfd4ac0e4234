"""The NVIDIA driver, asked directly: which GPUs there are, without CuPy, a context or memory."""

from __future__ import annotations

import ctypes
from dataclasses import dataclass

LIBRARY = "libcuda.so.1"

# CUresult and CUdevice_attribute, from cuda.h.
_SUCCESS = 0
_NO_DEVICE = 100
_CAPABILITY_MAJOR = 75
_CAPABILITY_MINOR = 76

_INSTALL = (
    "install the NVIDIA driver for CUDA 13 (580 or newer); a container needs access to the host's, "
    "as with docker run --gpus all"
)


@dataclass(frozen=True, slots=True)
class Gpu:
    """A GPU as the driver lists it.

    Attributes:
        name: The product's name.
        capability: The compute capability, as in ``(9, 0)``.
        memory: Bytes of memory that it has.
    """

    name: str
    capability: tuple[int, int]
    memory: int


@dataclass(frozen=True, slots=True)
class DriverReport:
    """What the driver says.

    Attributes:
        version: The CUDA version up to which it runs programs, None where there is no driver.
        gpus: The GPUs that this process may use (``CUDA_VISIBLE_DEVICES`` counts).
        problem: Why there are none, empty where there are.
        fix: What to do about it.
    """

    version: tuple[int, int] | None = None
    gpus: tuple[Gpu, ...] = ()
    problem: str = ""
    fix: str = ""


def ask_driver() -> DriverReport:
    """Return what the driver says. Makes no context, and allocates nothing on any GPU."""
    try:
        library = ctypes.CDLL(LIBRARY)
    except OSError:
        return DriverReport(problem=f"there is no NVIDIA driver ({LIBRARY})", fix=_INSTALL)
    number = ctypes.c_int()
    version = None
    if library.cuDriverGetVersion(ctypes.byref(number)) == _SUCCESS:
        version = (number.value // 1000, number.value % 1000 // 10)
    code = library.cuInit(0)
    if code == _SUCCESS:
        code = library.cuDeviceGetCount(ctypes.byref(number))
    if code == _NO_DEVICE or (code == _SUCCESS and number.value == 0):
        return DriverReport(
            version,
            problem="the NVIDIA driver finds no GPU",
            fix="check nvidia-smi and the variable CUDA_VISIBLE_DEVICES",
        )
    if code != _SUCCESS:
        return DriverReport(
            version,
            problem=f"the NVIDIA driver does not start: {_error_name(library, code)}",
            fix="check nvidia-smi; after a driver update the machine must be restarted",
        )
    return DriverReport(version, tuple(_gpu(library, i) for i in range(number.value)))


def _error_name(library: ctypes.CDLL, code: int) -> str:
    text = ctypes.c_char_p()
    known = library.cuGetErrorName(code, ctypes.byref(text)) == _SUCCESS
    return text.value.decode() if known and text.value is not None else f"error {code}"


def _gpu(library: ctypes.CDLL, index: int) -> Gpu:
    device = ctypes.c_int()
    library.cuDeviceGet(ctypes.byref(device), index)
    name = ctypes.create_string_buffer(256)
    library.cuDeviceGetName(name, len(name), device)
    memory = ctypes.c_size_t()
    library.cuDeviceTotalMem_v2(ctypes.byref(memory), device)
    capability = []
    for attribute in (_CAPABILITY_MAJOR, _CAPABILITY_MINOR):
        number = ctypes.c_int()
        library.cuDeviceGetAttribute(ctypes.byref(number), attribute, device)
        capability.append(number.value)
    return Gpu(name.value.decode(errors="replace"), (capability[0], capability[1]), memory.value)
