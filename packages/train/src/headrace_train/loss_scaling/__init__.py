"""Scaling of losses, so that small gradients do not vanish in float16."""

from headrace_train.loss_scaling.dynamic import DynamicLossScale as DynamicLossScale
from headrace_train.loss_scaling.graph_rewrite import (
    disable_mixed_precision_graph_rewrite as disable_mixed_precision_graph_rewrite,
)
from headrace_train.loss_scaling.graph_rewrite import (
    enable_mixed_precision_graph_rewrite as enable_mixed_precision_graph_rewrite,
)
from headrace_train.loss_scaling.optimizer import (
    MixedPrecisionLossScaleOptimizer as MixedPrecisionLossScaleOptimizer,
)
from headrace_train.loss_scaling.scale import FixedLossScale as FixedLossScale
from headrace_train.loss_scaling.scale import LossScale as LossScale
