"""How the threads of a program end together, and where the error of one of them goes."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from types import TracebackType
from typing import Any, TypeAlias

from headrace.errors import ArgumentTypeError, OutOfRangeError, shown, told
from headrace.extend.arguments import items, real

_log = logging.getLogger("headrace.train")

# How often ``join`` looks whether its threads have ended, in seconds.
_GLANCE = 0.02

ExcInfo: TypeAlias = tuple[type[BaseException], BaseException, TracebackType | None]


class Coordinator:
    """Lets the threads of a program end together.

    A thread asks ``should_stop`` regularly, and ends when it is True. Whoever wants the others to
    end, because it has finished or failed, calls ``request_stop``. The program waits in ``join``,
    which raises the error that a thread passed on::

        coord = hr.train.Coordinator()
        threads = hr.train.start_queue_runners(session, coord)
        try:
            while not coord.should_stop():
                session.run(train)
        except Exception as error:
            coord.request_stop(error)
        finally:
            coord.request_stop()
            coord.join(threads)
    """

    def __init__(
        self, clean_stop_exception_types: Iterable[type[BaseException]] | None = None
    ) -> None:
        """Make a coordinator of no threads.

        Args:
            clean_stop_exception_types: Errors that mean a normal end; ``join`` does not raise
                them. ``errors.OutOfRangeError`` if None, with which queues tell their end.
        """
        if clean_stop_exception_types is None:
            clean_stop_exception_types = (OutOfRangeError,)
        self._clean = tuple(items(clean_stop_exception_types, "clean_stop_exception_types"))
        self._lock = threading.Lock()
        self._stop = threading.Event()
        self._error: ExcInfo | None = None
        self._joined = False
        self._registered: set[threading.Thread] = set()

    @property
    def joined(self) -> bool:
        """Whether ``join`` has ended since the last ``clear_stop``."""
        return self._joined

    def request_stop(self, ex: BaseException | ExcInfo | None = None) -> None:
        """Ask all threads to end.

        Args:
            ex: The error for which they should, or what ``sys.exc_info()`` returned for it. The
                first one is raised by ``join``. After ``join`` it is raised at once, for nobody
                would ever see it.

        Raises:
            ArgumentTypeError: if ``ex`` is neither.
        """
        info = _exc_info(ex)
        if info is not None and isinstance(info[1], self._clean):
            info = None
        with self._lock:
            if info is not None and self._joined:
                raise info[1].with_traceback(info[2])
            if not self._stop.is_set() and info is not None and self._error is None:
                _log.info("a thread stops the others: %s: %s", info[0].__name__, info[1])
                self._error = info
            self._stop.set()

    def clear_stop(self) -> None:
        """Forget that a stop was requested, and why: threads may be started anew."""
        with self._lock:
            self._joined = False
            self._error = None
            self._stop.clear()

    def should_stop(self) -> bool:
        """Return whether a stop was requested."""
        return self._stop.is_set()

    @contextmanager
    def stop_on_exception(self) -> Iterator[None]:
        """Request a stop with what is raised in the block, which ends quietly."""
        try:
            yield
        except BaseException as error:
            # The thread ends with this; ``join`` raises it in the program.
            self.request_stop((type(error), error, error.__traceback__))

    def wait_for_stop(self, timeout: float | None = None) -> bool:
        """Wait until a stop is requested.

        Args:
            timeout: How many seconds at most; None for any time.

        Returns:
            Whether a stop was requested.
        """
        return self._stop.wait(timeout)

    def register_thread(self, thread: threading.Thread) -> None:
        """Let ``join`` wait for a thread, too."""
        with self._lock:
            self._registered.add(thread)

    def join(
        self,
        threads: Iterable[threading.Thread] | None = None,
        stop_grace_period_secs: float = 120,
        ignore_live_threads: bool = False,
    ) -> None:
        """Wait until all threads have ended, and raise the error that one of them passed on.

        It waits as long as nobody requests a stop; from then on for the grace period.

        Args:
            threads: Threads that were started, besides those that were registered.
            stop_grace_period_secs: How many seconds threads may take to end once a stop is
                requested.
            ignore_live_threads: Whether to log, instead of raise, that some have not ended by then.

        Raises:
            BaseException: what was passed to ``request_stop``.
            RuntimeError: if threads have not ended in time.
        """
        with self._lock:
            waited = [*self._registered.union(threads or ())]
        while _alive(waited) and not self.wait_for_stop(_GLANCE):
            pass
        deadline = time.monotonic() + real(stop_grace_period_secs, "stop_grace_period_secs")
        for thread in _alive(waited):
            thread.join(max(deadline - time.monotonic(), 0))
        left = ", ".join(sorted(thread.name for thread in _alive(waited)))
        with self._lock:
            self._joined = True
            self._registered = set()
        self.raise_requested_exception()
        if left and not ignore_live_threads:
            raise RuntimeError(
                f"threads still run {told(stop_grace_period_secs)} seconds after they "
                "were asked to "
                f"stop: {left}; each must ask should_stop(), and what it waits for must end"
            )
        if left:
            _log.info("threads still run after the grace period: %s", left)

    def raise_requested_exception(self) -> None:
        """Raise the error that was passed to ``request_stop``, if there is one."""
        with self._lock:
            error = self._error
        if error is not None:
            raise error[1].with_traceback(error[2])


def _alive(threads: Iterable[threading.Thread]) -> list[threading.Thread]:
    return [thread for thread in threads if thread.is_alive()]


def _exc_info(ex: Any) -> ExcInfo | None:
    if ex is None or (isinstance(ex, tuple) and ex == (None, None, None)):
        return None
    if isinstance(ex, BaseException):
        return type(ex), ex, ex.__traceback__
    if isinstance(ex, tuple) and len(ex) == 3 and isinstance(ex[1], BaseException):
        return type(ex[1]), ex[1], ex[2]
    raise ArgumentTypeError(
        f"request_stop takes an exception, or what sys.exc_info() returned, got {shown(ex)}"
    )
