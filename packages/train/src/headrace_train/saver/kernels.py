"""Kernels that save and restore on the host of the device that asks for it."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np

from headrace.errors import InvalidArgumentError
from headrace.extend import KernelContext, KernelTable
from headrace.extend.faults import fault_point
from headrace.extend.ops import DType
from headrace_train.checkpoint.manifest import merge_parts, parts_replaced
from headrace_train.checkpoint.opening import open_checkpoint
from headrace_train.checkpoint.paths import as_prefix, file_of
from headrace_train.checkpoint.slices import Slice, joined
from headrace_train.checkpoint.writer import write_checkpoint
from headrace_train.saver import checkpoints as checkpoints
from headrace_train.saver.matching import check_all
from headrace_train.saver.notes import decode_notes

KERNELS = KernelTable()
_Array = np.ndarray[Any, np.dtype[Any]]


@KERNELS.stateful("SaveV2")
def save(
    ctx: KernelContext,
    prefix: Any,
    tensor_names: Any,
    shape_and_slices: Any,
    tensors: list[Any],
    notes: Any,
) -> None:
    """Write a checkpoint."""
    fault_point("save")
    target = _prefix(prefix)
    names = _texts(tensor_names)
    _check_lengths(names, shape_and_slices, len(tensors))
    arrays = joined(names, [Slice.parse(text) for text in _texts(shape_and_slices)], tensors)
    file = file_of(target)
    file.parent.mkdir(parents=True, exist_ok=True)
    step, metadata = decode_notes(None if notes is None else _bytes(notes))
    with parts_replaced(file):
        write_checkpoint(file, arrays, step=step, metadata=metadata)


@KERNELS.stateful("RestoreV2")
def restore(
    ctx: KernelContext,
    prefix: Any,
    tensor_names: Any,
    shape_and_slices: Any,
    *,
    dtypes: tuple[DType, ...],
) -> list[_Array]:
    """Read a checkpoint."""
    names = _texts(tensor_names)
    _check_lengths(names, shape_and_slices, len(dtypes))
    slices = [Slice.parse(text) for text in _texts(shape_and_slices)]
    with open_checkpoint(_prefix(prefix)) as reader:
        check_all(reader, names, dtypes, slices)
        found = reader.read(dict.fromkeys(names))
    return [part.of(found[name]) for name, part in zip(names, slices, strict=True)]


@KERNELS.plain("ShardedFilename")
def sharded_filename(xp: Any, basename: Any, shard: Any, num_shards: Any) -> Any:
    """Name a part."""
    name = b"%s-%05d-of-%05d" % (_bytes(basename), int(shard), int(num_shards))
    made = np.empty((), object)
    made[()] = name
    return made


@KERNELS.stateful("MergeV2Checkpoints")
def merge(
    ctx: KernelContext,
    checkpoint_prefixes: Any,
    destination_prefix: Any,
    notes: Any,
    *,
    delete_old_dirs: bool,
) -> None:
    """Make one checkpoint of parts."""
    target = _prefix(destination_prefix)
    parts = [as_prefix(text, "the path of a part") for text in _texts(checkpoint_prefixes)]
    step, metadata = decode_notes(None if notes is None else _bytes(notes))
    merge_parts(parts, target, step=step, metadata=metadata)
    if delete_old_dirs:
        for folder in {Path(part).parent for part in parts} - {Path(target).parent}:
            # What is left in it is somebody else's.
            try:
                folder.rmdir()
            except OSError:
                continue


def _check_lengths(names: list[str], shape_and_slices: Any, count: int) -> None:
    lengths = (len(names), np.size(shape_and_slices), count)
    if len(set(lengths)) != 1:
        raise InvalidArgumentError(
            "tensor_names, shape_and_slices and the tensors must be of one number, got "
            f"{lengths[0]}, {lengths[1]} and {lengths[2]}"
        )


def _prefix(value: Any) -> str:
    return as_prefix(os.fsdecode(_bytes(value)), "the path of a checkpoint")


def _bytes(value: Any) -> bytes:
    array = np.asarray(value, object)
    if array.ndim:
        raise InvalidArgumentError(f"expected one string, got shape {list(array.shape)}")
    found = array.item()
    assert isinstance(found, bytes)
    return found


def _texts(value: Any) -> list[str]:
    return [item.decode(errors="surrogateescape") for item in np.asarray(value, object).ravel()]
