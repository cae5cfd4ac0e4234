"""Buffers that are limited by number and by bytes, and may be looked into."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, final

from headrace import DType, Shape
from headrace.errors import ResourceExhaustedError
from headrace.extend.kernels import Cancellation
from headrace_cpu.queues.elements import Element
from headrace_cpu.queues.oldest_first import OldestFirst
from headrace_cpu.queues.waiters import Waiter


@final
class _Peek(Waiter):
    """A look at an element that is not there yet."""

    __slots__ = ("index",)

    def __init__(self, index: int, answer: Callable[[Any], None]) -> None:
        super().__init__(answer)
        self.index = index


@final
class StagingArea(OldestFirst):
    """A first-in, first-out buffer whose elements have a limited number of bytes together."""

    # Others look at what comes in and stays, and room is a matter of bytes.
    _direct = False

    def __init__(
        self,
        name: str,
        capacity: int,
        memory_limit: int,
        component_types: Sequence[DType],
        shapes: Sequence[Shape],
    ) -> None:
        super().__init__(name, capacity or -1, component_types, shapes)
        self.elements.label = f"staging area {name!r}"
        self.memory_limit = memory_limit
        self._bytes = 0
        self._peeks: list[_Peek] = []

    def describe(self) -> str:
        """Return which area this is and what is in it, as ``Queue.describe`` does."""
        return f"staging area {self.name!r}, which holds {self.size} elements"

    def put(
        self,
        elements: Sequence[Element],
        done: Callable[[Any], None],
        cancellation: Cancellation | None = None,
    ) -> None:
        """Append elements; arguments as for ``Queue.put``.

        Raises:
            ResourceExhaustedError: if one has more bytes than the area may ever hold.
        """
        largest = max(map(_bytes_of, elements), default=0)
        if self.memory_limit and largest > self.memory_limit:
            raise ResourceExhaustedError(
                f"an element of {largest} bytes has no room in staging area {self.name!r}, which "
                f"holds at most {self.memory_limit} bytes"
            )
        super().put(elements, done, cancellation)

    def peek(
        self, index: int, done: Callable[[Any], None], cancellation: Cancellation | None = None
    ) -> None:
        """Look at an element, which stays.

        Args:
            index: Which one, 0 for the oldest.
            done: Called once: with the element, when there is one, or with an exception.
            cancellation: Ends the waiting.
        """
        peek = _Peek(index, done)
        with self._lock:
            self._peeks.append(peek)
            told = self._move()
        self._tell(told, peek, cancellation)

    def clear(self) -> None:
        """Drop all elements; those that wait for room come in."""
        with self._lock:
            self._empty()
            told = self._move()
        for tell in told:
            tell()

    def _move(self) -> list[Callable[[], None]]:
        # Elements are seen before they are taken by others that wait.
        told = self._seen()
        return [*told, *super()._move(), *self._seen()]

    def _seen(self) -> list[Callable[[], None]]:
        there = [peek for peek in self._peeks if peek.index < len(self._elements)]
        for peek in there:
            self._peeks.remove(peek)
        return [peek.settle(self._elements[peek.index]) for peek in there]

    def _forget(self, waiter: Waiter) -> None:
        if isinstance(waiter, _Peek):
            self._peeks.remove(waiter)
        else:
            super()._forget(waiter)

    def _fail(self, reason: BaseException) -> list[Callable[[], None]]:
        return [*super()._fail(reason), *self._drop(self._peeks, reason)]

    def _room(self) -> int:
        room = super()._room()
        if not self.memory_limit or room <= 0:
            return room
        # One after the other: each may be of another size.
        return int(self._bytes + _bytes_of(self._puts[0].head()) <= self.memory_limit)

    def _keep(self, elements: Sequence[Element]) -> None:
        super()._keep(elements)
        self._bytes += sum(map(_bytes_of, elements))

    def _choose(self, count: int) -> list[Element]:
        elements: list[Element] = super()._choose(count)
        self._bytes -= sum(map(_bytes_of, elements))
        return elements

    def _return(self, elements: Sequence[Element]) -> None:
        super()._return(elements)
        self._bytes += sum(map(_bytes_of, elements))

    def _empty(self) -> None:
        super()._empty()
        self._bytes = 0


def _bytes_of(element: Element) -> int:
    # Strings of NumPy's are bytes.
    return sum(len(part) if isinstance(part, bytes) else part.nbytes for part in element)
