"""Nodes whose plain kernel gives way to native loops when these are compiled.

Native loops give the same bits as plain kernels, so a node changes over by itself and at any time
(decision 73).
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import Any

from headrace.extend.devices import Background
from headrace_cpu.native.threads import Share
from headrace_cpu.native_loops.native_loop import Call, Job
from headrace_cpu.program.settings import CompileSettings


class NativeLoopNode:
    """Computes a node: by its plain kernel at first, and then by native loops.

    Calling it takes the node's inputs and returns its outputs. Outside of a compiled program it
    takes a share of the threads; ``within`` is for inside.
    """

    __slots__ = ("_background", "_calls", "_job", "_left", "_lock", "_op", "_plain", "_settings",
                 "_share")  # fmt: skip

    def __init__(
        self,
        op: str,
        job: Job,
        plain: Callable[..., Any],
        settings: CompileSettings,
        background: Background,
    ) -> None:
        """Begin with the plain kernel.

        Args:
            op: The type of the operation, for messages.
            job: The native loops.
            plain: Computes the same, and says what is wrong with its inputs.
            settings: When to compile, and for how many threads.
            background: Compiles behind the steps.
        """
        self._op = op
        self._job = job
        self._plain = plain
        self._settings = settings
        self._background = background
        self._share = settings.share()
        self._calls: list[Call] | None = None
        # How many runs are left before the native loops are compiled, None where nothing is left to
        # do.
        self._left: int | None = settings.compile_after
        self._lock = threading.Lock()

    def __call__(self, *values: Any) -> Any:
        """Compute the outputs, with a share of the threads."""
        if self._left is not None:
            self._count()
        calls = self._calls
        if calls is None:
            return self._plain(*values)
        share = self._share
        threads = share.enter()
        try:
            found = self._job.run(calls, threads, *values)
        finally:
            share.leave()
        return self._plain(*values) if found is None else found

    def within(self, wanted: Sequence[bool], *, shares: bool) -> Callable[..., Any]:
        """Return what computes the outputs within a program, in place of this.

        Args:
            wanted: Which outputs the program reads.
            shares: Whether the program has a share of the threads when it runs.
        """
        if self._job.only is not None and not all(wanted):
            self._job = self._job.only(wanted)
        return self._inside if shares else self

    def _inside(self, *values: Any) -> Any:
        if self._left is not None:
            self._count()
        calls = self._calls
        if calls is None:
            return self._plain(*values)
        found = self._job.run(calls, Share.allowed(), *values)
        return self._plain(*values) if found is None else found

    def _count(self) -> None:
        with self._lock:
            left = self._left
            if left is None or left > 0:
                self._left = None if left is None else left - 1
                return
            self._left = None
        # lazy: the compiler is imported where there is something to compile
        from headrace_cpu.native.build import is_at_hand

        sources = [native_loop.source() for native_loop in self._job.native_loops]
        if self._settings.wait or all(map(is_at_hand, sources)):
            self._compile()
            return
        self._background.submit([self._compile], lambda: None, dropped=self._again)

    def _again(self) -> None:
        """Compile while a step waits, as there is nothing behind the steps any more."""
        if self._calls is None:
            self._left = 0

    def _compile(self) -> None:
        # lazy: the compiler is imported where there is something to compile
        from headrace_cpu.native.build import build
        from headrace_cpu.native.compiler import give_up

        native_loops = self._job.native_loops
        try:
            places = build([native_loop.source() for native_loop in native_loops])
        except Exception as error:
            # Whatever is wrong with a native loop: what it is for still works without.
            give_up([self._op], error, self._settings.verify)
            return
        pairs = zip(places, native_loops, strict=True)
        self._calls = [Call(place, len(native_loop.words)) for place, native_loop in pairs]
