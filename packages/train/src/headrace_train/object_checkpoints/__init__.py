"""Checkpoints of objects: what is saved is found by the attributes that hold it, not by its name.

``objects.py`` walks the objects of a program, ``checkpoint.py`` writes what they hold,
``status.py`` matches it with the objects of another program, ``manager.py`` keeps the latest ones.
"""

from headrace_train.object_checkpoints.checkpoint import Checkpoint as Checkpoint
from headrace_train.object_checkpoints.manager import CheckpointManager as CheckpointManager
