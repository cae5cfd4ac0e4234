"""Sets of elements: the distinct ones, and differences. Their sizes are known in steps only."""

from __future__ import annotations

from typing import Any, NamedTuple

from headrace import dtypes
from headrace.dtypes import DType, as_dtype
from headrace.errors import DTypeError, ShapeError
from headrace.graph.spec import TensorSpec
from headrace.graph.tensor import Tensor
from headrace.ops.declare import Spec, op
from headrace.ops.kinds import Same
from headrace.shapes import Shape


class Unique(NamedTuple):
    """What ``unique`` returns: the distinct elements, and the place of each element in them."""

    y: Tensor
    idx: Tensor


class UniqueWithCounts(NamedTuple):
    """What ``unique_with_counts`` returns: as ``Unique``, and how often each occurs."""

    y: Tensor
    idx: Tensor
    count: Tensor  # type: ignore[assignment]


class ListDiff(NamedTuple):
    """What ``setdiff1d`` returns: the elements that are left, and where they were."""

    out: Tensor
    idx: Tensor


def _check(x: TensorSpec, label: str) -> None:
    if x.rank not in (None, 1):
        raise ShapeError(f"{label} must be a vector, got shape {x.shape}")


def _check_type(label: str, dtype: DType) -> None:
    if dtype not in (dtypes.int32, dtypes.int64):
        raise DTypeError(f"{label} must be int32 or int64, got {dtype}")


@op("Unique", public="")
def _unique(x: Same, out_idx: DType = dtypes.int32) -> tuple[Spec, Spec, Spec]:
    """The distinct elements of a vector, in the order in which they first occur.

    Args:
        x: [n], any dtype. NaN equals nothing, not even NaN.
        out_idx: int32 or int64.

    Returns:
        The elements [m], the index in them of each element of ``x`` [n], and how often each
        occurs [m], both ``out_idx``.
    """
    _check(x, "x")
    _check_type("out_idx", out_idx)
    places = x.shape.merge_with([None])
    found = Shape([0 if places[0] == 0 else None])
    return TensorSpec(x.dtype, found), TensorSpec(out_idx, places), TensorSpec(out_idx, found)


@op("ListDiff", public="")
def _list_diff(x: Same, y: Same, out_idx: DType = dtypes.int32) -> tuple[Spec, Spec]:
    """The elements of one vector that another does not have, in their order.

    Args:
        x: [n], any dtype.
        y: [m], the dtype of ``x``.
        out_idx: int32 or int64.

    Returns:
        The elements [k], those that occur twice in ``x`` twice, and their indices in ``x`` [k],
        ``out_idx``.
    """
    _check(x, "x")
    _check(y, "y")
    _check_type("index_dtype", out_idx)
    left = Shape([0 if x.shape.dims == (0,) else None])
    return TensorSpec(x.dtype, left), TensorSpec(out_idx, left)


def unique(x: Any, out_idx: Any = dtypes.int32, name: str | None = None) -> Unique:
    """The distinct elements of a vector, in the order in which they first occur.

    Args:
        x: [n], any dtype. NaN equals nothing, not even NaN.
        out_idx: int32 or int64.
        name: The name of the operation.

    Returns:
        A tuple with the fields ``y`` [m], the elements, and ``idx`` [n], ``out_idx``, so that
        ``y[idx[i]] == x[i]``.

    Raises:
        ShapeError: if ``x`` is no vector.
    """
    y, idx, _ = _unique(x, as_dtype(out_idx), name=name)
    return Unique(y, idx)


def unique_with_counts(
    x: Any, out_idx: Any = dtypes.int32, name: str | None = None
) -> UniqueWithCounts:
    """The distinct elements of a vector, in the order in which they first occur, counted.

    Args:
        x: [n], any dtype. NaN equals nothing, not even NaN.
        out_idx: int32 or int64.
        name: The name of the operation.

    Returns:
        A tuple with the fields ``y`` [m], the elements; ``idx`` [n], ``out_idx``, so that
        ``y[idx[i]] == x[i]``; and ``count`` [m], ``out_idx``, how often each occurs.

    Raises:
        ShapeError: if ``x`` is no vector.
    """
    return UniqueWithCounts(*_unique(x, as_dtype(out_idx), name=name))


def setdiff1d(x: Any, y: Any, index_dtype: Any = dtypes.int32, name: str | None = None) -> ListDiff:
    """The elements of one vector that another does not have, in their order.

    Args:
        x: [n], any dtype.
        y: [m], the dtype of ``x``.
        index_dtype: int32 or int64.
        name: The name of the operation.

    Returns:
        A tuple with the fields ``out`` [k], the elements, those that occur twice in ``x`` twice,
        and ``idx`` [k], ``index_dtype``, their indices in ``x``.

    Raises:
        ShapeError: if ``x`` or ``y`` is no vector.
    """
    return ListDiff(*_list_diff(x, y, as_dtype(index_dtype), name=name))


def listdiff(x: Any, y: Any, out_idx: Any = None, name: str | None = None) -> ListDiff:
    """The old name of ``setdiff1d``.

    Args:
        x: [n], any dtype.
        y: [m], the dtype of ``x``.
        out_idx: int32 or int64; int32 if None.
        name: The name of the operation.

    Returns:
        As ``setdiff1d``.
    """
    return setdiff1d(x, y, dtypes.int32 if out_idx is None else out_idx, name)
