"""``group_by_reducer``: elements of one key reduced to one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import headrace as hr
from headrace.errors import AttributeValueError, shown
from headrace_data import structure
from headrace_data.build import arguments_of, make, trace
from headrace_data.runtime.calls import CountedCalls
from headrace_data.runtime.passes import Pass
from headrace_data.runtime.stream import DatasetValue, Element, OneSource, State, stream
from headrace_data.structure import Described


def reduce_groups(
    dataset: Described,
    key_func: Callable[..., Any],
    init_func: Callable[..., Any],
    reduce_func: Callable[..., Any],
) -> Described:
    """Return a data set of the last state of each key, in the order of the keys."""
    key = trace(key_func, arguments_of(dataset.spec), "group_by_reducer")
    number = structure.TensorComponent(hr.int64, hr.Shape([]))
    if not (
        isinstance(key.element, structure.TensorComponent)
        and key.element.dtype == hr.int64
        and key.element.shape.is_compatible_with([])
    ):
        raise AttributeValueError(
            "`key_func` of group_by_reducer must return a single int64 scalar, got "
            f"{shown(key.element)}"
        )
    first = trace(init_func, [number], "group_by_reducer")
    state = first.element
    while True:
        traced = trace(reduce_func, [state, dataset.spec], "group_by_reducer")
        wider = structure.common(state, traced.element, "the state of group_by_reducer")
        if wider == state:
            break
        # A state may change its shape from element to element.
        state = wider
    return make(
        "reduce_groups",
        state,
        sources=[dataset],
        functions={"function": key, "reducer": traced, "sizer": first},
    )


@stream("reduce_groups")
class ReduceGroupsStream(OneSource):
    """The last state of each key, when all elements were seen."""

    def __init__(self, value: DatasetValue, run: Pass) -> None:
        super().__init__(value, run)
        self._key = CountedCalls(value.function, run)
        self._reduce = CountedCalls(value.functions["reducer"], run, "reducer")
        self._first = CountedCalls(value.functions["sizer"], run, "sizer")
        self._states: dict[int, Element] = {}
        self._ended = False

    def next(self) -> Element | None:
        """Return the state of the smallest key that is left."""
        while not self._ended:
            element = self.source.next()
            if element is None:
                self._ended = True
            else:
                self._add(element)
        if not self._states:
            return None
        return self._states.pop(min(self._states))

    def _add(self, element: Element) -> None:
        key = int(self._key(element)[0])
        state = self._states.get(key)
        if state is None:
            state = self._first((np.array(key, np.int64),))
        self._states[key] = tuple(self._reduce((*state, *element)))

    def save(self) -> State:
        """Return the states so far."""
        states = [[key, list(state)] for key, state in self._states.items()]
        return [states, self._ended, self.source.save()]

    def restore(self, state: State) -> None:
        """Have the same states."""
        states, self._ended, inner = state
        self._states = {key: tuple(values) for key, values in states}
        self.source.restore(inner)
