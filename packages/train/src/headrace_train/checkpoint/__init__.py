"""The checkpoint store: named arrays in HDF5 files, written so that a crash never costs one.

Knows nothing of graphs and sessions; ``headrace_train.saver`` ties it to variables. h5py is
imported only when a tensor is written, or strings are read: listing, verifying and comparing need
only the header of the file and its bytes (see ``header``).
"""

from __future__ import annotations

from headrace_train.checkpoint.header import TensorEntry as TensorEntry
from headrace_train.checkpoint.reader import CheckpointReader as CheckpointReader
from headrace_train.checkpoint.reader import read_checkpoint as read_checkpoint
from headrace_train.checkpoint.removal import remove_checkpoint as remove_checkpoint
from headrace_train.checkpoint.state import checkpoint_exists as checkpoint_exists
from headrace_train.checkpoint.state import (
    generate_checkpoint_state_proto as generate_checkpoint_state_proto,
)
from headrace_train.checkpoint.state import get_checkpoint_mtimes as get_checkpoint_mtimes
from headrace_train.checkpoint.state import get_checkpoint_state as get_checkpoint_state
from headrace_train.checkpoint.state import latest_checkpoint as latest_checkpoint
from headrace_train.checkpoint.state import update_checkpoint_state as update_checkpoint_state
from headrace_train.checkpoint.writer import write_checkpoint as write_checkpoint

__all__ = [
    "CheckpointReader",
    "TensorEntry",
    "checkpoint_exists",
    "generate_checkpoint_state_proto",
    "get_checkpoint_mtimes",
    "get_checkpoint_state",
    "latest_checkpoint",
    "read_checkpoint",
    "remove_checkpoint",
    "update_checkpoint_state",
    "write_checkpoint",
]
