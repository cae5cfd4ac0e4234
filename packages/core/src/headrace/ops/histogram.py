"""Counting: histograms, and which labels were taken for which."""

from __future__ import annotations

from typing import Any

import numpy as np

from headrace import dtypes
from headrace.dtypes import DType, as_dtype
from headrace.errors import AttributeValueError, DTypeError, ShapeError
from headrace.graph.convert import convert_to_tensor, is_python_literal
from headrace.graph.scopes import control_dependencies, name_scope
from headrace.graph.spec import TensorSpec
from headrace.graph.tensor import Tensor
from headrace.ops.array import rank, reshape, shape, squeeze, stack
from headrace.ops.constant import ones_like
from headrace.ops.conversion import cast, saturate_cast
from headrace.ops.declare import Spec, op
from headrace.ops.elementwise import less, maximum, minimum, select
from headrace.ops.identity import identity
from headrace.ops.kinds import Index, Real
from headrace.ops.segment import index_tensor, unsorted_segment_sum
from headrace.shapes import Shape


def _size_early(arr: Any) -> Any:
    if arr.size and arr.min() < 0:
        return None
    return arr.max(initial=-1) + 1


@op("BincountSize", early=_size_early, public="", no_gradient="it counts")
def _bincount_size(arr: Index) -> Spec:
    """How many numbers there are from 0 to the largest of ``arr``.

    Args:
        arr: [...], int32 or int64, not negative; others raise when it runs.

    Returns:
        [], the dtype of ``arr``; 0 of no elements.
    """
    known = arr.value
    if known is None or (known.size and int(known.min()) < 0):
        return TensorSpec(arr.dtype, Shape(()))
    size = int(known.max()) + 1 if known.size else 0
    fits = size <= np.iinfo(known.dtype).max
    return TensorSpec(arr.dtype, Shape(()), np.array(size, known.dtype) if fits else None)


@op(
    "Bincount", host_inputs=["minlength", "maxlength"], public="", no_gradient="a count is constant"
)
def _counted(arr: Index, minlength: Index, maxlength: Index, dtype: DType = dtypes.int32) -> Spec:
    """How often each number from 0 on occurs.

    Args:
        arr: [...], int32 or int64, not negative; others raise when it runs.
        minlength: [], the result has at least so many elements.
        maxlength: [], the result has at most so many; larger numbers are not counted.
        dtype: int32, int64, float32 or float64.

    Returns:
        [largest number + 1, within these bounds], ``dtype``.
    """
    if dtype not in _COUNTED:
        raise DTypeError(f"dtype must be int32, int64, float32 or float64, got {dtype}")
    for part, label in ((minlength, "minlength"), (maxlength, "maxlength")):
        if part.rank not in (None, 0):
            raise ShapeError(f"{label} must be a scalar, got shape {part.shape}")
    if maxlength.value is not None and int(maxlength.value) < 0:
        raise AttributeValueError(f"maxlength must be >= 0, got {int(maxlength.value)}")
    return TensorSpec(dtype, Shape([_known_size(arr.value, minlength.value, maxlength.value)]))


# What numbers are counted in without being converted.
_COUNTED = (dtypes.int32, dtypes.int64, dtypes.float32, dtypes.float64)


def _known_size(numbers: Any, least: Any, most: Any) -> int | None:
    """Return how many numbers are counted, None where only a step knows."""
    if least is not None and most is not None and least >= most:
        return int(most)
    if numbers is None or least is None or most is None:
        return None
    size = int(numbers.max()) + 1 if numbers.size else 0
    return min(max(size, int(least)), int(most))


@op(
    "HistogramFixedWidth",
    host_inputs=["value_range", "nbins"],
    public="",
    no_gradient="a count is piecewise constant",
    node_name="histogram_fixed_width",
)
def _histogram(values: Real, value_range: Real, nbins: Index, dtype: DType = dtypes.int32) -> Spec:
    """How many values fall into each of some intervals of one width.

    Args:
        values: [...], real, not NaN.
        value_range: [2], the dtype of ``values``, the lower and the upper end. Values beyond
            count in the first and the last interval.
        nbins: [], how many intervals.
        dtype: int32 or int64.

    Returns:
        [nbins], ``dtype``.
    """
    _check_index_type("dtype", dtype)
    return TensorSpec(dtype, Shape([_check_bins(value_range, nbins)]))


@op(
    "HistogramFixedWidthBins",
    host_inputs=["value_range", "nbins"],
    public="",
    no_gradient="an index is piecewise constant",
)
def _bins(values: Real, value_range: Real, nbins: Index, dtype: DType = dtypes.int32) -> Spec:
    """In which of some intervals of one width each value falls.

    Args:
        values: [...], real, not NaN.
        value_range: [2], the dtype of ``values``, the lower and the upper end. Values beyond
            fall into the first and the last interval.
        nbins: [], how many intervals.
        dtype: int32 or int64.

    Returns:
        [...], ``dtype``.
    """
    _check_index_type("dtype", dtype)
    _check_bins(value_range, nbins)
    return TensorSpec(dtype, values.shape)


