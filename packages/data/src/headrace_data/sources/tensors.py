"""Data sets of tensors: one element, one per row, one per row of a sparse tensor, and ranges."""

from __future__ import annotations

from typing import Any

import numpy as np

import headrace as hr
from headrace.errors import (
    DTypeError,
    InvalidArgumentError,
    UnimplementedError,
    shown,
)
from headrace_data import structure
from headrace_data.build import make
from headrace_data.runtime.columns import by_component, rows_of, size_of
from headrace_data.runtime.passes import Pass
from headrace_data.runtime.sparse import check_sparse, in_order
from headrace_data.runtime.stream import (
    DatasetValue,
    Element,
    State,
    Stream,
    stream,
)
from headrace_data.structure import Described


def from_tensors(tensors: Any) -> Described:
    """Return a data set of one element."""
    with hr.name_scope("TensorDataset"):
        if isinstance(tensors, list) and tensors and isinstance(tensors[0], Described):
            return _together(tensors)
        element, flat = structure.to_components(tensors)
        return make("tensors", element, arguments=flat)


def from_tensor_slices(tensors: Any) -> Described:
    """Return a data set of the rows of tensors, or of the data sets of a list."""
    with hr.name_scope("TensorSliceDataset"):
        if isinstance(tensors, list) and tensors and isinstance(tensors[0], Described):
            return _datasets(tensors)
        element, flat = structure.to_components(tensors)
        rows = structure.unbatched(element, "from_tensor_slices")
        return make("slices", rows, arguments=flat, settings={"kinds": structure.kinds(element)})


def _datasets(listed: list[Any]) -> Described:
    for item in listed:
        if not isinstance(item, Described):
            raise DTypeError(f"from_tensor_slices: expected data sets alone, got {shown(item)}")
    first, *others = listed
    element = first.spec
    for other in others:
        element = structure.common(element, other.spec, "from_tensor_slices")
    return make("datasets", structure.DatasetSpec(element), sources=listed)


def _together(listed: list[Any]) -> Described:
    """Return a data set of one element: a batch of all data sets of a list."""
    single = _datasets(listed)
    return make(
        "batch",
        structure.batched(single.spec, len(listed)),
        sources=[single],
        arguments=[hr.constant(len(listed), hr.int64), hr.constant(False)],
        settings={"kinds": structure.kinds(single.spec)},
    )


def from_sparse_tensor_slices(sparse_tensor: Any) -> Described:
    """Return a data set of the rows of a sparse tensor, as tuples of its parts."""
    if not isinstance(sparse_tensor, hr.SparseTensor):
        raise DTypeError(
            "from_sparse_tensor_slices: expected an hr.SparseTensor, got "
            f"{type(sparse_tensor).__name__}"
        )
    rank = sparse_tensor.shape.rank
    inner = None if rank is None else rank - 1
    element = (
        structure.TensorComponent(hr.int64, hr.Shape([None, inner])),
        structure.TensorComponent(sparse_tensor.dtype, hr.Shape([None])),
        structure.TensorComponent(hr.int64, hr.Shape([inner])),
    )
    with hr.name_scope("SparseTensorSliceDataset"):
        return make(
            "slices",
            element,
            arguments=sparse_tensor.flatten(),
            settings={"kinds": ("sparse",), "of": "parts"},
        )


def range_(*args: Any) -> Described:
    """Return a data set of the numbers of a range."""
    if not 1 <= len(args) <= 3:
        raise InvalidArgumentError(
            "Dataset.range takes a stop, start and stop, or start, stop and step; got "
            f"{shown(args)}"
        )
    start, stop, step = (0, args[0], 1) if len(args) == 1 else (*args, 1)[:3]
    with hr.name_scope("RangeDataset"):
        given = [
            hr.convert_to_tensor(value, hr.int64, name=name)
            for value, name in ((start, "start"), (stop, "stop"), (step, "step"))
        ]
        element = structure.TensorComponent(hr.int64, hr.Shape([]))
        return make("range", element, arguments=given)


@stream("tensors")
class TensorsStream(Stream):
    """One element."""

    def __init__(self, value: DatasetValue, run: Pass) -> None:
        super().__init__(value, run)
        self._done = False

    @classmethod
    def count(cls, value: DatasetValue) -> int:
        """Return 1."""
        return 1

    def next(self) -> Element | None:
        """Return the element."""
        if self._done:
            return None
        self._done = True
        return self.value.arguments

    def save(self) -> State:
        """Return whether it was taken."""
        return self._done

    def restore(self, state: State) -> None:
        """Have it taken, or not."""
        self._done = state


