"""Whether cuda devices can be used here, and what is in the way if not."""

from __future__ import annotations

import functools
import importlib.util
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from headrace_cuda.driver import DriverReport, ask_driver

Problem = tuple[str, str]

_INSTALL_CUPY = 'pip install "headrace-backend-cuda[cuda13]"'


@dataclass(frozen=True, slots=True)
class Availability:
    """The answer.

    Attributes:
        count: How many cuda devices can be used.
        driver: What the driver says.
        problems: What is in the way, each with its fix.
    """

    count: int
    driver: DriverReport
    problems: tuple[Problem, ...]

    @property
    def why_none(self) -> str:
        """One line that says why there is no device, empty where there is."""
        return "" if self.count else "; ".join(f"{what}: {fix}" for what, fix in self.problems)


@functools.cache
def availability() -> Availability:
    """Find out, once per process; never raises.

    CuPy is imported only where it is installed and the driver lists a GPU, so that a machine
    without one does not pay for it.
    """
    driver = ask_driver()
    problems: list[Problem] = []
    if importlib.util.find_spec("cupy") is None:
        problems.append(("CuPy is not installed", _INSTALL_CUPY))
    if driver.problem:
        problems.append((driver.problem, driver.fix))
    if problems:
        return Availability(0, driver, tuple(problems))
    count, problem = _usable(driver)
    return Availability(count, driver, () if problem is None else (problem,))


def _usable(driver: DriverReport) -> tuple[int, Problem | None]:
    """Return how many devices CuPy can use, or what keeps it from them."""
    try:
        import cupy

        built_for = int(cupy.cuda.runtime.runtimeGetVersion())
    except Exception as error:
        # An extension module that does not load can raise anything.
        reason = f"CuPy fails to import: {type(error).__name__}: {error}".splitlines()[0]
        return 0, (reason, f"reinstall it: {_INSTALL_CUPY}")
    wanted = (built_for // 1000, built_for % 1000 // 10)
    if driver.version is not None and driver.version[0] < wanted[0]:
        reason = (
            f"CuPy {cupy.__version__} is built for CUDA {_dotted(wanted)}, the driver runs "
            f"programs up to CUDA {_dotted(driver.version)}"
        )
        return 0, (reason, "update the NVIDIA driver, or install the CuPy for its version")
    try:
        return int(cupy.cuda.runtime.getDeviceCount()), None
    except cupy.cuda.runtime.CUDARuntimeError as error:
        return 0, (f"CUDA does not start: {error}", "check nvidia-smi")


def diagnose() -> dict[str, object]:
    """Return facts and problems for ``python -m headrace doctor``."""
    found = availability()
    report: dict[str, object] = {"title": "cuda devices"}
    report["CuPy"] = cupy_version() or "not installed"
    driver = found.driver.version
    report["driver"] = "none" if driver is None else f"runs programs up to CUDA {_dotted(driver)}"
    problems = list(found.problems)
    if cupy_version() is not None:
        report.update(_libraries(problems))
    for i, gpu in enumerate(found.driver.gpus):
        report[f"cuda:{i}"] = (
            f"{gpu.name}, compute capability {_dotted(gpu.capability)}, "
            f"{gpu.memory / 2**30:.1f} GiB"
        )
    report["problems"] = problems
    return report


def cupy_version() -> str | None:
    """Return name and version of the installed CuPy, None without one."""
    if importlib.util.find_spec("cupy") is None:
        return None
    # lazy: sessions ask whether there is CuPy, and importing this takes longer than asking
    from importlib.metadata import packages_distributions, version

    # The distribution is called after the CUDA version that it is built for.
    names = packages_distributions().get("cupy", ())
    return ", ".join(f"{name} {version(name)}" for name in sorted(set(names))) or "unknown version"


def _libraries(problems: list[Problem]) -> dict[str, str]:
    facts: dict[str, str] = {}
    try:
        import cupy

        facts["CUDA runtime"] = _dotted_number(cupy.cuda.runtime.runtimeGetVersion())
    except Exception as error:
        if not any("CuPy fails to import" in what for what, _ in problems):
            text = f"CuPy fails to import: {type(error).__name__}: {error}".splitlines()[0]
            problems.append((text, f"reinstall it: {_INSTALL_CUPY}"))
        return facts
    try:
        facts["NVRTC"] = _dotted(cupy.cuda.nvrtc.getVersion())
    except Exception as error:
        # CuPy loads NVRTC on the first call, and what that raises depends on what is missing.
        text = f"NVRTC, the compiler of kernels, does not load: {error}".splitlines()[0]
        problems.append((text, f"{_INSTALL_CUPY}, which brings it"))
    folder = cupy.cuda.get_cuda_path()
    if folder is None or not Path(folder, "include", "cuda_fp16.h").exists():
        text = "CUDA's headers are missing, which CuPy needs to compile its kernels"
        problems.append((text, f"{_INSTALL_CUPY}, which brings them"))
    # lazy: it loads a large library
    from headrace_cuda.convolution.cudnn import cudnn_version

    missing = f"not installed, so that convolutions are slower: {_INSTALL_CUPY}, which brings it"
    facts["cuDNN"] = cudnn_version() or missing
    return facts


def _dotted(version: Any) -> str:
    return ".".join(map(str, version))


def _dotted_number(number: int) -> str:
    return f"{number // 1000}.{number % 1000 // 10}"
