"""Looking into checkpoints by the names that TensorFlow's programs use."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any, final

from headrace import DType, as_dtype
from headrace.errors import (
    ArgumentTypeError,
    CheckpointNotFoundError,
    DTypeError,
    UnimplementedError,
    shown,
)
from headrace.extend.state import when_collected
from headrace_train.checkpoint import latest_checkpoint
from headrace_train.checkpoint.opening import open_checkpoint

if TYPE_CHECKING:
    from collections.abc import Mapping

    from headrace_train.checkpoint.opening import OpenCheckpoint, StoredTensor


@final
class TensorReader:
    """An open checkpoint, as ``NewCheckpointReader`` returns it.

    Its files are closed when nothing refers to it any more.
    """

    def __init__(self, opened: OpenCheckpoint) -> None:
        """Take over an open checkpoint."""
        self._opened = opened
        when_collected(self, opened.close)

    def get_variable_to_shape_map(self) -> dict[str, list[int]]:
        """Return the shape of each tensor, a list of sizes, by name."""
        return {name: list(entry.shape) for name, entry in self._sorted()}

    def get_variable_to_dtype_map(self) -> dict[str, DType]:
        """Return the dtype of each tensor by name.

        Raises:
            UnimplementedError: if one is of a type that Headrace does not have.
        """
        return {name: self._dtype(entry) for name, entry in self._sorted()}

    def has_tensor(self, tensor_str: str | bytes) -> bool:
        """Whether there is a tensor of a name."""
        return _text(tensor_str, "tensor_str") in self._opened.tensors

    def get_tensor(self, tensor_str: str | bytes) -> Any:
        """Load a tensor.

        Args:
            tensor_str: Its name.

        Returns:
            An array; a number or ``bytes`` for a scalar. Strings are ``bytes``.

        Raises:
            CheckpointNotFoundError: if there is none of this name.
            CheckpointDamagedError: if its bytes do not match its checksum.
        """
        name = _text(tensor_str, "tensor_str")
        return self._opened.read([name])[name][()]

    def debug_string(self) -> bytes:
        """Return a line for each tensor: name, type and shape.

        Of a tensor that TensorFlow stored in parts, there is a line for each part, with its key.
        """
        lines = []
        for entry in getattr(self._opened, "stored", None) or self._opened.tensors.values():
            key = getattr(entry, "key", None) or entry.name.encode()
            number = getattr(entry, "type_number", None)
            shape = ",".join(map(str, entry.shape))
            lines.append((key, b"%s (%s) [%s]\n" % (key, _type(entry, number), shape.encode())))
        return b"".join(line for _, line in sorted(lines))

    def _sorted(self) -> list[tuple[str, StoredTensor]]:
        return sorted(self._opened.tensors.items())

    def _dtype(self, entry: StoredTensor) -> DType:
        try:
            return as_dtype(entry.dtype)
        except DTypeError as error:
            raise UnimplementedError(
                f"tensor {entry.name!r} of {self._opened.path} is of TensorFlow's type "
                f"{entry.dtype}, which Headrace does not have"
            ) from error


def NewCheckpointReader(filepattern: str | bytes | os.PathLike[str]) -> TensorReader:  # noqa: N802
    """Open a checkpoint, ours or one of TensorFlow's, to look into it.

    Args:
        filepattern: What ``Saver.save`` returned: the prefix of a checkpoint, or its file.

    Returns:
        A reader with the methods ``get_variable_to_shape_map``, ``get_variable_to_dtype_map``,
        ``has_tensor``, ``get_tensor`` and ``debug_string``.

    Raises:
        CheckpointNotFoundError: if there is none.
        CheckpointDamagedError: if it is damaged, or no checkpoint.
    """
    return TensorReader(open_checkpoint(_text(filepattern, "filepattern")))


def load_checkpoint(ckpt_dir_or_file: str | os.PathLike[str]) -> TensorReader:
    """Open a checkpoint, or the latest one of a folder.

    Args:
        ckpt_dir_or_file: The folder, or the prefix of a checkpoint.

    Returns:
        A reader, as ``NewCheckpointReader`` returns it.

    Raises:
        CheckpointNotFoundError: if there is none.
    """
    return NewCheckpointReader(checkpoint_of(ckpt_dir_or_file))


def load_variable(ckpt_dir_or_file: str | os.PathLike[str], name: str) -> Any:
    """Load a variable from a checkpoint.

    Args:
        ckpt_dir_or_file: The prefix of the checkpoint, or a folder, whose latest is meant.
        name: The name of the variable; a ``:0`` at its end is ignored.

    Returns:
        An array; a number or ``bytes`` for a scalar.

    Raises:
        CheckpointNotFoundError: if there is no such checkpoint, or no such variable in it.
    """
    return load_checkpoint(ckpt_dir_or_file).get_tensor(_text(name, "name").removesuffix(":0"))


def list_variables(ckpt_dir_or_file: str | os.PathLike[str]) -> list[tuple[str, list[int]]]:
    """List the variables of a checkpoint.

    Args:
        ckpt_dir_or_file: The prefix of the checkpoint, or a folder, whose latest is meant.

    Returns:
        Names with shapes, in the order of the names.

    Raises:
        CheckpointNotFoundError: if there is no such checkpoint.
    """
    return sorted(load_checkpoint(ckpt_dir_or_file).get_variable_to_shape_map().items())


def checkpoint_of(ckpt_dir_or_file: str | os.PathLike[str]) -> str:
    """Return the checkpoint that is meant by the prefix of one, or by a folder of them.

    Raises:
        CheckpointNotFoundError: if there is none in the folder.
    """
    text = _text(ckpt_dir_or_file, "ckpt_dir_or_file")
    try:
        is_folder = Path(text).is_dir()
    except OSError as error:
        raise CheckpointNotFoundError(f"{shown(text)} is no name of a file: {error}") from None
    if not is_folder:
        return text
    latest = latest_checkpoint(text)
    if latest is None:
        raise CheckpointNotFoundError(f"there is no checkpoint in the folder {text}")
    return latest


def _text(value: Any, label: str) -> str:
    try:
        return os.fsdecode(value)
    except TypeError:
        raise ArgumentTypeError(f"{label} must be a string, got {shown(value)}") from None


def _type(entry: StoredTensor, number: int | None) -> bytes:
    """Return what TensorFlow calls the type of a tensor."""
    # lazy: Protocol Buffers are for this text only
    from headrace_io.dtype_protos import number_of
    from headrace_io.protos.pool import enum_values

    names: Mapping[int, str] = {n: name for name, n in enum_values("DataType").items()}
    found = number_of(as_dtype(entry.dtype)) if number is None else number
    return names.get(found, f"DT_{found}").encode()
