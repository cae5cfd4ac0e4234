"""Training with Headrace: optimizers, queues, checkpoints, datasets."""

from __future__ import annotations

from headrace_train import datasets as datasets
from headrace_train.checkpoint import CheckpointReader as CheckpointReader
from headrace_train.checkpoint import latest_checkpoint as latest_checkpoint

__all__ = ["CheckpointReader", "datasets", "latest_checkpoint"]
