"""``flat_map`` and ``interleave``: data sets that functions make for elements, as one."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from typing import Any

import headrace as hr
from headrace.errors import InvalidArgumentError
from headrace_data.build import arguments_of, make, scalar, static, trace
from headrace_data.runtime.calls import CountedCalls
from headrace_data.runtime.passes import Counter, Pass
from headrace_data.runtime.stream import DatasetValue, Element, OneSource, State, Stream, stream
from headrace_data.structure import Described
from headrace_data.transformations.prefetching import Prefetcher

# Stands in the place of a data set that could not be made.
_FAILED = "failed"
# How many elements of each data set are taken ahead where they are interleaved in parallel.
_AHEAD = 16


def flat_map(dataset: Described, map_func: Callable[..., Any]) -> Described:
    """Return a data set of the elements of the data sets that a function makes."""
    traced = trace(map_func, arguments_of(dataset.spec), "flat_map", returns="dataset")
    return make(
        "flat_map",
        traced.element.element_spec,
        sources=[dataset],
        functions={"function": traced},
    )


def interleave(
    dataset: Described,
    map_func: Callable[..., Any],
    cycle_length: Any,
    block_length: Any,
    num_parallel_calls: Any,
    sloppy: Any = False,
) -> Described:
    """Return a data set of the elements of data sets that a function makes, in turns.

    Args:
        dataset: The elements.
        map_func: The function.
        cycle_length: [], how many data sets take turns.
        block_length: [], how many elements each gives in its turn.
        num_parallel_calls: [], how many threads take elements ahead; none if None.
        sloppy: [], bool, whether the elements may come in the order in which they are ready.
    """
    traced = trace(map_func, arguments_of(dataset.spec), "interleave", returns="dataset")
    cycle = scalar(cycle_length, hr.int64, "cycle_length")
    block = scalar(block_length, hr.int64, "block_length")
    calls = scalar(
        0 if num_parallel_calls is None else num_parallel_calls, hr.int64, "num_parallel_calls"
    )
    any_order = [] if sloppy is False else [scalar(sloppy, hr.bool, "sloppy")]
    given = static(calls)
    _check(static(cycle), static(block), given if num_parallel_calls is not None else None)
    return make(
        "interleave",
        traced.element.element_spec,
        sources=[dataset],
        arguments=[cycle, block, calls, *any_order],
        functions={"function": traced},
    )


def _check(cycle: int | None, block: int | None, calls: int | None) -> None:
    if cycle is not None and cycle < 1 and cycle != -1:
        raise InvalidArgumentError(f"interleave: cycle_length must be > 0, got {cycle}")
    if block is not None and block < 1:
        raise InvalidArgumentError(f"interleave: block_length must be > 0, got {block}")
    if calls is not None and calls < 1 and calls != -1:
        raise InvalidArgumentError(
            f"interleave: num_parallel_calls must be > 0, or AUTOTUNE (-1), got {calls}"
        )


class Inner:
    """A data set that a function made for an element, and the stream over it.

    Attributes:
        stream: The stream.
    """

    def __init__(
        self,
        element: Element,
        number: int,
        calls: CountedCalls,
        outer: Pass,
        memory: State = None,
    ) -> None:
        """Make the data set.

        Args:
            element: The element.
            number: Which element it is, over all passes; also the number of the call.
            calls: Makes it.
            outer: The pass of the stream that asks.
            memory: What outlived its streams, where it is made again.

        Raises:
            HeadraceError: if an argument is one that its kind does not take.
        """
        self._element = element
        self._number = number
        self._run = outer.inner(number)
        if memory is not None:
            self._run.memory.restore(memory)
        (made,) = calls.numbered(element, number)
        made.check()
        self.stream: Any = made.open(self._run)

    def save(self) -> State:
        """Return where it stands."""
        stands = self.stream.save()
        return [list(self._element), self._number, stands, self._run.memory.save()]

    def restore(self, state: State) -> None:
        """Go where it stood."""
        self.stream.restore(state[2])


class Nested(OneSource):
    """A stream over data sets that a function makes for elements."""

    def __init__(self, value: DatasetValue, run: Pass) -> None:
        super().__init__(value, run)
        self._calls = CountedCalls(value.function, run)
        self._numbers = run.cell(Counter, "made")

    def _begin(self, element: Element) -> Inner:
        return Inner(element, self._numbers.advance(), self._calls, self.run)

    def _resume(self, state: State) -> Inner:
        return Inner(tuple(state[0]), state[1], self._calls, self.run, state[3])


@stream("flat_map")
class FlatMapStream(Nested):
    """The elements of the data sets, one data set after the other."""

    def __init__(self, value: DatasetValue, run: Pass) -> None:
        super().__init__(value, run)
        self._current: Inner | None = None

    def next(self) -> Element | None:
        """Return the next element."""
        while True:
            if self._current is None:
                element = self.source.next()
                if element is None:
                    return None
                self._current = self._begin(element)
            found: Element | None = self._current.stream.next()
            if found is not None:
                return found
            self._current.stream.close()
            self._current = None

    def save(self) -> State:
        """Return where the source stands, and where the data set does that it is at."""
        current = self._current
        return [None if current is None else current.save(), self.source.save()]

    def restore(self, state: State) -> None:
        """Go there."""
        current, outer = state
        self.source.restore(outer)
        if current is not None:
            self._current = self._resume(current)
            self._current.restore(current)

    def close(self) -> None:
        """Close the data set that it is at."""
        if self._current is not None:
            self._current.stream.close()
        self.source.close()


class Limited(Stream):
    """A stream from which no more than a number of threads take at once, with those beside it."""

    def __init__(self, source: Stream, limit: threading.Semaphore) -> None:
        self._source = source
        self._limit = limit

    def next(self) -> Element | None:
        """Return the next element."""
        with self._limit:
            return self._source.next()

    def save(self) -> State:
        """Return where it stands."""
        return self._source.save()

    def restore(self, state: State) -> None:
        """Go there."""
        self._source.restore(state)

    def close(self) -> None:
        """Close the stream."""
        self._source.close()


@stream("interleave")
class InterleaveStream(Nested):
    """The elements of several data sets in turns, a block of each.

    In parallel, the elements of each data set are taken ahead by a thread. Their order is the same,
    unless the pass or the data set allows any: then a turn goes to the next data set that has an
    element ready, and a thread takes the elements for which data sets are made, too. What was
    taken ahead is part of the position, so that in either order exactly what was not delivered is
    left.
    """

    def __init__(self, value: DatasetValue, run: Pass) -> None:
        super().__init__(value, run)
        cycle, self._block, calls = (value.scalar(i) for i in range(3))
        sloppy = len(value.arguments) > 3 and value.scalar(3)
        self._cycle = cycle if cycle > 0 else len(os.sched_getaffinity(0))
        self._limit = None
        if calls:
            self._limit = threading.Semaphore(calls if calls > 0 else self._cycle)
        # Where any order is allowed, what is notified when there is something to take.
        self._changed = threading.Condition() if calls and (sloppy or run.any_order) else None
        self._outer: Any = self.source
        if self._changed is not None:
            self._outer = Prefetcher(self.source, self._cycle, run, self._changed)
        self._places: list[Any] = [None] * self._cycle
        self._at = 0
        self._taken = 0
        self._ended = False
        self._begun = False

    @classmethod
    def check(cls, value: DatasetValue) -> None:
        """Refuse cycles and blocks without elements."""
        _check(value.scalar(0), value.scalar(1), value.scalar(2) or None)

    def _ahead(self, inner: Inner) -> Inner:
        if self._limit is not None:
            limited = Limited(inner.stream, self._limit)
            inner.stream = Prefetcher(limited, _AHEAD, self.run, self._changed)
        return inner

    def next(self) -> Element | None:
        """Return the next element."""
        if self._changed is not None:
            return self._next_ready(self._changed)
        while True:
            current = self._places[self._at]
            if current is _FAILED:
                self._places[self._at] = None
                self._advance()
            elif current is not None:
                found = self._take(current)
                if found is not None:
                    return found
            elif not self._ended:
                self._fill(self._at)
            elif any(place is not None for place in self._places):
                self._advance()
            else:
                return None

    def _take(self, current: Inner) -> Element | None:
        """Return the next element of the data set whose turn it is, None where it has ended."""
        found: Element | None = current.stream.next()
        if found is not None:
            self._taken += 1
            if self._taken == self._block:
                self._advance()
            return found
        current.stream.close()
        self._places[self._at] = None
        self._advance()
        return None

    def _next_ready(self, changed: threading.Condition) -> Element | None:
        """Return the next element that is ready, waiting for one."""
        if not self._begun:
            self._begun = True
            for ahead in [self._outer, *(p.stream for p in self._places if isinstance(p, Inner))]:
                ahead.start()
        while True:
            with changed:
                while (turn := self._turn()) is None:
                    changed.wait()
            if turn == self._cycle:
                return None
            if not isinstance(self._places[turn], Inner):
                self._fill(turn)
                continue
            if turn != self._at:
                self._at, self._taken = turn, 0
            found = self._take(self._places[turn])
            if found is not None:
                return found

    def _turn(self) -> int | None:
        """Return the place at which there is something to do, None to wait for one.

        A place that stands empty comes first, so that its data set begins; the number of places
        stands for the end.
        """
        order = [(self._at + i) % self._cycle for i in range(self._cycle)]
        full = [at for at in order if isinstance(self._places[at], Inner)]
        if self._ended and not full:
            return self._cycle
        if not self._ended and self._outer.ready and len(full) < self._cycle:
            return next(at for at in order if at not in full)
        return next((at for at in full if self._places[at].stream.ready), None)

    def _fill(self, at: int) -> None:
        """Start the data set for the next element in a place that is empty.

        Raises:
            Exception: what failed. It counts as a data set that has nothing more.
        """
        try:
            element = self._outer.next()
            if element is None:
                self._ended = True
            else:
                inner = self._ahead(self._begin(element))
                self._places[at] = inner
                if self._changed is not None:
                    inner.stream.start()
        except Exception:
            self._places[at] = _FAILED
            if at == self._at:
                self._advance()
            raise

    def _advance(self) -> None:
        self._at = (self._at + 1) % self._cycle
        self._taken = 0

    def save(self) -> State:
        """Return where the source stands, and where each of the data sets does."""
        places = [place.save() if isinstance(place, Inner) else place for place in self._places]
        ahead = self._outer is not self.source
        return [self._at, self._taken, self._ended, places, self._outer.save(), ahead]

    def restore(self, state: State) -> None:
        """Go there."""
        self._at, self._taken, self._ended, places, outer, *ahead = state
        if self._changed is not None and not any(ahead):
            outer = [[], self._ended, outer]
        elif self._changed is None and any(ahead):
            # What was taken ahead of elements comes first.
            self._outer = Prefetcher(self.source, self._cycle, self.run)
        self._outer.restore(outer)
        for i, saved in enumerate(places):
            if saved == _FAILED:
                self._places[i] = _FAILED
            elif saved is not None:
                inner = self._ahead(self._resume(saved))
                inner.restore(saved)
                self._places[i] = inner

    def close(self) -> None:
        """Close all data sets."""
        for place in self._places:
            if isinstance(place, Inner):
                place.stream.close()
        self._outer.close()
