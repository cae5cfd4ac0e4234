"""Sets of elements: the last dimension of a tensor holds a set for each place before it."""

from __future__ import annotations

from typing import Annotated, Any, TypeAlias

from headrace import dtypes
from headrace.dtypes import DType
from headrace.errors import (
    ArgumentTypeError,
    AttributeValueError,
    DTypeError,
    ShapeError,
    shown,
)
from headrace.graph.convert import convert_to_tensor
from headrace.graph.schema import Kind
from headrace.graph.sparse_tensor import SparseTensor, SparseTensorValue
from headrace.graph.spec import TensorSpec
from headrace.graph.tensor import Tensor
from headrace.ops.declare import Spec, op
from headrace.ops.kinds import Index
from headrace.shapes import Dim, Shape

_KINDS = frozenset(
    {
        *(dtypes.int8, dtypes.int16, dtypes.int32, dtypes.int64),
        *(dtypes.uint8, dtypes.uint16, dtypes.string),
    }
)
_Element: TypeAlias = Annotated[
    Any, Kind("an integer of at most 64 bits or string", lambda d: d in _KINDS)
]
_OPERATIONS = ("a-b", "b-a", "intersection", "union")
_SETS = "sets are discrete"


def _group(shape: Shape, label: str) -> tuple[Dim, ...] | None:
    """Return the dimensions before those of the sets, None where their number is unknown."""
    if shape.dims is None:
        return None
    if len(shape.dims) < 2:
        raise ShapeError(f"{label} must have at least 2 dimensions, got shape {shape}")
    return shape.dims[:-1]


def _sparse_group(indices: Spec, values: Spec, shape: Spec, label: str) -> tuple[Dim, ...] | None:
    if not indices.shape.is_compatible_with([None, None]):
        raise ShapeError(f"indices of {label} must be a matrix, got {indices}")
    count, columns = indices.shape.dims or (None, None)
    if not values.shape.is_compatible_with([count]):
        raise ShapeError(f"{label} must have one value for each of {indices}, got {values}")
    if not shape.shape.is_compatible_with([columns]):
        raise ShapeError(f"the shape of {label} must have {columns} dimensions, got {shape}")
    rank = columns if columns is not None else (shape.shape.dims or (None,))[0]
    if rank is None:
        return None
    known = [None] * rank if shape.value is None else [int(size) for size in shape.value]
    return _group(Shape(known), label)


def _result(
    a: tuple[Dim, ...] | None, b: tuple[Dim, ...] | None, dtype: DType, operation: str
) -> tuple[Spec, Spec, Spec]:
    if operation not in _OPERATIONS:
        raise AttributeValueError(
            f"set_operation must be one of {', '.join(_OPERATIONS)}, got {shown(operation)}"
        )
    if a is not None and b is not None and not Shape(a).is_compatible_with(Shape(b)):
        raise ShapeError(
            f"both must have the same dimensions before the last one, got {Shape(a)} and {Shape(b)}"
        )
    known = a if a is not None else b
    rank = None if known is None else len(known) + 1
    return (
        TensorSpec(dtypes.int64, Shape([None, rank])),
        TensorSpec(dtype, Shape([None])),
        TensorSpec(dtypes.int64, Shape([rank])),
    )


@op("DenseToDenseSetOperation", public="", no_gradient=_SETS)
def _dense_to_dense(
    set1: _Element, set2: _Element, set_operation: str, validate_indices: bool = True
) -> tuple[Spec, Spec, Spec]:
    """Combine the sets of two tensors.

    Args:
        set1: [..., n], a set in each row.
        set2: [..., m], as ``set1``.
        set_operation: ``"a-b"``, ``"b-a"``, ``"intersection"`` or ``"union"``.
        validate_indices: For the other forms of this op.

    Returns:
        Indices, values and shape of the sparse tensor of the results, each sorted.
    """
    found = _group(set1.shape, "set1"), _group(set2.shape, "set2")
    return _result(*found, set1.dtype, set_operation)


@op(
    "DenseToSparseSetOperation",
    public="",
    no_gradient=_SETS,
    host_inputs=["set2_indices", "set2_shape"],
)
def _dense_to_sparse(
    set1: _Element,
    set2_indices: Index,
    set2_values: _Element,
    set2_shape: Index,
    set_operation: str,
    validate_indices: bool = True,
) -> tuple[Spec, Spec, Spec]:
    """Combine the sets of a tensor with those of a sparse one.

    Args:
        set1: [..., n], a set in each row.
        set2_indices: [m, rank], int64, in row-major order.
        set2_values: [m], the dtype of ``set1``.
        set2_shape: [rank], int64.
        set_operation: ``"a-b"``, ``"b-a"``, ``"intersection"`` or ``"union"``.
        validate_indices: Whether to refuse indices in another order.

    Returns:
        Indices, values and shape of the sparse tensor of the results, each sorted.
    """
    other = _sparse_group(set2_indices, set2_values, set2_shape, "set2")
    return _result(_group(set1.shape, "set1"), other, set1.dtype, set_operation)


