"""What programs take from checkpoints: lists, single tensors, and initial values.

Checkpoints of ``Saver`` and of TensorFlow are read by the same functions.
"""

from __future__ import annotations

from headrace_train.from_checkpoint.initializing import (
    init_from_checkpoint as init_from_checkpoint,
)
from headrace_train.from_checkpoint.reading import NewCheckpointReader as NewCheckpointReader
from headrace_train.from_checkpoint.reading import list_variables as list_variables
from headrace_train.from_checkpoint.reading import load_checkpoint as load_checkpoint
from headrace_train.from_checkpoint.reading import load_variable as load_variable
from headrace_train.from_checkpoint.vocabularies import VocabInfo as VocabInfo
from headrace_train.from_checkpoint.waiting import checkpoints_iterator as checkpoints_iterator
from headrace_train.from_checkpoint.warm_starting import warm_start as warm_start

__all__ = [
    "NewCheckpointReader",
    "VocabInfo",
    "checkpoints_iterator",
    "init_from_checkpoint",
    "list_variables",
    "load_checkpoint",
    "load_variable",
    "warm_start",
]
