"""Barriers: maps whose values come component by component, and leave when they are complete."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import Any, final

import numpy as np

import headrace as hr
from headrace import DType, Shape
from headrace.errors import CancelledError, InvalidInputError, OutOfRangeError, shown
from headrace.extend.kernels import Cancellation
from headrace_cpu.queues import Element, Elements, PriorityQueue

_FIRST = -(2**63)


@final
class Barrier:
    """A map from strings to tuples of arrays, whose values leave when they are complete.

    Complete values wait in a queue, in the order in which their first component came.

    Attributes:
        name: The name in its container.
        elements: What complete values are, with their number and key before them.
    """

    def __init__(
        self, name: str, component_types: Sequence[DType], shapes: Sequence[Shape]
    ) -> None:
        self.name = name
        scalar = Shape([])
        types, forms = [hr.int64, hr.string, *component_types], [scalar, scalar, *shapes]
        self.elements = Elements(f"barrier {name!r}", types, forms)
        self._ready = PriorityQueue(name, -1, types, forms)
        self._incomplete: dict[bytes, list[Any]] = {}
        self._numbers: dict[bytes, int] = {}
        self._next = _FIRST
        self._closed = False
        self._lock = threading.Lock()

    @property
    def ready_size(self) -> int:
        """How many values are complete."""
        return self._ready.size

    @property
    def incomplete_size(self) -> int:
        """How many values lack components."""
        return len(self._incomplete)

    def insert(self, index: int, keys: Sequence[bytes], components: Sequence[Any]) -> None:
        """Set a component of the values of some keys; all of them, or none.

        Args:
            index: Which component.
            keys: The keys.
            components: The component of each.

        Raises:
            CancelledError: if the barrier is closed, and a key is new.
            InvalidInputError: if a value has the component already.
        """
        with self._lock:
            self._check(index, keys)
            complete: list[Element] = []
            new = False
            for key, component in zip(keys, components, strict=True):
                if key not in self._incomplete:
                    new = True
                    self._incomplete[key] = [None] * (len(self.elements.dtypes) - 2)
                    self._numbers[key] = self._next
                value = self._incomplete[key]
                value[index] = component
                if not any(part is None for part in value):
                    del self._incomplete[key]
                    complete.append((np.int64(self._numbers.pop(key)), key, *value))
            self._next += new
            self._ready.put(complete, _unlimited)
            self._finish()

    def _check(self, index: int, keys: Sequence[bytes]) -> None:
        seen: set[bytes] = set()
        for key in keys:
            value = self._incomplete.get(key)
            if key in seen or (value is not None and value[index] is not None):
                raise InvalidInputError(
                    f"the key {key!r} has component {index} already in barrier {self.name!r}"
                )
            seen.add(key)
            if self._closed and value is None:
                raise CancelledError(
                    f"barrier {self.name!r} is closed and takes no new key, got {shown(key)}"
                )

    def take(
        self,
        count: int,
        done: Callable[[Any], None],
        cancellation: Cancellation | None,
        *,
        partial: bool,
    ) -> None:
        """Take complete values; arguments as for ``Queue.take``.

        A closed barrier gives what is complete where ``partial`` allows that, and waits only for
        values that can still be completed.
        """
        with self._lock:
            if self._closed:
                asked, there = count, self.ready_size
                if partial:
                    count = min(count, there)
                else:
                    there += self.incomplete_size
                if there < max(count, 1):
                    done(
                        OutOfRangeError(
                            f"barrier {self.name!r} is closed and has too few values: expected "
                            f"{asked}, got {there}"
                        )
                    )
                    return
            self._ready.take(count, done, cancellation, partial=partial)

    def finish(self, *, cancel_pending_enqueues: bool) -> None:
        """Take no more keys.

        Args:
            cancel_pending_enqueues: Drop values that lack components; else they may be completed.

        Raises:
            CancelledError: if the barrier is closed already, unless this cancels.
        """
        with self._lock:
            if self._closed and not cancel_pending_enqueues:
                raise CancelledError(f"barrier {self.name!r} is closed already")
            self._closed = True
            if cancel_pending_enqueues:
                self._incomplete.clear()
                self._numbers.clear()
            self._finish()

    def _finish(self) -> None:
        """Close the queue once nothing can come any more."""
        if self._closed and not self._incomplete and not self._ready.is_closed:
            self._ready.finish()

    def describe(self) -> str:
        """Return which barrier this is and what is in it, for reports of those that wait."""
        return (
            f"barrier {self.name!r}, which has {self.ready_size} complete values and "
            f"{self.incomplete_size} others"
        )

    def reset(self) -> None:
        """Drop all values, fail all that wait, and open the barrier again."""
        with self._lock:
            self._incomplete.clear()
            self._numbers.clear()
            self._next = _FIRST
            self._closed = False
            self._ready.reset()

    def close(self, reason: BaseException) -> None:
        """Fail all that wait: the session has ended; the argument as for ``Queue.close``."""
        self._ready.close(reason)


def _unlimited(result: Any) -> None:
    """Take note that values are in a queue that has room for any number."""
    if isinstance(result, BaseException):
        raise result
