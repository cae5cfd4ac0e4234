"""Training with Headrace: optimizers, queues, checkpoints, datasets, progress."""

from __future__ import annotations

from headrace_train import datasets as datasets
from headrace_train.averages import ExponentialMovingAverage as ExponentialMovingAverage
from headrace_train.checkpoint import CheckpointReader as CheckpointReader
from headrace_train.checkpoint import latest_checkpoint as latest_checkpoint
from headrace_train.optimizers import AdamOptimizer as AdamOptimizer
from headrace_train.optimizers import GradientDescentOptimizer as GradientDescentOptimizer
from headrace_train.optimizers import MomentumOptimizer as MomentumOptimizer
from headrace_train.optimizers import Optimizer as Optimizer
from headrace_train.progress import Progress as Progress
from headrace_train.queues import FIFOQueue as FIFOQueue
from headrace_train.saver import Saver as Saver
from headrace_train.steps import create_global_step as create_global_step
from headrace_train.steps import exponential_decay as exponential_decay
from headrace_train.steps import get_global_step as get_global_step
from headrace_train.steps import get_or_create_global_step as get_or_create_global_step

__all__ = [
    "AdamOptimizer",
    "CheckpointReader",
    "ExponentialMovingAverage",
    "FIFOQueue",
    "GradientDescentOptimizer",
    "MomentumOptimizer",
    "Optimizer",
    "Progress",
    "Saver",
    "create_global_step",
    "datasets",
    "exponential_decay",
    "get_global_step",
    "get_or_create_global_step",
    "latest_checkpoint",
]
