"""Python's indexing on tensors, as strided slices."""

from __future__ import annotations

from typing import Any

import numpy as np

from headrace.errors import AttributeValueError, ShapeError
from headrace.graph.convert import as_tensor, contains_tensor, convert_to_tensor
from headrace.graph.schema import OPERATORS
from headrace.graph.spec import TensorSpec, as_shape
from headrace.graph.tensor import Tensor
from headrace.ops.declare import Spec, op
from headrace.ops.kinds import Anything, Index
from headrace.shapes import UNKNOWN, Dim, Shape

# What each entry of a sparse index is; one letter per entry.
SLICE, NEW_AXIS, ELLIPSIS, ELEMENT = "s", "n", "e", "i"


@op("StridedSlice", public="")
def _strided_slice(
    input: Anything,
    begin: Index,
    end: Index,
    strides: Index,
    entries: str,
    open_begin: str,
    open_end: str,
) -> Spec:
    """The part of a tensor that a Python index names.

    Args:
        input: [...], any dtype.
        begin: [n], where each entry starts.
        end: [n], where each entry stops.
        strides: [n], its step.
        entries: One letter per entry: "s" a slice, "n" a new axis, "e" the ellipsis, "i" an
            element.
        open_begin: "1" for each entry without a start, else "0".
        open_end: "1" for each entry without a stop, else "0".

    Returns:
        The indexed shape, the dtype of ``input``.
    """
    if not len(entries) == len(open_begin) == len(open_end):
        raise AttributeValueError("entries, open_begin and open_end must have one length")
    index: Any = None
    if begin.value is not None and end.value is not None and strides.value is not None:
        index = decode(begin.value, end.value, strides.value, entries, open_begin, open_end)
    shape = _sliced_shape(input.shape, entries, index)
    value = None
    if index is not None and input.value is not None and input.value.size <= 4096:
        value = np.asarray(input.value[index])
    elif index is not None and input.dims is not None and input.dims.dims is not None:
        return _sliced_dims(input, shape, index)
    return TensorSpec(input.dtype, shape, value)


def _sliced_dims(input: TensorSpec, shape: Shape, index: tuple[Any, ...]) -> TensorSpec:
    """Return the spec of a part of a shape vector, some of whose dimensions are known."""
    assert input.dims is not None
    assert input.dims.dims is not None
    if len(index) != 1 or index[0] in (None, Ellipsis):
        return TensorSpec(input.dtype, shape)
    part = input.dims.dims[index[0]]
    if isinstance(part, tuple):
        return TensorSpec(input.dtype, shape, dims=Shape(part))
    known = None if part is None else np.array(part, input.dtype.numpy)
    return TensorSpec(input.dtype, shape, known)


def decode(
    begin: Any, end: Any, strides: Any, entries: str, open_begin: str, open_end: str
) -> tuple[Any, ...]:
    """Return the Python index that a strided slice's inputs and attributes encode."""
    index: list[Any] = []
    for i, entry in enumerate(entries):
        if entry == NEW_AXIS:
            index.append(None)
        elif entry == ELLIPSIS:
            index.append(Ellipsis)
        elif entry == ELEMENT:
            index.append(int(begin[i]))
        else:
            start = None if open_begin[i] == "1" else int(begin[i])
            stop = None if open_end[i] == "1" else int(end[i])
            index.append(slice(start, stop, int(strides[i])))
    return tuple(index)


def _sliced_shape(shape: Shape, entries: str, index: tuple[Any, ...] | None) -> Shape:
    if shape.dims is None:
        return UNKNOWN
    taken = sum(entry in (SLICE, ELEMENT) for entry in entries)
    if taken > len(shape.dims):
        raise ShapeError(f"{taken} indices for a tensor of shape {shape}")
    full = entries if ELLIPSIS in entries else entries + ELLIPSIS
    dims: list[Dim] = []
    axis = 0
    for i, entry in enumerate(full):
        if entry == NEW_AXIS:
            dims.append(1)
        elif entry == ELLIPSIS:
            skipped = len(shape.dims) - taken
            dims.extend(shape.dims[axis : axis + skipped])
            axis += skipped
        else:
            size = shape.dims[axis]
            part = None if index is None else index[i]
            if entry == SLICE:
                dims.append(_slice_size(part, size))
            elif part is not None and size is not None and not -size <= part < size:
                raise ShapeError(f"index {part} is out of range for axis {axis} of {shape}")
            axis += 1
    return Shape(dims)


def _slice_size(part: slice | None, size: Dim) -> Dim:
    if part is None or size is None:
        return size if part == slice(None, None, 1) else None
    return len(range(*part.indices(size)))


