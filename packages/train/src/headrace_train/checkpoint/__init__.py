"""The checkpoint store: named arrays in one HDF5 file, written so that a crash never costs one.

Knows nothing of graphs and sessions; ``headrace_train.saver`` ties it to variables. h5py is
imported only when a tensor is written or read: listing, verifying and comparing need only the
header of the file and its bytes (see ``header``).
"""

from __future__ import annotations

from headrace_train.checkpoint.directory import CheckpointDirectory as CheckpointDirectory
from headrace_train.checkpoint.directory import latest_checkpoint as latest_checkpoint
from headrace_train.checkpoint.header import TensorEntry as TensorEntry
from headrace_train.checkpoint.reader import CheckpointReader as CheckpointReader
from headrace_train.checkpoint.reader import read_checkpoint as read_checkpoint
from headrace_train.checkpoint.writer import write_checkpoint as write_checkpoint

__all__ = [
    "CheckpointDirectory",
    "CheckpointReader",
    "TensorEntry",
    "latest_checkpoint",
    "read_checkpoint",
    "write_checkpoint",
]