@op(
    "SparseToSparseSetOperation",
    public="",
    no_gradient=_SETS,
    host_inputs=["set1_indices", "set1_shape", "set2_indices", "set2_shape"],
)
def _sparse_to_sparse(
    set1_indices: Index,
    set1_values: _Element,
    set1_shape: Index,
    set2_indices: Index,
    set2_values: _Element,
    set2_shape: Index,
    set_operation: str,
    validate_indices: bool = True,
) -> tuple[Spec, Spec, Spec]:
    """Combine the sets of two sparse tensors.

    Args:
        set1_indices: [n, rank], int64, in row-major order.
        set1_values: [n].
        set1_shape: [rank], int64.
        set2_indices: [m, rank], int64, in row-major order.
        set2_values: [m], the dtype of ``set1_values``.
        set2_shape: [rank], int64.
        set_operation: ``"a-b"``, ``"b-a"``, ``"intersection"`` or ``"union"``.
        validate_indices: Whether to refuse indices in another order.

    Returns:
        Indices, values and shape of the sparse tensor of the results, each sorted.
    """
    first = _sparse_group(set1_indices, set1_values, set1_shape, "set1")
    second = _sparse_group(set2_indices, set2_values, set2_shape, "set2")
    return _result(first, second, set1_values.dtype, set_operation)


@op("SetSize", public="", no_gradient=_SETS, host_inputs=["set_indices", "set_shape"])
def _set_size(
    set_indices: Index, set_values: _Element, set_shape: Index, validate_indices: bool = True
) -> Spec:
    """How many different elements each set has.

    Args:
        set_indices: [n, rank], int64, in row-major order.
        set_values: [n].
        set_shape: [rank], int64.
        validate_indices: Whether to refuse indices in another order.

    Returns:
        ``set_shape`` without the last dimension, int32.
    """
    found = _sparse_group(set_indices, set_values, set_shape, "set")
    return TensorSpec(dtypes.int32, Shape(found))


def set_size(a: Any, validate_indices: bool = True) -> Tensor:
    """How many different elements each set has.

    Args:
        a: A SparseTensor, [..., n]: its last dimension holds the elements of a set.
        validate_indices: Whether to refuse indices that are not in row-major order.

    Returns:
        [...], int32.

    Raises:
        ArgumentTypeError: if ``a`` is no SparseTensor.
        DTypeError: if its elements are no integers and no strings.
    """
    a = _converted(a, "a")
    if not isinstance(a, SparseTensor):
        raise ArgumentTypeError(f"expected a SparseTensor, got {shown(a)}")
    _check_dtype(a, "a")
    return _set_size(a.indices, a.values, a.dense_shape, validate_indices=validate_indices)


def set_intersection(a: Any, b: Any, validate_indices: bool = True) -> SparseTensor:
    """The elements that are in both of two sets, for each place.

    Args:
        a: A tensor or SparseTensor, [..., n]: its last dimension holds the elements of a set;
            integers or strings.
        b: As ``a``, [..., m].
        validate_indices: Whether to refuse indices that are not in row-major order.

    Returns:
        A SparseTensor, [..., largest result]; each result is sorted.

    Raises:
        DTypeError: if they are no integers and no strings, or of different dtypes.
        ShapeError: if they differ in what is before the last dimension.
    """
    first, second, _ = _both(a, b)
    return _combined(first, second, "intersection", validate_indices)


def set_difference(
    a: Any, b: Any, aminusb: bool = True, validate_indices: bool = True
) -> SparseTensor:
    """The elements of one set that are not in the other, for each place.

    Args:
        a: As for ``intersection``.
        b: As for ``intersection``.
        aminusb: Whether those of ``a`` that are not in ``b``, or else the other way round.
        validate_indices: As for ``intersection``.

    Returns:
        As ``intersection``.
    """
    first, second, flipped = _both(a, b)
    return _combined(first, second, "a-b" if aminusb != flipped else "b-a", validate_indices)


def set_union(a: Any, b: Any, validate_indices: bool = True) -> SparseTensor:
    """The elements that are in one of two sets, for each place; arguments as ``intersection``."""
    first, second, _ = _both(a, b)
    return _combined(first, second, "union", validate_indices)


def _converted(value: Any, label: str) -> Tensor | SparseTensor:
    if isinstance(value, SparseTensor):
        return value
    if isinstance(value, SparseTensorValue):
        return SparseTensor.from_value(value)
    return convert_to_tensor(value, name=label)


def _both(a: Any, b: Any) -> tuple[Tensor | SparseTensor, Tensor | SparseTensor, bool]:
    """Return both, the dense one first where one is, and whether they were exchanged."""
    first, second = _converted(a, "a"), _converted(b, "b")
    _check_dtype(first, "a")
    if first.dtype != second.dtype:
        raise DTypeError(f"both must be of one dtype, got {first.dtype} and {second.dtype}")
    if isinstance(first, SparseTensor) and not isinstance(second, SparseTensor):
        return second, first, True
    return first, second, False


def _check_dtype(tensor: Tensor | SparseTensor, label: str) -> None:
    if tensor.dtype not in _KINDS:
        raise DTypeError(f"{label} must hold integers or strings, got {tensor.dtype}")


def _combined(
    a: Tensor | SparseTensor, b: Tensor | SparseTensor, operation: str, validate: bool
) -> SparseTensor:
    if isinstance(a, SparseTensor) and isinstance(b, SparseTensor):
        parts = _sparse_to_sparse(
            *(a.indices, a.values, a.dense_shape, b.indices, b.values, b.dense_shape),
            set_operation=operation,
            validate_indices=validate,
        )
    elif isinstance(b, SparseTensor):
        parts = _dense_to_sparse(
            *(a, b.indices, b.values, b.dense_shape),
            set_operation=operation,
            validate_indices=validate,
        )
    else:
        parts = _dense_to_dense(a, b, set_operation=operation, validate_indices=validate)
    return SparseTensor(*parts)
