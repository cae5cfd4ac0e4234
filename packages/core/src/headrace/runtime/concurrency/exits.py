"""The end of the process: steps that nothing can end any more do not keep Python from leaving.

Python waits at its end for all threads that are no daemons. One that puts into a full queue, or
takes from an empty one, would wait for ever: those that could have ended that are gone. So when the
main thread is done, a thread watches the others. Once all for which Python waits are themselves
waiting in steps, and nothing has happened for a while, these steps are cancelled.

What waits is read off the stacks of the threads: a step pays nothing for it.
"""

from __future__ import annotations

import contextlib
import os
import sys
import threading
import time
from collections.abc import Callable, Iterator
from types import CodeType, FrameType
from typing import TypeAlias, final

from headrace.errors import CancelledError
from headrace.runtime.concurrency.cancellation import Cancellation

# How often it looks.
_INTERVAL = 0.05
# How many seconds nothing may happen: where no thread but those that wait runs, and where daemons
# run, which may be working on what the others wait for.
_ALONE, _BESIDE_DAEMONS = 0.3, 5.0
# Threads of Headrace serve steps, and begin nothing by themselves.
_OWN = "headrace"
_NAME = f"{_OWN}-exit"
# Whoever was registered last is called first.
_POOLS = "concurrent.futures.thread"

# Python 3.12 starts no thread any more when it has begun to leave; others do until all have ended.
_STARTS_AT_END = sys.version_info[:2] != (3, 12)

_REASON = "the program has ended, and no thread is left that could end this wait"


# Returns the flag of the step for which a frame waits, None where something still works on it.
StepOf: TypeAlias = Callable[[FrameType], Cancellation | None]


@final
class Exits:
    """Ends the steps that would keep Python from leaving."""

    def __init__(self, code: CodeType, step_of: StepOf) -> None:
        """Be called when Python wants to leave.

        Args:
            code: The function in which threads wait for steps.
            step_of: Returns the flag of the step for which a frame of it waits.
        """
        self._code = code
        self._step_of = step_of
        self._before_pools = False
        self._begun = False
        # Where the watch cannot start at the end, it waits for this from the beginning.
        self._leaving: threading.Event | None = None
        if not _STARTS_AT_END:
            self._wait_from_now()
            if hasattr(os, "register_at_fork"):
                os.register_at_fork(after_in_child=self._wait_from_now)
        self._register()

    def _register(self) -> None:
        # Called before Python waits for threads; what `atexit` knows is called after that.
        register = getattr(threading, "_register_atexit", None)
        if register is not None:
            try:
                register(self._begin)
            except RuntimeError:
                # Python leaves already, and waits for a pool that has just begun.
                self._begin()

    def _wait_from_now(self) -> None:
        self._leaving = threading.Event()
        self._start(self._leaving)

    def come_first(self) -> None:
        """Be called before pools of threads, which wait for their own threads; called often."""
        if not self._before_pools and _POOLS in sys.modules:
            self._before_pools = True
            self._register()

    def _begin(self) -> None:
        if self._begun:
            return
        self._begun = True
        if self._leaving is not None:
            self._leaving.set()
        else:
            self._start(None)

    def _start(self, leaving: threading.Event | None) -> None:
        arguments = (self._code, self._step_of, leaving)
        watch = threading.Thread(target=_watch, args=arguments, name=_NAME, daemon=True)
        with contextlib.suppress(RuntimeError):
            watch.start()


def watches() -> int:
    """Return how many threads wait for the end of the process, and change nothing before."""
    return sum(t.name == _NAME for t in threading.enumerate())


def _watch(code: CodeType, step_of: StepOf, leaving: threading.Event | None) -> None:
    if leaving is not None:
        leaving.wait()
    interrupted = getattr(sys, "last_type", None) is KeyboardInterrupt
    seen: dict[int, Cancellation] = {}
    since = time.monotonic()
    while True:
        time.sleep(_INTERVAL)
        awaited = [t for t in _others() if not t.daemon]
        if not awaited:
            return
        waits = dict(_waits(code, step_of))
        now = {ident: waits[ident] for t in awaited if (ident := t.ident or 0) in waits}
        if now != seen or len(now) < len(awaited):
            seen, since = now, time.monotonic()
        busy = any(t.daemon and t.ident not in waits for t in _others())
        patience = _BESIDE_DAEMONS if busy else _ALONE
        # Who interrupts a program does not want its other threads to go on with it, either.
        if interrupted or time.monotonic() - since >= patience:
            for cancellation in now.values():
                cancellation.cancel(CancelledError(_REASON))


def _others() -> list[threading.Thread]:
    """Return the threads that the program started and that run."""
    main = threading.main_thread()
    return [
        t
        for t in threading.enumerate()
        if t is not main and t.is_alive() and not t.name.startswith(_OWN)
    ]


def _waits(code: CodeType, step_of: StepOf) -> Iterator[tuple[int, Cancellation]]:
    """Yield the threads that wait for a step, and the flags of the steps."""
    for ident, top in sys._current_frames().items():  # noqa: SLF001 - the only way to see other threads
        frame: FrameType | None = top
        while frame is not None:
            if frame.f_code is code:
                cancellation = step_of(frame)
                if cancellation is not None:
                    yield ident, cancellation
                break
            frame = frame.f_back
