"""Writing events from a thread of its own, so that training does not wait for the disk."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import final

from headrace.errors import DeadlineExceededError, OpError, UnknownError
from headrace_train.summary.event_file import EventFile

# How long a caller waits for a disk that takes nothing.
PATIENCE_S = 60.0


@final
class EventWriter:
    """Appends events to a file: at once the first, then many at a time.

    Events wait until there are as many as the queue holds, until the time for the next flush has
    come, or until somebody asks for one. What the disk refuses stays in the queue: the next caller
    gets the error, and the events are tried again after that.
    """

    def __init__(
        self, folder: Path, max_queue: int, flush_secs: float, suffix: str, patience_s: float
    ) -> None:
        """Begin a file.

        Args:
            folder: Where.
            max_queue: How many events may wait; any number if not positive.
            flush_secs: Seconds after which they are written, however few they are.
            suffix: What the file's name ends in.
            patience_s: Seconds after which a caller who waits for the disk gets an error.

        Raises:
            OpError: of the family of what the system says, if the file cannot be made.
        """
        self._file = EventFile(folder, suffix)
        self._limit = max_queue if max_queue > 0 else None
        self._flush_secs = flush_secs
        self._patience_s = patience_s
        self._changed = threading.Condition()
        self._waiting: list[bytes] = []
        self._writing = 0
        self._asked = False
        self._closing = False
        self._error: OpError | None = None
        self._due = 0.0
        self._thread: threading.Thread | None = None

    @property
    def path(self) -> Path:
        """The file."""
        return self._file.path

    def add(self, event: bytes) -> None:
        """Put a serialized event into the queue; waits while it is full.

        Raises:
            OpError: if earlier events could not be written: of the family of what the system said.
                This one was not taken.
            DeadlineExceededError: if the disk takes nothing. This one was not taken.
        """
        with self._changed:
            self._raise_error()
            self._wait(lambda: self._limit is None or len(self._waiting) < self._limit)
            self._waiting.append(event)
            if self._thread is None:
                name = "headrace-events"
                self._thread = threading.Thread(target=self._run, name=name, daemon=True)
                self._thread.start()
            # Else the thread knows when to write it.
            if len(self._waiting) == 1 or len(self._waiting) == self._limit:
                self._changed.notify_all()

    def flush(self) -> None:
        """Return when all events so far are in the file.

        Raises:
            OpError: if they could not be written, of the family of what the system said. They are
                tried again with the next event, or flush.
            DeadlineExceededError: if the disk takes nothing.
        """
        with self._changed:
            # An error that nobody was told of yet is out of date if the disk takes them now.
            self._error = None
            self._asked = bool(self._waiting)
            self._changed.notify_all()
            self._wait(lambda: not self._waiting and not self._writing)

    def close(self) -> None:
        """Write what waits, and close the file.

        Raises:
            OpError: if not all events could be written: of the family of what the system said.
                They are lost.
            DeadlineExceededError: if the disk takes nothing.
        """
        with self._changed:
            self._error = None
            self._closing = True
            self._changed.notify_all()
        if self._thread is not None:
            self._thread.join(self._patience_s)
            if self._thread.is_alive():
                raise self._stalled()
        self._file.close()
        error = self._take_error()
        if error is not None:
            raise type(error)(f"{error.message}; {len(self._waiting)} events are lost")

    def _run(self) -> None:
        while True:
            with self._changed:
                while not self._ready():
                    self._changed.wait(self._rest())
                if not self._waiting and self._closing:
                    return
                batch, self._waiting = self._waiting, []
                self._writing, self._asked = len(batch), False
                self._changed.notify_all()
            error: OpError | None = None
            try:
                if batch:
                    self._file.append(batch)
            except OpError as refused:
                error = refused
            except Exception as unforeseen:
                error = UnknownError(f"cannot write events to {self._file.path}: {unforeseen!r}")
            with self._changed:
                self._writing = 0
                self._error = error
                self._due = time.monotonic() + self._flush_secs
                if error is not None:
                    self._waiting[:0] = batch
                self._changed.notify_all()
                if self._closing and (error is not None or not self._waiting):
                    return

    def _ready(self) -> bool:
        """Whether it is time to write."""
        if self._closing:
            return True
        if self._error is not None:
            # Whoever comes next is told first.
            return False
        full = self._limit is not None and len(self._waiting) >= self._limit
        late = bool(self._waiting) and time.monotonic() >= self._due
        return self._asked or full or late

    def _rest(self) -> float | None:
        """Return how long nothing may have to be done if nobody comes."""
        if not self._waiting or self._error is not None:
            return None
        return max(0.0, self._due - time.monotonic())

    def _wait(self, done: Callable[[], bool]) -> None:
        """Wait until something holds, which the thread brings about."""
        self._changed.wait_for(lambda: done() or self._error is not None, self._patience_s)
        self._raise_error()
        if not done():
            raise self._stalled()

    def _raise_error(self) -> None:
        error = self._take_error()
        if error is not None:
            self._changed.notify_all()
            raise error

    def _take_error(self) -> OpError | None:
        """Return the error that nobody was told of yet."""
        error, self._error = self._error, None
        return error

    def _stalled(self) -> DeadlineExceededError:
        return DeadlineExceededError(
            f"cannot write events to {self._file.path}: the disk took nothing for "
            f"{self._patience_s:g} s"
        )
