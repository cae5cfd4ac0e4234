"""Interrupts: what must not stop half-way is carried through where Ctrl-C comes meanwhile.

Python raises ``KeyboardInterrupt`` wherever the main thread is. In a kernel that has taken another
thread's kernel out of the line of those that wait, and has not answered it yet, that would leave
the other thread waiting for ever; between a plugin's kernels, it would leave the program without
the rest of them. Such calls are carried through, and the interrupt is raised after them. They are
short, and a second interrupt does not wait for their end.
"""

from __future__ import annotations

import functools
import signal
import threading
from collections.abc import Callable
from types import FrameType
from typing import Any, ParamSpec, TypeVar, final

try:
    # What ``signal`` offers looks each handler up among its constants, which takes ten times as
    # long as the rest.
    import _signal as handlers  # type: ignore[import-not-found]
except ImportError:
    handlers = signal

P = ParamSpec("P")
R = TypeVar("R")


def uninterrupted(call: Callable[P, R]) -> Callable[P, R]:
    """Return ``call``, at whose end an interrupt is raised that comes while it runs."""

    @functools.wraps(call, updated=())
    def carried_through(*args: P.args, **kwargs: P.kwargs) -> R:
        # Others are not interrupted, and may not set handlers.
        if threading.current_thread() is not threading.main_thread():
            return call(*args, **kwargs)
        with _Delay():
            return call(*args, **kwargs)

    return carried_through


@final
class _Delay:
    """A context of the main thread at whose end interrupts are raised that came within."""

    __slots__ = ("_before", "_frame", "_held")

    def __init__(self) -> None:
        # What handles interrupts otherwise; None where that is nothing of Python's.
        self._before: Any = None
        self._held = False
        self._frame: FrameType | None = None

    def __enter__(self) -> None:
        before = handlers.getsignal(signal.SIGINT)
        if callable(before):
            self._before = before
            handlers.signal(signal.SIGINT, self._hold)

    def __exit__(self, *error: object) -> None:
        if self._before is None:
            return
        # Signals that have come before are held by what is still the handler.
        handlers.signal(signal.SIGINT, self._before)
        if self._held:
            frame, self._frame = self._frame, None
            self._before(signal.SIGINT, frame)

    def _hold(self, number: int, frame: FrameType | None) -> None:
        if self._held:
            self._before(number, frame)
        self._held, self._frame = True, frame
