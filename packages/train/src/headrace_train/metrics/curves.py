"""Metrics of the curves that predictions between 0 and 1 draw as a threshold moves."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import headrace as hr
from headrace.errors import AttributeValueError, shown, told
from headrace.extend import Tensor
from headrace.extend.arguments import items, real, whole
from headrace_train.metrics.state import Metric, listed
from headrace_train.metrics.thresholds import Counts, counts_at_thresholds

_ALL = ("tp", "fn", "tn", "fp")
_METHODS = ("trapezoidal", "careful_interpolation", "minoring", "majoring")

# How far the outermost thresholds are outside of [0, 1], so that nothing lies on them.
_MARGIN = 1e-7

# Each is a row of counts.
_MOST_THRESHOLDS = 1 << 20

# Added to numerators and denominators of rates.
_EPSILON = 1e-6


def _evenly(num_thresholds: int) -> list[float]:
    num_thresholds = whole(
        whole(num_thresholds, "num_thresholds", least=2), "num_thresholds", most=_MOST_THRESHOLDS
    )
    return [(i + 1) / (num_thresholds - 1) for i in range(num_thresholds - 2)]


def auc(
    labels: Any,
    predictions: Any,
    weights: Any = None,
    num_thresholds: int = 200,
    metrics_collections: Any = None,
    updates_collections: Any = None,
    curve: str = "ROC",
    name: str | None = None,
    summation_method: str = "trapezoidal",
    thresholds: Sequence[float] | None = None,
) -> Metric:
    """Return the area under a curve of rates, approximated by sums over thresholds.

    Args:
        labels: [...], converted to bool.
        predictions: [...], the shape of ``labels``, floating, in [0, 1].
        weights: A scalar, or of the rank of ``labels`` and broadcasting to it; 1 if None.
        num_thresholds: The number of thresholds, which are evenly spaced.
        metrics_collections: Collections to add the area to.
        updates_collections: Collections to add the update to.
        curve: "ROC", recall over the rate of false positives, or "PR", precision over recall.
        name: The name of the scope of variables and operations.
        summation_method: "trapezoidal"; for "PR" better "careful_interpolation" (Davis and
            Goadrich), as trapezoids are too large there; "minoring" or "majoring" for the smaller
            or larger end of each step.
        thresholds: Thresholds between 0 and 1 to use instead; 0 and 1 are added.

    Returns:
        The area so far, [], float32, and a tensor that takes in a batch and yields the new one.

    Raises:
        AttributeValueError: if there is no such curve or method.
        ShapeError: if shapes do not fit. A step with predictions out of range raises
            ``InvalidArgumentError``.

    References:
        J. Davis and M. Goadrich, "The Relationship Between Precision-Recall and ROC Curves", ICML
        2006, https://doi.org/10.1145/1143844.1143874
    """
    if curve not in ("ROC", "PR"):
        raise AttributeValueError(f"curve must be 'ROC' or 'PR', got {shown(curve)}")
    if summation_method not in _METHODS:
        raise AttributeValueError(
            f"summation_method must be one of {', '.join(_METHODS)}, got {shown(summation_method)}"
        )
    if thresholds is None:
        inner = _evenly(num_thresholds)
    else:
        inner = sorted(items(thresholds, "thresholds"))
    with hr.variable_scope(name, "auc", [labels, predictions, weights]):
        limits = [0.0 - _MARGIN, *inner, 1.0 + _MARGIN]
        values, updates = counts_at_thresholds(labels, predictions, limits, weights, _ALL)

        def area(counts: Counts, last: str) -> Tensor:
            if curve == "PR" and summation_method == "careful_interpolation":
                return _interpolated_area(counts)
            return _area(counts, curve, summation_method, last)

        return listed(
            area(values, "value"),
            area(updates, "update_op"),
            metrics_collections,
            updates_collections,
        )


def _area(counts: Counts, curve: str, method: str, name: str) -> Tensor:
    tp, fn, tn, fp = (counts[kind] for kind in _ALL)
    recall = (tp + _EPSILON) / (tp + fn + _EPSILON)
    if curve == "ROC":
        x, y = fp / (fp + tn + _EPSILON), recall
    else:
        x, y = recall, (tp + _EPSILON) / (tp + fp + _EPSILON)
    if method == "minoring":
        heights = hr.minimum(y[:-1], y[1:])
    elif method == "majoring":
        heights = hr.maximum(y[:-1], y[1:])
    else:
        heights = (y[:-1] + y[1:]) / 2.0
    return hr.reduce_sum((x[:-1] - x[1:]) * heights, name=name)


def _interpolated_area(counts: Counts) -> Tensor:
    """Interpolate true and false positives between thresholds, and integrate precision exactly.

    Between two thresholds tp grows linearly with p = tp + fp: tp = intercept + slope * p. The
    integral of precision over recall then is (slope * dtp + slope * intercept * log(p_a / p_b))
    over the number of positives.
    """
    tp, fp, fn = counts["tp"], counts["fp"], counts["fn"]
    grown = tp[:-1] - tp[1:]
    p = tp + fp
    slope = hr.div_no_nan(grown, hr.maximum(p[:-1] - p[1:], 0.0))
    intercept = tp[1:] - slope * p[1:]
    both = hr.logical_and(hr.greater(p[:-1], 0.0), hr.greater(p[1:], 0.0))
    ratio = hr.where(both, hr.div_no_nan(p[:-1], hr.maximum(p[1:], 0.0)), hr.ones_like(p[1:]))
    total = hr.maximum(tp[1:] + fn[1:], 0.0)
    parts = hr.div_no_nan(slope * (grown + intercept * hr.log(ratio)), total)
    return hr.reduce_sum(parts, name="interpolate_pr_auc")


def sensitivity_at_specificity(
    labels: Any,
    predictions: Any,
    specificity: float,
    weights: Any = None,
    num_thresholds: int = 200,
    metrics_collections: Any = None,
    updates_collections: Any = None,
    name: str | None = None,
) -> Metric:
    """Return the sensitivity where the specificity is nearest to a number.

    Sensitivity is ``tp / (tp + fn)``, specificity ``tn / (tn + fp)``.

    Args:
        labels: [...], converted to bool.
        predictions: [...], the shape of ``labels``, floating, in [0, 1].
        specificity: The number, in [0, 1].
        weights: A scalar, or of the rank of ``labels`` and broadcasting to it; 1 if None.
        num_thresholds: The number of thresholds, which are evenly spaced.
        metrics_collections: Collections to add the sensitivity to.
        updates_collections: Collections to add the update to.
        name: The name of the scope of variables and operations.

    Returns:
        The sensitivity so far, [], float32, and a tensor that takes in a batch and yields the new
        one.

    Raises:
        AttributeValueError: if ``specificity`` is out of range.
        ShapeError: if shapes do not fit. A step with predictions out of range raises
            ``InvalidArgumentError``.
    """
    specificity = real(specificity, "specificity")
    if not 0 <= specificity <= 1:
        raise AttributeValueError(f"specificity must be in [0, 1], got {told(specificity)}")
    limits = [0.0 - _MARGIN, *_evenly(num_thresholds), 1.0 + _MARGIN]
    with hr.variable_scope(name, "sensitivity_at_specificity", [predictions, labels, weights]):
        values, updates = counts_at_thresholds(labels, predictions, limits, weights, _ALL)

        def chosen(counts: Counts, last: str) -> Tensor:
            tp, fn, tn, fp = (counts[kind] for kind in _ALL)
            distance = hr.abs(tn / (tn + fp + _MARGIN) - specificity)
            place = hr.argmin(distance, 0)
            return hr.divide(tp[place], tp[place] + fn[place] + _MARGIN, name=last)

        return listed(
            chosen(values, "value"),
            chosen(updates, "update_op"),
            metrics_collections,
            updates_collections,
        )


def specificity_at_sensitivity(
    labels: Any,
    predictions: Any,
    sensitivity: float,
    weights: Any = None,
    num_thresholds: int = 200,
    metrics_collections: Any = None,
    updates_collections: Any = None,
    name: str | None = None,
) -> Metric:
    """Return the specificity where the sensitivity is nearest to a number.

    Of several thresholds that are as near, the largest counts.

    Args:
        labels: [...], converted to bool.
        predictions: [...], the shape of ``labels``, floating, in [0, 1].
        sensitivity: The number, in [0, 1].
        weights: A scalar, or of the rank of ``labels`` and broadcasting to it; 1 if None.
        num_thresholds: The number of thresholds, which are evenly spaced.
        metrics_collections: Collections to add the specificity to.
        updates_collections: Collections to add the update to.
        name: The name of the scope of variables and operations.

    Returns:
        The specificity so far, [], float32, and a tensor that takes in a batch and yields the new
        one.

    Raises:
        AttributeValueError: if ``sensitivity`` is out of range.
        ShapeError: if shapes do not fit. A step with predictions out of range raises
            ``InvalidArgumentError``.
    """
    sensitivity = real(sensitivity, "sensitivity")
    if not 0 <= sensitivity <= 1:
        raise AttributeValueError(f"sensitivity must be in [0, 1], got {told(sensitivity)}")
    limits = [0.0 - _MARGIN, *_evenly(num_thresholds), 1.0 - _MARGIN]
    with hr.variable_scope(name, "specificity_at_sensitivity", [predictions, labels, weights]):
        values, updates = counts_at_thresholds(labels, predictions, limits, weights, _ALL)

        def chosen(counts: Counts, last: str) -> Tensor:
            tp, fn, tn, fp = (counts[kind] for kind in _ALL)
            distance = hr.abs(tp / (tp + fn + _MARGIN) - sensitivity)
            nearest = hr.cast(hr.equal(distance, hr.reduce_min(distance)), hr.int64)
            # Where the running count of the nearest first reaches its end is the last of them.
            place = hr.argmax(hr.cumsum(nearest), 0)
            return hr.divide(tn[place], tn[place] + fp[place] + _MARGIN, name=last)

        return listed(
            chosen(values, "value"),
            chosen(updates, "update_op"),
            metrics_collections,
            updates_collections,
        )
