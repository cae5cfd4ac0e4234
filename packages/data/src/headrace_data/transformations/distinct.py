"""``unique``: each element once."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import headrace as hr
from headrace.errors import DTypeError, shown
from headrace_data import structure
from headrace_data.build import make
from headrace_data.runtime.passes import Pass
from headrace_data.runtime.stream import DatasetValue, Element, OneSource, State, stream
from headrace_data.structure import Described


def unique() -> Callable[[Any], Any]:
    """Return a transformation that leaves out elements that came before.

    Elements are single tensors, int32, int64 or string.
    """

    def apply(dataset: Described) -> Any:
        spec = dataset.spec
        taken = (hr.int32, hr.int64, hr.string)
        if not isinstance(spec, structure.TensorComponent) or spec.dtype not in taken:
            raise DTypeError(
                "unique takes elements of a single component of "
                f"dtype int32, int64 or string, got {shown(structure.dtypes_of(spec))}"
            )
        return make("unique", spec, sources=[dataset])

    return apply


@stream("unique")
class UniqueStream(OneSource):
    """The elements that did not come before."""

    def __init__(self, value: DatasetValue, run: Pass) -> None:
        super().__init__(value, run)
        self._seen: dict[Any, Element] = {}

    def next(self) -> Element | None:
        """Return the next of them."""
        while True:
            element = self.source.next()
            if element is None:
                return None
            key = _key(element[0])
            if key not in self._seen:
                self._seen[key] = element
                return element

    def save(self) -> State:
        """Return what came before."""
        return [[list(element) for element in self._seen.values()], self.source.save()]

    def restore(self, state: State) -> None:
        """Know what came before."""
        self._seen = {_key(element[0]): tuple(element) for element in state[0]}
        self.source.restore(state[1])


def _key(value: Any) -> Any:
    array = np.asarray(value)
    items = tuple(array.ravel().tolist()) if array.dtype == object else array.tobytes()
    return array.shape, items
