"""Prefetching: a thread takes elements while the program works on others."""

from __future__ import annotations

import threading
from collections import deque
from typing import Any

import headrace as hr
from headrace.errors import InvalidArgumentError
from headrace_data.build import make, scalar, static
from headrace_data.runtime.failures import load_failure, save_failure
from headrace_data.runtime.passes import Pass
from headrace_data.runtime.stream import (
    DatasetValue,
    Element,
    OneSource,
    State,
    Stream,
    count_of,
    stream,
)
from headrace_data.runtime.threads import start_thread
from headrace_data.structure import Described

# What AUTOTUNE stands for: enough to bridge a slow element, and little memory.
AUTOMATIC = 8


def prefetch(dataset: Described, buffer_size: Any) -> Described:
    """Return a data set whose elements are fetched ahead."""
    size = scalar(-1 if buffer_size is None else buffer_size, hr.int64, "buffer_size")
    _check_size(static(size))
    return make("prefetch", dataset.spec, sources=[dataset], arguments=[size])


def _check_size(size: int | None) -> None:
    if size is not None and size < -1:
        raise InvalidArgumentError(
            f"prefetch: buffer_size must be >= 0, or AUTOTUNE (-1), got {size}"
        )


class Prefetcher:
    """Elements of a stream that a thread takes ahead.

    The thread begins when the first element is asked for. It takes nothing while the position is
    saved, so that what is saved fits together.
    """

    def __init__(
        self, source: Stream, size: int, run: Pass, changed: threading.Condition | None = None
    ) -> None:
        """Begin with nothing.

        Args:
            source: The stream.
            size: How many elements are taken ahead.
            run: The pass that asks for them.
            changed: Notified when something changes; several may share it, to be waited for at
                once.
        """
        self.source = source
        self._size = size
        self._run = run
        self._items: deque[Element | Exception] = deque()
        self._changed = threading.Condition() if changed is None else changed
        # Held while the source is asked; whoever holds it may look at the source.
        self._taking = threading.Lock()
        self._started = False
        self._ended = False
        self._closed = False
        self._key = 0

    def next(self) -> Element | None:
        """Return the next element, waiting for it.

        Raises:
            Exception: what the source raised in its place.
            CancelledError: if the iterator ends.
        """
        with self._changed:
            if not self._started and not self._ended:
                self._start()
            while not self._items and not self._ended and not self._closed:
                self._changed.wait()
            if self._run.lifetime.reason is not None:
                raise self._run.lifetime.reason
            if not self._items:
                return None
            item = self._items.popleft()
            self._changed.notify_all()
        if isinstance(item, Exception):
            raise item
        return item

    @property
    def ready(self) -> bool:
        """Whether ``next`` would return, or raise, at once."""
        return bool(self._items) or self._ended or self._closed

    def start(self) -> None:
        """Let the thread begin before something is asked for."""
        with self._changed:
            if not self._started and not self._ended:
                self._start()

    def _start(self) -> None:
        self._started = True
        self._key = self._run.lifetime.add(self._cancelled)
        start_thread(self._fill, "prefetch")

    def _cancelled(self, reason: BaseException) -> None:
        with self._changed:
            self._closed = True
            self._changed.notify_all()

    def _fill(self) -> None:
        while not self._ended:
            with self._changed:
                while len(self._items) >= self._size and not self._closed:
                    self._changed.wait()
            with self._taking:
                if self._closed:
                    self.source.close()
                    return
                try:
                    item: Element | Exception | None = self.source.next()
                except Exception as error:
                    item = error
                with self._changed:
                    if item is None:
                        self._ended = True
                    else:
                        self._items.append(item)
                    self._changed.notify_all()

    def save(self) -> State:
        """Return what was taken ahead, and where the source stands."""
        # Held until all is saved: what outlives streams must not change meanwhile.
        self._run.lifetime.hold(self._taking)
        with self._changed:
            items = [
                save_failure(item) if isinstance(item, Exception) else [list(item)]
                for item in self._items
            ]
            return [items, self._ended, self.source.save()]

    def restore(self, state: State) -> None:
        """Have the same taken ahead."""
        items, self._ended, inner = state
        self._items.extend(
            load_failure(item) if isinstance(item, dict) else tuple(item[0]) for item in items
        )
        self.source.restore(inner)

    def close(self) -> None:
        """Let the thread end; it may still be about to take something, and closes the source."""
        self._run.lifetime.discard(self._key)
        with self._changed:
            self._closed = True
            alive = self._started and not self._ended
            self._changed.notify_all()
        if not alive:
            self.source.close()


@stream("prefetch")
class PrefetchStream(OneSource):
    """The elements, taken ahead."""

    def __init__(self, value: DatasetValue, run: Pass) -> None:
        super().__init__(value, run)
        size = value.scalar(0)
        self._ahead: Any = self.source
        if size:
            self._ahead = Prefetcher(self.source, AUTOMATIC if size < 0 else size, run)

    @classmethod
    def check(cls, value: DatasetValue) -> None:
        """Refuse a negative size."""
        _check_size(value.scalar(0))

    @classmethod
    def count(cls, value: DatasetValue) -> int:
        """Return how many elements there are."""
        return count_of(value.sources[0])

    def next(self) -> Element | None:
        """Return the next element."""
        found: Element | None = self._ahead.next()
        return found

    def save(self) -> State:
        """Return what was taken ahead, and where the source stands."""
        return self._ahead.save()

    def restore(self, state: State) -> None:
        """Have the same taken ahead."""
        self._ahead.restore(state)

    def close(self) -> None:
        """End the thread."""
        self._ahead.close()
