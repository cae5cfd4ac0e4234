"""Weighted losses, as ``hr.losses``."""

from typing import TYPE_CHECKING as _TYPE_CHECKING

from headrace.ops.losses.classification import hinge_loss as hinge_loss
from headrace.ops.losses.classification import log_loss as log_loss
from headrace.ops.losses.classification import sigmoid_cross_entropy as sigmoid_cross_entropy
from headrace.ops.losses.classification import softmax_cross_entropy as softmax_cross_entropy
from headrace.ops.losses.classification import (
    sparse_softmax_cross_entropy as sparse_softmax_cross_entropy,
)
from headrace.ops.losses.collected import add_loss as add_loss
from headrace.ops.losses.collected import get_losses as get_losses
from headrace.ops.losses.collected import get_regularization_loss as get_regularization_loss
from headrace.ops.losses.collected import get_regularization_losses as get_regularization_losses
from headrace.ops.losses.collected import get_total_loss as get_total_loss
from headrace.ops.losses.regression import absolute_difference as absolute_difference
from headrace.ops.losses.regression import cosine_distance as cosine_distance
from headrace.ops.losses.regression import huber_loss as huber_loss
from headrace.ops.losses.regression import (
    mean_pairwise_squared_error as mean_pairwise_squared_error,
)
from headrace.ops.losses.regression import mean_squared_error as mean_squared_error
from headrace.ops.losses.weighted import Reduction as Reduction
from headrace.ops.losses.weighted import compute_weighted_loss as compute_weighted_loss
from headrace.plugins.namespaces import added_names as _added_names

if not _TYPE_CHECKING:
    __getattr__, __dir__ = _added_names("losses", __name__)
