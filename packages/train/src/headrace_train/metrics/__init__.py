"""Metrics over many batches, as ``hr.metrics``: a value so far, and what takes in a batch."""

from __future__ import annotations

from headrace_train.metrics.classes import mean_iou as mean_iou
from headrace_train.metrics.classes import mean_per_class_accuracy as mean_per_class_accuracy
from headrace_train.metrics.counts import false_negatives as false_negatives
from headrace_train.metrics.counts import false_positives as false_positives
from headrace_train.metrics.counts import precision as precision
from headrace_train.metrics.counts import recall as recall
from headrace_train.metrics.counts import true_negatives as true_negatives
from headrace_train.metrics.counts import true_positives as true_positives
from headrace_train.metrics.curves import auc as auc
from headrace_train.metrics.curves import sensitivity_at_specificity as sensitivity_at_specificity
from headrace_train.metrics.curves import specificity_at_sensitivity as specificity_at_sensitivity
from headrace_train.metrics.means import accuracy as accuracy
from headrace_train.metrics.means import mean as mean
from headrace_train.metrics.means import mean_absolute_error as mean_absolute_error
from headrace_train.metrics.means import mean_cosine_distance as mean_cosine_distance
from headrace_train.metrics.means import mean_relative_error as mean_relative_error
from headrace_train.metrics.means import mean_squared_error as mean_squared_error
from headrace_train.metrics.means import mean_tensor as mean_tensor
from headrace_train.metrics.means import percentage_below as percentage_below
from headrace_train.metrics.means import root_mean_squared_error as root_mean_squared_error
from headrace_train.metrics.thresholds import (
    false_negatives_at_thresholds as false_negatives_at_thresholds,
)
from headrace_train.metrics.thresholds import (
    false_positives_at_thresholds as false_positives_at_thresholds,
)
from headrace_train.metrics.thresholds import precision_at_thresholds as precision_at_thresholds
from headrace_train.metrics.thresholds import recall_at_thresholds as recall_at_thresholds
from headrace_train.metrics.thresholds import (
    true_negatives_at_thresholds as true_negatives_at_thresholds,
)
from headrace_train.metrics.thresholds import (
    true_positives_at_thresholds as true_positives_at_thresholds,
)
from headrace_train.metrics.top_k import average_precision_at_k as average_precision_at_k
from headrace_train.metrics.top_k import precision_at_k as precision_at_k
from headrace_train.metrics.top_k import precision_at_top_k as precision_at_top_k
from headrace_train.metrics.top_k import recall_at_k as recall_at_k
from headrace_train.metrics.top_k import recall_at_top_k as recall_at_top_k
from headrace_train.metrics.top_k import (
    sparse_average_precision_at_k as sparse_average_precision_at_k,
)
from headrace_train.metrics.top_k import sparse_precision_at_k as sparse_precision_at_k

__all__ = [
    "accuracy",
    "auc",
    "average_precision_at_k",
    "false_negatives",
    "false_negatives_at_thresholds",
    "false_positives",
    "false_positives_at_thresholds",
    "mean",
    "mean_absolute_error",
    "mean_cosine_distance",
    "mean_iou",
    "mean_per_class_accuracy",
    "mean_relative_error",
    "mean_squared_error",
    "mean_tensor",
    "percentage_below",
    "precision",
    "precision_at_k",
    "precision_at_thresholds",
    "precision_at_top_k",
    "recall",
    "recall_at_k",
    "recall_at_thresholds",
    "recall_at_top_k",
    "root_mean_squared_error",
    "sensitivity_at_specificity",
    "sparse_average_precision_at_k",
    "sparse_precision_at_k",
    "specificity_at_sensitivity",
    "true_negatives",
    "true_negatives_at_thresholds",
    "true_positives",
    "true_positives_at_thresholds",
]
