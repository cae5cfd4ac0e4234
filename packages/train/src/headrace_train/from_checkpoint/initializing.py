"""Initial values from a checkpoint, read when the initializers run."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import headrace as hr
from headrace import Tensor, Variable
from headrace_train.checkpoint.opening import open_checkpoint
from headrace_train.from_checkpoint.assignments import Assignment, assignments
from headrace_train.from_checkpoint.reading import checkpoint_of
from headrace_train.saver.checkpoints import restore_v2

_NAME = "checkpoint_initializer"
_log = logging.getLogger("headrace.train")


def init_from_checkpoint(
    ckpt_dir_or_file: str | os.PathLike[str],
    assignment_map: Mapping[str, str | Variable | Sequence[Variable]],
) -> None:
    """Let variables be initialized with what is in a checkpoint.

    The values are read when the initializers run, as ``global_variables_initializer`` runs them:
    make that after this. Nothing is changed if anything of the map cannot be.

    Args:
        ckpt_dir_or_file: The prefix of the checkpoint, ours or one of TensorFlow's, or a folder,
            whose latest is meant.
        assignment_map: A dict. Each key is the name of a tensor in the checkpoint, and its value a
            variable, a list of the parts of a partitioned variable, or the name of one that
            ``hr.get_variable`` made. Or the key is a scope, as in ``"old/"``, and its value is
            one, as in ``"new/"``: then each variable of that scope takes the tensor of its name.
            ``"/"`` stands for all names.

    Raises:
        CheckpointNotFoundError: if there is no such checkpoint, or tensors are not in it.
        CheckpointMismatchError: if dtypes or shapes differ.
        AttributeValueError: if a name is that of no variable.
        ArgumentTypeError: if the map holds something else.
    """
    checkpoint = checkpoint_of(ckpt_dir_or_file)
    with open_checkpoint(checkpoint) as opened:
        wanted = assignments(assignment_map, opened)
    initialize(checkpoint, wanted)


def initialize(checkpoint: str, wanted: Iterable[Assignment]) -> None:
    """Give variables initializers that read a checkpoint; the assignments were checked."""
    for assignment in wanted:
        for variable in assignment.variables:
            info = variable.save_slice_info
            spec = "" if info is None else info.spec
            _initialize_one(variable, checkpoint, assignment.tensor, spec)
            _log.info(
                "%s is initialized with %s of %s", variable.op_name, assignment.tensor, checkpoint
            )


def _initialize_one(variable: Variable, checkpoint: str, tensor: str, spec: str) -> None:
    def restored() -> Tensor:
        value = restored_tensor(checkpoint, tensor, spec, variable)
        value.set_shape(variable.shape)
        return value

    set_initial_value(variable, restored)


def restored_tensor(checkpoint: str, tensor: str, spec: str, variable: Variable) -> Tensor:
    """Return a tensor of a checkpoint, read when it is needed.

    Args:
        checkpoint: Its prefix.
        tensor: The name.
        spec: Which part, in the notation of ``SaveSliceInfo.spec``; empty for all.
        variable: What takes it, which gives dtype and task.
    """
    # Files are read where the variable is, on the host.
    with hr.device(variable.device), hr.device("/cpu:0"):
        (found,) = restore_v2(checkpoint, [tensor], [spec], dtypes=(variable.dtype,), name=_NAME)
    return found


def set_initial_value(variable: Variable, build: Callable[[], Any]) -> None:
    """Let a variable be initialized with another value.

    Args:
        variable: The variable.
        build: Returns the value, a tensor of the variable's dtype and shape.
    """
    with hr.init_scope():
        value = build()
        variable.initializer = variable.assign(value, read_value=False)
        variable.initial_value = value
