"""Queues: how elements come in and go out, and how their users wait."""

from __future__ import annotations

import abc
import sys
import threading
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any, ClassVar

import numpy as np

from headrace import DType, Shape
from headrace.errors import CancelledError, InvalidArgumentError, OutOfRangeError
from headrace.extend.kernels import Cancellation
from headrace_cpu.queues.contents import Contents
from headrace_cpu.queues.elements import Element, Elements, Held
from headrace_cpu.queues.slots import Slots
from headrace_cpu.queues.waiters import Put, Take, Waiter


class Queue(abc.ABC):
    """A queue of elements, each a tuple of arrays, or the number of its place in ``Slots``.

    Whoever finds it full or empty leaves a callback, and is served in the order of arrival. One
    that enqueues many puts in what fits and waits with the rest; one that dequeues many collects
    elements as they come, so that it may want more than the capacity, and gives them back when it
    is cancelled or the queue closes before it has enough. Which element leaves next is for
    subclasses to say, in the methods at the end, which are called under the lock.

    Attributes:
        name: The name in its container.
        capacity: How many elements it holds at most, -1 for any number.
        elements: What its elements are.
    """

    # Whether all that matters to who puts or takes at once is how many there are, and who waits.
    _direct: ClassVar[bool] = True

    def __init__(
        self,
        name: str,
        capacity: int,
        component_types: Sequence[DType],
        shapes: Sequence[Shape],
    ) -> None:
        self.name = name
        self.capacity = capacity
        self.elements = Elements(f"queue {name!r}", component_types, shapes)
        self._puts: deque[Put] = deque()
        self._takes: deque[Take] = deque()
        self._closed = False
        self._lock = threading.Lock()
        # For queues that hand elements on as they are; set before any comes in.
        self._slots: Slots | None = None

    @property
    def dtypes(self) -> tuple[DType, ...]:
        """The dtype of each component; with ``take`` it makes an ``ElementSource`` of a queue."""
        return self.elements.dtypes

    @property
    def size(self) -> int:
        """How many elements it holds."""
        return self._count()

    @property
    def is_closed(self) -> bool:
        """Whether it was closed."""
        return self._closed

    def describe(self) -> str:
        """Return which queue this is and what is in it, for reports of those that wait."""
        room = "" if self.capacity < 0 else f" of at most {self.capacity}"
        return f"queue {self.name!r}, which holds {self.size}{room} elements"

    def held(self, xp: Any, components: Sequence[Any], *, many: bool) -> Held:
        """Return elements as the queue holds them, copied: what is fed belongs to the caller.

        Args:
            xp: The array module.
            components: What ``elements.check`` accepted.
            many: Whether there is an element per row, or one.
        """
        if self._slots is None or xp is not np:
            return (
                self.elements.rows(xp, components) if many else [self.elements.one(xp, components)]
            )
        return self._slots.put(components) if many else self._slots.put_one(components)

    def put(
        self,
        elements: Held,
        done: Callable[[Any], None],
        cancellation: Cancellation | None = None,
    ) -> None:
        """Append elements, one after the other, as there is room.

        Args:
            elements: The elements, as ``held`` returns them.
            done: Called once: with None when all are in, or with an exception.
            cancellation: Ends the waiting; what went in by then stays.
        """
        told: list[Callable[[], None]] = []
        with self._lock:
            # Mostly there is room, and nobody waits for it: no waiter has to be made then.
            idle = self._direct and not (self._closed or self._puts)
            fits = idle and len(elements) <= self._room()
            if fits:
                self._keep(elements)
                if self._takes:
                    told = self._move()
        if fits:
            done(None)
            for tell in told:
                tell()
            return
        put = Put(elements, done)
        with self._lock:
            if self._closed:
                told = [put.settle(CancelledError(f"queue {self.name!r} is closed"))]
                self._discard(elements)
            else:
                self._puts.append(put)
                told = self._move()
        self._tell(told, put, cancellation)

    def take(
        self,
        count: int,
        done: Callable[[Any], None],
        cancellation: Cancellation | None = None,
        *,
        partial: bool = False,
    ) -> None:
        """Take the next ``count`` elements, when there are so many.

        Args:
            count: How many, at least 0.
            done: Called once: with the list of elements, or with an exception.
            cancellation: Ends the waiting; nothing is taken then.
            partial: Take fewer, but at least one, where the queue is closed with fewer.
        """
        if self._slots is None:
            self.collect(count, done, cancellation, partial=partial)
            return

        def answer(result: Any) -> None:
            done(result if isinstance(result, BaseException) else self._shown(result, leave=True))

        self.collect(count, answer, cancellation, partial=partial)

    def collect(
        self,
        count: int,
        done: Callable[[Any], None],
        cancellation: Cancellation | None = None,
        *,
        partial: bool = False,
    ) -> None:
        """Take elements as they are held, for ``join`` or ``arrays``; otherwise as ``take``."""
        told: list[Callable[[], None]] = []
        with self._lock:
            # Mostly there are enough, and nobody waits for them.
            there = self._direct and not self._takes and 0 < count <= self._to_give()
            if there:
                elements = self._choose(count)
                if self._puts:
                    # Nobody waits to take, so that nothing leaves for what comes in.
                    self._move_in(told)
        if there:
            done(elements)
            for tell in told:
                tell()
            return
        take = Take(count, partial, done)
        with self._lock:
            if count:
                self._takes.append(take)
                told = self._move()
            else:
                told = [take.settle([])]
        self._tell(told, take, cancellation)

    def finish(self, *, cancel_pending_enqueues: bool = False) -> None:
        """Take nothing more in; what is in, and what waits to get in, can still be taken.

        Args:
            cancel_pending_enqueues: Fail the enqueues that wait.

        Raises:
            CancelledError: if it is closed already, unless this cancels.
        """
        told: list[Callable[[], None]] = []
        with self._lock:
            if self._closed and not cancel_pending_enqueues:
                raise CancelledError(f"queue {self.name!r} is closed already")
            self._closed = True
            if cancel_pending_enqueues:
                reason = CancelledError(f"queue {self.name!r} was closed")
                told += self._drop(self._puts, reason)
            told += self._move()
        for tell in told:
            tell()

    def reset(self) -> None:
        """Drop all elements, fail all that wait, and open the queue again."""
        self._clear(CancelledError(f"queue {self.name!r} was reset"), closed=False)

    def close(self, reason: BaseException) -> None:
        """Drop all elements, and fail all that wait: the session of the queue has ended.

        Args:
            reason: What those get that wait.
        """
        self._clear(reason, closed=True)

    def contents(self) -> Contents:
        """Return what is in it: what would be, if all that wait were cancelled now."""
        with self._lock:
            held = [*(take.taken for take in self._takes), self._listed()]
            elements = [one for part in held for one in self._shown(part, leave=False)]
            return Contents(elements, self._closed, self._drawn())

    def replace(self, contents: Contents, xp: Any = np) -> None:
        """Hold these elements instead of those that are there, and serve those that wait.

        Args:
            contents: What ``contents`` of such a queue returned.
            xp: The array module.

        Raises:
            HeadraceError: if they are not elements of this queue, or more than it may hold;
                it is as it was then.
        """
        for element in contents.elements:
            self.elements.check(element, many=False)
        if 0 <= self.capacity < len(contents.elements):
            raise InvalidArgumentError(
                f"queue {self.name!r} holds at most {self.capacity} elements; what was saved has "
                f"{len(contents.elements)}"
            )
        held = [self.held(xp, element, many=False) for element in contents.elements]
        with self._lock:
            for take in self._takes:
                self._discard(take.taken)
                take.taken = []
            self._discard(self._listed())
            self._empty()
            self._closed = contents.closed
            self._go_on_drawing(contents.drawn)
            for elements in held:
                self._keep(elements)
            told = self._move()
        for tell in told:
            tell()

    def _clear(self, reason: BaseException, *, closed: bool) -> None:
        with self._lock:
            told = self._fail(reason)
            self._discard(self._listed())
            self._empty()
            self._closed = closed
        for tell in told:
            tell()

    def _fail(self, reason: BaseException) -> list[Callable[[], None]]:
        return [*self._drop(self._puts, reason), *self._drop(self._takes, reason)]

    def _drop(
        self, waiters: deque[Any] | list[Any], reason: BaseException
    ) -> list[Callable[[], None]]:
        told = [waiter.settle(reason) for waiter in waiters]
        for waiter in waiters:
            self._discard(waiter.rest())
        waiters.clear()
        return told

    def _tell(
        self,
        told: Sequence[Callable[[], None]],
        waiter: Waiter,
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

    def _cancel(self, waiter: Waiter, reason: BaseException) -> None:
        with self._lock:
            if waiter.finished():
                return
            self._forget(waiter)
            # Those behind it may go on now.
            told = [waiter.settle(reason), *self._move()]
        for tell in told:
            tell()

    def _forget(self, waiter: Waiter) -> None:
        """Let go of who has not finished, under the lock."""
        if isinstance(waiter, Take):
            self._takes.remove(waiter)
            self._return(waiter.taken)
        elif isinstance(waiter, Put):
            self._puts.remove(waiter)
            self._discard(waiter.rest())

    def _discard(self, elements: Held) -> None:
        """Free the places of elements that are dropped."""
        slots = self._slots_of(elements)
        if slots is not None:
            slots.free(elements)

    def _slots_of(self, elements: Held) -> Slots | None:
        """Return where elements are held, None if they are tuples."""
        return self._slots if isinstance(elements, np.ndarray) else None

    def _shown(self, elements: Held, *, leave: bool) -> list[Element]:
        """Return elements as tuples of arrays; they are taken if they leave."""
        slots = self._slots_of(elements)
        if slots is None:
            return list(elements)
        columns = slots.take(elements) if leave else slots.read(elements)
        return list(zip(*columns, strict=True))

    def _move(self) -> list[Callable[[], None]]:
        """Move elements as far as they go, under the lock; return what tells who has finished."""
        told: list[Callable[[], None]] = []
        moved = True
        while moved:
            moved = self._move_in(told) | self._move_out(told)
        return told

    def _move_in(self, told: list[Callable[[], None]]) -> bool:
        moved = False
        while self._puts:
            put = self._puts[0]
            elements = put.next(self._room())
            if len(elements):
                self._keep(elements)
                moved = True
            if not put.is_done():
                break
            self._puts.popleft()
            told.append(put.settle(None))
            moved = True
        return moved

    def _move_out(self, told: list[Callable[[], None]]) -> bool:
        moved = False
        while self._takes:
            take = self._takes[0]
            count = min(take.wanted - len(take.taken), self._to_give())
            if count > 0:
                take.add(self._choose(count))
                moved = True
            result: Held | OutOfRangeError = take.taken
            if len(take.taken) < take.wanted:
                if not self._closed or self._puts:
                    break
                if not (take.partial and len(take.taken)):
                    result = self._exhausted(take)
                    self._return(take.taken)
            self._takes.popleft()
            told.append(take.settle(result))
            moved = True
        return moved

    def _room(self) -> int:
        return sys.maxsize if self.capacity < 0 else self.capacity - self._count()

    def _exhausted(self, take: Take) -> OutOfRangeError:
        return OutOfRangeError(
            f"queue {self.name!r} is closed and has too few elements: expected {take.wanted}, got "
            f"{len(take.taken)}"
        )

    # -- joining what was taken

    def check_joinable(self) -> None:
        """Refuse to join elements, where they may differ in shape.

        Raises:
            ShapeError: if the shape of a component is not fixed.
        """
        self.elements.check_joinable()

    def join(self, xp: Any, elements: Held) -> Element:
        """Join elements that were collected along a new first axis.

        Args:
            xp: The array module.
            elements: Any number.

        Returns:
            The components, [number, ...].
        """
        slots = self._slots_of(elements)
        if slots is not None:
            return slots.take(elements)
        return self.elements.stack(xp, elements)

    def arrays(self, xp: Any, element: Any) -> Element:
        """Return the components of an element that was collected as arrays."""
        if isinstance(element, tuple) or self._slots is None:
            return self.elements.arrays(xp, element)
        columns = self._slots.take(np.array([element]))
        return tuple([column.reshape(column.shape[1:]) for column in columns])

    # -- what subclasses say

    def _to_give(self) -> int:
        """Return how many elements may leave now."""
        return self._count()

    @abc.abstractmethod
    def _count(self) -> int:
        """Return how many elements there are."""

    @abc.abstractmethod
    def _listed(self) -> Held:
        """Return the elements, in an order in which ``_keep`` may get them again."""

    def _drawn(self) -> Any:
        """Return where it is in its random numbers, as JSON can hold it."""
        return None

    def _go_on_drawing(self, drawn: Any) -> None:
        """Go on with random numbers from where ``_drawn`` was."""
        del drawn

    @abc.abstractmethod
    def _keep(self, elements: Held) -> None:
        """Take elements in, for which there is room."""

    @abc.abstractmethod
    def _choose(self, count: int) -> Held:
        """Remove the elements that leave next, of which there are so many."""

    @abc.abstractmethod
    def _return(self, elements: Held) -> None:
        """Take back elements that left last, as if they never had."""

    @abc.abstractmethod
    def _empty(self) -> None:
        """Drop all elements."""
