"""``map``: one call of a function for each element, in order, or several at once."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any, final

import headrace as hr
from headrace.errors import InvalidArgumentError, OutOfRangeError
from headrace_data import structure
from headrace_data.build import arguments_of, make, scalar, static, trace
from headrace_data.runtime.calls import CountedCalls
from headrace_data.runtime.failures import load_failure, save_failure
from headrace_data.runtime.passes import Pass
from headrace_data.runtime.pool import Job, Workers, workers_for
from headrace_data.runtime.stream import (
    DatasetValue,
    Element,
    OneSource,
    State,
    count_of,
    stream,
)
from headrace_data.structure import Described


def map_(
    dataset: Described,
    map_func: Callable[..., Any],
    num_parallel_calls: Any,
    ends: bool = True,
) -> Described:
    """Return a data set of what a function returns for the elements.

    Args:
        dataset: The elements.
        map_func: The function.
        num_parallel_calls: How many calls may run at once; one after the other if None.
        ends: Whether the function may end the elements, by an ``OutOfRangeError``.
    """
    traced = trace(map_func, arguments_of(dataset.spec), "map")
    settings = {} if ends else {"ends": False}
    if num_parallel_calls is None:
        return make(
            "map",
            traced.element,
            sources=[dataset],
            settings=settings,
            functions={"function": traced},
        )
    calls = scalar(num_parallel_calls, hr.int32, "num_parallel_calls")
    _check_calls(static(calls))
    return make(
        "parallel_map",
        traced.element,
        sources=[dataset],
        arguments=[calls],
        settings=settings,
        functions={"function": traced},
    )


def _check_calls(calls: int | None) -> None:
    if calls is not None and calls < 1 and calls != -1:
        raise InvalidArgumentError(
            f"num_parallel_calls must be greater than zero, or AUTOTUNE (-1), got {calls}"
        )


# What is saved of a pass that a function ended.
_ENDED = {"ended": True}


@stream("map")
class MapStream(OneSource):
    """What a function returns for the elements; an ``OutOfRangeError`` of it ends them."""

    def __init__(self, value: DatasetValue, run: Pass) -> None:
        super().__init__(value, run)
        ends = value.settings.get("ends", True)
        self._calls = CountedCalls(value.function, run, ends=ends)
        self._ended = False

    @classmethod
    def count(cls, value: DatasetValue) -> int:
        """Return how many elements there are."""
        return count_of(value.sources[0])

    def next(self) -> Element | None:
        """Return what the function returns for the next element."""
        element = None if self._ended else self.source.next()
        if element is None:
            return None
        try:
            return self._calls(element)
        except OutOfRangeError:
            if not self._calls.ends:
                raise
            self._ended = True
            return None

    def save(self) -> State:
        """Return where the source stands, or that the function ended the elements."""
        return dict(_ENDED) if self._ended else self.source.save()

    def restore(self, state: State) -> None:
        """Bring the source to where it stood."""
        if state == _ENDED:
            self._ended = True
        else:
            self.source.restore(state)


@final
class Call(Job):
    """A call under way."""

    def __init__(
        self,
        calls: CountedCalls,
        element: Element,
        number: int,
        changed: threading.Condition | None,
    ) -> None:
        super().__init__()
        self.element = element
        self.number = number
        self._calls = calls
        self._changed = changed

    def work(self) -> Element:
        """Make the call."""
        return self._calls.numbered(self.element, self.number)

    def run(self) -> None:
        """Make it, and tell whoever waits for one of several."""
        super().run()
        self._tell()

    def fail(self, reason: BaseException) -> None:
        """Give it up, and tell."""
        super().fail(reason)
        self._tell()

    def _tell(self) -> None:
        if self._changed is not None:
            with self._changed:
                self._changed.notify_all()


@stream("parallel_map")
class ParallelMapStream(OneSource):
    """What a function returns for the elements, several calls at once.

    The thread that asks takes the elements and hands them to workers. Results come in the order of
    the elements, or, where the pass allows it, in the order in which they are ready. A position is
    the calls whose results were not taken yet, and where the source stands: in either order what is
    left is exactly what was not delivered.
    """

    def __init__(self, value: DatasetValue, run: Pass) -> None:
        super().__init__(value, run)
        calls = value.scalar(0)
        self._workers: Workers = workers_for(run.lifetime, calls)
        self._size = self._workers.size
        ends = value.settings.get("ends", True)
        self._calls = CountedCalls(value.function, run, ends=ends)
        self._pending: deque[Call | Element | Exception] = deque()
        self._ended = False
        self._changed = threading.Condition() if run.any_order else None

    @classmethod
    def check(cls, value: DatasetValue) -> None:
        """Refuse fewer than one call."""
        _check_calls(value.scalar(0))

    @classmethod
    def count(cls, value: DatasetValue) -> int:
        """Return how many elements there are."""
        return count_of(value.sources[0])

    def _submit(self, element: Element, number: int) -> Call:
        call = Call(self._calls, element, number, self._changed)
        self._workers.submit(call)
        return call

    def next(self) -> Element | None:
        """Return the result of the oldest call, or of the first that is done."""
        pending = self._pending
        while not self._ended and len(pending) < self._size:
            try:
                element = self.source.next()
            except Exception as error:
                # It stands in the place of an element, behind those before it.
                pending.append(error)
                break
            if element is None:
                self._ended = True
            else:
                pending.append(self._submit(element, self._calls.number()))
        if not pending:
            return None
        at = 0 if self._changed is None else self._done(self._changed)
        item = pending[at]
        del pending[at]
        if isinstance(item, Call):
            try:
                found: Element = item.result(self.run.lifetime)
            except OutOfRangeError:
                if not self._calls.ends:
                    raise
                # It ends the elements behind its own; those before it may still be under way.
                self._ended = True
                while len(pending) > at:
                    pending.pop()
                return self.next() if pending else None
            return found
        if isinstance(item, Exception):
            raise item
        return item

    def _done(self, changed: threading.Condition) -> int:
        """Return which of what is pending is there first, waiting for that."""
        with changed:
            while True:
                for at, item in enumerate(self._pending):
                    if not isinstance(item, Call) or item.done:
                        return at
                changed.wait()

    def save(self) -> State:
        """Return the results of the calls under way; what failed is called again."""
        items = [self._saved(item) for item in self._pending]
        return [items, self._ended, self.source.save()]

    def _saved(self, item: Call | Element | Exception) -> Any:
        if isinstance(item, Exception):
            return save_failure(item)
        if isinstance(item, Call):
            try:
                return [list(item.result(self.run.lifetime))]
            except Exception:
                return [list(item.element), item.number]
        return [list(item)]

    def restore(self, state: State) -> None:
        """Have the same results, and make the calls that failed."""
        items, self._ended, inner = state
        for item in items:
            if isinstance(item, dict):
                self._pending.append(load_failure(item))
            elif len(item) == 1:
                self._pending.append(tuple(item[0]))
            else:
                self._pending.append(self._submit(tuple(item[0]), item[1]))
        self.source.restore(inner)


def ignore_errors() -> Callable[[Any], Any]:
    """Return a transformation that leaves out elements in whose place there is an error.

    The end of the data set is no error, and neither is the end of the session.
    """

    def apply(dataset: Described) -> Any:
        return make("ignore_errors", dataset.spec, sources=[dataset])

    return apply


@stream("ignore_errors")
class IgnoreErrorsStream(OneSource):
    """The elements without those that fail."""

    def next(self) -> Element | None:
        """Return the next element that does not fail."""
        while True:
            try:
                return self.source.next()
            except Exception:
                if self.run.lifetime.reason is not None:
                    raise


def scan(initial_state: Any, scan_func: Callable[..., Any]) -> Callable[[Any], Any]:
    """Return a transformation by a function that has a state besides the elements.

    Args:
        initial_state: The first state, a structure of tensors.
        scan_func: From state and element to a pair of a new state and an output.
    """

    def apply(dataset: Described) -> Any:
        element, tensors = structure.to_components(initial_state)
        while True:
            traced = trace(scan_func, [element, dataset.spec], "scan")
            found = traced.element
            if not isinstance(found, tuple) or len(found) != 2:
                raise hr.errors.DTypeError(
                    "the function of scan must return a pair of a new state and an output, got "
                    f"{structure.describe(found)}"
                )
            wider = structure.common(element, found[0], "the state of scan")
            if wider == element:
                break
            element = wider
        return make(
            "scan",
            found[1],
            sources=[dataset],
            arguments=tensors,
            functions={"function": traced},
        )

    return apply


@stream("scan")
class ScanStream(OneSource):
    """What a function with a state returns for the elements."""

    def __init__(self, value: DatasetValue, run: Pass) -> None:
        super().__init__(value, run)
        self._calls = CountedCalls(value.function, run)
        self._state: Sequence[Any] = value.arguments

    @classmethod
    def count(cls, value: DatasetValue) -> int:
        """Return how many elements there are."""
        return count_of(value.sources[0])

    def next(self) -> Element | None:
        """Return the output for the next element."""
        element = self.source.next()
        if element is None:
            return None
        found = self._calls((*self._state, *element))
        width = len(self._state)
        self._state = found[:width]
        return found[width:]

    def save(self) -> State:
        """Return the state, and where the source stands."""
        return [list(self._state), self.source.save()]

    def restore(self, state: State) -> None:
        """Have the same state."""
        self._state = tuple(state[0])
        self.source.restore(state[1])
