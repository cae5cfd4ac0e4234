"""First-in, first-out queues whose users wait without holding a thread."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias, final

from headrace.dtypes import DType
from headrace.errors import CancelledError, DTypeError, OutOfRangeError, ShapeError
from headrace.runtime.cancellation import Cancellation
from headrace.shapes import Shape

# One entry of a queue: an array per component.
Element: TypeAlias = tuple[Any, ...]


class _Waiter:
    """An enqueue or dequeue that has not finished.

    Attributes:
        answer: What to call with its result, or with the exception that ended it.
        cancellation: Of the step that waits, once it waits.
        key: Of the callback there.
    """

    __slots__ = ("_finished", "answer", "cancellation", "key")

    def __init__(self, answer: Callable[[Any], None]) -> None:
        self.answer = answer
        self._finished = False
        self.cancellation: Cancellation | None = None
        self.key = 0

    def finished(self) -> bool:
        """Whether its result is settled, which happens under the queue's lock."""
        return self._finished

    def settle(self, result: Any) -> Callable[[], None]:
        """Mark it finished, and return what tells so, to be called without the lock."""
        self._finished = True

        def tell() -> None:
            if self.cancellation is not None:
                self.cancellation.discard(self.key)
            self.answer(result)

        return tell


class _Put(_Waiter):
    """An enqueue: the elements that are still to go in."""

    __slots__ = ("left",)

    def __init__(self, elements: Sequence[Element], answer: Callable[[Any], None]) -> None:
        super().__init__(answer)
        self.left = deque(elements)


class _Take(_Waiter):
    """A dequeue: how many elements it wants, and those that it has."""

    __slots__ = ("taken", "wanted")

    def __init__(self, wanted: int, answer: Callable[[Any], None]) -> None:
        super().__init__(answer)
        self.wanted = wanted
        self.taken: list[Element] = []


