"""Metrics of rankings: of the k classes with the largest predictions, how many are labels."""

from __future__ import annotations

from typing import Any

import numpy as np

import headrace as hr
from headrace.errors import ArgumentTypeError, AttributeValueError, ShapeError, shown, told
from headrace.extend import Tensor
from headrace.extend.arguments import whole
from headrace_train.metrics.inputs import broadcast_weights
from headrace_train.metrics.state import Metric, listed, metric_variable

# Larger than any class.
_NONE = np.iinfo(np.int64).max


class _Labels:
    """Sets of classes, one for each example: classes, and which of them count.

    Attributes:
        classes: [..., labels], int64.
        present: [..., labels], or None where all count.
        sparse: Whether they were given as a ``SparseTensor``.
    """

    def __init__(self, labels: Any, rank: int | None) -> None:
        """Take labels, which of rank one less are one class for each example."""
        labels = hr.convert_to_tensor_or_sparse_tensor(labels)
        self.sparse = isinstance(labels, hr.SparseTensor)
        self.present: Tensor | None = None
        if self.sparse:
            classes = hr.SparseTensor(
                labels.indices, hr.cast(labels.values, hr.int64), labels.dense_shape
            )
            ones = hr.SparseTensor(labels.indices, hr.ones_like(classes.values), labels.dense_shape)
            self.classes = hr.sparse_tensor_to_dense(classes, _NONE)
            self.present = hr.greater(hr.sparse_tensor_to_dense(ones), 0)
        else:
            self.classes = hr.cast(labels, hr.int64)
        own = self.classes.shape.rank
        if own is None or rank is None:
            raise ShapeError(
                "the ranks of labels and predictions must be known; use hr.reshape or set_shape"
            )
        if own == rank - 1:
            self.classes = hr.expand_dims(self.classes, -1)
            if self.present is not None:
                self.present = hr.expand_dims(self.present, -1)
        elif own != rank:
            raise ShapeError(
                f"labels of shape {self.classes.spec.shape} must have as many axes as predictions, "
                f"{told(rank)}, or one less"
            )

    def only(self, class_id: int) -> None:
        """Let no class count but one."""
        same = hr.equal(self.classes, class_id)
        self.present = same if self.present is None else hr.logical_and(self.present, same)

    def have(self, classes: Tensor) -> Tensor:
        """Return of classes [..., k] which of them are labels."""
        same = hr.equal(hr.expand_dims(classes, -1), hr.expand_dims(self.classes, -2))
        if self.present is not None:
            same = hr.logical_and(same, hr.expand_dims(self.present, -2))
        return hr.reduce_any(same, -1)

    def count(self) -> Tensor:
        """Return how many different classes each set has, [...], float64."""
        if self.present is None:
            return _total(_first_of_equals(hr.sort(self.classes)))
        classes = hr.where(self.present, self.classes, hr.fill(hr.shape(self.classes), _NONE))
        ordered = hr.sort(classes)
        return _total(hr.logical_and(_first_of_equals(ordered), hr.not_equal(ordered, _NONE)))


def _first_of_equals(ordered: Tensor) -> Tensor:
    """Return which elements of ascending ones, along the last axis, differ from those before."""
    first = hr.ones_like(ordered[..., :1], hr.bool)
    return hr.concat([first, hr.not_equal(ordered[..., 1:], ordered[..., :-1])], -1)


def _total(chosen: Tensor) -> Tensor:
    return hr.reduce_sum(hr.cast(chosen, hr.float64), -1)


def _hits(labels: Any, predictions_idx: Tensor, class_id: int | None) -> dict[str, Tensor]:
    """Return for each example how many classes are right, wrong and missing."""
    known = _Labels(labels, predictions_idx.shape.rank)
    # Sets: a class that is predicted twice counts once.
    ordered = hr.sort(hr.cast(predictions_idx, hr.int64))
    counted = _first_of_equals(ordered)
    if class_id is not None:
        known.only(class_id)
        counted = hr.logical_and(counted, hr.equal(ordered, class_id))
    right = known.have(ordered)
    hits = _total(hr.logical_and(counted, right))
    return {
        "true_positive": hits,
        "false_positive": _total(hr.logical_and(counted, hr.logical_not(right))),
        "false_negative": known.count() - hits,
    }


