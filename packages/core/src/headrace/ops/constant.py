"""Ops that make tensors of plain data: constants, placeholders, ranges and fills."""

from __future__ import annotations

from typing import Any

import numpy as np

from headrace import dtypes
from headrace.dtypes import DType, as_dtype
from headrace.errors import AttributeValueError, DTypeError, ShapeError
from headrace.graph.convert import constant_of, convert_to_tensor, to_array
from headrace.graph.spec import TensorSpec, as_shape, constant_spec
from headrace.graph.tensor import Tensor
from headrace.ops.array import shape as shape_op
from headrace.ops.declare import Spec, op
from headrace.ops.kinds import Anything, Index, Integer, Real, Same
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
    value: Any, dtype: Any = None, shape: Any = None, name: str | None = "Const"
) -> Tensor:
    """Make a constant of a number, string, array or nested list.

    Args:
        value: The value; must not contain tensors.
        dtype: The dtype; inferred if None (Python floats are float32, integers int32).
        shape: The shape; the value is reshaped to it, a single element fills it.
        name: The name of the operation.

    Raises:
        DTypeError: if the value does not fit the dtype.
        ShapeError: if the value does not fit the shape.
    """
    array = to_array(value, None if dtype is None else as_dtype(dtype))
    if shape is not None:
        wanted = Shape(shape).known
        if array.size == 1:
            array = np.full(wanted, array.reshape(())[()], array.dtype)
        elif array.size != int(np.prod(wanted)):
            raise ShapeError(f"a value of shape {list(array.shape)} does not fill {list(wanted)}")
        array = array.reshape(wanted)
    return constant_of(array, name)


@op("Placeholder", stateful=True, public="", no_gradient="it has no inputs")
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


@op("Fill")
def fill(dims: Index, value: Anything) -> Spec:
    """A tensor of which every element is ``value``.

    Args:
        dims: [rank], the shape.
        value: [], any dtype.

    Returns:
        ``dims``, the dtype of ``value``.
    """
    if value.rank not in (None, 0):
        raise ShapeError(f"value must be a scalar, got shape {value.shape}")
    return TensorSpec(value.dtype, as_shape(dims))


def zeros(shape: Any, dtype: Any = dtypes.float32, name: str | None = "zeros") -> Tensor:
    """Make a tensor of zeros (empty strings, false).

    Args:
        shape: The shape: a list or an integer tensor.
        dtype: The dtype.
        name: The name of the operation.
    """
    kind = as_dtype(dtype)
    return fill(_shape_tensor(shape), _element(kind, 0), name=name)


def ones(shape: Any, dtype: Any = dtypes.float32, name: str | None = "ones") -> Tensor:
    """Make a tensor of ones.

    Args:
        shape: The shape: a list or an integer tensor.
        dtype: The dtype.
        name: The name of the operation.
    """
    return fill(_shape_tensor(shape), _element(as_dtype(dtype), 1), name=name)


def zeros_like(
    tensor: Any, dtype: Any = None, name: str | None = "zeros_like", optimize: bool = True
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
    return zeros(shape_of(like), dtype if dtype is not None else like.dtype, name)


def ones_like(
    tensor: Any, dtype: Any = None, name: str | None = "ones_like", optimize: bool = True
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
    return ones(shape_of(like), dtype if dtype is not None else like.dtype, name)


def shape_of(tensor: Tensor) -> Any:
    """Return a tensor's shape: a list where it is static, a node otherwise."""
    return list(tensor.shape.known) if tensor.shape.is_fully_defined else shape_op(tensor)


def _shape_tensor(value: Any) -> Any:
    if isinstance(value, Shape):
        return list(value.known)
    return [value] if isinstance(value, int) else value


def _element(dtype: DType, number: int) -> Any:
    if dtype.kind == "string":
        if number:
            raise DTypeError("there is no string one")
        return np.array(b"", object)
    return np.array(number).astype(dtype.numpy)


@op("Range", public="", no_gradient="its length depends on its inputs in steps")
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
    span = float(limit.value) - float(start.value)
    return TensorSpec(start.dtype, Shape([max(0, int(np.ceil(span / float(delta.value))))]))


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
    if dtype is not None:
        kind = as_dtype(dtype)
        parts = [convert_to_tensor(v, kind) for v in (first, last, delta)]
        return _range(*parts, name=name)
    return _range(first, last, delta, name=name)


@op("OneHot", public="")
def _one_hot(indices: Integer, on_value: Same, off_value: Same, depth: int, axis: int) -> Spec:
    """Vectors that are ``on_value`` at an index and ``off_value`` elsewhere.

    Args:
        indices: [...], integers; those outside [0, depth) give ``off_value`` throughout.
        on_value: [], any dtype.
        off_value: [], the dtype of ``on_value``.
        depth: The size of the new axis.
        axis: Where the new axis stands; -1 for last.

    Returns:
        The shape of ``indices`` with ``depth`` inserted, the dtype of ``on_value``.
    """
    if depth < 0:
        raise AttributeValueError(f"depth must be >= 0, got {depth}")
    if indices.shape.dims is None:
        return TensorSpec(on_value.dtype)
    dims = list(indices.shape.dims)
    dims.insert(normalize_axis(axis, len(dims) + 1), depth)
    return TensorSpec(on_value.dtype, Shape(dims))


def one_hot(
    indices: Any,
    depth: int,
    on_value: Any = None,
    off_value: Any = None,
    axis: int | None = None,
    dtype: Any = None,
    name: str | None = None,
) -> Tensor:
    """Make vectors that are 1 at an index and 0 elsewhere.

    Args:
        indices: [...], integers; those outside [0, depth) give zeros throughout.
        depth: The size of the new axis.
        on_value: What stands at the index; 1 if None.
        off_value: What stands elsewhere; 0 if None.
        axis: Where the new axis stands; last if None.
        dtype: The dtype; that of ``on_value``, or float32, if None.
        name: The name of the operation.
    """
    kind = None if dtype is None else as_dtype(dtype)
    if kind is None and on_value is None and off_value is None:
        kind = dtypes.float32
    on = 1 if on_value is None else on_value
    off = 0 if off_value is None else off_value
    if kind is not None:
        on, off = convert_to_tensor(on, kind), convert_to_tensor(off, kind)
    return _one_hot(indices, on, off, depth, -1 if axis is None else axis, name=name)
