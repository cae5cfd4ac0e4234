"""What a test asks of the machine: devices, temporary folders, running all tests of a module."""

from __future__ import annotations

import atexit
import re
import shutil
import sys
import tempfile
import unittest
from typing import Any

from headrace.extend import DeviceName
from headrace.extend.arguments import items
from headrace.extend.plugins import host
from headrace_train.test.benchmark import run_benchmarks

_GPU = "cuda"


def _gpu_count() -> int:
    kind = host().devices.get(_GPU)
    return 0 if kind is None else host().count_devices(kind)[0]


def is_gpu_available(
    cuda_only: bool = False, min_cuda_compute_capability: tuple[int, int] | None = None
) -> bool:
    """Return whether there is a GPU that Headrace can use.

    Args:
        cuda_only: Whether it must be a CUDA device; all are.
        min_cuda_compute_capability: Its smallest compute capability, such as ``(7, 0)``.
    """
    del cuda_only
    if not _gpu_count():
        return False
    if min_cuda_compute_capability is None:
        return True
    least = tuple(items(min_cuda_compute_capability, "min_cuda_compute_capability"))
    return any(_capability(ordinal) >= least for ordinal in range(_gpu_count()))


def _capability(ordinal: int) -> tuple[int, ...]:
    """Return the compute capability of a GPU, which its device states."""
    device = host().open_device(DeviceName.parse(f"/device:{_GPU}:{ordinal}"))
    stated = device.describe().get("compute capability", "0.0")
    return tuple(int(number) for number in str(stated).split("."))


def gpu_device_name() -> str:
    """Return the name of the first GPU, an empty string where there is none."""
    return f"/device:{_GPU}:0" if _gpu_count() else ""


def is_built_with_cuda() -> bool:
    """Return whether a package that brings CUDA devices is installed."""
    return host().devices.get(_GPU) is not None


def is_built_with_rocm() -> bool:
    """Return False: no package brings ROCm devices."""
    return False


def is_built_with_gpu_support() -> bool:
    """Return whether a package that brings GPUs is installed."""
    return is_built_with_cuda() or is_built_with_rocm()


_FOLDER: list[str] = []


def get_temp_dir() -> str:
    """Return a folder for files of tests, which is deleted when the process ends."""
    if not _FOLDER:
        _FOLDER.append(tempfile.mkdtemp(prefix="headrace-test-"))
        atexit.register(shutil.rmtree, _FOLDER[0], ignore_errors=True)
    return _FOLDER[0]


def main(argv: Any = None) -> None:
    """Run all tests of the module that was started, and end the process with their outcome.

    Args:
        argv: The command line; that of the process if None. Where it has ``--benchmarks=`` and a
            regular expression, or ``all``, benchmarks are run, instead.
    """
    words = sys.argv if argv is None else argv
    patterns = [
        str(word).partition("=")[2] for word in words if re.match("--?benchmarks=", str(word))
    ]
    if patterns:
        run_benchmarks(patterns[0])
        return
    unittest.main(module="__main__", argv=list(sys.argv if argv is None else argv))