def _weighted(values: Tensor, weights: Any) -> Tensor:
    return values if weights is None else values * broadcast_weights(weights, values)


def _at_k(name: str, k: int | None, class_id: int | None = None) -> str:
    for label, number in (("k", k), ("class_id", class_id)):
        if not isinstance(number, int | np.integer | None):
            raise ArgumentTypeError(f"{label} must be an integer, got {shown(number)}")
        if number is not None and abs(number) >= 1 << 63:
            raise AttributeValueError(f"{label} must be an integer of 64 bits, got {shown(number)}")
    ending = "k" if k is None else int(k)
    return f"{name}_at_{ending}" + ("" if class_id is None else f"_class{int(class_id)}")


def _check_k(k: int) -> None:
    if whole(k, "k") < 1:
        raise AttributeValueError(f"k must be positive, got {told(k)}")


def _top_k(predictions: Any, k: int) -> Tensor:
    _check_k(k)
    found: Tensor = hr.nn.top_k(predictions, k)[1]
    return found


def _share(
    other: str,
    inputs: tuple[Any, Any, Any],
    k: int | None,
    class_id: int | None,
    metrics_collections: Any,
    updates_collections: Any,
    scope: str,
) -> Metric:
    """Return right classes over right and ``other`` ones."""
    labels, predictions_idx, weights = inputs
    places = hr.convert_to_tensor(predictions_idx)
    hits = _hits(labels, places, class_id)
    values, updates = {}, {}
    for kind in ("true_positive", other):
        with hr.name_scope(_at_k(kind, k, class_id)) as own:
            variable = metric_variable([], hr.float64, own)
            batch = hr.reduce_sum(_weighted(hits[kind], weights))
            updates[kind] = variable.assign_add(batch, name="update")
            values[kind] = variable.value()
    value = hr.divide(
        values["true_positive"], values["true_positive"] + values[other], name=scope or None
    )
    update = hr.divide(
        updates["true_positive"], updates["true_positive"] + updates[other], name="update"
    )
    return listed(value, update, metrics_collections, updates_collections)


def precision_at_k(
    labels: Any,
    predictions: Any,
    k: int,
    class_id: int | None = None,
    weights: Any = None,
    metrics_collections: Any = None,
    updates_collections: Any = None,
    name: str | None = None,
) -> Metric:
    """Return how many of the k classes with the largest predictions are labels.

    Args:
        labels: [..., labels], integers, the classes of each example, or [...] for one class each;
            a tensor or a ``SparseTensor``.
        predictions: [..., classes], floating.
        k: How many classes are predicted for each example.
        class_id: The class that alone counts; all do if None.
        weights: A scalar, or [...], one for each example; 1 if None.
        metrics_collections: Collections to add the precision to.
        updates_collections: Collections to add the update to.
        name: The name of the scope of variables and operations.

    Returns:
        The precision so far, [], float64, NaN where nothing was predicted; and a tensor that takes
        in a batch and yields the new one.

    Raises:
        AttributeValueError: if ``k`` is not positive.
        ShapeError: if shapes do not fit, or ranks are not known.
    """
    with hr.name_scope(name, _at_k("precision", k, class_id), [predictions, weights]) as scope:
        inputs = labels, _top_k(predictions, k), weights
        collections = metrics_collections, updates_collections
        return _share("false_positive", inputs, k, class_id, *collections, scope)


