"""Sorting: order, the largest elements, and places in a sorted sequence.

NaN counts as larger than any number, so that it comes last in ascending order.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from headrace import dtypes
from headrace.dtypes import DType, as_dtype
from headrace.errors import AttributeValueError, DTypeError, ShapeError, shown
from headrace.graph.convert import convert_to_tensor
from headrace.graph.scopes import name_scope
from headrace.graph.spec import TensorSpec, like
from headrace.graph.tensor import Tensor
from headrace.ops.aliases import flag
from headrace.ops.arguments import as_int
from headrace.ops.declare import Spec, op
from headrace.ops.kinds import Floating, Real, Whole
from headrace.ops.reduce import axis_last
from headrace.shapes import Shape


class TopKV2(NamedTuple):
    """What ``top_k`` returns: the largest elements, and where they were."""

    values: Tensor
    indices: Tensor


@op("Sort", public="")
def _sort(values: Real, descending: bool = False) -> tuple[Spec, Spec]:
    """The elements in order along the last axis, and where they were; equals keep their order.

    Args:
        values: [..., n], real.
        descending: Put the largest first.

    Returns:
        The sorted elements [..., n], and the index of each in ``values``, int32.
    """
    if values.rank == 0:
        raise ShapeError("values must have at least 1 dimension, got a scalar")
    return like(values), TensorSpec(dtypes.int32, values.shape)


@op("TopK", host_inputs=["k"], public="", node_name="TopKV2")
def _top_k(input: Real, k: Whole, sorted: bool = True) -> tuple[Spec, Spec]:
    """The ``k`` largest elements along the last axis, the first of equals, and where they were.

    Args:
        input: [..., n], real.
        k: [], how many; at most n.
        sorted: Whether the largest must come first; it does in any case.

    Returns:
        The elements [..., k], and the index of each in ``input``, int32.
    """
    if input.rank == 0:
        raise ShapeError("input must have at least 1 dimension, got a scalar")
    if k.rank not in (None, 0):
        raise ShapeError(f"k must be a scalar, got shape {k.shape}")
    count = None if k.value is None else int(k.value)
    if count is not None and count < 0:
        raise AttributeValueError(f"k must be >= 0, got {count}")
    if input.shape.dims is None:
        return TensorSpec(input.dtype), TensorSpec(dtypes.int32)
    length = input.shape[-1]
    if count is not None and length is not None and count > length:
        raise ShapeError(f"input must have at least k columns, got {length} for k = {count}")
    shape = input.shape[:-1].concatenate([count])
    return TensorSpec(input.dtype, shape), TensorSpec(dtypes.int32, shape)


@op("InTopK", host_inputs=["k"], public="", no_gradient="it yields truth values")
def _in_top_k(predictions: Floating, targets: Whole, k: Whole) -> Spec:
    """Whether fewer than ``k`` classes have a larger prediction than the target.

    Args:
        predictions: [n, classes], floating.
        targets: [n], int32 or int64, the class in question.
        k: [], how many predictions are at the top.

    Returns:
        [n], bool; false where a prediction of the row is not finite or there is no such class.
    """
    if predictions.rank not in (None, 2):
        raise ShapeError(f"predictions must be [n, classes], got shape {predictions.shape}")
    if targets.rank not in (None, 1):
        raise ShapeError(f"targets must be [n], got shape {targets.shape}")
    if k.rank not in (None, 0):
        raise ShapeError(f"k must be a scalar, got shape {k.shape}")
    rows = Shape([None]) if predictions.shape.dims is None else predictions.shape[:1]
    if not rows.is_compatible_with(targets.shape):
        raise ShapeError(
            f"targets {targets.shape} must have one class for each row of predictions "
            f"{predictions.shape}"
        )
    return TensorSpec(dtypes.bool_, rows.merge_with(targets.shape))


@op("SearchSorted", public="", no_gradient="an index is piecewise constant")
def _search_sorted(
    sorted_sequence: Real, values: Real, side: str = "left", out_type: DType = dtypes.int32
) -> Spec:
    """Where values would have to be put into sorted sequences to keep them sorted.

    Args:
        sorted_sequence: [..., n], real, each row ascending.
        values: [..., m], the dtype of ``sorted_sequence`` and its leading dimensions.
        side: "left" for the place before all equal elements, "right" for that behind them.
        out_type: int32 or int64.

    Returns:
        [..., m], ``out_type``, from 0 to n.
    """
    if side not in ("left", "right"):
        raise AttributeValueError(f"side must be 'left' or 'right', got {shown(side)}")
    _check_index_type("out_type", out_type)
    for part, label in ((sorted_sequence, "sorted_sequence"), (values, "values")):
        if part.rank == 0:
            raise ShapeError(f"{label} must have at least 1 dimension, got a scalar")
    if sorted_sequence.shape.dims is None or values.shape.dims is None:
        return TensorSpec(out_type, values.shape)
    rows = sorted_sequence.shape[:-1]
    if not rows.is_compatible_with(values.shape[:-1]):
        raise ShapeError(
            f"sorted_sequence {sorted_sequence.shape} and values {values.shape} must have the "
            "same leading dimensions"
        )
    merged = rows.merge_with(values.shape[:-1])
    return TensorSpec(out_type, merged.concatenate([values.shape[-1]]))


def _check_index_type(label: str, dtype: DType) -> None:
    if dtype not in (dtypes.int32, dtypes.int64):
        raise DTypeError(f"{label} must be int32 or int64, got {dtype}")


# -- functions


def sort(
    values: Any, axis: Any = -1, direction: str = "ASCENDING", name: str | None = None
) -> Tensor:
    """The elements in order along an axis; NaN counts as larger than any number.

    Args:
        values: [...], real, at least one dimension.
        axis: The axis.
        direction: "ASCENDING" or "DESCENDING".
        name: The name of the operations.

    Returns:
        [...], the dtype of ``values``.

    Raises:
        AttributeValueError: if ``direction`` is another word.
        ShapeError: if there is no such axis.
    """
    return _sorted(values, axis, direction, name, "sort")[0]


def argsort(
    values: Any,
    axis: Any = -1,
    direction: str = "ASCENDING",
    stable: bool = False,
    name: str | None = None,
) -> Tensor:
    """The indices that put the elements in order along an axis.

    Args:
        values: [...], real, at least one dimension.
        axis: The axis.
        direction: "ASCENDING" or "DESCENDING".
        stable: Whether equal elements must keep their order; they do in any case.
        name: The name of the operations.

    Returns:
        [...], int32.

    Raises:
        AttributeValueError: if ``direction`` is another word.
        ShapeError: if there is no such axis.
    """
    del stable
    return _sorted(values, axis, direction, name, "argsort")[1]


def _sorted(
    values: Any, axis: Any, direction: Any, name: str | None, default: str
) -> tuple[Tensor, Tensor]:
    if not isinstance(direction, str) or direction not in ("ASCENDING", "DESCENDING"):
        raise AttributeValueError(
            f"direction must be 'ASCENDING' or 'DESCENDING', got {shown(direction)}"
        )
    with name_scope(name, default):
        moved, back = axis_last(convert_to_tensor(values), as_int(axis, "axis"))
        ordered, indices = _sort(moved, direction == "DESCENDING")
        return back(ordered), back(indices)


def top_k(input: Any, k: Any = 1, sorted: bool = True, name: str | None = None) -> TopKV2:
    """The ``k`` largest elements along the last axis, the first of equals, and where they were.

    Args:
        input: [..., n], real. NaN counts as larger than any number.
        k: How many, an integer or a scalar integer tensor; at most n.
        sorted: Whether the largest must come first; it does in any case.
        name: The name of the operation.

    Returns:
        A tuple with the fields ``values`` [..., k] and ``indices`` [..., k], int32.

    Raises:
        ShapeError: if there are fewer than ``k`` elements.
    """
    return TopKV2(*_top_k(input, k, flag("sorted", sorted), name=name))


def in_top_k(predictions: Any, targets: Any, k: Any, name: str | None = None) -> Tensor:
    """Whether fewer than ``k`` classes have a larger prediction than the target.

    Args:
        predictions: [n, classes], floating.
        targets: [n], int32 or int64, the class in question.
        k: How many predictions are at the top, an integer or a scalar integer tensor.
        name: The name of the operation.

    Returns:
        [n], bool; false where a prediction of the row is not finite or there is no such class.
        Classes that tie at the border of the top are all in it.
    """
    return _in_top_k(predictions, targets, k, name=name)


def searchsorted(
    sorted_sequence: Any,
    values: Any,
    side: str = "left",
    out_type: Any = dtypes.int32,
    name: str | None = None,
) -> Tensor:
    """Where values would have to be put into sorted sequences to keep them sorted.

    Args:
        sorted_sequence: [..., n], real, each row ascending.
        values: [..., m], the dtype of ``sorted_sequence`` and its leading dimensions.
        side: "left" for the place before all equal elements, "right" for that behind them.
        out_type: int32 or int64.
        name: The name of the operation.

    Returns:
        [..., m], ``out_type``, from 0 to n.
    """
    return _search_sorted(sorted_sequence, values, side, as_dtype(out_type), name=name)
