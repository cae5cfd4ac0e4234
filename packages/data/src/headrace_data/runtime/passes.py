"""Passes: where in a pipeline a stream stands, and what outlives single streams of an iterator.

A stream that repeats another opens it again and again. What must not start anew then, such as the
number of shuffles so far or a cache, is kept in the iterator's ``Memory``, under the place in the
pipeline. Data sets that functions make for elements (as for ``flat_map``) get a memory and a
lineage of their own: the numbers of the elements they were made for.
"""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Callable
from typing import Any, Protocol, TypeVar, final

from headrace.extend.state import entropy
from headrace_data.runtime.threads import Lifetime

_WORD = 1 << 63


class Cell(Protocol):
    """Something that outlives streams, and is saved with them."""

    def save(self) -> Any:
        """Return what to restore."""

    def restore(self, state: Any) -> None:
        """Become what was saved."""


C = TypeVar("C", bound=Cell)


@final
class Memory:
    """What outlives the streams of one iterator, by its place in the pipeline.

    Attributes:
        root: The key from which all those follow that no seeds give.
    """

    def __init__(self, root: tuple[int, int] | None = None) -> None:
        self.root = root if root is not None else (entropy(), entropy())
        self._cells: dict[str, Cell] = {}
        self._saved: dict[str, Any] = {}
        self._lock = threading.Lock()

    def cell(self, place: str, make: Callable[[], C]) -> C:
        """Return what is kept for a place, made when first asked for."""
        with self._lock:
            known = self._cells.get(place)
            if known is None:
                known = self._cells[place] = make()
                if place in self._saved:
                    known.restore(self._saved.pop(place))
            return known  # type: ignore[return-value]

    def save(self) -> dict[str, Any]:
        """Return what to restore."""
        with self._lock:
            cells = {**self._saved, **{place: c.save() for place, c in self._cells.items()}}
            return {"root": list(self.root), "cells": cells}

    def restore(self, state: dict[str, Any]) -> None:
        """Become what was saved, before the streams do: for those that are there, and that come."""
        with self._lock:
            self.root = (state["root"][0], state["root"][1])
            self._saved = dict(state["cells"])
            for place in list(self._saved):
                if place in self._cells:
                    self._cells[place].restore(self._saved.pop(place))


@final
class Pass:
    """Where a stream stands.

    Attributes:
        memory: What outlives it.
        lifetime: Cancelled when the iterator ends.
        place: Where it stands in the pipeline.
        lineage: For which elements the data set was made, outermost first.
        any_order: Whether elements that are computed at once may come in the order in which they
            are ready.
    """

    __slots__ = ("any_order", "lifetime", "lineage", "memory", "place")

    def __init__(
        self,
        lifetime: Lifetime,
        memory: Memory | None = None,
        place: str = "",
        lineage: tuple[int, ...] = (),
        any_order: bool = False,
    ) -> None:
        self.any_order = any_order
        self.lifetime = lifetime
        self.memory = memory if memory is not None else Memory()
        self.place = place
        self.lineage = lineage

    def part(self, index: int) -> Pass:
        """Return the place of a source."""
        place = f"{self.place}/{index}"
        return Pass(self.lifetime, self.memory, place, self.lineage, self.any_order)

    def unordered(self) -> Pass:
        """Return the same place, in a pipeline whose elements may come in any order."""
        return Pass(self.lifetime, self.memory, self.place, self.lineage, True)

    def inner(self, number: int) -> Pass:
        """Return the pass of a data set that was made for the element ``number`` of a place."""
        memory = Memory(derived(self.memory.root, self.place, number))
        return Pass(self.lifetime, memory, "", (*self.lineage, number), self.any_order)

    def key(self, name: str, seeds: tuple[int, int] | None) -> tuple[int, int]:
        """Return the key of a stream of random numbers.

        Args:
            name: What draws, at this place.
            seeds: Its seeds; None for a key that is different in each iterator. Data sets that are
                made for elements draw other numbers for each of them.
        """
        if seeds is None:
            return derived(self.memory.root, self.place, name)
        return derived(seeds, *self.lineage)

    def cell(self, make: Callable[[], C], name: str = "") -> C:
        """Return what is kept for this place, made when first asked for."""
        return self.memory.cell(f"{self.place}:{name}", make)


@final
class Counter:
    """A number that outlives streams."""

    __slots__ = ("value",)

    def __init__(self) -> None:
        self.value = 0

    def advance(self) -> int:
        """Return the number, and count on."""
        self.value += 1
        return self.value - 1

    def save(self) -> int:
        """Return the number."""
        return self.value

    def restore(self, state: int) -> None:
        """Become a number that was saved."""
        self.value = state


def derived(key: tuple[int, int], *parts: int | str) -> tuple[int, int]:
    """Return a key that depends on another one and on what follows; the key itself without any."""
    if not parts:
        return key
    text = repr((*key, *parts))
    digest = hashlib.blake2b(text.encode(), digest_size=16).digest()
    return (
        int.from_bytes(digest[:8], "little") % _WORD,
        int.from_bytes(digest[8:], "little") % _WORD,
    )
