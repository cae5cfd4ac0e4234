"""Kernels that a process makes once it has wanted them a few times, behind the steps.

Until then, and where they cannot be made, their callers do the same another way, so that it does
not matter for results when they are there. Where the environment says that steps wait for their
kernels, they wait for these, too.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import final

from headrace.extend.devices import Background
from headrace.extend.settings import COMPILE_WAIT
from headrace_cpu.native.build import build
from headrace_cpu.native.compiler import KernelError, give_up
from headrace_cpu.native.source import KernelSource


@final
class MadeLater:
    """A kernel, once it is there."""

    def __init__(self, name: str, source: Callable[[], KernelSource], before: int) -> None:
        """Make nothing yet.

        Args:
            name: What it is for, for messages.
            source: Returns its source.
            before: The how manieth call of ``address`` has it made.
        """
        self._name = name
        self._source = source
        self._before = before
        self._lock = threading.Lock()
        self._wanted = 0
        self._address: int | None = None

    def address(self) -> int | None:
        """Return where the kernel is, None where it is not there yet."""
        if self._address is None:
            with self._lock:
                self._wanted += 1
                due = self._wanted == self._before
            if due and COMPILE_WAIT.read():
                self.make()
            elif due:
                Background().submit([self.make], lambda: None)
        return self._address

    def make(self) -> None:
        """Compile the kernel, or take it from the cache."""
        try:
            (self._address,) = build([self._source()])
        except (KernelError, ImportError) as error:
            give_up([self._name], error, strict=False)
