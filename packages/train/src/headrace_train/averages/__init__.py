"""Averages of variables over the steps of training."""

from __future__ import annotations

from headrace_train.averages.exponential import (
    ExponentialMovingAverage as ExponentialMovingAverage,
)
from headrace_train.averages.optimizer import MovingAverageOptimizer as MovingAverageOptimizer

__all__ = ["ExponentialMovingAverage", "MovingAverageOptimizer"]
