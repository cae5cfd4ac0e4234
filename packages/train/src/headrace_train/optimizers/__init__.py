"""Optimizers: ways to build the operations of a training step."""

from __future__ import annotations

from headrace_train.optimizers.adam import AdamOptimizer as AdamOptimizer
from headrace_train.optimizers.gradient_descent import (
    GradientDescentOptimizer as GradientDescentOptimizer,
)
from headrace_train.optimizers.momentum import MomentumOptimizer as MomentumOptimizer
from headrace_train.optimizers.optimizer import Optimizer as Optimizer

__all__ = ["AdamOptimizer", "GradientDescentOptimizer", "MomentumOptimizer", "Optimizer"]