def _check_bins(value_range: TensorSpec, nbins: TensorSpec) -> int | None:
    if not value_range.shape.is_compatible_with([2]):
        raise ShapeError(f"value_range must be [low, high], got shape {value_range.shape}")
    if nbins.rank not in (None, 0):
        raise ShapeError(f"nbins must be a scalar, got shape {nbins.shape}")
    if nbins.value is None:
        return None
    count = int(nbins.value)
    if count < 1:
        raise AttributeValueError(f"nbins must be > 0, got {count}")
    return count


def _check_index_type(label: str, dtype: DType) -> None:
    if dtype not in (dtypes.int32, dtypes.int64):
        raise DTypeError(f"{label} must be int32 or int64, got {dtype}")


@op("ConfusionCells", host_inputs=["num_classes"], public="", no_gradient="it yields indices")
def _confusion_cells(labels: Index, predictions: Index, num_classes: Index) -> Spec:
    """The cell of a matrix, counted row by row, for each pair of label and prediction.

    Args:
        labels: [n], int32 or int64, the row, in [0, num_classes); others raise when it runs.
        predictions: [n], int32 or int64, the column, likewise.
        num_classes: [], how many rows and columns there are.

    Returns:
        [n], int64.
    """
    for part, label in ((labels, "labels"), (predictions, "predictions")):
        if part.rank not in (None, 1):
            raise ShapeError(f"{label} must be a vector, got shape {part.shape}")
    if num_classes.rank not in (None, 0):
        raise ShapeError(f"num_classes must be a scalar, got shape {num_classes.shape}")
    if not labels.shape.is_compatible_with(predictions.shape):
        raise ShapeError(
            f"labels {labels.shape} and predictions {predictions.shape} must have one shape"
        )
    return TensorSpec(dtypes.int64, labels.shape.merge_with(predictions.shape).with_rank(1))


# -- functions


def bincount(
    arr: Any,
    weights: Any = None,
    minlength: Any = None,
    maxlength: Any = None,
    dtype: Any = dtypes.int32,
    name: str | None = None,
) -> Tensor:
    """How often each number from 0 on occurs.

    Args:
        arr: [...], int32 or int64, not negative; others raise when it runs. Arrays of other
            dtypes do where they hold whole numbers.
        weights: What each element counts, [..., more], numeric; 1 if None.
        minlength: The result has at least so many elements.
        maxlength: The result has at most so many elements; larger numbers are not counted.
        dtype: The dtype of the result where there are no weights.
        name: The name of the operations.

    Returns:
        [largest number + 1, more], the dtype of ``weights``, else ``dtype``.

    Raises:
        ShapeError: if the shape of ``weights`` does not begin with that of ``arr``.
    """
    with name_scope(name, "bincount"):
        numbers = convert_to_tensor(arr, preferred_dtype=dtypes.int32)
        if not isinstance(arr, Tensor) and not numbers.dtype.is_integer:
            numbers = convert_to_tensor(arr, dtypes.int32)
        if weights is None and as_dtype(dtype) in _COUNTED:
            least = 0 if minlength is None else minlength
            most = dtypes.int32.max if maxlength is None else maxlength
            bounds = [saturate_cast(convert_to_tensor(b), dtypes.int32) for b in (least, most)]
            return _counted(numbers, bounds[0], bounds[1], as_dtype(dtype))
        found = _bincount_size(numbers)
        least, most = (
            None if bound is None else saturate_cast(convert_to_tensor(bound), dtypes.int32)
            for bound in (minlength, maxlength)
        )
        counted = numbers
        if _are_equal(least, most):
            # How many rows there are is known; numbers are checked all the same.
            count = most
            with control_dependencies([found]):
                counted = identity(numbers)
        else:
            count = saturate_cast(found, dtypes.int32)
            count = count if least is None else maximum(count, least)
            count = count if most is None else minimum(count, most)
        if most is not None:
            # Rows with negative ids are dropped.
            counted = select(less(counted, cast(count, numbers.dtype)), counted, -1)
        if weights is None:
            parts = ones_like(numbers, as_dtype(dtype))
        else:
            parts = convert_to_tensor(weights)
            count_of_axes = numbers.shape.rank
            if parts.shape.rank is not None and count_of_axes is not None:
                leading = parts.shape[:count_of_axes]
                if not leading.is_compatible_with(numbers.shape):
                    raise ShapeError(
                        f"weights {parts.spec.shape} must begin with the shape of arr, "
                        f"{numbers.spec.shape}"
                    )
        return unsorted_segment_sum(parts, counted, count)


def _are_equal(least: Tensor | None, most: Tensor | None) -> bool:
    """Whether two bounds are one constant."""
    if least is None or most is None or least.spec.value is None or most.spec.value is None:
        return False
    return bool(least.spec.value == most.spec.value)