@op("StridedSliceGrad", public="")
def strided_slice_grad(
    shape: Index,
    begin: Index,
    end: Index,
    strides: Index,
    dy: Anything,
    entries: str,
    open_begin: str,
    open_end: str,
) -> Spec:
    """Zeros of ``shape`` with ``dy`` written where a strided slice read.

    Args:
        shape: [rank], the shape of the slice's input.
        begin: [n], as the slice's.
        end: [n], as the slice's.
        strides: [n], as the slice's.
        dy: [...], the shape of the slice.
        entries: As the slice's.
        open_begin: As the slice's.
        open_end: As the slice's.

    Returns:
        ``shape``, the dtype of ``dy``.
    """
    return TensorSpec(dy.dtype, as_shape(shape))


def index(tensor: Any, key: Any) -> Tensor:
    """Index a tensor as Python indexes an array.

    Args:
        tensor: [...], any dtype.
        key: Integers, slices (bounds may be scalar tensors), ``...``, ``None`` for a new axis, or
            a tuple of these.

    Raises:
        ShapeError: if the index has too many entries, or one out of range.
        AttributeValueError: if an entry is of another kind.
    """
    source = as_tensor(tensor)
    source = convert_to_tensor(tensor) if source is None else source
    items = key if isinstance(key, tuple) else (key,)
    entries, open_begin, open_end = "", "", ""
    bounds: tuple[list[Any], list[Any], list[Any]] = ([], [], [])
    for item in items:
        entry, start, stop, step = _entry(item)
        entries += entry
        open_begin += "1" if start is None else "0"
        open_end += "1" if stop is None else "0"
        for part, value in zip(bounds, (start, stop, step), strict=True):
            part.append(0 if value is None else value)
    if entries.count(ELLIPSIS) > 1:
        raise AttributeValueError("an index has at most one ellipsis")
    begin, end, strides = (_bound_vector(part) for part in bounds)
    return _strided_slice(
        source, begin, end, strides, entries, open_begin, open_end, name="strided_slice"
    )


def _entry(item: Any) -> tuple[str, Any, Any, Any]:
    if item is None:
        return NEW_AXIS, 0, 0, 1
    if item is Ellipsis:
        return ELLIPSIS, 0, 0, 1
    if isinstance(item, slice):
        step = 1 if item.step is None else item.step
        if isinstance(step, int) and step == 0:
            raise AttributeValueError("a slice's step must not be 0")
        return SLICE, item.start, item.stop, step
    scalar = as_tensor(item)
    if scalar is not None and scalar.dtype.is_integer and scalar.shape.rank == 0:
        return ELEMENT, scalar, 0, 1
    if isinstance(item, int | np.integer) and not isinstance(item, bool):
        return ELEMENT, int(item), 0, 1
    raise AttributeValueError(
        f"a tensor is indexed by integers, slices, ..., None and scalar integer tensors, got "
        f"{item!r}; use hr.gather for lists of indices"
    )


def _bound_vector(parts: list[Any]) -> Any:
    if contains_tensor(parts):
        return convert_to_tensor(parts)
    return np.array(parts, np.int64 if any(abs(p) >= 2**31 for p in parts) else np.int32)


def slice_(input_: Any, begin: Any, size: Any, name: str | None = None) -> Tensor:
    """Take a block of a tensor.

    Args:
        input_: [...], any dtype.
        begin: [rank], where the block starts: a list of integers.
        size: [rank], its sizes; -1 for all that is left.
        name: Unused; the parts are named after the op.

    Returns:
        ``size``, the dtype of ``input_``. Along dimensions that are not known while the graph is
        built, less where less is left.

    Raises:
        ShapeError: if the block is known not to lie within the tensor.
    """
    del name
    source = as_tensor(input_)
    source = convert_to_tensor(input_) if source is None else source
    begin, size = list(begin), list(size)
    _check_block(source.shape, begin, size)
    stops = [None if s == -1 else b + s for b, s in zip(begin, size, strict=True)]
    return index(source, tuple(slice(b, e) for b, e in zip(begin, stops, strict=True)))


def _check_block(shape: Shape, begin: list[Any], size: list[Any]) -> None:
    """Refuse what Python's indexing, which counts from the end and clips, would take."""
    if len(begin) != len(size) or shape.rank not in (None, len(begin)):
        raise ShapeError(
            f"slice: begin and size need one entry per dimension of {shape}, got {len(begin)} and "
            f"{len(size)}"
        )
    dims = shape.dims if shape.dims is not None else (None,) * len(begin)
    for axis, (start, length, dim) in enumerate(zip(begin, size, dims, strict=True)):
        if isinstance(start, Tensor) or isinstance(length, Tensor):
            continue
        least = start + max(length, 0)
        if start < 0 or length < -1 or (dim is not None and least > dim):
            raise ShapeError(
                f"slice: {length} elements from {start} on do not lie within axis {axis} of {shape}"
            )


OPERATORS["getitem"] = index
