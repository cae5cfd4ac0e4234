"""Metrics of labels that are numbers of classes, averaged over classes."""

from __future__ import annotations

from typing import Any

import headrace as hr
from headrace.errors import ShapeError
from headrace.extend import Tensor
from headrace_train.metrics.state import Metric, listed, metric_variable


def _flat(tensor: Any) -> Tensor:
    found = hr.convert_to_tensor(tensor)
    return found if found.shape.rank in (0, 1) else hr.reshape(found, [-1])


def _check(labels: Tensor, predictions: Tensor) -> None:
    if not labels.shape.is_compatible_with(predictions.shape):
        raise ShapeError(
            f"labels and predictions must have one shape, got {labels.spec.shape} and "
            f"{predictions.spec.shape}"
        )


def mean_per_class_accuracy(
    labels: Any,
    predictions: Any,
    num_classes: int,
    weights: Any = None,
    metrics_collections: Any = None,
    updates_collections: Any = None,
    name: str | None = None,
) -> Metric:
    """Return the mean over classes of how often predictions are the labels of the class.

    Args:
        labels: [...], int32 or int64, in [0, num_classes).
        predictions: [...], the shape of ``labels``.
        num_classes: The number of classes.
        weights: The shape of ``labels``, or a scalar; 1 if None.
        metrics_collections: Collections to add the accuracy to.
        updates_collections: Collections to add the update to.
        name: The name of the scope of variables and operations.

    Returns:
        The mean accuracy so far, [], float32, to which a class that was not seen adds 0; and a
        tensor that takes in a batch and yields the new accuracies of the classes, [num_classes].

    Raises:
        ShapeError: if shapes do not fit.
    """
    with hr.variable_scope(name, "mean_accuracy", [predictions, labels, weights]):
        wanted, made = _flat(hr.cast(labels, hr.int64)), _flat(predictions)
        _check(wanted, made)
        total = metric_variable([num_classes], hr.float32, "total")
        count = metric_variable([num_classes], hr.float32, "count")
        seen = hr.ones([hr.size(wanted)], hr.float32)
        correct = hr.cast(hr.equal(hr.cast(made, wanted.dtype), wanted), hr.float32)
        if weights is not None:
            factor = hr.cast(_flat(weights), hr.float32)
            correct, seen = correct * factor, seen * factor
        new_total = hr.scatter_add(total, wanted, seen)
        new_count = hr.scatter_add(count, wanted, correct)
        each = hr.div_no_nan(count.value(), hr.maximum(total.value(), 0.0))
        return listed(
            hr.reduce_mean(each, name="mean_accuracy"),
            hr.div_no_nan(new_count, hr.maximum(new_total, 0.0), name="update_op"),
            metrics_collections,
            updates_collections,
        )


def mean_iou(
    labels: Any,
    predictions: Any,
    num_classes: int,
    weights: Any = None,
    metrics_collections: Any = None,
    updates_collections: Any = None,
    name: str | None = None,
) -> Metric:
    """Return the mean over classes of intersection over union, as for segmented images.

    That of a class is ``tp / (tp + fp + fn)``; classes that neither labels nor predictions have
    are left out.

    Args:
        labels: [...], int32 or int64, in [0, num_classes).
        predictions: [...], the shape of ``labels``, likewise.
        num_classes: The number of classes.
        weights: The shape of ``labels``, or a scalar; 1 if None.
        metrics_collections: Collections to add the mean to.
        updates_collections: Collections to add the update to.
        name: The name of the scope of variables and operations.

    Returns:
        The mean so far, [], float32, and a tensor that takes in a batch and yields the new
        confusion matrix, [num_classes, num_classes].

    Raises:
        ShapeError: if shapes do not fit.
    """
    with hr.variable_scope(name, "mean_iou", [predictions, labels, weights]):
        wanted, made = hr.convert_to_tensor(labels), hr.convert_to_tensor(predictions)
        _check(wanted, made)
        matrix = metric_variable([num_classes, num_classes], hr.float64, "total_confusion_matrix")
        update = matrix.assign_add(
            hr.confusion_matrix(
                _flat(hr.cast(wanted, hr.int64)),
                _flat(hr.cast(made, hr.int64)),
                num_classes,
                weights=None if weights is None else _flat(weights),
                dtype=hr.float64,
            )
        )
        return listed(_mean_iou(matrix.value()), update, metrics_collections, updates_collections)


def _mean_iou(matrix: Tensor) -> Tensor:
    columns = hr.cast(hr.reduce_sum(matrix, 0), hr.float32)
    rows = hr.cast(hr.reduce_sum(matrix, 1), hr.float32)
    both = hr.cast(hr.diag_part(matrix), hr.float32)
    either = columns + rows - both
    present = hr.reduce_sum(hr.cast(hr.not_equal(either, 0.0), hr.float32))
    each = hr.where(hr.greater(either, 0.0), hr.div_no_nan(both, either), both)
    total = hr.reduce_sum(each, name="mean_iou")
    return hr.where(hr.greater(present, 0.0), hr.div_no_nan(total, present), hr.constant(0.0))
