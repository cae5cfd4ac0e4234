"""Handling SIGTERM in a monitored session: it ends after its step, and saves."""

from __future__ import annotations

import contextlib
import logging
import os
import signal
import threading
import weakref
from typing import Any, final

_log = logging.getLogger("headrace.train")
# What a shell reports of a process that a signal ended.
_SIGNALLED = 128

_LISTENING: weakref.WeakSet[Termination] = weakref.WeakSet()


@final
class Termination:
    """Notes that the process should end, while it is open.

    A program with a handler of its own keeps that one. A second signal ends the process at once.

    Attributes:
        requested: Whether it should end.
    """

    def __init__(self) -> None:
        """Begin to listen, in the main thread of a program that does not."""
        self.requested = False
        if threading.current_thread() is not threading.main_thread():
            return
        if signal.getsignal(signal.SIGTERM) not in (signal.SIG_DFL, _noted):
            return
        _LISTENING.add(self)
        signal.signal(signal.SIGTERM, _noted)

    def check(self) -> None:
        """End the program if it should.

        Raises:
            SystemExit: with 143, what a shell reports of a process that SIGTERM ended.
        """
        if self.requested:
            _log.warning("ending because of SIGTERM, after a whole step")
            raise SystemExit(_SIGNALLED + signal.SIGTERM)

    def close(self) -> None:
        """Listen no longer."""
        _LISTENING.discard(self)
        if not _LISTENING and signal.getsignal(signal.SIGTERM) is _noted:
            # Not in another thread; there the next signal ends the process as it would have.
            with contextlib.suppress(ValueError):
                signal.signal(signal.SIGTERM, signal.SIG_DFL)


def _noted(number: int, frame: Any) -> None:
    del frame
    listening = list(_LISTENING)
    for one in listening:
        one.requested = True
    # The next one is not waited for.
    signal.signal(number, signal.SIG_DFL)
    if not listening:
        os.kill(os.getpid(), number)
