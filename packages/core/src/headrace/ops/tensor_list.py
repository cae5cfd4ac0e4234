"""Lists of tensors: immutable values that grow along loops, for ``TensorArray`` and for gradients.

All items of a list have one dtype and fit one static shape. An item may be missing until it is
set. Where an op reads a missing item it raises, or yields zeros where it was told their shape.
"""

from __future__ import annotations

from collections.abc import Sequence

from headrace import dtypes
from headrace.errors import DTypeError, ShapeError
from headrace.graph.spec import TensorSpec, as_shape, list_spec
from headrace.ops.declare import Spec, op
from headrace.ops.kinds import Index, TensorList, Value
from headrace.shapes import SCALAR, UNKNOWN, Shape

_MATRIX = 2
_COUNTED = "it counts, and depends on no item's value"


def items_of(spec: TensorSpec) -> TensorSpec:
    """Return the spec of a list's items."""
    assert spec.content is not None
    return spec.content


def _item(items: TensorSpec, value: TensorSpec) -> TensorSpec:
    """Refuse what cannot be an item of a list."""
    content = items_of(items)
    if value.dtype != content.dtype:
        raise DTypeError(f"the list holds {content.dtype}, got an item of {value.dtype}")
    if not value.shape.is_compatible_with(content.shape):
        raise ShapeError(f"the list holds items of shape {content.shape}, got {value.shape}")
    return list_spec(content)


def _scalar(spec: TensorSpec, what: str) -> None:
    if spec.rank not in (None, 0):
        raise ShapeError(f"{what} must be a scalar, got shape {spec.shape}")


def _read(items: TensorSpec, zeros: TensorSpec | None) -> TensorSpec:
    content = items_of(items)
    shape = content.shape
    if zeros is not None and shape.is_compatible_with(as_shape(zeros)):
        shape = shape.merge_with(as_shape(zeros))
    return TensorSpec(content.dtype, shape, content=content.content)


@op("TensorListReserve", public="", no_gradient="it holds no values")
def list_reserve(size: Index, *, spec: TensorSpec) -> Spec:
    """A list whose items are all missing.

    Args:
        size: [], how many; refused when it runs if negative.
        spec: Dtype and static shape of the items.

    Returns:
        [], a list.
    """
    _scalar(size, "size")
    return list_spec(spec)


@op("TensorListZerosLike", public="", no_gradient="it holds no values")
def list_zeros_like(items: TensorList) -> Spec:
    """A list of as many items, all missing, which read as zeros where their shape is told.

    Args:
        items: A list.

    Returns:
        [], a list.
    """
    return list_spec(items_of(items))


@op("TensorListLength", public="", no_gradient=_COUNTED)
def list_length(items: TensorList) -> Spec:
    """How many items a list has, missing ones counted.

    Args:
        items: A list.

    Returns:
        [], int32.
    """
    items_of(items)
    return TensorSpec(dtypes.int32, SCALAR)


@op("TensorListPush", public="")
def list_push(items: TensorList, value: Value) -> Spec:
    """The list with one more item at its end.

    Args:
        items: A list.
        value: [...], of the dtype of its items.

    Returns:
        [], a list.
    """
    return _item(items, value)


@op("TensorListPop", public="")
def list_pop(items: TensorList, zeros: Index | None = None) -> tuple[Spec, Spec]:
    """The list without its last item, and that item.

    Args:
        items: A list; refused when it runs if it is empty.
        zeros: [rank], the shape of the zeros that stand for a missing item.

    Returns:
        A list, and [...], the item.
    """
    return list_spec(items_of(items)), _read(items, zeros)


@op("TensorListGet", public="")
def list_get(items: TensorList, index: Index, zeros: Index | None = None) -> Spec:
    """One item.

    Args:
        items: A list.
        index: [], which one; refused when it runs if out of range.
        zeros: [rank], the shape of the zeros that stand for a missing item.

    Returns:
        [...], the item.
    """
    _scalar(index, "index")
    return _read(items, zeros)


@op("TensorListSet", public="")
def list_set(
    items: TensorList, index: Index, value: Value, *, grows: bool = False, once: bool = False
) -> Spec:
    """The list with another item at an index.

    Args:
        items: A list.
        index: [], where; refused when it runs if out of range.
        value: [...], of the dtype of its items.
        grows: An index beyond the end lengthens the list.
        once: Refuse, when it runs, to replace an item that is there.

    Returns:
        [], a list.
    """
    _scalar(index, "index")
    return _item(items, value)


@op("TensorListClear", public="")
def list_clear(items: TensorList, index: Index) -> Spec:
    """The list with the item at an index missing.

    Args:
        items: A list.
        index: [], which one; refused when it runs if out of range.

    Returns:
        [], a list.
    """
    _scalar(index, "index")
    return list_spec(items_of(items))


@op("TensorListAdd", public="")
def list_add(left: TensorList, right: TensorList) -> Spec:
    """The list of the sums of two lists' items; missing items are zeros.

    Args:
        left: A list.
        right: A list of the same dtype; as long when it runs.

    Returns:
        [], a list.
    """
    content, other = items_of(left), items_of(right)
    if content.dtype != other.dtype:
        raise DTypeError(f"the lists hold {content.dtype} and {other.dtype}")
    shape = content.shape
    if shape.is_compatible_with(other.shape):
        shape = shape.merge_with(other.shape)
    return list_spec(TensorSpec(content.dtype, shape, content=content.content))


