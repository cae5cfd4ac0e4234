"""``hr.train.experimental``: scaling of losses, under TensorFlow's names."""

from headrace_train.loss_scaling import DynamicLossScale as DynamicLossScale
from headrace_train.loss_scaling import FixedLossScale as FixedLossScale
from headrace_train.loss_scaling import LossScale as LossScale
from headrace_train.loss_scaling import (
    MixedPrecisionLossScaleOptimizer as MixedPrecisionLossScaleOptimizer,
)
from headrace_train.loss_scaling import (
    disable_mixed_precision_graph_rewrite as disable_mixed_precision_graph_rewrite,
)
from headrace_train.loss_scaling import (
    enable_mixed_precision_graph_rewrite as enable_mixed_precision_graph_rewrite,
)
