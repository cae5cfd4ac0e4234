"""The iterator as a resource: a stream, the lock around it, and its position as bytes."""

from __future__ import annotations

import itertools
import os
import threading
import weakref
from collections.abc import Callable, Sequence
from typing import Any, final

from headrace import DType, Shape
from headrace.errors import (
    CancelledError,
    FailedPreconditionError,
    InvalidArgumentError,
    NotFoundError,
    OutOfRangeError,
    shown,
)
from headrace.extend import ListValue
from headrace_data.runtime.passes import Memory, Pass
from headrace_data.runtime.stream import DatasetValue, Element, Stream
from headrace_data.runtime.threads import Lifetime
from headrace_data.state.encoding import decode, encode

_HANDLES: weakref.WeakValueDictionary[str, IteratorResource] = weakref.WeakValueDictionary()
_NUMBERS = itertools.count()
_PREFIX = "headrace-iterator-"


@final
class Running:
    """A stream, and what lives as long as it does."""

    def __init__(self, value: DatasetValue) -> None:
        value.check()
        self.lifetime = Lifetime()
        self.memory = Memory()
        self.value = value
        self.stream: Stream = value.open(Pass(self.lifetime, self.memory))

    def save(self) -> Any:
        """Return where it stands; its threads wait meanwhile."""
        try:
            return [self.value.signature(), self.stream.save(), self.memory.save()]
        finally:
            self.lifetime.release()

    def restore(self, state: Any) -> None:
        """Go where it stood.

        Raises:
            InvalidArgumentError: if the position is of another pipeline.
        """
        signature, stands, memory = state
        mine = self.value.signature()
        if signature != mine:
            raise InvalidArgumentError(
                "the saved position is of another pipeline:\n"
                f"  saved: {_told(signature)}\n  this one: {_told(mine)}"
            )
        self.memory.restore(memory)
        self.stream.restore(stands)

    def close(self, reason: BaseException) -> None:
        """End its threads."""
        self.lifetime.cancel(reason)
        self.stream.close()


def _told(signature: Any) -> str:
    kind, sources = signature
    inside = ", ".join(map(_told, sources))
    return f"{kind}({inside})" if len(sources) > 1 else f"{inside} > {kind}".removeprefix(" > ")


@final
class IteratorResource:
    """An iterator: which element of a data set is next.

    Many threads may ask for elements; each gets one that nobody else gets.

    Attributes:
        name: Its name in its container.
        output_types: The dtype of each tensor of an element.
        output_shapes: Their shapes, as far as fixed.
        token: What its string handle says.
    """

    def __init__(
        self,
        name: str,
        output_types: Sequence[DType] = (),
        output_shapes: Sequence[Shape] = (),
        function: Any = None,
        make: Callable[[], DatasetValue] | None = None,
    ) -> None:
        """Make an iterator without a position.

        Args:
            name: Its name.
            output_types: The dtype of each tensor of an element.
            output_shapes: Their shapes, as far as fixed.
            function: The function that ``make`` runs.
            make: Makes the data set of an iterator that starts by itself.
        """
        del function
        self.name = name
        self.output_types = tuple(output_types)
        self.output_shapes = tuple(output_shapes)
        self._make = make
        self._lock = threading.RLock()
        self._running: Running | None = None
        self._pending: Any = None
        self._ended: BaseException | None = None
        self.token = f"{_PREFIX}{os.getpid()}-{next(_NUMBERS)}"
        _HANDLES[self.token] = self

    @staticmethod
    def find(token: str) -> IteratorResource:
        """Return the iterator that a string stands for.

        Raises:
            InvalidArgumentError: if it is no string handle.
            NotFoundError: if there is none in this process.
        """
        if not token.startswith(_PREFIX):
            raise InvalidArgumentError(
                f"{shown(token)} is no string handle of an iterator; fetch one with "
                "session.run(iterator.string_handle()), in the session that feeds it"
            )
        found = _HANDLES.get(token)
        if found is None:
            raise NotFoundError(
                f"no iterator has the string handle {shown(token)} in this process; fetch it with "
                "session.run(iterator.string_handle()), in the session that feeds it"
            )
        return found

    def start(self, value: DatasetValue) -> None:
        """Go to the first element of a data set, or to a position that waits for it."""
        with self._lock:
            running = Running(value)
            if self._pending is not None:
                running.restore(self._pending)
                self._pending = None
            self._replace(running)

    def _replace(self, running: Running) -> None:
        if self._ended is not None:
            raise self._ended
        before, self._running = self._running, running
        if before is not None:
            before.close(CancelledError(f"the iterator {self.name!r} was initialized anew"))

    def _started(self) -> Running:
        if self._ended is not None:
            raise self._ended
        if self._running is None and self._make is not None:
            self.start(self._make())
        if self._running is None:
            raise FailedPreconditionError(
                f"the iterator {self.name!r} has not been initialized: run its initializer before "
                "the first get_next()"
            )
        return self._running

    def next(self) -> Element:
        """Return the next element.

        Raises:
            OutOfRangeError: if there are no more.
            FailedPreconditionError: if it was not started.
        """
        with self._lock:
            running = self._started()
            try:
                element = running.stream.next()
            finally:
                if running.lifetime.reason is not None:
                    self._forget()
        if element is None:
            raise OutOfRangeError(
                f"the iterator {self.name!r} has no elements left; catch hr.errors.OutOfRangeError "
                "to end, or let the data set repeat()"
            )
        self._check(element)
        return element

    def _check(self, element: Element) -> None:
        for i, (value, dtype, shape) in enumerate(
            zip(element, self.output_types, self.output_shapes, strict=True)
        ):
            if isinstance(value, DatasetValue | ListValue):
                continue
            if dtype.kind == "resource":
                # A batch of data sets.
                continue
            if value.dtype != dtype.numpy or not shape.is_compatible_with(value.shape):
                raise InvalidArgumentError(
                    f"tensor {i} of an element of {self.name!r} is "
                    f"{value.dtype}{list(value.shape)}, expected {dtype}{shape}"
                )

    @property
    def initialized(self) -> bool:
        """Whether it has a position to save, or starts by itself."""
        return self._running is not None or self._make is not None or self._pending is not None

    def save(self) -> bytes:
        """Return its position, or the one that waits for a data set.

        Raises:
            FailedPreconditionError: if it has none.
        """
        with self._lock:
            if self._running is None and self._pending is not None:
                return encode(self._pending)
            return encode(self._started().save())

    def restore(self, data: bytes) -> None:
        """Go to a position; where there is no data set yet, as soon as there is one.

        Raises:
            DataLossError: if the position is damaged.
            InvalidArgumentError: if it is of another pipeline.
        """
        state = decode(data)
        with self._lock:
            if self._running is None and self._make is None:
                self._pending = state
                return
            running = Running(self._started().value)
            running.restore(state)
            self._replace(running)

    def close(self, reason: BaseException) -> None:
        """End it for good: its session was closed."""
        self._ended = reason
        self._end(reason)

    def reset(self) -> None:
        """Forget the data set and the position."""
        self._end(CancelledError(f"the iterator {self.name!r} was reset"))

    def _end(self, reason: BaseException) -> None:
        running = self._running
        if running is not None:
            running.lifetime.cancel(reason)
        # A thread that is inside, in a generator perhaps, ends what it runs when it comes out.
        if self._lock.acquire(blocking=False):
            try:
                self._forget()
            finally:
                self._lock.release()

    def _forget(self) -> None:
        running, self._running, self._pending = self._running, None, None
        if running is not None:
            running.stream.close()