def precision_at_top_k(
    labels: Any,
    predictions_idx: Any,
    k: int | None = None,
    class_id: int | None = None,
    weights: Any = None,
    metrics_collections: Any = None,
    updates_collections: Any = None,
    name: str | None = None,
) -> Metric:
    """Return how many predicted classes are labels.

    Args:
        labels: As for ``precision_at_k``.
        predictions_idx: [..., k], integers, the predicted classes.
        k: The number in names; "k" if None.
        class_id: The class that alone counts; all do if None.
        weights: A scalar, or [...], one for each example; 1 if None.
        metrics_collections: Collections to add the precision to.
        updates_collections: Collections to add the update to.
        name: The name of the scope of variables and operations.

    Returns:
        The precision so far, [], float64, NaN where nothing was predicted; and a tensor that takes
        in a batch and yields the new one.

    Raises:
        ShapeError: if shapes do not fit, or ranks are not known.
    """
    with hr.name_scope(name, _at_k("precision", k, class_id), [predictions_idx, weights]) as scope:
        inputs = labels, predictions_idx, weights
        collections = metrics_collections, updates_collections
        return _share("false_positive", inputs, k, class_id, *collections, scope)


def sparse_precision_at_k(
    labels: Any,
    predictions: Any,
    k: int,
    class_id: int | None = None,
    weights: Any = None,
    metrics_collections: Any = None,
    updates_collections: Any = None,
    name: str | None = None,
) -> Metric:
    """Return what ``precision_at_k`` returns, of which this is the old name.

    Args:
        labels: As for ``precision_at_k``, and the others likewise.
        predictions: The predictions.
        k: How many classes are predicted for each example.
        class_id: The class that alone counts.
        weights: One for each example.
        metrics_collections: Collections to add the precision to.
        updates_collections: Collections to add the update to.
        name: The name of the scope of variables and operations.
    """
    collections = metrics_collections, updates_collections
    return precision_at_k(labels, predictions, k, class_id, weights, *collections, name)


def recall_at_k(
    labels: Any,
    predictions: Any,
    k: int,
    class_id: int | None = None,
    weights: Any = None,
    metrics_collections: Any = None,
    updates_collections: Any = None,
    name: str | None = None,
) -> Metric:
    """Return how many labels are among the k classes with the largest predictions.

    Args:
        labels: [..., labels], integers, the classes of each example, or [...] for one class each;
            a tensor or a ``SparseTensor``.
        predictions: [..., classes], floating.
        k: How many classes are predicted for each example.
        class_id: The class that alone counts; all do if None.
        weights: A scalar, or [...], one for each example; 1 if None.
        metrics_collections: Collections to add the recall to.
        updates_collections: Collections to add the update to.
        name: The name of the scope of variables and operations.

    Returns:
        The recall so far, [], float64, NaN where there were no labels; and a tensor that takes in a
        batch and yields the new one.

    Raises:
        AttributeValueError: if ``k`` is not positive.
        ShapeError: if shapes do not fit, or ranks are not known.
    """
    with hr.name_scope(name, _at_k("recall", k, class_id), [predictions, weights]) as scope:
        inputs = labels, _top_k(predictions, k), weights
        collections = metrics_collections, updates_collections
        return _share("false_negative", inputs, k, class_id, *collections, scope)


def recall_at_top_k(
    labels: Any,
    predictions_idx: Any,
    k: int | None = None,
    class_id: int | None = None,
    weights: Any = None,
    metrics_collections: Any = None,
    updates_collections: Any = None,
    name: str | None = None,
) -> Metric:
    """Return how many labels are among predicted classes.

    Args:
        labels: As for ``recall_at_k``.
        predictions_idx: [..., k], integers, the predicted classes.
        k: The number in names; "k" if None.
        class_id: The class that alone counts; all do if None.
        weights: A scalar, or [...], one for each example; 1 if None.
        metrics_collections: Collections to add the recall to.
        updates_collections: Collections to add the update to.
        name: The name of the scope of variables and operations.

    Returns:
        The recall so far, [], float64, NaN where there were no labels; and a tensor that takes in a
        batch and yields the new one.

    Raises:
        ShapeError: if shapes do not fit, or ranks are not known.
    """
    with hr.name_scope(name, _at_k("recall", k, class_id), [predictions_idx, weights]) as scope:
        inputs = labels, predictions_idx, weights
        collections = metrics_collections, updates_collections
        return _share("false_negative", inputs, k, class_id, *collections, scope)


