"""The device ``cpu:N``: arrays in the memory of the host, through NumPy."""

from __future__ import annotations

import os
import platform
from contextlib import AbstractContextManager
from typing import Any, final

import numpy as np

from headrace.extend.devices import DeviceName, MachineLimits, Options, Program, Region
from headrace.extend.kernels import HostArray


@final
class CpuDevice:
    """The host's processor.

    Attributes:
        name: The full name.
        xp: ``numpy``.
        lets_go: Its programs let outputs go before they end.
        holds_loops: Its programs may have loops inside.
        on_host: Its values are arrays of the host.
    """

    __slots__ = ("name", "xp")
    lets_go = True
    holds_loops = True
    on_host = True

    def __init__(self, name: DeviceName) -> None:
        self.name = name
        self.xp: Any = np

    def from_host(self, array: HostArray) -> HostArray:
        """Return ``array`` itself."""
        return array

    def to_host(self, array: Any) -> HostArray:
        """Return ``array`` itself, a scalar as an array of no dimensions."""
        # An element of an array of strings is Python's bytes, of which NumPy would make another
        # dtype that drops zero bytes at the end.
        return np.asarray(array, object) if type(array) is bytes else np.asarray(array)

    def compile(self, region: Region) -> Program:
        """Return a program that runs a region of a step."""
        # lazy: the compiler is needed by sessions that compile
        from headrace_cpu.program.compile import compile_region

        return compile_region(region)

    def activate(self) -> AbstractContextManager[Any]:
        """Return a context in which floating-point exceptions are results, not warnings.

        It is entered once per step, so that no kernel has to.
        """
        return np.errstate(all="ignore")

    def synchronize(self) -> None:
        """Do nothing: kernels have finished when they return."""

    def limits(self, threads: int | None) -> MachineLimits:
        """Return what the processor can do, for profiles."""
        # lazy: it is measured where a profile is asked for
        from headrace_cpu.limits import limits

        return limits(threads)

    def threads(self, options: Options) -> int:
        """Return how many threads a step may use."""
        # lazy: settings of the compiler are read by sessions
        from headrace_cpu.program.settings import CompileSettings

        return CompileSettings.of(options).threads

    def describe(self) -> dict[str, object]:
        """Return facts for ``python -m headrace doctor``."""
        return {"architecture": platform.machine(), "cores": os.cpu_count()}
