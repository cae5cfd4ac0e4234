"""Ops that make tensors of plain data: constants, placeholders, ranges and fills."""

from __future__ import annotations

import builtins
import math
from typing import Any

import numpy as np

from headrace import dtypes
from headrace.dtypes import DType, as_dtype
from headrace.errors import (
    AttributeValueError,
    DTypeError,
    HeadraceError,
    ShapeError,
    ShapeTypeError,
    shown,
)
from headrace.graph.convert import (
    as_tensor,
    constant_of,
    convert_to_tensor,
    quantized_dtype,
    to_array,
)
from headrace.graph.dispatch import dispatched
from headrace.graph.schema import call_op
from headrace.graph.scopes import in_graph_of, name_scope
from headrace.graph.spec import MAX_RANK, TensorSpec, as_shape, constant_spec, is_addressable
from headrace.graph.tensor import Tensor
from headrace.ops.arguments import as_int, as_ints, static_value
from headrace.ops.array import broadcast_to, expand_dims, shape_argument
from headrace.ops.array import shape as shape_op
from headrace.ops.declare import Spec, op
from headrace.ops.kinds import Anything, Floating, Index, Integer, Real, Same, Whole
from headrace.shapes import Shape, normalize_axis


@op("Const", builtin=True, public="", no_gradient="it has no inputs")
def _const(value: np.ndarray) -> Spec:
    """A constant.

    Args:
        value: The array, which must not change afterwards.

    Returns:
        The shape and dtype of ``value``.
    """
    dtype = dtypes.string if value.dtype == object else as_dtype(value.dtype)
    return constant_spec(value, dtype)


def constant(
    value: Any,
    dtype: Any = None,
    shape: Any = None,
    name: str | None = "Const",
    verify_shape: bool = False,
) -> Tensor:
    """Make a constant of a number, string, array or nested list.

    Args:
        value: The value; must not contain tensors.
        dtype: The dtype; inferred if None (Python floats are float32, integers int32).
        shape: The shape; the value is reshaped to it, and its last element fills what is left.
        name: The name of the operation.
        verify_shape: Whether the value must have the shape, instead.

    Raises:
        DTypeError: if the value does not fit the dtype.
        ShapeError: if the value does not fit the shape.
        ShapeTypeError: if ``verify_shape`` is set and the value has another one.
    """
    held = quantized_dtype(value) if dtype is None else as_dtype(dtype)
    array = to_array(value, held)
    if shape is not None:
        wanted = Shape(shape).known
        if len(wanted) > MAX_RANK or not is_addressable(Shape(wanted)):
            raise ShapeError(f"constant: no array has the shape {Shape(wanted)}")
        if verify_shape and array.shape != wanted:
            raise ShapeTypeError(
                f"expected a value of shape {list(wanted)}, got {list(array.shape)}"
            )
        try:
            array = _filled_up(array, wanted)
        except (ValueError, MemoryError) as error:
            if isinstance(error, HeadraceError):
                raise
            raise ShapeError(
                f"constant: an array of shape {Shape(wanted)} is too large; use hr.fill"
            ) from None
    return constant_of(array, name, held)


