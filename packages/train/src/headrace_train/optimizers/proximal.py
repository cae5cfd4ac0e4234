"""The proximal operator of the L1 norm, which draws weights to zero (soft thresholding)."""

from __future__ import annotations

from typing import Any

import headrace as hr
from headrace import Tensor
from headrace_train.optimizers.hyperparameters import Hyperparameters


def soft_threshold(hyperparameters: Hyperparameters, x: Tensor, factor: Any) -> Tensor:
    """Return ``x`` moved towards zero by ``factor * l1_regularization_strength``, not beyond.

    Args:
        hyperparameters: What has ``l1_regularization_strength``.
        x: Any shape.
        factor: Broadcasts to ``x``, or a number.
    """
    name = "l1_regularization_strength"
    if hyperparameters.number(name) == 0:
        return x
    least = hyperparameters.tensor(name, x.dtype) * factor
    moved: Tensor = hr.sign(x) * hr.maximum(hr.abs(x) - least, 0.0)
    return moved
