"""Background work: what takes long and no step has to wait for, such as compiling kernels.

A session has one ``Background``. Its threads start when there is work, end when there is none, and
end with the session: closing it waits until the work is done, so that what is kept on disk is whole
for the next process. Where a session ends by an error, what was not begun is dropped.
"""

from __future__ import annotations

import atexit
import contextlib
import itertools
import os
import sys
import threading
import weakref
from collections import deque
from collections.abc import Callable, Sequence
from typing import final

Piece = Callable[[], object]


@final
class _Batch:
    """Pieces that belong together."""

    __slots__ = ("done", "dropped", "failed", "left")

    def __init__(self, left: int, done: Piece, dropped: Piece) -> None:
        self.left = left
        self.done = done
        self.dropped = dropped
        self.failed = False


@final
class Background:
    """Does pieces of work on threads of its own, in their order."""

    def __init__(self) -> None:
        """Begin without threads."""
        self._queue: deque[tuple[_Batch, Piece]] = deque()
        self._threads: set[threading.Thread] = set()
        self._running = 0
        self._closed = False
        _ALL.add(self)

    def submit(
        self,
        pieces: Sequence[Piece],
        done: Piece,
        *,
        threads: int = 1,
        dropped: Piece = lambda: None,
    ) -> None:
        """Have work done, and return at once.

        Args:
            pieces: At least one function; they may run at the same time, in any order.
            done: Called when all of them have run, by the thread that ran the last one.
            threads: How many threads may work at once.
            dropped: Called in place of ``done`` where that will not be: one of them raised, the
                session was closed before, or the process was forked and has none of the threads.
        """
        batch = _Batch(len(pieces), done, dropped)
        with _GATE:
            taken = not self._closed
            if taken:
                self._queue.extend((batch, piece) for piece in pieces)
                for _ in range(min(threads, len(pieces)) - len(self._threads)):
                    self._start()
                if not self._threads:
                    taken = False
                    self._queue.clear()
        if not taken:
            dropped()

    def close(self, *, drop: bool | None = None) -> None:
        """Do what is left, on the calling thread as well, and take no more.

        Args:
            drop: Only wait for what was begun, and drop the rest; None does so where the calling
                thread handles an exception. An interrupt meanwhile drops the rest, too.
        """
        if drop is None:
            drop = sys.exc_info()[0] is not None
        with _GATE:
            self._closed = True
        try:
            while not drop and self._turn():
                pass
        finally:
            self._drop()
        with _GATE:
            while self._running:
                _GATE.wait()
            threads = list(self._threads - {threading.current_thread()})
        for thread in threads:
            thread.join()

    # -- threads

    def _start(self) -> None:
        # Not a daemon: a process ends when its kernels are on disk.
        name = f"headrace-background-{next(_NUMBERS)}"
        thread = threading.Thread(target=self._work, name=name, daemon=False)
        self._threads.add(thread)
        try:
            thread.start()
        except RuntimeError:
            # The process has as many threads as it may, or is about to end.
            self._threads.discard(thread)

    def _work(self) -> None:
        me = threading.current_thread()
        while True:
            if _is_crashing():
                self._drop()
            with _GATE:
                if not self._queue:
                    self._threads.discard(me)
                    return
            try:
                self._turn()
            except Exception:
                # Told as that of any thread; what other work there is goes on.
                threading.excepthook(threading.ExceptHookArgs((*sys.exc_info(), me)))

    def _turn(self) -> bool:
        """Do a piece; return whether there was one."""
        with _GATE:
            while _FORKING:
                _GATE.wait()
            if not self._queue:
                return False
            batch, piece = self._queue.popleft()
            self._running += 1
            _BUSY[self] = _BUSY.get(self, 0) + 1
        _INSIDE.now = True
        try:
            self._do(batch, piece)
        finally:
            _INSIDE.now = False
            with _GATE:
                _BUSY[self] -= 1
                if not _BUSY[self]:
                    del _BUSY[self]
                self._running -= 1
                _GATE.notify_all()
        return True

    def _do(self, batch: _Batch, piece: Piece) -> None:
        try:
            piece()
        except BaseException:
            batch.failed = True
            raise
        finally:
            with _GATE:
                batch.left -= 1
                last = not batch.left
            if last:
                (batch.dropped if batch.failed else batch.done)()

    def _drop(self) -> None:
        with _GATE:
            left, self._queue = self._queue, deque()
        for batch in dict.fromkeys(batch for batch, _ in left):
            batch.dropped()

    def forget_threads(self) -> None:
        """Drop everything: in a forked process, which has none of the threads."""
        unfinished = bool(self._threads)
        self._threads.clear()
        self._running = 0
        if unfinished:
            self._drop()


# Guards everything here. One lock for all sessions: it is never held for long, and whoever forks
# has to hold it.
_GATE = threading.Condition(threading.RLock())
# How many pieces of each session run now, and whether the calling thread runs one.
_BUSY: dict[Background, int] = {}
_INSIDE = threading.local()
# One entry for each thread that forks: nothing new begins until it has.
_FORKING: list[None] = []
_ALL: weakref.WeakSet[Background] = weakref.WeakSet()
_NUMBERS = itertools.count(1)


def _is_crashing() -> bool:
    """Whether the program ended by an error, and its process only waits for threads."""
    ended = not threading.main_thread().is_alive()
    return ended and getattr(sys, "last_value", None) is not None


def _end_as_interrupted() -> None:
    """Let a process that an interrupt has ended say so by how it ends.

    Python remembers that nobody caught an interrupt, and ends by the signal, as shells expect. It
    forgets that where any thread runs a text meanwhile, as importing named tuples does. Running
    one that is interrupted reminds it.
    """
    interactive = sys.flags.interactive or hasattr(sys, "ps1")
    if not interactive and getattr(sys, "last_type", None) is KeyboardInterrupt:
        with contextlib.suppress(KeyboardInterrupt):
            exec("raise KeyboardInterrupt")


def _before_fork() -> None:
    """Let what runs come to its end: a fork would keep the locks that it holds for ever."""
    _GATE.acquire()
    _FORKING.append(None)
    while _BUSY and not getattr(_INSIDE, "now", False):
        _GATE.wait()


def _in_parent() -> None:
    _FORKING.pop()
    _GATE.notify_all()
    _GATE.release()


def _in_child() -> None:
    _FORKING.clear()
    _BUSY.clear()
    for background in list(_ALL):
        background.forget_threads()
    _GATE.release()


atexit.register(_end_as_interrupted)
os.register_at_fork(before=_before_fork, after_in_parent=_in_parent, after_in_child=_in_child)
