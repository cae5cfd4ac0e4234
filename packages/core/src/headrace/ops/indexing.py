"""Python's indexing on tensors, as strided slices."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from headrace.arguments import whole
from headrace.errors import (
    ArgumentTypeError,
    AttributeValueError,
    DTypeError,
    GraphError,
    ShapeError,
    shown,
)
from headrace.graph.convert import as_tensor, contains_tensor, convert_to_tensor
from headrace.graph.schema import OPERATORS, call_op
from headrace.graph.scopes import colocate_with
from headrace.graph.spec import TensorSpec, as_shape
from headrace.graph.tensor import Tensor
from headrace.ops.arguments import as_int, as_ints, known_ints, static_value
from headrace.ops.declare import Spec, op
from headrace.ops.gather import boolean_mask
from headrace.ops.kinds import Anything, Index, Resource
from headrace.ops.state import content_of
from headrace.shapes import UNKNOWN, Dim, Shape

_WRITES = "writing to a variable is no differentiable function"

# What each entry of a sparse index is; one letter per entry.
SLICE, NEW_AXIS, ELLIPSIS, ELEMENT = "s", "n", "e", "i"


def _sliced_early(input: Any, begin: Any, end: Any, strides: Any, **attrs: Any) -> Any:
    return input[decode(begin, end, strides, **attrs)]


@op(
    "StridedSlice",
    total=True,
    early=_sliced_early,
    host_inputs=["begin", "end", "strides"],
    public="",
)
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
    if set(entries) - {SLICE, NEW_AXIS, ELLIPSIS, ELEMENT} or entries.count(ELLIPSIS) > 1:
        raise AttributeValueError(
            f"entries must be of 's', 'n', 'i' and one 'e', got {shown(entries)}"
        )
    bounds = [_known(part, entries) for part in (begin, end, strides)]
    index: Any = None
    if begin.value is not None and end.value is not None and strides.value is not None:
        index = decode(begin.value, end.value, strides.value, entries, open_begin, open_end)
    shape = _sliced_shape(input.shape, entries, open_begin, open_end, bounds)
    value = None
    if index is not None and input.value is not None and input.value.size <= 4096:
        value = np.asarray(input.value[index], input.value.dtype)
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
    known = None if part is None or part > input.dtype.max else np.array(part, input.dtype.numpy)
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


def _known(bounds: TensorSpec, entries: str) -> Sequence[int | None]:
    """Return what is known of the elements of a vector of bounds."""
    if not bounds.shape.is_compatible_with([len(entries)]):
        raise ShapeError(f"begin, end and strides must have {len(entries)} elements, got {bounds}")
    if bounds.value is not None:
        return [int(v) for v in bounds.value]
    dims = as_shape(bounds).dims
    return [None] * len(entries) if dims is None else dims


def _sliced_shape(
    shape: Shape,
    entries: str,
    open_begin: str,
    open_end: str,
    bounds: Sequence[Sequence[int | None]],
) -> Shape:
    if 0 in [step for step, entry in zip(bounds[2], entries, strict=True) if entry == SLICE]:
        raise AttributeValueError("the step of a slice must not be 0")
    steps = zip(bounds[2], entries, strict=True)
    if any(entry == ELEMENT and step is not None and step <= 0 for step, entry in steps):
        raise AttributeValueError("the step of an entry that names one element must be 1")
    if shape.dims is None:
        return UNKNOWN
    taken = sum(entry in (SLICE, ELEMENT) for entry in entries)
    if taken > len(shape.dims):
        rank = len(shape)
        raise ShapeError(f"{taken} indices for a tensor of shape {shape}, expected at most {rank}")
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
            begin, end, step = (part[i] for part in bounds)
            if entry == SLICE:
                ends = (begin, open_begin[i] == "1"), (end, open_end[i] == "1")
                dims.append(_slice_size(ends, step, size))
            elif begin is not None and size is not None and not -size <= begin < size:
                raise ShapeError(f"index {begin} is out of range for axis {axis} of {shape}")
            axis += 1
    return Shape(dims)


def _slice_size(ends: Sequence[tuple[int | None, bool]], step: int | None, size: Dim) -> Dim:
    """Return how many elements lie between two ends, each open or at a place if that is known."""
    (begin, from_start), (end, to_end) = ends
    if size == 0:
        return 0
    if step is None or (begin is None and not from_start) or (end is None and not to_end):
        return None
    if size is None:
        fixed = not to_end and end is not None and begin is not None and not from_start
        same_side = fixed and (begin < 0) == (end < 0)  # type: ignore[operator]
        # What ends where it begins is empty, however long the axis.
        return 0 if same_side and (end - begin) * step <= 0 else None  # type: ignore[operator]
    part = slice(None if from_start else begin, None if to_end else end, step)
    return len(range(*part.indices(size)))


@op("StridedSliceGrad", total=True, host_inputs=["shape", "begin", "end", "strides"], public="")
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


@op(
    "StridedSliceAssign",
    host_inputs=["begin", "end", "strides"],
    effects="changes",
    public="",
    no_gradient=_WRITES,
)
def _strided_slice_assign(
    resource: Resource,
    begin: Index,
    end: Index,
    strides: Index,
    value: Anything,
    entries: str,
    open_begin: str,
    open_end: str,
) -> Spec:
    """Replace a part of a variable, as one atomic change.

    Args:
        resource: [], a variable's handle.
        begin: [n], as for a strided slice.
        end: [n], as for a strided slice.
        strides: [n], as for a strided slice.
        value: The new part, of the variable's dtype and the shape of the slice.
        entries: As for a strided slice.
        open_begin: As for a strided slice.
        open_end: As for a strided slice.

    Returns:
        The new value of the whole variable.
    """
    content = content_of(resource)
    if content.dtype != value.dtype:
        raise DTypeError(f"the variable holds {content.dtype}, the value is {value.dtype}")
    bounds = [_known(part, entries) for part in (begin, end, strides)]
    part = _sliced_shape(content.shape, entries, open_begin, open_end, bounds)
    if not part.is_compatible_with(value.shape):
        raise ShapeError(f"the slice has shape {part}, the value {value.shape}")
    return TensorSpec(content.dtype, content.shape)


def assign_slice(part: Tensor, value: Any, name: str | None = None) -> Tensor:
    """Replace the part of a variable that was indexed; yields the variable's new value.

    Args:
        part: What indexing the variable gave.
        value: The new part, of the same shape.
        name: The name of the operation.

    Raises:
        GraphError: if ``part`` is no slice of a variable.
    """
    op = part.op
    if op.type != "StridedSlice":
        # What a change of a variable returned stands for it; what is neither is refused there.
        return OPERATORS["assign_written"](part, value, name=name)  # type: ignore[no-any-return]
    read = op.inputs[0].op
    if read.type != "ReadVariable":
        raise GraphError(f"{shown(part)} is no slice of a variable, and has nothing to assign to")
    handle = read.inputs[0]
    update = convert_to_tensor(value, preferred_dtype=part.dtype)
    with colocate_with(handle):
        return _strided_slice_assign(handle, *op.inputs[1:], update, **op.attrs, name=name)


def index(tensor: Any, key: Any) -> Tensor:
    """Index a tensor as Python indexes an array.

    Args:
        tensor: [...], any dtype.
        key: Integers, slices (bounds may be scalar tensors), ``...``, ``None`` for a new axis, or
            a tuple of these; or a mask alone: a tensor or array of bool.

    Raises:
        ShapeError: if the index has too many entries, or one out of range.
        ArgumentTypeError: if an entry is of another kind.
    """
    source = as_tensor(tensor)
    source = convert_to_tensor(tensor) if source is None else source
    if _is_mask(key):
        return boolean_mask(source, key)
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


def _is_mask(key: Any) -> bool:
    if isinstance(key, np.ndarray):
        return bool(key.dtype == np.bool_)
    tensor = None if isinstance(key, tuple | slice) else as_tensor(key)
    return tensor is not None and tensor.dtype.is_bool


def _entry(item: Any) -> tuple[str, Any, Any, Any]:
    if item is None:
        return NEW_AXIS, 0, 0, 1
    if item is Ellipsis:
        return ELLIPSIS, 0, 0, 1
    if isinstance(item, slice):
        step = 1 if item.step is None else _bound(item.step)
        if isinstance(step, int) and step == 0:
            raise AttributeValueError("a slice's step must not be 0")
        start, stop = (None if b is None else _bound(b) for b in (item.start, item.stop))
        return SLICE, start, stop, step
    return ELEMENT, _bound(item), 0, 1


def _bound(item: Any) -> Any:
    """Return an index or a bound of a slice as an integer or a scalar tensor."""
    scalar = as_tensor(item)
    if scalar is not None and scalar.dtype.is_integer and scalar.shape.rank in (0, None):
        known = None if scalar.shape.rank is None else static_value(scalar)
        return scalar if known is None else int(known)
    if isinstance(item, np.ndarray) and not item.ndim:
        item = item[()]
    if isinstance(item, int | np.integer) and not isinstance(item, bool):
        return as_int(int(item), "an index")
    raise ArgumentTypeError(
        f"a tensor is indexed by integers, slices, ..., None and scalar integer tensors, or by one "
        f"mask, got {shown(item)}; use hr.gather for lists of indices"
    )


def _bound_vector(parts: list[Any]) -> Any:
    if contains_tensor(parts):
        return convert_to_tensor([_as_index(part) for part in parts])
    return np.array(parts, np.int64 if any(abs(p) >= 2**31 for p in parts) else np.int32)


def _as_index(part: Any) -> Any:
    tensor = as_tensor(part)
    if tensor is None or tensor.dtype.name in ("int32", "int64"):
        return part
    return call_op("Cast", tensor, "int64" if tensor.dtype.itemsize > 2 else "int32")


def strided_slice(
    input_: Any,
    begin: Any,
    end: Any,
    strides: Any = None,
    begin_mask: int = 0,
    end_mask: int = 0,
    ellipsis_mask: int = 0,
    new_axis_mask: int = 0,
    shrink_axis_mask: int = 0,
    var: Any = None,
    name: str | None = None,
) -> Tensor:
    """Take a strided slice of a tensor. Bit i of each mask speaks of entry i.

    Args:
        input_: [...], any dtype.
        begin: [n], where each entry starts: a list or an integer tensor.
        end: [n], where each entry stops.
        strides: [n], the steps, not 0; all 1 if None.
        begin_mask: Which entries have no start.
        end_mask: Which entries have no stop.
        ellipsis_mask: Which entry stands for all axes that are not named, one at most.
        new_axis_mask: Which entries insert an axis of size 1.
        shrink_axis_mask: Which entries name one element, at ``begin``, and drop the axis.
        var: A variable whose slice this is; the result's ``assign`` changes it.
        name: The name of the operation.

    Returns:
        The sliced shape, the dtype of ``input_``.

    Raises:
        ShapeError: if there are too many entries, or an element is known to be out of range.
        AttributeValueError: if a stride is known to be 0.
    """
    source = convert_to_tensor(input_ if var is None else var)
    given = [known_ints(_vector(part)) for part in (begin, end, strides) if part is not None]
    count = next((n for n in map(_length, given) if n is not None), None)
    if count is None:
        if source.shape.rank is None or ellipsis_mask or new_axis_mask or shrink_axis_mask:
            raise ShapeError("strided_slice: begin must be a vector of known length")
        count = source.shape.rank
        given = _lengthened(source, given)
    bounds, steps = given[:2], given[2] if len(given) == 3 else [1] * count
    ellipsis_mask = whole(ellipsis_mask, "ellipsis_mask")
    if ellipsis_mask & (ellipsis_mask - 1):
        raise AttributeValueError("strided_slice: ellipsis_mask has at most one bit")
    entries = ""
    for i in range(count):
        bit = 1 << i
        entries += next(
            (
                letter
                for mask, letter in (
                    (ellipsis_mask, ELLIPSIS),
                    (new_axis_mask, NEW_AXIS),
                    (shrink_axis_mask, ELEMENT),
                )
                if mask & bit
            ),
            SLICE,
        )
    masks = ["".join(str(mask >> i & 1) for i in range(count)) for mask in (begin_mask, end_mask)]
    return _strided_slice(source, *bounds, steps, entries, *masks, name=name)


def _vector(value: Any) -> Any:
    return convert_to_tensor(value) if contains_tensor(value) else value


def _length(vector: Any) -> int | None:
    """Return the length of a vector, None where only a step knows it."""
    tensor = as_tensor(vector)
    shape = Shape(np.shape(as_ints(vector, "begin"))) if tensor is None else tensor.spec.shape
    if shape.rank not in (None, 1):
        raise ShapeError(f"strided_slice: begin, end and strides must be vectors, got {shape}")
    return None if shape.rank is None else shape[0]


def _lengthened(source: Tensor, bounds: Sequence[Any]) -> list[Tensor]:
    """Return bounds of a length that a step knows with entries for the axes that they leave out."""
    rank: Any = source.shape.rank
    length: Any = call_op("Shape", bounds[0])
    rest: Any = rank - length
    sizes = call_op("Shape", source)
    more = (call_op("Fill", rest, 0), sizes[length[0] :], call_op("Fill", rest, 1))
    made = []
    for part, added in zip(bounds, more, strict=False):
        own = convert_to_tensor(part)
        whole = call_op("Concat", [own, call_op("Cast", added, own.dtype)], 0)
        made.append(call_op("EnsureShape", whole, Shape([rank])))
    return made


# -- blocks


def _block_early(input: Any, begin: Any, size: Any) -> Any:
    starts = zip(begin.tolist(), size.tolist(), strict=True)
    return input[tuple(slice(a, None if n == -1 else a + n) for a, n in starts)]


@op("Slice", total=True, early=_block_early, host_inputs=["begin", "size"], public="")
def _slice(input: Anything, begin: Index, size: Index) -> Spec:
    """A block of a tensor.

    Args:
        input: [...], any dtype.
        begin: [rank], where the block starts.
        size: [rank], its sizes; -1 for all that is left.

    Returns:
        ``size``, the dtype of ``input``.
    """
    rank = input.rank
    for part in (begin, size):
        if not part.shape.is_compatible_with([rank]):
            raise ShapeError(
                f"begin and size need one entry per dimension of {input.shape}, got shape "
                f"{part.shape}"
            )
        rank = part.shape[0] if rank is None and part.rank == 1 else rank
    if rank is None:
        return TensorSpec(input.dtype)
    starts = _known(begin, SLICE * rank)
    lengths = [None if v is None or v < 0 else v for v in _known(size, SLICE * rank)]
    wanted = None if size.value is None else [int(v) for v in size.value]
    dims = input.shape.dims if input.shape.dims is not None else (None,) * rank
    found: list[Dim] = []
    for axis, (start, length, dim) in enumerate(zip(starts, lengths, dims, strict=True)):
        to_end = wanted is not None and wanted[axis] == -1
        least = (start or 0) + (length or 0)
        negative = (start or 0) < 0 or (wanted is not None and wanted[axis] < -1)
        if negative or (dim is not None and least > dim):
            raise ShapeError(
                f"{'all' if to_end else length} elements from {start} on do not lie within axis "
                f"{axis} of {input.shape}"
            )
        if to_end and dim is not None and start is not None:
            length = dim - start
        found.append(length)
    return _block_spec(input, Shape(found), starts)


def _block_spec(input: TensorSpec, shape: Shape, starts: Sequence[int | None]) -> TensorSpec:
    """Return the spec with what is known of the value of a part of a vector."""
    if len(starts) != 1 or starts[0] is None or not shape.is_fully_defined():
        return TensorSpec(input.dtype, shape)
    part = slice(starts[0], starts[0] + shape.known[0])
    if input.value is not None and input.value.size <= 4096:
        return TensorSpec(input.dtype, shape, np.asarray(input.value[part], input.value.dtype))
    if input.dims is not None and input.dims.dims is not None:
        return TensorSpec(input.dtype, shape, dims=Shape(input.dims.dims[part]))
    return TensorSpec(input.dtype, shape)


def slice_(input_: Any, begin: Any, size: Any, name: str | None = None) -> Tensor:
    """Take a block of a tensor.

    Args:
        input_: [...], any dtype.
        begin: [rank], where the block starts: a list or an integer tensor.
        size: [rank], its sizes; -1 for all that is left.
        name: The name of the operation.

    Returns:
        ``size``, the dtype of ``input_``.

    Raises:
        ShapeError: if the block is known not to lie within the tensor.
    """
    bounds = [as_ints(part, label) for part, label in ((begin, "begin"), (size, "size"))]
    return _slice(input_, *bounds, name=name)


OPERATORS["getitem"] = index
OPERATORS["assign_slice"] = assign_slice