@op("TensorListStack", public="")
def list_stack(items: TensorList, zeros: Index | None = None) -> Spec:
    """All items as one tensor.

    Args:
        items: A list of items of one shape; if it is empty, that must be known statically.
        zeros: [rank], the shape of the zeros that stand for missing items.

    Returns:
        [length, ...].
    """
    content = _read(items, zeros)
    return TensorSpec(content.dtype, Shape([None]).concatenate(content.shape))


@op("TensorListUnstack", public="")
def list_unstack(value: Value) -> Spec:
    """A list of the parts of a tensor along its first axis.

    Args:
        value: [length, ...].

    Returns:
        [], a list.
    """
    if value.rank == 0:
        raise ShapeError("a scalar has no axis along which to take it apart")
    return list_spec(TensorSpec(value.dtype, value.shape[1:] if value.rank else UNKNOWN))


@op("TensorListGather", public="")
def list_gather(items: TensorList, indices: Index, zeros: Index | None = None) -> Spec:
    """Some items as one tensor.

    Args:
        items: A list.
        indices: [n], which ones; refused when it runs if out of range.
        zeros: [rank], the shape of the zeros that stand for missing items.

    Returns:
        [n, ...].
    """
    if indices.rank not in (None, 1):
        raise ShapeError(f"indices must be a vector, got shape {indices.shape}")
    content = _read(items, zeros)
    return TensorSpec(content.dtype, Shape(_count(indices)).concatenate(content.shape))


@op("TensorListScatter", public="")
def list_scatter(
    items: TensorList, indices: Index, value: Value, *, grows: bool = False, once: bool = False
) -> Spec:
    """The list with the parts of a tensor as items at some indices.

    Args:
        items: A list.
        indices: [n], where; refused when it runs if out of range. Of equal ones the last counts.
        value: [n, ...], of the dtype of its items.
        grows: An index beyond the end lengthens the list.
        once: Refuse, when it runs, to replace an item that is there.

    Returns:
        [], a list.
    """
    return _scattered(items, indices, value)


def _scattered(items: TensorSpec, indices: TensorSpec, value: TensorSpec) -> TensorSpec:
    if indices.rank not in (None, 1):
        raise ShapeError(f"indices must be a vector, got shape {indices.shape}")
    if value.rank == 0:
        raise ShapeError("a scalar has no axis along which to take it apart")
    return _item(items, TensorSpec(value.dtype, value.shape[1:] if value.rank else UNKNOWN))


@op("TensorListConcat", public="")
def list_concat(items: TensorList, zeros: Index | None = None) -> tuple[Spec, Spec]:
    """All items joined along their first axis, and the lengths that they have along it.

    Args:
        items: A list of items [n_i, ...].
        zeros: [rank], the shape of the zeros that stand for missing items.

    Returns:
        [sum of n_i, ...], and [length] int64.
    """
    content = _read(items, zeros)
    if content.rank == 0:
        raise ShapeError("scalars cannot be joined along an axis; stack them")
    rest = content.shape[1:] if content.rank else UNKNOWN
    return (
        TensorSpec(content.dtype, Shape([None]).concatenate(rest)),
        TensorSpec(dtypes.int64, Shape([None])),
    )


@op("TensorListSplit", public="")
def list_split(value: Value, lengths: Index) -> Spec:
    """A list of parts of a tensor of given lengths along its first axis.

    Args:
        value: [n, ...].
        lengths: [length], which add up to n, as is checked when it runs.

    Returns:
        [], a list.
    """
    if value.rank == 0:
        raise ShapeError("a scalar has no axis along which to take it apart")
    if lengths.rank not in (None, 1):
        raise ShapeError(f"lengths must be a vector, got shape {lengths.shape}")
    rest = value.shape[1:] if value.rank else UNKNOWN
    return list_spec(TensorSpec(value.dtype, Shape([None]).concatenate(rest)))


@op(
    "TensorListSumProducts",
    public="",
    no_gradient="a pass makes it, of a step that has its gradients already",
)
def list_sum_products(left: TensorList, right: TensorList) -> Spec:
    """The sum of the products of two lists' items, those of the first transposed.

    Args:
        left: A list of items [n_i, rows].
        right: A list of items [n_i, columns] of the same dtype; as long when it runs.

    Returns:
        [rows, columns], zeros where the lists are empty.
    """
    one, other = items_of(left), items_of(right)
    if one.dtype != other.dtype:
        raise DTypeError(f"the lists hold {one.dtype} and {other.dtype}")
    for what, content in (("left", one), ("right", other)):
        if content.rank != _MATRIX or content.shape[1] is None:
            raise ShapeError(
                f"{what} must hold matrices with a known number of columns, got items of shape "
                f"{content.shape}"
            )
    return TensorSpec(one.dtype, Shape([one.shape[1], other.shape[1]]))


@op("TensorListAccumulate", public="")
def list_accumulate(items: TensorList, indices: Index, value: Value) -> Spec:
    """The list with the parts of a tensor added to the items at some indices.

    Args:
        items: A list; missing items are zeros.
        indices: [n], where; refused when it runs if out of range. Equal ones add up.
        value: [n, ...], of the dtype of its items.

    Returns:
        [], a list.
    """
    return _scattered(items, indices, value)


@op("TensorListResize", public="")
def list_resize(items: TensorList, size: Index) -> Spec:
    """The list cut off, or lengthened by missing items, at its end.

    Args:
        items: A list.
        size: [], its new length.

    Returns:
        [], a list.
    """
    _scalar(size, "size")
    return list_spec(items_of(items))


def _count(indices: TensorSpec) -> Sequence[int | None]:
    return [None] if indices.shape.dims is None else [indices.shape.dims[0]]