def row_count(value: DatasetValue) -> int:
    """Return how many rows the tensors of a data set have.

    Raises:
        InvalidArgumentError: if they have different numbers of rows.
    """
    sizes = []
    for kind, parts in by_component(value.arguments, value.settings["kinds"]):
        size = size_of(kind, parts)
        if size is None:
            raise InvalidArgumentError("from_tensor_slices: a component is a scalar")
        sizes.append(size)
    if len(set(sizes)) > 1:
        raise InvalidArgumentError(
            f"from_tensor_slices: components have different numbers of rows: {sizes}"
        )
    return sizes[0]


@stream("slices")
class SlicesStream(Stream):
    """The rows of tensors."""

    def __init__(self, value: DatasetValue, run: Pass) -> None:
        super().__init__(value, run)
        self._size = row_count(value)
        self._at = 0
        self._dense = all(kind == "tensor" for kind in value.settings["kinds"])
        self._columns: Any = value.arguments
        if not self._dense:
            columns = by_component(value.arguments, value.settings["kinds"])
            self._columns = [rows_of(kind, parts) for kind, parts in columns]

    @classmethod
    def check(cls, value: DatasetValue) -> None:
        """Refuse different numbers of rows, and sparse tensors of parts that do not fit."""
        row_count(value)
        for kind, parts in by_component(value.arguments, value.settings["kinds"]):
            if kind == "sparse":
                check_sparse(*parts)
                if value.settings.get("of") == "parts" and not in_order(parts[0]):
                    raise UnimplementedError(
                        "from_sparse_tensor_slices: the indices must be in order, row by row; "
                        "hr.sparse.reorder brings them there"
                    )

    @classmethod
    def count(cls, value: DatasetValue) -> int:
        """Return the number of rows."""
        return row_count(value)

    def next(self) -> Element | None:
        """Return the next row."""
        at = self._at
        if at >= self._size:
            return None
        self._at = at + 1
        if self._dense:
            return tuple([column[at, ...] for column in self._columns])
        return tuple(part for column in self._columns for part in column(at))

    def save(self) -> State:
        """Return the number of rows taken."""
        return self._at

    def restore(self, state: State) -> None:
        """Go on after a number of rows."""
        self._at = state


def _numbers(value: DatasetValue) -> range:
    start, stop, step = (int(value.scalar(i)) for i in range(3))
    if step == 0:
        raise InvalidArgumentError("Dataset.range: step must not be zero")
    return range(start, stop, step)


@stream("range")
class RangeStream(Stream):
    """The numbers of a range."""

    def __init__(self, value: DatasetValue, run: Pass) -> None:
        super().__init__(value, run)
        self._numbers = _numbers(value)
        self._at = 0

    @classmethod
    def check(cls, value: DatasetValue) -> None:
        """Refuse a step of zero."""
        _numbers(value)

    @classmethod
    def count(cls, value: DatasetValue) -> int:
        """Return how many numbers there are."""
        return len(_numbers(value))

    def next(self) -> Element | None:
        """Return the next number."""
        if self._at >= len(self._numbers):
            return None
        self._at += 1
        return (np.array(self._numbers[self._at - 1], np.int64),)

    def save(self) -> State:
        """Return how many numbers were taken."""
        return self._at

    def restore(self, state: State) -> None:
        """Go on after a number of numbers."""
        self._at = state


@stream("datasets")
class DatasetsStream(Stream):
    """Data sets as elements."""

    def __init__(self, value: DatasetValue, run: Pass) -> None:
        super().__init__(value, run)
        self._at = 0

    @classmethod
    def count(cls, value: DatasetValue) -> int:
        """Return how many data sets there are."""
        return len(value.sources)

    def next(self) -> Element | None:
        """Return the next data set."""
        if self._at >= len(self.value.sources):
            return None
        self._at += 1
        return (self.value.sources[self._at - 1],)

    def save(self) -> State:
        """Return how many were taken."""
        return self._at

    def restore(self, state: State) -> None:
        """Go on after a number of data sets."""
        self._at = state


@stream("elements")
class ElementsStream(Stream):
    """Elements that are there: those of a window, or of a group."""

    def __init__(self, value: DatasetValue, run: Pass) -> None:
        super().__init__(value, run)
        self._elements = value.settings["elements"]
        self._at = 0

    @classmethod
    def count(cls, value: DatasetValue) -> int:
        """Return how many there are."""
        return len(value.settings["elements"])

    def next(self) -> Element | None:
        """Return the next element."""
        if self._at >= len(self._elements):
            return None
        self._at += 1
        found: Element = self._elements[self._at - 1]
        return found

    def save(self) -> State:
        """Return how many were taken."""
        return self._at

    def restore(self, state: State) -> None:
        """Go on after a number of elements."""
        self._at = state


def elements_value(elements: list[Element], site: str = "") -> DatasetValue:
    """Return a data set of elements that are there."""
    return DatasetValue("elements", settings={"elements": elements}, site=site)
