"""``take``, ``skip``, ``shard``, ``filter`` and ``take_while``: some of the elements."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import headrace as hr
from headrace.errors import (
    AttributeValueError,
    InvalidArgumentError,
    ShapeError,
)
from headrace_data import structure
from headrace_data.build import Traced, arguments_of, make, scalar, static, trace
from headrace_data.runtime.calls import CountedCalls
from headrace_data.runtime.passes import Pass
from headrace_data.runtime.stream import (
    INFINITE,
    UNKNOWN,
    DatasetValue,
    Element,
    OneSource,
    State,
    count_of,
    stream,
)
from headrace_data.structure import Described


def take(dataset: Described, count: Any) -> Described:
    """Return a data set of the first elements."""
    count = scalar(count, hr.int64, "count")
    return make("take", dataset.spec, sources=[dataset], arguments=[count])


def skip(dataset: Described, count: Any) -> Described:
    """Return a data set of all but the first elements."""
    count = scalar(count, hr.int64, "count")
    return make("skip", dataset.spec, sources=[dataset], arguments=[count])


def shard(dataset: Described, num_shards: Any, index: Any) -> Described:
    """Return a data set of every ``num_shards``-th element."""
    shards, which = scalar(num_shards, hr.int64, "num_shards"), scalar(index, hr.int64, "index")
    _check_shard(static(shards), static(which))
    return make("shard", dataset.spec, sources=[dataset], arguments=[shards, which])


def _check_shard(shards: int | None, index: int | None) -> None:
    if shards is not None and shards < 1:
        raise InvalidArgumentError(f"shard: num_shards must be >= 1, got {shards}")
    if index is not None and (index < 0 or (shards is not None and index >= shards)):
        raise InvalidArgumentError(
            f"shard: index must be at least 0 and below num_shards ({shards}), got {index}"
        )


def filter_(dataset: Described, predicate: Callable[..., Any]) -> Described:
    """Return a data set of the elements for which a function says True."""
    chosen = _predicate(dataset, predicate, "filter")
    return make("filter", dataset.spec, sources=[dataset], functions={"function": chosen})


def take_while(dataset: Described, predicate: Callable[..., Any]) -> Described:
    """Return a data set of the elements before the first for which a function says False."""
    chosen = _predicate(dataset, predicate, "take_while")
    return make("take_while", dataset.spec, sources=[dataset], functions={"function": chosen})


def _told(element: Any) -> str:
    """Return what a function returns, for messages."""
    if isinstance(element, structure.TensorComponent):
        return f"{element.dtype.name}{element.shape}"
    return structure.describe(element)


def _predicate(dataset: Described, predicate: Callable[..., Any], what: str) -> Traced:
    chosen = trace(predicate, arguments_of(dataset.spec), what)
    found = chosen.element
    if not isinstance(found, structure.TensorComponent) or found.dtype != hr.bool:
        raise AttributeValueError(
            f"the function of {what} must return a bool scalar, got "
            f"{_told(found)}; compare elements, as in lambda x: x > 0"
        )
    if not found.shape.is_compatible_with([]):
        raise ShapeError(f"the function of {what} must return a scalar, got shape {found.shape}")
    return chosen


@stream("take")
class TakeStream(OneSource):
    """The first elements."""

    def __init__(self, value: DatasetValue, run: Pass) -> None:
        super().__init__(value, run)
        self._left = value.scalar(0)
        self._closed = False

    @classmethod
    def count(cls, value: DatasetValue) -> int:
        """Return how many are taken."""
        wanted, there = value.scalar(0), count_of(value.sources[0])
        if wanted < 0:
            return there
        if there == INFINITE:
            return int(wanted)
        return there if there == UNKNOWN and wanted else int(min(wanted, there))

    def next(self) -> Element | None:
        """Return the next element, None after as many as wanted."""
        if self._left == 0:
            self._end()
            return None
        element = self.source.next()
        if element is not None:
            # A negative number takes all.
            self._left -= 1
        return element

    def _end(self) -> None:
        """Let go what the source holds, such as files and generators."""
        if not self._closed:
            self._closed = True
            self.source.close()

    def save(self) -> State:
        """Return how many are left, and where the source stands as long as it is needed."""
        return [self._left, None if self._closed else self.source.save()]

    def restore(self, state: State) -> None:
        """Have as many left."""
        self._left, inner = state
        if inner is None and self._left == 0:
            self._end()
        else:
            self.source.restore(inner)

    def close(self) -> None:
        """Close the source."""
        self._end()


@stream("skip")
class SkipStream(OneSource):
    """All but the first elements."""

    def __init__(self, value: DatasetValue, run: Pass) -> None:
        super().__init__(value, run)
        self._left = value.scalar(0)

    @classmethod
    def count(cls, value: DatasetValue) -> int:
        """Return how many are left."""
        skipped, there = value.scalar(0), count_of(value.sources[0])
        if skipped < 0:
            return 0
        return there if there < 0 else max(0, there - int(skipped))

    def next(self) -> Element | None:
        """Return the next element after those that are skipped."""
        if self._left < 0:
            # As TensorFlow: a negative number skips all.
            return None
        while self._left > 0:
            if self.source.next() is None:
                return None
            self._left -= 1
        return self.source.next()

    def save(self) -> State:
        """Return how many are still to be skipped."""
        return [self._left, self.source.save()]

    def restore(self, state: State) -> None:
        """Have as many to skip."""
        self._left, inner = state
        self.source.restore(inner)


@stream("shard")
class ShardStream(OneSource):
    """Every n-th element."""

    def __init__(self, value: DatasetValue, run: Pass) -> None:
        super().__init__(value, run)
        self._shards, self._index = value.scalar(0), value.scalar(1)
        self._at = 0

    @classmethod
    def check(cls, value: DatasetValue) -> None:
        """Refuse a shard that is not there."""
        _check_shard(value.scalar(0), value.scalar(1))

    @classmethod
    def count(cls, value: DatasetValue) -> int:
        """Return the size of the shard."""
        there = count_of(value.sources[0])
        return there if there < 0 else len(range(value.scalar(1), there, value.scalar(0)))

    def next(self) -> Element | None:
        """Return the next element of the shard."""
        while True:
            element = self.source.next()
            if element is None:
                return None
            mine = self._at % self._shards == self._index
            self._at += 1
            if mine:
                return element

    def save(self) -> State:
        """Return how many elements went by."""
        return [self._at, self.source.save()]

    def restore(self, state: State) -> None:
        """Have as many gone by."""
        self._at, inner = state
        self.source.restore(inner)


@stream("filter")
class FilterStream(OneSource):
    """The elements for which a function says True."""

    def __init__(self, value: DatasetValue, run: Pass) -> None:
        super().__init__(value, run)
        self._calls = CountedCalls(value.function, run)

    def next(self) -> Element | None:
        """Return the next of them."""
        while True:
            element = self.source.next()
            if element is None or truth(self._calls(element)[0], "filter"):
                return element


@stream("take_while")
class TakeWhileStream(OneSource):
    """The elements before the first for which a function says False."""

    def __init__(self, value: DatasetValue, run: Pass) -> None:
        super().__init__(value, run)
        self._calls = CountedCalls(value.function, run)
        self._ended = False

    def next(self) -> Element | None:
        """Return the next of them."""
        if self._ended:
            return None
        element = self.source.next()
        if element is None or not truth(self._calls(element)[0], "take_while"):
            self._ended = True
            return None
        return element

    def save(self) -> State:
        """Return whether the first was found."""
        return [self._ended, self.source.save()]

    def restore(self, state: State) -> None:
        """Have it found, or not."""
        self._ended, inner = state
        self.source.restore(inner)


def truth(value: Any, what: str) -> bool:
    """Return what a function that chooses elements says."""
    if np.shape(value) != ():
        raise InvalidArgumentError(
            f"the function of {what} must return a scalar, got shape {list(np.shape(value))}"
        )
    return bool(value)
