"""Saving the variables of a session to checkpoints, and restoring them, by ops in its graph.

``saver`` is the class that programs use; ``variables`` says what it saves, ``graph`` adds the ops
that ``checkpoints`` declares and ``kernels`` runs, ``retention`` says which checkpoints stay, and
``matching`` compares the variables with what is in a checkpoint.
"""

from __future__ import annotations

from headrace_train.saver.matching import RestoreReport as RestoreReport
from headrace_train.saver.saver import Saver as Saver

__all__ = ["RestoreReport", "Saver"]