def histogram_fixed_width(
    values: Any,
    value_range: Any,
    nbins: Any = 100,
    dtype: Any = dtypes.int32,
    name: str | None = None,
) -> Tensor:
    """How many values fall into each of some intervals of one width.

    Args:
        values: [...], real, not NaN.
        value_range: [2], the lower and the upper end. Values beyond count in the first and the
            last interval.
        nbins: How many intervals.
        dtype: int32 or int64.
        name: The name of the operation.

    Returns:
        [nbins], ``dtype``.

    Raises:
        AttributeValueError: if ``nbins`` is not positive.
        ExecutionError: when it runs, if the lower end is not below the upper one, or a value is
            NaN.
    """
    x = convert_to_tensor(values)
    return _histogram(x, _range_of(value_range, x), nbins, as_dtype(dtype), name=name)


def histogram_fixed_width_bins(
    values: Any,
    value_range: Any,
    nbins: Any = 100,
    dtype: Any = dtypes.int32,
    name: str | None = None,
) -> Tensor:
    """In which of some intervals of one width each value falls.

    Args:
        values: [...], real, not NaN.
        value_range: [2], the lower and the upper end. Values beyond fall into the first and the
            last interval.
        nbins: How many intervals.
        dtype: Without effect, as in TensorFlow.
        name: The name of the operation.

    Returns:
        [...], int32, from 0 to ``nbins - 1``.

    Raises:
        AttributeValueError: if ``nbins`` is not positive.
        ExecutionError: when it runs, if a value is NaN.
    """
    x = convert_to_tensor(values)
    as_dtype(dtype)
    return _bins(x, _range_of(value_range, x), nbins, dtypes.int32, name=name)


def _range_of(value_range: Any, values: Tensor) -> Any:
    """Return the two ends, plain numbers in the dtype of the values."""
    if is_python_literal(value_range) and values.dtype.is_floating:
        return convert_to_tensor(value_range, values.dtype)
    return value_range


def confusion_matrix(
    labels: Any,
    predictions: Any,
    num_classes: Any = None,
    dtype: Any = dtypes.int32,
    name: str | None = None,
    weights: Any = None,
) -> Tensor:
    """How often each label, a row, was predicted as each class, a column.

    Args:
        labels: [n] or [n, 1], numbers of classes from 0 on, of any real dtype; fractions are cut.
        predictions: [n] or [n, 1], likewise.
        num_classes: How many classes there are; one more than the largest number if None.
        dtype: The dtype of the result.
        name: The name of the operations.
        weights: [n], what each pair counts, of any numeric dtype; 1 if None.

    Returns:
        [num_classes, num_classes], ``dtype``. Numbers out of range raise when it runs.

    Raises:
        ShapeError: if labels, predictions and weights are not vectors of one length.
    """
    kind = as_dtype(dtype)
    with name_scope(name, "confusion_matrix"):
        rows, columns = _without_last_axis(_class_numbers(labels), _class_numbers(predictions))
        if num_classes is None:
            sizes = (cast(_bincount_size(ids), dtypes.int64) for ids in (rows, columns))
            count = maximum(*sizes)
        else:
            count = cast(num_classes, dtypes.int64)
        cells = _confusion_cells(rows, columns, count)
        if weights is None and kind in _COUNTED:
            counted = _counted(cells, count * count, count * count, kind)
        else:
            parts = ones_like(cells, kind) if weights is None else cast(weights, kind)
            counted = unsorted_segment_sum(parts, cells, count * count)
        dims = [num_classes] * 2 if isinstance(num_classes, int) else stack([count, count])
        return reshape(counted, dims)


# What counting takes as it is.
_COUNTERS = (dtypes.int32, dtypes.int64)


def _class_numbers(values: Any) -> Tensor:
    ids = index_tensor(values)
    real = ids.dtype.is_floating or ids.dtype.is_integer or ids.dtype.is_bool
    return cast(ids, dtypes.int64) if real and ids.dtype not in _COUNTERS else ids


def _without_last_axis(labels: Tensor, predictions: Tensor) -> tuple[Tensor, Tensor]:
    """Drop a last axis of size 1 that only one of the two has."""
    ranks = labels.shape.rank, predictions.shape.rank
    if None in ranks:
        return _like_rank_of(labels, predictions), _like_rank_of(predictions, labels)
    if ranks[0] == ranks[1]:
        return labels, predictions
    if ranks == (2, 1) and labels.spec.shape[1] in (1, None):
        return squeeze(labels, [-1]), predictions
    if ranks == (1, 2) and predictions.spec.shape[1] in (1, None):
        return labels, squeeze(predictions, [-1])
    return labels, predictions


def _like_rank_of(x: Tensor, other: Tensor) -> Tensor:
    """Drop the last axis of ``x`` if it has one more than ``other``, which only a step knows."""
    surplus = minimum(maximum(rank(x) - rank(other), 0), 1)
    return reshape(x, shape(x)[: rank(x) - surplus])
