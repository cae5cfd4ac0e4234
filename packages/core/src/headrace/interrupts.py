"""Deferring interrupts: what must not stop half-way is carried through where Ctrl-C comes.

Python raises ``KeyboardInterrupt`` wherever the main thread is. In a kernel that has taken another
thread's kernel out of the line of those that wait, and has not answered it yet, that would leave
the other thread waiting for ever; between a plugin's kernels, it would leave the program without
the rest of them. Such calls are carried through, and the interrupt is raised after them. They are
short; where one is not, as it reads from a pipe that nobody writes to, the interrupt is raised
within it after a second, and a second interrupt at once.
"""

from __future__ import annotations

import _thread
import functools
import signal
import threading
import time
from collections.abc import Callable
from types import FrameType
from typing import Any, ParamSpec, TypeVar, final

try:
    # What ``signal`` offers looks each handler up among its constants, which takes ten times as
    # long as the rest.
    import _signal as handlers  # type: ignore[import-not-found]
except ImportError:
    handlers = signal

# How long a call may go on when an interrupt has come.
_PATIENCE_S = 1.0

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

    __slots__ = ("_before", "_frame", "_held", "_lock", "_over", "open")

    def __init__(self) -> None:
        # What handles interrupts otherwise.
        self._before: Any = None
        # Whether interrupts are held: not where nothing of Python's handles them, nor within
        # another context, which holds them for both.
        self.open = False
        self._held = False
        self._frame: FrameType | None = None
        # Of an interrupt that is held: whether it is raised, or about to be.
        self._over = False
        self._lock: Any = None

    def __enter__(self) -> None:
        before = handlers.getsignal(signal.SIGINT)
        if callable(before) and not _holds(before):
            self._before, self.open = before, True
            handlers.signal(signal.SIGINT, self._hold)

    def __exit__(self, *error: object) -> None:
        if not self.open:
            return
        if self._held:
            self._end_wait()
        # Signals that have come before are held by what is still the handler.
        self._give_back()
        self.open = False
        if self._held and not self._over:
            self._end_wait()
        if self._over:
            frame, self._frame = self._frame, None
            self._before(signal.SIGINT, frame)

    def _give_back(self) -> None:
        # A handler that the call has set for good stays.
        if handlers.getsignal(signal.SIGINT) == self._hold:
            handlers.signal(signal.SIGINT, self._before)

    def _hold(self, number: int, frame: FrameType | None) -> None:
        if not self.open:
            # A handler that the call has set passes on to what it found, which was this one.
            self._before(number, frame)
            return
        if self._held:
            self._over, self.open, self._frame = True, False, None
            self._give_back()
            self._before(number, frame)
            return
        self._held, self._frame = True, frame
        self._lock = _thread.allocate_lock()
        try:
            # Not by ``threading``, of whose locks the main thread may hold one right now.
            _thread.start_new_thread(self._interrupt_again, ())
        except RuntimeError:
            # There are too many, or Python ends: only a second interrupt ends the call then.
            return

    def _interrupt_again(self) -> None:
        """Interrupt the call that does not end, as a second Ctrl-C would."""
        time.sleep(_PATIENCE_S)
        with self._lock:
            if self._over:
                return
            main = threading.main_thread().ident
            if hasattr(signal, "pthread_kill") and main is not None:
                signal.pthread_kill(main, signal.SIGINT)
            else:
                _thread.interrupt_main()

    def _end_wait(self) -> None:
        with self._lock:
            self._over = True


def _holds(handler: Any) -> bool:
    """Whether a handler is that of a context that is not over."""
    delay = getattr(handler, "__self__", None)
    return isinstance(delay, _Delay) and delay.open
