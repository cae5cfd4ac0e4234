"""Windows and groups: data sets of some of the elements, as elements."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

import headrace as hr
from headrace.errors import (
    AttributeValueError,
    HeadraceError,
    InvalidArgumentError,
    shown,
)
from headrace_data import structure
from headrace_data.build import arguments_of, make, scalar, static, trace
from headrace_data.runtime.calls import CountedCalls
from headrace_data.runtime.failures import load_failure, save_failure
from headrace_data.runtime.passes import Counter, Pass
from headrace_data.runtime.stream import DatasetValue, Element, OneSource, State, count_of, stream
from headrace_data.sources.tensors import elements_value
from headrace_data.structure import Described


def window(
    dataset: Described, size: Any, shift: Any, stride: Any, drop_remainder: Any
) -> Described:
    """Return a data set of windows, which are data sets."""
    given = [
        scalar(value, hr.int64, name)
        for name, value in (
            ("size", size),
            ("shift", size if shift is None else shift),
            ("stride", stride),
        )
    ]
    for name, tensor in zip(("size", "shift", "stride"), given, strict=True):
        _check(name, static(tensor))
    drop = scalar(drop_remainder, hr.bool, "drop_remainder")
    spec = dataset.spec
    element = structure.map_structure(structure.DatasetSpec, spec)
    return make(
        "window",
        element,
        sources=[dataset],
        arguments=[*given, drop],
        settings={"widths": structure.widths(spec)},
    )


def _check(name: str, value: int | None) -> None:
    if value is not None and value < 1:
        raise InvalidArgumentError(f"window: {name} must be greater than zero, got {value}")


@stream("window")
class WindowStream(OneSource):
    """Windows over the elements; what failed in the place of one fails in windows that have it."""

    def __init__(self, value: DatasetValue, run: Pass) -> None:
        super().__init__(value, run)
        self._size, self._shift, self._stride = (value.scalar(i) for i in range(3))
        self._drop = value.scalar(3)
        self._buffer: list[Element | Exception] = []
        self._skip = 0
        self._ended = False

    @classmethod
    def check(cls, value: DatasetValue) -> None:
        """Refuse empty windows."""
        for i, name in enumerate(("size", "shift", "stride")):
            _check(name, value.scalar(i))

    @classmethod
    def count(cls, value: DatasetValue) -> int:
        """Return how many windows there are."""
        there = count_of(value.sources[0])
        if there < 0:
            return there
        size, shift, stride = (value.scalar(i) for i in range(3))
        if value.scalar(3):
            reach = (size - 1) * stride + 1
            return int((there - reach) // shift + 1) if there >= reach else 0
        return int(-(-there // shift))

    def next(self) -> Element | None:
        """Return the next window."""
        reach = (self._size - 1) * self._stride + 1
        while not self._ended and (self._skip or len(self._buffer) < reach):
            element = self._taken()
            if element is None:
                self._ended = True
            elif self._skip:
                self._skip -= 1
            else:
                self._buffer.append(element)
        if not self._buffer or (self._drop and len(self._buffer) < reach):
            return None
        chosen = self._buffer[: reach : self._stride]
        self._skip = max(0, self._shift - len(self._buffer))
        del self._buffer[: self._shift]
        elements: list[Element] = []
        for item in chosen:
            if isinstance(item, Exception):
                raise item
            elements.append(item)
        return self._datasets(elements)

    def _taken(self) -> Element | Exception | None:
        try:
            return self.source.next()
        except Exception as error:
            if self.run.lifetime.reason is not None:
                raise
            return error

    def _datasets(self, elements: list[Element]) -> Element:
        made, first = [], 0
        for width in self.value.settings["widths"]:
            parts = [element[first : first + width] for element in elements]
            made.append(elements_value(parts))
            first += width
        return tuple(made)

    def save(self) -> State:
        """Return the elements that are in windows to come."""
        buffer = [
            save_failure(item) if isinstance(item, Exception) else list(item)
            for item in self._buffer
        ]
        return [buffer, self._skip, self._ended, self.source.save()]

    def restore(self, state: State) -> None:
        """Have these elements."""
        buffer, self._skip, self._ended, inner = state
        self._buffer = [
            load_failure(item) if isinstance(item, dict) else tuple(item) for item in buffer
        ]
        self.source.restore(inner)


def group_by_window(
    dataset: Described,
    key_func: Callable[..., Any],
    reduce_func: Callable[..., Any],
    window_size_func: Callable[..., Any],
) -> Described:
    """Return a data set of what a function makes of groups of elements of one key."""
    spec = dataset.spec
    key = trace(_number_of(key_func, "key_func"), arguments_of(spec), "group_by_window")
    number = structure.TensorComponent(hr.int64, hr.Shape([]))
    if not _is_number(key.element):
        raise AttributeValueError(
            "`key_func` of group_by_window must return a single int64 scalar, got "
            f"{shown(key.element)}"
        )
    reducer = trace(
        reduce_func, [number, structure.DatasetSpec(spec)], "group_by_window", returns="dataset"
    )
    sizer = trace(_number_of(window_size_func, "window_size_func"), [number], "group_by_window")
    if not _is_number(sizer.element):
        raise AttributeValueError(
            "`window_size_func` of group_by_window must return a single int64 scalar, got "
            f"{shown(sizer.element)}"
        )
    return make(
        "group_by_window",
        reducer.element.element_spec,
        sources=[dataset],
        functions={"function": key, "reducer": reducer, "sizer": sizer},
    )


def _number_of(function: Callable[..., Any], name: str) -> Callable[..., Any]:
    """Return a function whose result, such as a plain number, becomes int64.

    Raises:
        AttributeValueError: if ``function`` is none; when it is called, if that cannot be.
    """
    if not callable(function):
        raise AttributeValueError(f"`{name}` of group_by_window must be a function")

    @functools.wraps(function)
    def made(*parts: Any) -> Any:
        found = function(*parts)
        try:
            return hr.convert_to_tensor(found, hr.int64)
        except HeadraceError as error:
            raise AttributeValueError(
                f"`{name}` of group_by_window must return a single int64 scalar: {error}"
            ) from None

    return made


def _is_number(element: Any) -> bool:
    return (
        isinstance(element, structure.TensorComponent)
        and element.dtype == hr.int64
        and element.shape.is_compatible_with([])
    )


@stream("group_by_window")
class GroupByWindowStream(OneSource):
    """The elements of what a function makes of groups, one group after the other."""

    def __init__(self, value: DatasetValue, run: Pass) -> None:
        super().__init__(value, run)
        self._key = CountedCalls(value.function, run)
        self._reduce = CountedCalls(value.functions["reducer"], run, "reducer")
        self._window_size = CountedCalls(value.functions["sizer"], run, "sizer")
        self._numbers = run.cell(Counter, "made")
        self._groups: dict[int, list[Element]] = {}
        self._sizes: dict[int, int] = {}
        self._ended = False
        # The group under way: its key, elements, number and stream, and where it is run.
        self._current: tuple[int, list[Element], int, Any, Pass] | None = None

    def next(self) -> Element | None:
        """Return the next element."""
        while True:
            if self._current is not None:
                found: Element | None = self._current[3].next()
                if found is not None:
                    return found
                self._current[3].close()
                self._current = None
            if self._ended:
                if not self._groups:
                    return None
                key = min(self._groups)
                self._start(key, self._groups.pop(key), self._numbers.advance())
                continue
            element = self.source.next()
            if element is None:
                self._ended = True
            else:
                self._add(element)

    def _add(self, element: Element) -> None:
        key = int(self._key(element)[0])
        if key not in self._sizes:
            size = int(self._window_size((np.array(key, np.int64),))[0])
            if size < 1:
                raise InvalidArgumentError(
                    f"group_by_window: the window size of key {key} must be positive, got {size}"
                )
            self._sizes[key] = size
        group = self._groups.setdefault(key, [])
        group.append(element)
        if len(group) == self._sizes[key]:
            self._start(key, self._groups.pop(key), self._numbers.advance())

    def _start(self, key: int, group: list[Element], number: int, memory: State = None) -> None:
        (made,) = self._reduce.numbered((np.array(key, np.int64), elements_value(group)), number)
        run = self.run.inner(number)
        if memory is not None:
            run.memory.restore(memory)
        made.check()
        self._current = (key, group, number, made.open(run), run)

    def save(self) -> State:
        """Return the groups that are not full, and where the one under way stands."""
        current: State = None
        if self._current is not None:
            key, group, number, made, run = self._current
            stands = made.save()
            current = [key, [list(e) for e in group], number, stands, run.memory.save()]
        groups = [[key, [list(e) for e in group]] for key, group in self._groups.items()]
        sizes = [[key, size] for key, size in self._sizes.items()]
        return [groups, sizes, self._ended, current, self.source.save()]

    def restore(self, state: State) -> None:
        """Have the same groups."""
        groups, sizes, self._ended, current, inner = state
        self.source.restore(inner)
        self._groups = {key: [tuple(e) for e in group] for key, group in groups}
        self._sizes = dict(sizes)
        if current is not None:
            key, group, number, stands, memory = current
            self._start(key, [tuple(e) for e in group], number, memory)
            assert self._current is not None
            self._current[3].restore(stands)

    def close(self) -> None:
        """Close the group under way."""
        if self._current is not None:
            self._current[3].close()
        self.source.close()