@final
class FIFOQueue:
    """A queue of elements, each a tuple of arrays.

    Whoever finds it full or empty leaves a callback, and is served in the order of arrival. One
    that enqueues many puts in what fits and waits with the rest; one that dequeues many collects
    elements as they come, so that it may want more than the capacity, and gives them back to the
    front when it is cancelled or the queue closes before it has enough.

    Attributes:
        name: The name in its container.
        capacity: How many elements it holds at most.
        dtypes: The dtype of each component.
        shapes: The shape of each component, as far as fixed.
    """

    def __init__(
        self, name: str, capacity: int, dtypes: Sequence[DType], shapes: Sequence[Shape]
    ) -> None:
        self.name = name
        self.capacity = capacity
        self.dtypes = tuple(dtypes)
        self.shapes = tuple(shapes)
        self._elements: deque[Element] = deque()
        self._puts: deque[_Put] = deque()
        self._takes: deque[_Take] = deque()
        self._closed = False
        self._lock = threading.Lock()

    @property
    def size(self) -> int:
        """How many elements it holds."""
        return len(self._elements)

    @property
    def is_closed(self) -> bool:
        """Whether it was closed."""
        return self._closed

    def put(
        self,
        elements: Sequence[Element],
        done: Callable[[Any], None],
        cancellation: Cancellation | None = None,
    ) -> None:
        """Append elements, one after the other, as there is room.

        Args:
            elements: The elements.
            done: Called once: with None when all are in, or with an exception.
            cancellation: Ends the waiting; what went in by then stays.
        """
        put = _Put(elements, done)
        with self._lock:
            if self._closed:
                told = [put.settle(CancelledError(f"queue {self.name!r} is closed"))]
            else:
                self._puts.append(put)
                told = self._move()
        self._tell(told, put, cancellation)

    def take(
        self,
        count: int,
        done: Callable[[Any], None],
        cancellation: Cancellation | None = None,
    ) -> None:
        """Take the oldest ``count`` elements, when there are so many.

        Args:
            count: How many, at least 0.
            done: Called once: with the list of elements, or with an exception.
            cancellation: Ends the waiting; nothing is taken then.
        """
        take = _Take(count, done)
        with self._lock:
            if count:
                self._takes.append(take)
                told = self._move()
            else:
                told = [take.settle([])]
        self._tell(told, take, cancellation)

    def close(self, *, cancel_pending_enqueues: bool = False) -> None:
        """Take nothing more in; what is in, and what waits to get in, can still be taken.

        Args:
            cancel_pending_enqueues: Fail the enqueues that wait.
        """
        told: list[Callable[[], None]] = []
        with self._lock:
            self._closed = True
            if cancel_pending_enqueues:
                told += self._drop(self._puts, f"queue {self.name!r} was closed")
            told += self._move()
        for tell in told:
            tell()

    def reset(self) -> None:
        """Drop all elements, fail all that wait, and open the queue again."""
        reason = f"queue {self.name!r} was reset"
        with self._lock:
            told = [*self._drop(self._puts, reason), *self._drop(self._takes, reason)]
            self._elements.clear()
            self._closed = False
        for tell in told:
            tell()

    @staticmethod
    def _drop(waiters: deque[Any], reason: str) -> list[Callable[[], None]]:
        told = [waiter.settle(CancelledError(reason)) for waiter in waiters]
        waiters.clear()
        return told

    def _tell(
        self,
        told: Sequence[Callable[[], None]],
        waiter: _Put | _Take,
        cancellation: Cancellation | None,
    ) -> None:
        """Tell all that have finished, and let ``waiter`` be cancelled if it has not."""
        for tell in told:
            tell()
        if waiter.finished() or cancellation is None:
            return
        key = cancellation.add(lambda reason: self._cancel(waiter, reason))
        with self._lock:
            waiter.cancellation, waiter.key = cancellation, key
            finished = waiter.finished()
        if finished:
            # By another thread, which did not know the key yet.
            cancellation.discard(key)

    def _cancel(self, waiter: _Put | _Take, reason: BaseException) -> None:
        with self._lock:
            if waiter.finished():
                return
            if isinstance(waiter, _Take):
                self._takes.remove(waiter)
                self._elements.extendleft(reversed(waiter.taken))
            else:
                self._puts.remove(waiter)
            # Those behind it may go on now.
            told = [waiter.settle(reason), *self._move()]
        for tell in told:
            tell()

    def _move(self) -> list[Callable[[], None]]:
        """Move elements as far as they go, under the lock; return what tells who has finished."""
        told: list[Callable[[], None]] = []
        moved = True
        while moved:
            moved = self._move_in(told) | self._move_out(told)
        return told

    def _move_in(self, told: list[Callable[[], None]]) -> bool:
        moved = False
        while self._puts and (not self._puts[0].left or len(self._elements) < self.capacity):
            put = self._puts[0]
            moved = True
            if put.left:
                self._elements.append(put.left.popleft())
            if not put.left:
                self._puts.popleft()
                told.append(put.settle(None))
        return moved

    def _move_out(self, told: list[Callable[[], None]]) -> bool:
        moved = False
        while self._takes and (self._elements or (self._closed and not self._puts)):
            take = self._takes[0]
            moved = True
            if self._elements:
                take.taken.append(self._elements.popleft())
                if len(take.taken) == take.wanted:
                    self._takes.popleft()
                    told.append(take.settle(take.taken))
            else:
                self._takes.popleft()
                self._elements.extend(take.taken)
                told.append(take.settle(self._exhausted(take)))
        return moved

    def _exhausted(self, take: _Take) -> OutOfRangeError:
        return OutOfRangeError(
            f"queue {self.name!r} is closed and has too few elements: expected {take.wanted}, got "
            f"{len(take.taken)}"
        )

    # -- components

    def check_component_types(self, dtypes: Sequence[DType]) -> None:
        """Refuse other component dtypes than the queue's.

        Raises:
            DTypeError: if they differ.
        """
        if tuple(dtypes) != self.dtypes:
            raise DTypeError(
                f"queue {self.name!r} holds components of {_listed(self.dtypes)}, expected "
                f"{_listed(dtypes)}"
            )

    def check_components(self, components: Sequence[Any], *, many: bool) -> None:
        """Refuse components that the queue does not hold.

        Args:
            components: An array per component.
            many: Whether they have a leading axis along which elements are stacked.

        Raises:
            DTypeError: if a dtype is another one.
            ShapeError: if the number of components or a shape is another one.
        """
        if len(components) != len(self.dtypes):
            raise ShapeError(
                f"queue {self.name!r} holds elements of {len(self.dtypes)} components, got "
                f"{len(components)}"
            )
        for i, (component, dtype, shape) in enumerate(
            zip(components, self.dtypes, self.shapes, strict=True)
        ):
            if component.dtype != dtype.numpy:
                raise DTypeError(
                    f"component {i} of queue {self.name!r} is {dtype}, got {component.dtype}"
                )
            expected = Shape([None]).concatenate(shape) if many else shape
            fits = component.ndim > 0 or not many
            if not fits or not expected.is_compatible_with(component.shape):
                raise ShapeError(
                    f"component {i} of queue {self.name!r} must have shape {expected}, got "
                    f"{list(component.shape)}"
                )
        lengths = {component.shape[0] for component in components} if many else set()
        if len(lengths) > 1:
            raise ShapeError(
                f"components of elements enqueued into {self.name!r} must have one leading size, "
                f"got {sorted(lengths)}"
            )


def _listed(dtypes: Sequence[DType]) -> str:
    return ", ".join(map(str, dtypes))
