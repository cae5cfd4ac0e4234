"""Array ops: shapes, and the same elements in another arrangement."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from headrace import dtypes
from headrace.dtypes import DType
from headrace.errors import AttributeValueError, DTypeError, ShapeError, shown
from headrace.graph.convert import as_tensor, constant_of, convert_to_tensor
from headrace.graph.dispatch import dispatched
from headrace.graph.schema import call_op
from headrace.graph.scopes import get_default_graph, name_scope
from headrace.graph.sparse_tensor import SparseTensor, SparseTensorValue
from headrace.graph.spec import TensorSpec, as_shape
from headrace.graph.tensor import Tensor
from headrace.graph.tensor_shape import TensorShape
from headrace.ops.arguments import as_ints, as_list, as_only_int, known_ints, one_of
from headrace.ops.declare import Spec, op
from headrace.ops.gather import gather as gather
from headrace.ops.identity import ensure_shape
from headrace.ops.identity import identity as identity
from headrace.ops.identity import identity_n as identity_n
from headrace.ops.identity import stop_gradient as stop_gradient
from headrace.ops.joining import concat as concat
from headrace.ops.joining import split as split
from headrace.ops.joining import stack as stack
from headrace.ops.joining import tile as tile
from headrace.ops.joining import unstack as unstack
from headrace.ops.kinds import Anything, Index, Whole
from headrace.ops.padding import pad as pad
from headrace.shapes import UNKNOWN, Shape, broadcast, normalize_axis

_NO_DIMS = "it yields a shape"


@op("Shape", public="", no_gradient=_NO_DIMS)
def _shape(input: Anything, out_type: DType = dtypes.int32) -> Spec:
    """The shape of a tensor, as a vector.

    Args:
        input: [...], any dtype.
        out_type: int32 or int64.

    Returns:
        [rank], ``out_type``.
    """
    if out_type not in (dtypes.int32, dtypes.int64):
        raise DTypeError(f"out_type must be int32 or int64, got {out_type}")
    value = None
    if input.shape.is_fully_defined():
        _check_fits(input.shape.known, out_type)
        value = np.array(input.shape.known, out_type.numpy)
    return TensorSpec(out_type, Shape([input.rank]), value, input.shape)


@op("Size", public="", no_gradient=_NO_DIMS)
def _size(input: Anything, out_type: DType = dtypes.int32) -> Spec:
    """The number of elements of a tensor.

    Args:
        input: [...], any dtype.
        out_type: int32 or int64.

    Returns:
        [], ``out_type``.
    """
    if out_type not in (dtypes.int32, dtypes.int64):
        raise DTypeError(f"out_type must be int32 or int64, got {out_type}")
    count = input.shape.num_elements()
    value = None
    if count is not None:
        _check_fits([count], out_type)
        value = np.array(count, out_type.numpy)
    return TensorSpec(out_type, Shape(()), value)


def _check_fits(sizes: Sequence[int], out_type: DType) -> None:
    if sizes and max(sizes) > out_type.max:
        raise ShapeError(f"size {max(sizes)} does not fit {out_type}; pass out_type=hr.int64")


@op("Rank", public="", no_gradient=_NO_DIMS)
def _rank(input: Anything) -> Spec:
    """The number of dimensions of a tensor.

    Args:
        input: [...], any dtype.

    Returns:
        [], int32.
    """
    value = None if input.rank is None else np.array(input.rank, np.int32)
    return TensorSpec(dtypes.int32, Shape(()), value)


def _dense_shape(value: Any, out_type: Any) -> Tensor | None:
    """Return the shape that a sparse tensor states, None for any other value."""
    if isinstance(value, SparseTensorValue):
        value = SparseTensor.from_value(value)
    if not isinstance(value, SparseTensor):
        return None
    dense = value.dense_shape
    found = call_op("Cast", dense, out_type) if dense.dtype != dtypes.as_dtype(out_type) else dense
    assert isinstance(found, Tensor)
    return found


def shape(input: Any, name: str | None = None, out_type: Any = dtypes.int32) -> Tensor:
    """The shape of a tensor, as a vector.

    Args:
        input: [...], any dtype; of a sparse tensor the shape of the whole.
        name: The name of the operation.
        out_type: int32 or int64.

    Returns:
        [rank], ``out_type``.

    Raises:
        ShapeError: if a size is known not to fit ``out_type``.
    """
    found = _dense_shape(input, out_type)
    if found is not None:
        return found
    known = _static(input)
    if known is not None and known.is_fully_defined():
        return _counted(known.known, out_type, name or "Shape")
    return _shape(input, out_type, name=name)


def _static(value: Any) -> Shape | None:
    """Return the shape of a placeholder, which need not be fed; None of what waits for others."""
    tensor = as_tensor(value)
    if tensor is None or tensor.op.type != "Placeholder":
        return None
    return tensor.spec.shape if tensor.graph is get_default_graph().outermost else None


def _counted(sizes: Any, out_type: Any, name: str) -> Tensor:
    """Return sizes that are known as a constant, which needs no tensor that has to be fed."""
    dtype = dtypes.as_dtype(out_type)
    if dtype not in (dtypes.int32, dtypes.int64):
        raise DTypeError(f"out_type must be int32 or int64, got {dtype}")
    _check_fits(np.ravel(np.array(sizes, np.object_)).tolist(), dtype)
    return constant_of(np.array(sizes, dtype.numpy), name)


def shape_n(input: Any, out_type: Any = dtypes.int32, name: str | None = None) -> list[Tensor]:
    """The shapes of several tensors, each as a vector.

    Args:
        input: A list of tensors of any dtypes.
        out_type: int32 or int64.
        name: The name of the operations.

    Returns:
        For each tensor [rank], ``out_type``.
    """
    with name_scope(name, "ShapeN"):
        return [shape(item, out_type=out_type) for item in as_list(input, "input")]


@dispatched()
def size(input: Any, name: str | None = None, out_type: Any = dtypes.int32) -> Tensor:
    """The number of elements of a tensor.

    Args:
        input: [...], any dtype; of a sparse tensor the elements of the whole are counted.
        name: The name of the operation.
        out_type: int32 or int64.

    Returns:
        [], ``out_type``.

    Raises:
        ShapeError: if it is known not to fit ``out_type``.
    """
    dense = _dense_shape(input, out_type)
    if dense is not None:
        count = call_op("ReduceProd", dense, axis=0, name=name)
        assert isinstance(count, Tensor)
        return count
    known = _static(input)
    if known is not None and known.is_fully_defined():
        return _counted(math.prod(known.known), out_type, name or "Size")
    return _size(input, out_type, name=name)


@dispatched()
def rank(input: Any, name: str | None = None) -> Tensor:
    """The number of dimensions of a tensor.

    Args:
        input: [...], any dtype.
        name: The name of the operation.

    Returns:
        [], int32.
    """
    dense = _dense_shape(input, dtypes.int64)
    if dense is not None:
        return _size(dense, name=name)
    known = _static(input)
    if known is not None and known.rank is not None:
        return _counted(known.rank, dtypes.int32, name or "Rank")
    return _rank(input, name=name)


# -- the same elements under another shape


@op("Reshape", total=True, view=True, early=np.reshape, host_inputs=["shape"], public="")
def _reshape(tensor: Anything, shape: Whole) -> Spec:
    """The same elements in row-major order under another shape.

    Args:
        tensor: [...], any dtype.
        shape: [rank], of which one may be -1: whatever fits.

    Returns:
        ``shape``, the dtype of ``tensor``.
    """
    if shape.rank not in (None, 1):
        raise ShapeError(f"shape must be a vector of dimensions, got {shape}")
    target = as_shape(shape)
    if shape.value is None:
        return TensorSpec(tensor.dtype, _with_one_free(tensor.shape, target))
    wanted = [int(d) for d in shape.value]
    if wanted.count(-1) > 1 or any(d < -1 for d in wanted):
        raise ShapeError(f"shape {shown(wanted, 200)} may hold dimensions >= 0 and one -1")
    return TensorSpec(tensor.dtype, _fill_free(tensor.shape, wanted))


def _fill_free(source: Shape, wanted: list[int]) -> Shape:
    """Return ``wanted`` with its -1 replaced by what fits, as far as that is known."""
    count = source.num_elements()
    if count is None:
        return Shape([None if d == -1 else d for d in wanted])
    if -1 in wanted and 0 in wanted and source.dims is not None and 0 in source.dims:
        if None in source.dims:
            return Shape([None if d == -1 else d for d in wanted])
        # Of tensors without elements, the other sizes tell what is left.
        rest = math.prod(d for d in source.known if d) // math.prod(d for d in wanted if d > 0)
        return Shape([rest if d == -1 else d for d in wanted])
    fixed = math.prod(d for d in wanted if d != -1)
    free = -1 in wanted
    fits = (fixed != 0 and count % fixed == 0) if free else count == fixed
    if not fits:
        raise ShapeError(
            f"{count} elements of shape {source} do not fit shape {shown(wanted, 200)}, which "
            + (f"takes a multiple of {fixed}" if free else f"takes {fixed}; -1 stands for one size")
        )
    return Shape([count // fixed if d == -1 else d for d in wanted])


def _with_one_free(source: Shape, target: Shape) -> Shape:
    """Return ``target`` with its one unknown dimension, if the number of elements tells it."""
    count = source.num_elements()
    if count is None or target.dims is None or target.dims.count(None) != 1:
        return target
    fixed = math.prod(d for d in target.dims if d is not None)
    if not fixed or count % fixed:
        return target
    return Shape([count // fixed if d is None else d for d in target.dims])


def reshape(tensor: Any, shape: Any, name: str | None = None) -> Tensor:
    """The same elements in row-major order under another shape.

    Args:
        tensor: [...], any dtype.
        shape: [rank], a list or an integer tensor, of which one may be -1: whatever fits.
        name: The name of the operation.

    Returns:
        ``shape``, the dtype of ``tensor``.

    Raises:
        ShapeError: if the elements are known not to fit it.
    """
    return _reshape(tensor, shape_argument(shape), name=name)


def shape_argument(shape: Any) -> Any:
    """Return what programs pass as a shape as a list or an integer tensor."""
    if isinstance(shape, Shape | TensorShape):
        return list(shape.known)
    return known_ints(shape)


@op("Transpose", total=True, public="", node_name="transpose")
def _transpose(a: Anything, perm: Sequence[int] | None = None) -> Spec:
    """The tensor with its axes in another order.

    Args:
        a: [...], any dtype.
        perm: For each axis of the result the axis of ``a`` that it is; reversed order if None.

    Returns:
        The permuted shape, the dtype of ``a``.
    """
    if perm is None:
        dims = None if a.shape.dims is None else a.shape.dims[::-1]
        return TensorSpec(a.dtype, Shape(dims))
    order = [p + len(perm) if p < 0 else p for p in perm]
    if sorted(order) != list(range(len(perm))):
        raise ShapeError(f"perm {list(perm)} is no permutation of 0 to {len(perm) - 1}")
    if a.shape.dims is None:
        return TensorSpec(a.dtype, Shape([None] * len(perm)))
    if len(order) != len(a.shape.dims):
        raise ShapeError(f"perm {list(perm)} does not fit a tensor of rank {len(a.shape.dims)}")
    return TensorSpec(a.dtype, Shape([a.shape.dims[p] for p in order]))


@op("TransposeBy", host_inputs=["perm"], public="")
def _transpose_by(a: Anything, perm: Index) -> Spec:
    """The tensor with its axes in an order that the step decides.

    Args:
        a: [...], any dtype.
        perm: [rank], for each axis of the result the axis of ``a`` that it is.

    Returns:
        The permuted shape, the dtype of ``a``.
    """
    if perm.rank not in (None, 1):
        raise ShapeError(f"perm must be a vector, got {perm}")
    count = None if perm.shape.dims is None else perm.shape[0]
    if None not in (count, a.rank) and count != a.rank:
        raise ShapeError(f"a perm of {count} axes does not fit a tensor of rank {a.rank}")
    if perm.value is not None:
        return TensorSpec(a.dtype, _permuted(a.shape, [int(p) for p in perm.value]))
    axes = count if a.rank is None else a.rank
    if axes is None:
        return TensorSpec(a.dtype)
    dims = a.shape.dims
    # Equal sizes stay where they are in any order.
    same = dims is not None and len(dims) > 0 and len(set(dims)) == 1
    return TensorSpec(a.dtype, a.shape if same else Shape([None] * axes))


def _permuted(shape: Shape, perm: list[int]) -> Shape:
    order = [p + len(perm) if p < 0 else p for p in perm]
    if sorted(order) != list(range(len(perm))):
        raise ShapeError(f"perm {perm} is no permutation of 0 to {len(perm) - 1}")
    return Shape([None] * len(order) if shape.dims is None else [shape.dims[p] for p in order])


def transpose(a: Any, perm: Any = None, name: str | None = None, conjugate: bool = False) -> Tensor:
    """The tensor with its axes in another order.

    Args:
        a: [...], any dtype.
        perm: For each axis of the result the axis of ``a`` that it is, a list or an integer
            tensor; reversed order if None.
        name: The name of the operation.
        conjugate: Whether to conjugate complex elements, too.

    Returns:
        The permuted shape, the dtype of ``a``.

    Raises:
        ShapeError: if ``perm`` is known to be no permutation of the axes.
    """
    order = None if perm is None else as_ints(perm, "perm")
    if isinstance(order, Tensor):
        moved = _transpose_by(a, order, name=name)
    else:
        moved = _transpose(a, order, name=name)
    if conjugate and moved.dtype.is_complex:
        flipped = call_op("Conj", moved)
        assert isinstance(flipped, Tensor)
        return flipped
    return moved


@op("ExpandDims", total=True, view=True, early=np.expand_dims, public="")
def _expand_dims(input: Anything, axis: int) -> Spec:
    """The tensor with an axis of size 1 inserted.

    Args:
        input: [...], any dtype.
        axis: Where the new axis stands in the result; negative from the end.

    Returns:
        The shape with a 1 inserted, the dtype of ``input``.
    """
    if input.shape.dims is None:
        return TensorSpec(input.dtype)
    at = normalize_axis(axis, len(input.shape.dims) + 1)
    dims = list(input.shape.dims)
    dims.insert(at, 1)
    value = None
    if input.value is not None and not dims[1:]:
        value = input.value.reshape((1,))
    return TensorSpec(input.dtype, Shape(dims), value)


@dispatched()
def expand_dims(input: Any, axis: Any = None, name: str | None = None, dim: Any = None) -> Tensor:
    """The tensor with an axis of size 1 inserted.

    Args:
        input: [...], any dtype.
        axis: Where the new axis stands in the result, an integer or a tensor of one; negative
            from the end.
        name: The name of the operation.
        dim: An older name of ``axis``.

    Returns:
        The shape with a 1 inserted, the dtype of ``input``.

    Raises:
        ShapeError: if the axis is known to be out of range.
        AttributeValueError: if neither ``axis`` nor ``dim`` is given, or both are.
    """
    at = as_only_int(one_of(axis=axis, dim=dim), "axis")
    if not isinstance(at, Tensor):
        return _expand_dims(input, at, name=name)
    with name_scope(name, "ExpandDims"):
        source = convert_to_tensor(input)
        whole = shape(source)
        at = reshape(call_op("Cast", at, dtypes.int32), [])
        # The new size is looked up, so that an axis that is not there is refused.
        one = call_op("ExpandDims", call_op("Fill", reshape(rank(source) + 1, [1]), 1)[at], 0)
        # Counted from the front, also where the rank is known in the step only.
        at = call_op("Select", call_op("Less", at, 0), at + rank(source) + 1, at)
        grown = _reshape(source, concat([whole[:at], one, whole[at:]], 0))
        if source.shape.rank is None:
            return grown
        return ensure_shape(grown, [None] * (source.shape.rank + 1))


@op("Squeeze", total=True, view=True, early=np.squeeze, public="")
def _squeeze(input: Anything, axis: int | Sequence[int] | None = None) -> Spec:
    """The tensor without axes of size 1.

    Args:
        input: [...], any dtype.
        axis: The axes to drop, which must have size 1; all of that size if None.

    Returns:
        The remaining axes, the dtype of ``input``.
    """
    dims = input.shape.dims
    if dims is None:
        return TensorSpec(input.dtype)
    if axis is None or axis == ():
        known = None not in dims
        return TensorSpec(input.dtype, Shape([d for d in dims if d != 1]) if known else UNKNOWN)
    given = (axis,) if isinstance(axis, int) else tuple(axis)
    axes = [normalize_axis(a, len(dims)) for a in given]
    for a in axes:
        if dims[a] not in (1, None):
            wrong = f"axis {a} of shape {input.shape} has size {dims[a]}, not 1"
            raise ShapeError(f"{wrong}; only axes of size 1 go, all of them without axis=")
    left = Shape([d for i, d in enumerate(dims) if i not in axes])
    value = None if input.value is None or input.value.size != 1 else input.value
    return TensorSpec(input.dtype, left, None if value is None else value.reshape(left.known))


@dispatched()
def squeeze(
    input: Any, axis: Any = None, name: str | None = None, squeeze_dims: Any = None
) -> Tensor:
    """The tensor without axes of size 1.

    Args:
        input: [...], any dtype.
        axis: The axis or axes to drop, which must have size 1; all of that size if None.
        name: The name of the operation.
        squeeze_dims: An older name of ``axis``.

    Returns:
        The remaining axes, the dtype of ``input``.

    Raises:
        ShapeError: if an axis is out of range, or known to have another size.
    """
    given = (
        None
        if axis is None and squeeze_dims is None
        else one_of(axis=axis, squeeze_dims=squeeze_dims)
    )
    axes = None if given is None else as_ints(given, "axis")
    if isinstance(axes, Tensor):
        raise AttributeValueError("squeeze: axis must be known while the graph is built")
    return _squeeze(input, axes, name=name)


# -- broadcasting


@op(
    "BroadcastTo", total=True, repeats=True, early=np.broadcast_to, host_inputs=["shape"], public=""
)
def _broadcast_to(input: Anything, shape: Whole) -> Spec:
    """The tensor repeated along axes of size 1, and leading new ones, to reach a shape.

    Args:
        input: [...], any dtype.
        shape: [rank], a shape to which ``input`` broadcasts.

    Returns:
        ``shape``, the dtype of ``input``.
    """
    if shape.rank not in (None, 1):
        raise ShapeError(f"shape must be a vector of dimensions, got {shape}")
    if shape.value is not None and (shape.value < 0).any():
        raise ShapeError(f"dimensions must be >= 0, got {shape.value.tolist()}")
    target = as_shape(shape)
    if target.dims is None or input.shape.dims is None:
        return TensorSpec(input.dtype, target)
    _check_broadcast(input.shape, target)
    lead = len(target) - len(input.shape)
    # Only sizes of 1 can become others.
    known = [None] * lead + [None if d == 1 else d for d in input.shape.dims]
    return TensorSpec(input.dtype, target.merge_with(known))


def _check_broadcast(source: Shape, target: Shape) -> None:
    lead = len(target) - len(source)
    fits = lead >= 0 and all(
        have in (1, None) or want is None or have == want
        for have, want in zip(source, target[max(lead, 0) :], strict=False)
    )
    if not fits:
        raise ShapeError(f"shape {source} does not broadcast to {target}")


def broadcast_to(input: Any, shape: Any, name: str | None = None) -> Tensor:
    """The tensor repeated along axes of size 1, and leading new ones, to reach a shape.

    Args:
        input: [...], any dtype.
        shape: [rank], a list or an integer tensor: a shape to which ``input`` broadcasts.
        name: The name of the operation.

    Returns:
        ``shape``, the dtype of ``input``.

    Raises:
        ShapeError: if ``input`` is known not to broadcast to it.
    """
    return _broadcast_to(input, shape_argument(shape), name=name)


@op(
    "BroadcastShape",
    host_inputs=["shape_x", "shape_y"],
    public="",
    no_gradient=_NO_DIMS,
    node_name="BroadcastArgs",
)
def _broadcast_shape(shape_x: Index, shape_y: Index) -> Spec:
    """The shape to which two shapes broadcast.

    Args:
        shape_x: [n], a shape.
        shape_y: [m], another.

    Returns:
        The larger length, int64 if one of them is, else int32.
    """
    for part in (shape_x, shape_y):
        if part.rank not in (None, 1):
            raise ShapeError(f"a shape is a vector of dimensions, got {part}")
    wide = dtypes.int64 in (shape_x.dtype, shape_y.dtype)
    dtype = dtypes.int64 if wide else dtypes.int32
    first, second = as_shape(shape_x), as_shape(shape_y)
    joined = broadcast(first, second)
    # What one of them alone tells may still turn out not to fit the other.
    known = first.is_fully_defined() and second.is_fully_defined()
    value = np.array(joined.known, dtype.numpy) if known else None
    return TensorSpec(dtype, Shape([joined.rank]), value, joined)


def broadcast_dynamic_shape(shape_x: Any, shape_y: Any) -> Tensor:
    """Return the shape to which two shapes broadcast, as a tensor.

    Args:
        shape_x: [n], a list or an integer tensor.
        shape_y: [m], another.

    Returns:
        The larger length, int64 if one of them is, else int32.

    Raises:
        ShapeError: if they are known not to broadcast.
    """
    return _broadcast_shape(shape_argument(shape_x), shape_argument(shape_y))