def average_precision_at_k(
    labels: Any,
    predictions: Any,
    k: int,
    weights: Any = None,
    metrics_collections: Any = None,
    updates_collections: Any = None,
    name: str | None = None,
) -> Metric:
    """Return the mean over examples of the average precision of the k largest predictions.

    That of an example is the sum of the precisions at the places of labels in the ranking, divided
    by the number of labels, at most ``k``.

    Args:
        labels: [..., labels], integers, the classes of each example, or [...] for one class each;
            a tensor, in which negative numbers are no labels, or a ``SparseTensor``.
        predictions: [..., classes], floating.
        k: How many classes are predicted for each example.
        weights: A scalar, or [...], one for each example; 1 if None.
        metrics_collections: Collections to add the mean to.
        updates_collections: Collections to add the update to.
        name: The name of the scope of variables and operations.

    Returns:
        The mean so far, [], float64, and a tensor that takes in a batch and yields the new one.

    Raises:
        AttributeValueError: if ``k`` is not positive.
        ShapeError: if shapes do not fit, or ranks are not known.
    """
    _check_k(k)
    title = _at_k("average_precision", k)
    with hr.name_scope(name, title, [predictions, weights]) as scope:
        scores = hr.convert_to_tensor(predictions)
        known = _Labels(labels, scores.shape.rank)
        limit = hr.cast(hr.shape(scores)[-1], hr.int64)
        outside = hr.greater_equal(known.classes, limit)
        if known.present is not None:
            outside = hr.logical_and(outside, known.present)
        known.classes = hr.where(outside, -hr.ones_like(known.classes), known.classes)
        each = _average_precision(known, _top_k(scores, k), k)
        factor = None if weights is None else broadcast_weights(weights, each)
        if factor is None:
            count = hr.cast(hr.size(each), hr.float64)
        else:
            count, each = hr.reduce_sum(factor), each * factor
        # TensorFlow's name: there, "max" is an operation before it.
        with hr.name_scope("max_1") as own:
            most = metric_variable([], hr.float64, own)
            new_most = most.assign_add(count, name="update")
        with hr.name_scope("total") as own:
            total = metric_variable([], hr.float64, own)
            new_total = total.assign_add(hr.reduce_sum(each), name="update")
        return listed(
            hr.div_no_nan(total.value(), most.value(), name="mean"),
            hr.div_no_nan(new_total, new_most, name=scope or None),
            metrics_collections,
            updates_collections,
        )


def _average_precision(known: _Labels, ranking: Tensor, k: int) -> Tensor:
    relevant = hr.cast(known.have(hr.cast(ranking, hr.int64)), hr.float64)
    precision = hr.cumsum(relevant, -1) / hr.cumsum(hr.ones_like(relevant), -1)
    if known.sparse:
        count = known.count()
    else:
        count = _total(hr.greater_equal(known.classes, 0))
    return hr.reduce_sum(precision * relevant, -1) / hr.minimum(count, hr.cast(k, hr.float64))


def sparse_average_precision_at_k(
    labels: Any,
    predictions: Any,
    k: int,
    weights: Any = None,
    metrics_collections: Any = None,
    updates_collections: Any = None,
    name: str | None = None,
) -> Metric:
    """Return what ``average_precision_at_k`` returns, of which this is the old name.

    Args:
        labels: As for ``average_precision_at_k``, and the others likewise.
        predictions: The predictions.
        k: How many classes are predicted for each example.
        weights: One for each example.
        metrics_collections: Collections to add the mean to.
        updates_collections: Collections to add the update to.
        name: The name of the scope of variables and operations.
    """
    collections = metrics_collections, updates_collections
    return average_precision_at_k(labels, predictions, k, weights, *collections, name)
