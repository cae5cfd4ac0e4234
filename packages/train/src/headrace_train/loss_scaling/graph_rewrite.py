"""TensorFlow's switch for mixed precision, of which the part that is about optimizers is here."""

from __future__ import annotations

import logging
from typing import Any

from headrace.errors import AttributeValueError
from headrace_train.loss_scaling.optimizer import MixedPrecisionLossScaleOptimizer
from headrace_train.optimizers.optimizer import Optimizer

_log = logging.getLogger("headrace.train")


def enable_mixed_precision_graph_rewrite(opt: Optimizer, loss_scale: Any = "dynamic") -> Optimizer:
    """Return an optimizer that scales the loss for another one.

    TensorFlow also turns float32 into float16 in the parts of a graph that run on GPUs with tensor
    cores, and nothing on CPUs. Here graphs keep their dtypes everywhere, which is logged:
    ``hr.Config(precision="tf32")`` has GPUs multiply float32 faster.

    Args:
        opt: The optimizer.
        loss_scale: As for ``MixedPrecisionLossScaleOptimizer``.

    Raises:
        AttributeValueError: if ``opt`` is no optimizer, or scales the loss already.
    """
    if isinstance(opt, MixedPrecisionLossScaleOptimizer):
        raise AttributeValueError(
            "opt scales the loss already: pass the optimizer that it was made of"
        )
    scaled = MixedPrecisionLossScaleOptimizer(opt, loss_scale)
    _log.warning(
        "%s: the loss is scaled, but graphs keep their dtypes: cast to float16 where you want it, "
        'or let GPUs multiply faster by hr.Config(precision="tf32")',
        opt.get_name(),
    )
    return scaled


def disable_mixed_precision_graph_rewrite() -> None:
    """Do nothing: graphs keep their dtypes in any case."""
