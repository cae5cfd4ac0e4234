"""Batches of elements, of one shape or padded to one, and the rows of batches as elements."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import headrace as hr
from headrace.errors import (
    DataLossError,
    DTypeError,
    GraphError,
    InvalidArgumentError,
    ShapeError,
    shown,
    told,
)
from headrace.extend.arguments import whole
from headrace_data import structure
from headrace_data.build import make, scalar, static
from headrace_data.runtime.columns import batch_of, by_component, rows_of, size_of, stacked
from headrace_data.runtime.passes import Pass
from headrace_data.runtime.stream import (
    DatasetValue,
    Element,
    OneSource,
    State,
    count_of,
    stream,
)
from headrace_data.structure import Described


def batch_arguments(batch_size: Any, drop_remainder: Any) -> tuple[Any, Any]:
    """Return how large batches are, and whether smaller ones are left out, as tensors.

    Raises:
        InvalidArgumentError: if they are empty.
    """
    size = scalar(batch_size, hr.int64, "batch_size")
    _check_size(static(size))
    return size, scalar(drop_remainder, hr.bool, "drop_remainder")


def _check_size(size: int | None) -> None:
    if size is not None and size < 1:
        raise InvalidArgumentError(f"batch: batch_size must be greater than zero, got {size}")


def padded_batch(
    dataset: Described,
    batch_size: Any,
    padded_shapes: Any,
    padding_values: Any,
    drop_remainder: Any,
) -> Described:
    """Return a data set of so many elements each, padded to one shape and joined."""
    spec = dataset.spec
    if any(kind != "tensor" for kind in structure.kinds(spec)):
        raise DTypeError("padded_batch takes elements of dense tensors only")
    size, drop = batch_arguments(batch_size, drop_remainder)
    wanted = _padded_shapes(spec, padded_shapes)
    values = _padding_values(spec, padding_values)
    rows = static(size) if static(drop) else None
    shapes = [_static_shape(shape) for shape in wanted]
    components = [
        c.with_shape(hr.Shape([rows]).concatenate(shape))
        for c, shape in zip(structure.leaves(spec), shapes, strict=True)
    ]
    return make(
        "padded_batch",
        structure.rebuild(spec, components),
        sources=[dataset],
        arguments=[size, drop, *wanted, *values],
    )


def _padded_shapes(spec: Any, given: Any) -> list[Any]:
    """Return a vector for each component: sizes, -1 for the largest in the batch."""
    parts = _aligned(spec, given, "padded_shapes")
    found = []
    for component, part in zip(structure.leaves(spec), parts, strict=True):
        if isinstance(part, list | tuple):
            part = [_plain(size) for size in part]
        if isinstance(part, hr.Tensor):
            if not part.shape.is_compatible_with([None]):
                raise ShapeError(f"padded_shapes must be vectors, got shape {part.spec.shape}")
            tensor = hr.cast(part, hr.int64)
        elif isinstance(part, list | tuple) and any(isinstance(d, hr.Tensor) for d in part):
            sizes = [-1 if d is None else d for d in part]
            tensor = hr.stack([hr.cast(hr.convert_to_tensor(d), hr.int64) for d in sizes])
        else:
            shape = _open_shape(part)
            if shape.rank is None:
                raise ShapeError(f"padded_shapes: the rank of {shape} must be known")
            _check_padded(component.shape, shape)
            sizes = [-1 if d is None else d for d in shape.as_list()]
            tensor = hr.constant(np.array(sizes, np.int64), name="padded_shape")
        found.append(tensor)
    return found


def _open_shape(part: Any) -> Any:
    """Return a shape in which None and -1 both leave a size open."""
    if isinstance(part, list | tuple | np.ndarray):
        part = [None if d in (None, -1) else whole(d, "a size of padded_shapes") for d in part]
    return structure.as_shape(part)


def _plain(size: Any) -> Any:
    """Return a size as a number or None, where it is known when the graph is built."""
    if isinstance(size, hr.Dimension):
        return size.value
    known = static(size) if isinstance(size, hr.Tensor) else None
    return size if known is None else known


def _aligned(spec: Any, given: Any, what: str) -> list[Any]:
    """Return one part of ``given`` for each component; a part may be a list or tuple itself."""
    if not structure.is_nested(spec):
        return [given]
    if isinstance(spec, dict):
        if not isinstance(given, dict) or set(given) != set(spec):
            raise GraphError(
                f"{what}: expected the structure {structure.describe(spec)}, got {shown(given)}"
            )
        return [p for key in sorted(spec) for p in _aligned(spec[key], given[key], what)]
    if not isinstance(given, list | tuple) or len(given) != len(spec):
        raise GraphError(
            f"{what}: expected the structure {structure.describe(spec)}, got {shown(given)}"
        )
    return [p for s, g in zip(spec, given, strict=True) for p in _aligned(s, g, what)]


def _check_padded(shape: Any, padded: Any) -> None:
    if shape.rank is None:
        return
    fits = shape.rank == padded.rank and all(
        a is None or b is None or a <= b
        for a, b in zip(shape.as_list(), padded.as_list(), strict=True)
    )
    if not fits:
        raise ShapeError(
            f"padded_shapes: elements of shape {told(shape)} do not fit into {told(padded)}"
        )


def _padding_values(spec: Any, given: Any) -> list[Any]:
    """Return a scalar for each component."""
    components = structure.leaves(spec)
    parts = [None] * len(components) if given is None else _aligned(spec, given, "padding_values")
    found = []
    for component, part in zip(components, parts, strict=True):
        value = part
        if part is None:
            value = b"" if component.dtype == hr.string else 0
        if not isinstance(value, hr.Tensor):
            value = hr.constant(value, component.dtype, name="padding_value")
        if value.dtype != component.dtype:
            raise DTypeError(
                f"padding_values: expected {component.dtype} for a component, got {value.dtype}"
            )
        if not value.shape.is_compatible_with([]):
            raise ShapeError(f"padding_values must be scalars, got shape {value.spec.shape}")
        found.append(value)
    return found


def _static_shape(vector: Any) -> Any:
    value = vector.spec.value
    if value is None:
        rank = vector.shape.as_list()[0] if vector.shape.rank == 1 else None
        return hr.Shape(None if rank is None else [None] * rank)
    return hr.Shape([None if d < 0 else int(d) for d in value])


def unbatch(dataset: Described) -> Described:
    """Return a data set of the rows of the elements."""
    spec = structure.unbatched(dataset.spec, "unbatch")
    settings = {"kinds": structure.kinds(dataset.spec)}
    return make("unbatch", spec, sources=[dataset], settings=settings)


class Batches(OneSource):
    """So many elements at a time."""

    def __init__(self, value: DatasetValue, run: Pass) -> None:
        super().__init__(value, run)
        self._size = value.scalar(0)
        self._drop = value.scalar(1)
        # As TensorFlow, which maps and batches at once.
        self._mapped = value.kind == "batch" and value.sources[0].kind in ("map", "parallel_map")

    @classmethod
    def check(cls, value: DatasetValue) -> None:
        """Refuse empty batches."""
        _check_size(value.scalar(0))

    @classmethod
    def count(cls, value: DatasetValue) -> int:
        """Return how many batches there are."""
        there = count_of(value.sources[0])
        if there < 0:
            return there
        size = value.scalar(0)
        return int(there // size if value.scalar(1) else -(-there // size))

    def next(self) -> Element | None:
        """Return the next batch.

        Raises:
            InvalidArgumentError: if its elements do not fit together; it is left out then. It is
                also where a function fails for one of them.
        """
        taken: list[Element] = []
        try:
            while len(taken) < self._size:
                element = self.source.next()
                if element is None:
                    break
                taken.append(element)
        except Exception:
            self._left_out(len(taken))
            if self._mapped:
                self._pass_over(self._size - len(taken) - 1)
            raise
        if not taken or (self._drop and len(taken) < self._size):
            self._left_out(len(taken))
            return None
        return self._joined(list(zip(*taken, strict=True)))

    def _pass_over(self, count: int) -> None:
        """Take the elements that would be in one batch with one that failed."""
        for _ in range(count):
            if self.run.lifetime.reason is not None:
                return
            with contextlib.suppress(Exception):
                if self.source.next() is None:
                    return

    def _left_out(self, count: int) -> None:
        """Take notice of elements that are in no batch."""

    def _joined(self, columns: list[Sequence[Any]]) -> Element:
        raise NotImplementedError


@stream("batch")
class BatchStream(Batches):
    """So many elements at a time, joined."""

    def __init__(self, value: DatasetValue, run: Pass) -> None:
        super().__init__(value, run)
        kinds = value.settings["kinds"]
        self._kinds = None if all(kind == "tensor" for kind in kinds) else kinds

    def _joined(self, columns: list[Sequence[Any]]) -> Element:
        if self._kinds is None:
            return tuple([stacked(column) for column in columns])
        made: list[Any] = []
        for kind, parts in by_component(columns, self._kinds):
            made += batch_of(kind, list(zip(*parts, strict=True)))
        return tuple(made)


@stream("padded_batch")
class PaddedBatchStream(Batches):
    """So many elements at a time, padded and joined."""

    def __init__(self, value: DatasetValue, run: Pass) -> None:
        super().__init__(value, run)
        rest = value.arguments[2:]
        half = len(rest) // 2
        self._shapes = [tuple(int(d) for d in shape) for shape in rest[:half]]
        self._values = rest[half:]

    @classmethod
    def check(cls, value: DatasetValue) -> None:
        """Refuse empty batches, and sizes that there are not."""
        super().check(value)
        rest = value.arguments[2:]
        for shape in rest[: len(rest) // 2]:
            if shape.ndim != 1 or np.any(shape < -1):
                raise InvalidArgumentError(
                    f"padded_shapes must be vectors of sizes or -1, got {shown(shape)}"
                )

    def _joined(self, columns: list[Sequence[Any]]) -> Element:
        groups = zip(columns, self._shapes, self._values, strict=True)
        return tuple([_padded(column, shape, value) for column, shape, value in groups])


def _padded(arrays: Sequence[Any], wanted: tuple[int, ...], value: Any) -> Any:
    for i, array in enumerate(arrays):
        if array.ndim != len(wanted):
            raise InvalidArgumentError(
                f"padded_batch: element {i} has {array.ndim} dimensions, expected {len(wanted)}"
            )
    shape = [
        max(a.shape[axis] for a in arrays) if size < 0 else size for axis, size in enumerate(wanted)
    ]
    made = np.full((len(arrays), *shape), np.asarray(value)[()], arrays[0].dtype)
    for i, array in enumerate(arrays):
        if any(have > room for have, room in zip(array.shape, shape, strict=True)):
            raise DataLossError(
                f"padded_batch: element {i} has shape {list(array.shape)}, which does not fit "
                f"into the padded shape {shape}; attempted to pad to a smaller size"
            )
        place: Any = (i, *(slice(size) for size in array.shape))
        made[place] = array
    return made


@stream("unbatch")
class UnbatchStream(OneSource):
    """The rows of the elements."""

    def __init__(self, value: DatasetValue, run: Pass) -> None:
        super().__init__(value, run)
        self._kinds = value.settings["kinds"]
        self._element: Element | None = None
        self._rows: list[Any] = []
        self._at = 0
        self._size = 0

    def next(self) -> Element | None:
        """Return the next row."""
        while self._at >= self._size:
            element = self.source.next()
            if element is None:
                self._element = None
                return None
            self._enter(element)
        self._at += 1
        return tuple(part for column in self._rows for part in column(self._at - 1))

    def _enter(self, element: Element) -> None:
        sizes: list[int] = []
        rows: list[Callable[[int], tuple[Any, ...]]] = []
        for kind, parts in by_component(element, self._kinds):
            size = size_of(kind, parts)
            if size is None:
                raise InvalidArgumentError("unbatch: a component is a scalar")
            sizes.append(size)
            rows.append(rows_of(kind, parts))
        if len(set(sizes)) > 1:
            raise InvalidArgumentError(
                f"unbatch: the components of an element have different numbers of rows: {sizes}"
            )
        self._element, self._rows, self._at, self._size = element, rows, 0, sizes[0]

    def save(self) -> State:
        """Return the element whose rows are under way, and which row is next."""
        element = self._element if self._at < self._size else None
        return [None if element is None else list(element), self._at, self.source.save()]

    def restore(self, state: State) -> None:
        """Go there."""
        element, at, inner = state
        if element is not None:
            self._enter(tuple(element))
            self._at = at
        self.source.restore(inner)