def _filled_up(array: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
    """Return the elements in another shape, the last of them repeated where there are too few."""
    missing = math.prod(shape) - array.size
    if not math.prod(shape):
        return np.zeros(shape, array.dtype)
    if missing and not array.size:
        return np.full(shape, b"" if array.dtype == object else 0, array.dtype)
    if missing < 0:
        raise ShapeError(f"a value of shape {list(array.shape)} does not fill {list(shape)}")
    if array.size == 1:
        return np.full(shape, array.reshape(())[()], array.dtype)
    if missing:
        flat = array.reshape(-1)
        array = np.concatenate([flat, np.full(missing, flat[-1], array.dtype)])
    return array.reshape(shape)


def known_value(value: Any) -> np.ndarray | None:
    """Return the value of a tensor or plain data where it is known while the graph is built."""
    given = convert_to_tensor(value)
    if given.op.type not in COMPARISONS:
        return static_value(given)
    sides = [static_value(t) for t in given.op.inputs]
    if any(side is None for side in sides):
        return None
    found: np.ndarray = COMPARISONS[given.op.type](*sides)
    return found


COMPARISONS: dict[str, Any] = {"Equal": np.equal, "NotEqual": np.not_equal}


@op("Placeholder", effects="observes", public="", no_gradient="it has no inputs")
def _placeholder(dtype: DType, shape: Shape) -> Spec:
    """A tensor that has no value until it is fed.

    Args:
        dtype: Dtype of what is fed.
        shape: Shape of what is fed, as far as known.

    Returns:
        ``shape``, ``dtype``.
    """
    return TensorSpec(dtype, shape)


def placeholder(dtype: Any, shape: Any = None, name: str | None = None) -> Tensor:
    """Make a tensor that has to be fed in every step that needs it.

    Args:
        dtype: The dtype of what will be fed.
        shape: Its shape, None for an unknown rank, with None for unknown dimensions.
        name: The name of the operation.
    """
    return _placeholder(as_dtype(dtype), Shape(shape), name=name)


@op("Fill", total=True, repeats=True, early=np.full, host_inputs=["dims"], public="")
def _fill(dims: Whole, value: Anything) -> Spec:
    """A tensor of which every element is ``value``.

    Args:
        dims: [rank], the shape.
        value: [], any dtype.

    Returns:
        ``dims``, the dtype of ``value``.
    """
    if dims.rank not in (None, 1):
        raise ShapeError(f"dims must be a vector of dimensions, got {dims}")
    if dims.value is not None and (dims.value < 0).any():
        raise ShapeError(f"dimensions must be >= 0, got {dims.value.tolist()}")
    if value.rank not in (None, 0):
        raise ShapeError(f"value must be a scalar, got shape {value.shape}")
    shape = as_shape(dims)
    small = shape.is_fully_defined() and max(shape.known, default=0) <= 64
    if value.value is None or not small or math.prod(shape.known) > 64:
        return TensorSpec(value.dtype, shape)
    return constant_spec(np.full(shape.known, value.value[()], value.value.dtype), value.dtype)


def fill(dims: Any, value: Any, name: str | None = None) -> Tensor:
    """Make a tensor of which every element is one value.

    Args:
        dims: [rank], the shape, a list or an integer tensor.
        value: [], any dtype.
        name: The name of the operation.

    Returns:
        ``dims``, the dtype of ``value``.

    Raises:
        ShapeError: if ``value`` is no scalar, or a dimension is known to be negative.
    """
    return _fill(shape_argument(dims), value, name=name)


def zeros(shape: Any, dtype: Any = dtypes.float32, name: str | None = None) -> Tensor:
    """Make a tensor of zeros (empty strings, false).

    Args:
        shape: The shape: a list or an integer tensor; a number for a vector.
        dtype: The dtype.
        name: The name of the operation.
    """
    kind = as_dtype(dtype)
    return fill(_shape_tensor(shape), _element(kind, 0), name=name or "zeros")


def ones(shape: Any, dtype: Any = dtypes.float32, name: str | None = None) -> Tensor:
    """Make a tensor of ones.

    Args:
        shape: The shape: a list or an integer tensor; a number for a vector.
        dtype: The dtype.
        name: The name of the operation.
    """
    return fill(_shape_tensor(shape), _element(as_dtype(dtype), 1), name=name or "ones")


@dispatched("tensor")
def zeros_like(
    tensor: Any, dtype: Any = None, name: str | None = None, optimize: bool = True
) -> Tensor:
    """Make a tensor of zeros with the shape of another.

    Args:
        tensor: [...], any dtype.
        dtype: The dtype; that of ``tensor`` if None.
        name: The name of the operation.
        optimize: Ignored; a known shape is always used.
    """
    del optimize
    like = convert_to_tensor(tensor)
    with in_graph_of([like]):
        kind = like.dtype if dtype is None else dtype
        return zeros(shape_of(like), kind, name or "zeros_like")


@dispatched("tensor")
def ones_like(
    tensor: Any, dtype: Any = None, name: str | None = None, optimize: bool = True
) -> Tensor:
    """Make a tensor of ones with the shape of another.

    Args:
        tensor: [...], any dtype.
        dtype: The dtype; that of ``tensor`` if None.
        name: The name of the operation.
        optimize: Ignored; a known shape is always used.
    """
    del optimize
    like = convert_to_tensor(tensor)
    with in_graph_of([like]):
        kind = like.dtype if dtype is None else dtype
        return ones(shape_of(like), kind, name or "ones_like")


def shape_of(tensor: Tensor) -> Any:
    """Return a tensor's shape: a list where it is static, a node otherwise."""
    return list(tensor.shape.known) if tensor.shape.is_fully_defined() else shape_op(tensor)


def _shape_tensor(value: Any) -> Any:
    found = as_ints(value, "shape")
    if isinstance(found, int):
        return [found]
    if isinstance(found, Tensor) and found.shape.rank == 0:
        return expand_dims(found, 0)
    return found


def _element(dtype: DType, number: int) -> Any:
    if dtype.kind == "string":
        if number:
            raise DTypeError("there is no string one")
        return np.array(b"", object)
    return np.array(number).astype(dtype.as_numpy_dtype)


@op(
    "Range",
    early=np.arange,
    host_inputs=["start", "limit", "delta"],
    public="",
    no_gradient="its length depends on its inputs in steps",
)
def _range(start: Real, limit: Real, delta: Real) -> Spec:
    """Numbers from ``start`` up to but without ``limit``, ``delta`` apart.

    Args:
        start: [], real.
        limit: [], the dtype of ``start``.
        delta: [], the dtype of ``start``, not 0.

    Returns:
        [n], the dtype of ``start``.
    """
    for part, label in ((start, "start"), (limit, "limit"), (delta, "delta")):
        if part.rank not in (None, 0):
            raise ShapeError(f"{label} must be a scalar, got shape {part.shape}")
    if delta.value is not None and delta.value == 0:
        raise AttributeValueError("delta must not be 0")
    if start.value is None or limit.value is None or delta.value is None:
        return TensorSpec(start.dtype, Shape([None]))
    first, last, step = (part.value.item() for part in (start, limit, delta))
    if not all(math.isfinite(v) for v in (first, last, step)):
        raise AttributeValueError(f"a range must be finite, got {first} to {last} by {step}")
    if (last - first) * step < 0:
        raise AttributeValueError(f"a range from {first} to {last} needs another step than {step}")
    if start.dtype.is_integer:
        count = -((first - last) // step)
    else:
        count = math.ceil(min((last - first) / step, 2.0**62))
    if count >= 2**62:
        raise AttributeValueError(f"a range from {first} to {last} by {step} is too long")
    return TensorSpec(start.dtype, Shape([count]), _small_range(start, first, step, count))


def _small_range(start: TensorSpec, first: Any, step: Any, count: int) -> Any:
    if not start.dtype.is_integer or count > 64:
        return None
    return np.array([first + step * i for i in builtins.range(count)], start.dtype.numpy)


def range(
    start: Any,
    limit: Any = None,
    delta: Any = 1,
    dtype: Any = None,
    name: str | None = "range",
) -> Tensor:
    """Make a vector of evenly spaced numbers.

    Args:
        start: [], the first number; or the limit, if ``limit`` is None and the first is 0.
        limit: [], where to stop; not included.
        delta: [], the distance.
        dtype: The dtype; that of the numbers if None.
        name: The name of the operation.
    """
    first, last = (0, start) if limit is None else (start, limit)
    kind = None if dtype is None else as_dtype(dtype)
    if kind is not None:
        parts = [convert_to_tensor(v, kind) for v in (first, last, delta)]
        return _range(*parts, name=name)
    tensors = [t for t in map(as_tensor, (first, last, delta)) if t is not None]
    order = [dtypes.int32, dtypes.int64, dtypes.float32, dtypes.float64]
    if len({t.dtype for t in tensors}) > 1 and all(t.dtype in order for t in tensors):
        # The later of them, although floats do not hold all integers: so TensorFlow.
        kind = max((t.dtype for t in tensors), key=order.index)
        first, last, delta = (
            v if as_tensor(v) is None else _cast(v, kind) for v in (first, last, delta)
        )
    return _range(first, last, delta, name=name)


@op("OneHot", host_inputs=["depth"], public="", node_name="one_hot")
def _one_hot(
    indices: Integer, on_value: Same, off_value: Same, depth: Index, axis: int = -1
) -> Spec:
    """Vectors that are ``on_value`` at an index and ``off_value`` elsewhere.

    Args:
        indices: [...], integers; those outside [0, depth) give ``off_value`` throughout.
        on_value: [], any dtype.
        off_value: [], the dtype of ``on_value``.
        depth: [], the size of the new axis.
        axis: Where the new axis stands; -1 for last.

    Returns:
        The shape of ``indices`` with ``depth`` inserted, the dtype of ``on_value``.
    """
    for part, label in ((on_value, "on_value"), (off_value, "off_value"), (depth, "depth")):
        if part.rank not in (None, 0):
            raise ShapeError(f"{label} must be a scalar, got shape {part.shape}")
    if depth.value is not None and depth.value < 0:
        raise AttributeValueError(f"depth must be >= 0, got {depth.value}")
    if indices.shape.dims is None:
        return TensorSpec(on_value.dtype)
    dims = list(indices.shape.dims)
    size = None if depth.value is None else int(depth.value)
    dims.insert(normalize_axis(axis, len(dims) + 1), size)
    return TensorSpec(on_value.dtype, Shape(dims))


@dispatched()
def one_hot(
    indices: Any,
    depth: Any,
    on_value: Any = None,
    off_value: Any = None,
    axis: int | None = None,
    dtype: Any = None,
    name: str | None = None,
) -> Tensor:
    """Make vectors that are 1 at an index and 0 elsewhere.

    Args:
        indices: [...], integers; those outside [0, depth) give zeros throughout.
        depth: The size of the new axis, an integer or a scalar tensor.
        on_value: What stands at the index; 1 if None.
        off_value: What stands elsewhere; 0 if None.
        axis: Where the new axis stands; last if None.
        dtype: The dtype; that of ``on_value`` or ``off_value``, or float32, if None.
        name: The name of the operation.

    Returns:
        The shape of ``indices`` with ``depth`` inserted, ``dtype``.

    Raises:
        DTypeError: if a value does not fit ``dtype``, or the values differ in dtype.
        ShapeError: if a value or ``depth`` is no scalar, or ``axis`` is out of range.
    """
    kind = None if dtype is None else as_dtype(dtype)
    if kind is None and on_value is None and off_value is None:
        kind = dtypes.float32
    given = [None if v is None else convert_to_tensor(v, kind) for v in (on_value, off_value)]
    kinds = [v.dtype for v in given if v is not None]
    if len(set(kinds)) > 1:
        raise DTypeError(
            f"one_hot: on_value {shown(on_value)} is {kinds[0]} and "
            f"off_value {shown(off_value)} is {kinds[1]}; convert one of them with hr.cast"
        )
    kind = kind or next(v.dtype for v in given if v is not None)
    on, off = (_element(kind, 1 - i) if v is None else v for i, v in enumerate(given))
    size = as_int(depth, "depth")
    return _one_hot(indices, on, off, size, -1 if axis is None else axis, name=name)


# -- masks and grids


def sequence_mask(
    lengths: Any, maxlen: Any = None, dtype: Any = dtypes.bool_, name: str | None = None
) -> Tensor:
    """Say of each place of sequences whether it lies within the sequence.

    Args:
        lengths: [...], integers, the length of each sequence.
        maxlen: The number of places, an integer or a scalar tensor; the largest length if None.
        dtype: The dtype of the result.
        name: The name of the operations.

    Returns:
        [..., maxlen], ``dtype``: true, or 1, before the length.

    Raises:
        ShapeError: if ``maxlen`` is no scalar.
    """
    with name_scope(name, "SequenceMask", [lengths, maxlen]):
        counts = convert_to_tensor(lengths)
        if not counts.dtype.is_numeric or counts.dtype.is_complex:
            raise DTypeError(f"sequence_mask: lengths must be real, got {counts.dtype}")
        whole = counts.dtype.is_integer
        known = static_value(counts) if maxlen is None and whole else None
        if known is not None:
            maxlen = int(known.max()) if known.size else 0
        if maxlen is None:
            flat = call_op("Reshape", counts, [-1])
            # Of no sequences at all, the places are none.
            zero = call_op("Cast", np.zeros((1,), np.int64), counts.dtype)
            places = call_op("ReduceMax", call_op("Concat", [flat, zero], 0))
        else:
            places = convert_to_tensor(maxlen, preferred_dtype=counts.dtype)
            if places.shape.rank not in (None, 0):
                raise ShapeError(f"sequence_mask: maxlen must be a scalar, got {places.spec.shape}")
        if whole and places.dtype.is_integer and places.dtype != counts.dtype:
            # A dtype that holds both: in that of either, the other's numbers may wrap around.
            counts, places = _as_int64(counts), _as_int64(places)
        elif places.dtype != counts.dtype:
            places = _cast(places, counts.dtype)
        row = range(_cast(0, counts.dtype), places, _cast(1, counts.dtype))
        # Lengths that are no integers count whole elements, where there is a length to go to.
        if maxlen is not None and not counts.dtype.is_integer:
            counts = _cast(_cast(counts, dtypes.int32), counts.dtype)
        mask: Tensor = call_op("Less", row, expand_dims(counts, -1))
        wanted = as_dtype(dtype)
        if wanted.is_bool:
            return mask
        found: Tensor = call_op("Cast", mask, wanted)
        return found


def _as_int64(count: Tensor) -> Tensor:
    """Return integers as int64; those of uint64 beyond it are as large as it holds."""
    if count.dtype == dtypes.uint64:
        largest = np.asarray(2**63 - 1, np.uint64)
        count = call_op("Minimum", count, largest)
    return _cast(count, dtypes.int64)


def eye(
    num_rows: Any,
    num_columns: Any = None,
    batch_shape: Any = None,
    dtype: Any = dtypes.float32,
    name: str | None = None,
) -> Tensor:
    """Make identity matrices.

    Args:
        num_rows: The number of rows, an integer or a scalar tensor.
        num_columns: The number of columns; that of rows if None.
        batch_shape: The shape of the batch, a list or an integer tensor; one matrix if None.
        dtype: The dtype.
        name: The name of the operations.

    Returns:
        [batch_shape..., num_rows, num_columns], ``dtype``: ones on the diagonal, else zeros.

    Raises:
        ShapeError: if a size is known to be negative.
    """
    with name_scope(name, "eye"):
        rows = as_int(num_rows, "num_rows")
        columns = rows if num_columns is None else as_int(num_columns, "num_columns")
        for count in (rows, columns):
            if isinstance(count, int) and not 0 <= count <= dtypes.int32.max:
                raise ShapeError(f"eye: a matrix has no {count} rows or columns")
        down, across = (range(_cast(count, dtypes.int64)) for count in (rows, columns))
        same = call_op("Equal", expand_dims(down, 1), across)
        kind = as_dtype(dtype)
        matrix: Tensor = same if kind.is_bool else call_op("Cast", same, kind)
        if batch_shape is None:
            return matrix
        batch = _shape_tensor(batch_shape)
        sizes = [rows, columns]
        if isinstance(batch, list) and all(isinstance(s, int) for s in sizes):
            return broadcast_to(matrix, [*batch, *sizes])
        lead = convert_to_tensor(batch if isinstance(batch, Tensor) else np.array(batch, np.int64))
        # In the dtype that it has: what is known of its elements is known of the shape then.
        wide = dtypes.int32 if lead.dtype == dtypes.int32 else dtypes.int64
        parts = [_cast(lead, wide), shape_op(matrix, out_type=wide)]
        return broadcast_to(matrix, call_op("Concat", parts, 0))


def _cast(value: Any, dtype: DType) -> Tensor:
    """Return a number or tensor in a dtype, as a constant where its value is known."""
    tensor = convert_to_tensor(value)
    known = static_value(tensor) if tensor.dtype.is_integer else None
    if known is not None:
        return convert_to_tensor(known.astype(dtype.numpy))
    found: Tensor = tensor if tensor.dtype == dtype else call_op("Cast", tensor, dtype)
    return found


@op("LinSpace", host_inputs=["num"], public="")
def _lin_space(start: Floating, stop: Floating, num: Index) -> Spec:
    """Evenly spaced numbers from ``start`` to ``stop``, both included.

    Args:
        start: [], floating.
        stop: [], the dtype of ``start``.
        num: [], how many, 1 at least; one alone is ``start``.

    Returns:
        [num], the dtype of ``start``.
    """
    for part, label in ((start, "start"), (stop, "stop"), (num, "num")):
        if part.rank not in (None, 0):
            raise ShapeError(f"{label} must be a scalar, got shape {part.shape}")
    if num.value is not None and num.value < 1:
        raise AttributeValueError(f"num must be >= 1, got {num.value}")
    return TensorSpec(start.dtype, Shape([None if num.value is None else int(num.value)]))


def lin_space(start: Any, stop: Any, num: Any, name: str | None = None) -> Tensor:
    """Make a vector of evenly spaced numbers from ``start`` to ``stop``, both included.

    Args:
        start: [], floating.
        stop: [], the dtype of ``start``.
        num: How many, 1 at least, an integer or a scalar tensor; one alone is ``start``.
        name: The name of the operation.

    Returns:
        [num], the dtype of ``start``.

    Raises:
        AttributeValueError: if ``num`` is known to be less than 1.
    """
    return _lin_space(start, stop, as_int(num, "num"), name=name)
