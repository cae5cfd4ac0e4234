"""``concatenate``, ``zip`` and ``repeat``: several data sets as one."""

from __future__ import annotations

from typing import Any

import headrace as hr
from headrace.errors import DTypeError
from headrace_data import structure
from headrace_data.build import make, scalar
from headrace_data.runtime.passes import Pass
from headrace_data.runtime.stream import (
    INFINITE,
    UNKNOWN,
    DatasetValue,
    Element,
    State,
    Stream,
    count_of,
    stream,
)
from headrace_data.structure import Described


def concatenate(dataset: Described, other: Described) -> Described:
    """Return a data set of the elements of two."""
    if not isinstance(other, Described):
        raise DTypeError(f"concatenate takes a data set, got {type(other).__name__}")
    element = structure.common(dataset.spec, other.spec, "concatenate")
    return make("concatenate", element, sources=[dataset, other])


def zip_(datasets: Any) -> Described:
    """Return a data set of tuples of the elements of several."""
    if isinstance(datasets, list):
        raise DTypeError(
            "The argument to `Dataset.zip()` must be a nested structure of `Dataset` objects: a "
            "tuple or dict. A list is none; pass a tuple"
        )
    found = structure.leaves(datasets)
    for item in found:
        if not isinstance(item, Described):
            raise DTypeError(
                "The argument to `Dataset.zip()` must be a nested structure of `Dataset` objects, "
                f"got {type(item).__name__}"
            )
    element = structure.map_structure(lambda d: d.spec, datasets)
    return make("zip", element, sources=found)


def repeat(dataset: Described, count: Any) -> Described:
    """Return a data set of the elements again and again."""
    count = scalar(-1 if count is None else count, hr.int64, "count")
    return make("repeat", dataset.spec, sources=[dataset], arguments=[count])


@stream("concatenate")
class ConcatenateStream(Stream):
    """The elements of two data sets, one after the other."""

    def __init__(self, value: DatasetValue, run: Pass) -> None:
        super().__init__(value, run)
        self._which = 0
        self._current = value.sources[0].open(run.part(0))

    @classmethod
    def count(cls, value: DatasetValue) -> int:
        """Return how many there are together."""
        counts = [count_of(source) for source in value.sources]
        if INFINITE in counts:
            return INFINITE
        return UNKNOWN if UNKNOWN in counts else sum(counts)

    def next(self) -> Element | None:
        """Return the next element."""
        while True:
            element = self._current.next()
            if element is not None or self._which:
                return element
            self._enter(1)

    def _enter(self, which: int) -> None:
        self._current.close()
        self._which = which
        self._current = self.value.sources[which].open(self.run.part(which))

    def save(self) -> State:
        """Return which data set it is at, and where there."""
        return [self._which, self._current.save()]

    def restore(self, state: State) -> None:
        """Go there."""
        which, inner = state
        if which:
            self._enter(which)
        self._current.restore(inner)

    def close(self) -> None:
        """Close the data set that it is at."""
        self._current.close()


@stream("zip")
class ZipStream(Stream):
    """Tuples of the elements of several data sets, as long as all have some."""

    def __init__(self, value: DatasetValue, run: Pass) -> None:
        super().__init__(value, run)
        self._parts = [source.open(run.part(i)) for i, source in enumerate(value.sources)]
        self._ended = False

    @classmethod
    def count(cls, value: DatasetValue) -> int:
        """Return how many the shortest has."""
        counts = [count_of(source) for source in value.sources]
        if UNKNOWN in counts:
            return UNKNOWN
        return min((c for c in counts if c != INFINITE), default=INFINITE)

    def next(self) -> Element | None:
        """Return the next tuple."""
        if self._ended:
            return None
        found: list[Any] = []
        for part in self._parts:
            element = part.next()
            if element is None:
                self._ended = True
                # What the others hold, such as files, is free for others.
                self.close()
                return None
            found.extend(element)
        return tuple(found)

    def save(self) -> State:
        """Return where each stands, as long as there are elements."""
        parts = None if self._ended else [part.save() for part in self._parts]
        return [self._ended, parts]

    def restore(self, state: State) -> None:
        """Bring each to where it stood."""
        self._ended, inner = state
        if self._ended:
            self.close()
            return
        for part, saved in zip(self._parts, inner, strict=True):
            part.restore(saved)

    def close(self) -> None:
        """Close all."""
        parts, self._parts = self._parts, []
        for part in parts:
            part.close()


@stream("repeat")
class RepeatStream(Stream):
    """The elements of a data set again and again."""

    def __init__(self, value: DatasetValue, run: Pass) -> None:
        super().__init__(value, run)
        self._left = value.scalar(0)
        self._current: Stream | None = None
        self._empty = True

    @classmethod
    def count(cls, value: DatasetValue) -> int:
        """Return how many there are in all."""
        times, there = value.scalar(0), count_of(value.sources[0])
        if times == 0 or there == 0:
            return 0
        if times < 0:
            return INFINITE
        return there if there < 0 else int(times * there)

    def next(self) -> Element | None:
        """Return the next element."""
        while self._left:
            if self._current is None:
                self._current = self.value.sources[0].open(self.run.part(0))
                self._empty = True
            element = self._current.next()
            if element is not None:
                self._empty = False
                return element
            self._current.close()
            self._current = None
            # Nothing, endlessly often, is nothing.
            self._left = 0 if self._empty and self._left < 0 else self._left - 1
        return None

    def save(self) -> State:
        """Return how often is left, and where in the data set it is."""
        current = self._current
        return [self._left, self._empty, None if current is None else [current.save()]]

    def restore(self, state: State) -> None:
        """Go there."""
        self._left, self._empty, inner = state
        if inner is not None:
            self._current = self.value.sources[0].open(self.run.part(0))
            self._current.restore(inner[0])

    def close(self) -> None:
        """Close the data set."""
        if self._current is not None:
            self._current.close()
