"""Ops that save tensors to checkpoints and restore them, on the device that runs them.

They have the names, inputs and outputs of TensorFlow's, so that graphs may be exchanged.
"""

from __future__ import annotations

from collections.abc import Sequence

import headrace as hr
from headrace.errors import InvalidArgumentError
from headrace.extend.ops import (
    Anything,
    DType,
    Index,
    Shape,
    Spec,
    String,
    TensorSpec,
    op,
    require,
)

_FILES = "what is in files does not depend on tensors"
_STRING = TensorSpec(hr.string, Shape([]))


@op("SaveV2", effects="changes", reaches="files", public="", no_gradient=_FILES)
def save_v2(
    prefix: String,
    tensor_names: String,
    shape_and_slices: String,
    tensors: Sequence[Anything],
    notes: String | None = None,
) -> None:
    """Write tensors to the checkpoint of a prefix.

    It is there in full or not at all: a crash leaves what was there before.

    Args:
        prefix: [], the path without its suffix; the folder is made where it is missing.
        tensor_names: [n], the name of each tensor in the file.
        shape_and_slices: [n], empty for what is a whole tensor, or the full shape and the part of
            it that is given, as in ``"10 20 0,5:-"``: ten by twenty, of which the first five rows.
            All parts of a tensor must be there; they are saved as one.
        tensors: n tensors of any dtypes and shapes.
        notes: [], what ``encode_notes`` returns: the step and what else the program keeps.
    """
    _scalar("prefix", prefix)
    _vector("tensor_names", tensor_names, len(tensors))
    _vector("shape_and_slices", shape_and_slices, len(tensors))


@op("RestoreV2", effects="reads", public="", no_gradient=_FILES)
def restore_v2(
    prefix: String, tensor_names: String, shape_and_slices: String, dtypes: tuple[DType, ...]
) -> list[TensorSpec]:
    """Read tensors from the checkpoint of a prefix.

    Args:
        prefix: [], what was saved to; one file, or several with a manifest.
        tensor_names: [n], which tensors.
        shape_and_slices: [n], empty for all of a tensor, or the full shape and a slice of it, as
            in ``"10 20 0,5:-"``: ten by twenty, of which the first five rows.
        dtypes: The dtypes of the tensors, which they must have in the file.

    Returns:
        n tensors. Raises when it runs ``NotFoundError`` if tensors are not there and
        ``InvalidArgumentError`` if they differ; all are named.
    """
    _scalar("prefix", prefix)
    _vector("tensor_names", tensor_names, len(dtypes))
    _vector("shape_and_slices", shape_and_slices, len(dtypes))
    return [TensorSpec(dtype, Shape(None)) for dtype in dtypes]


@op("ShardedFilename", public="", no_gradient=_FILES)
def sharded_filename(basename: String, shard: Index, num_shards: Index) -> Spec:
    """The name of one of the files among which a checkpoint is divided.

    Args:
        basename: [], what the names begin with.
        shard: [], int32, the number of the file.
        num_shards: [], int32, how many there are.

    Returns:
        [], ``<basename>-00001-of-00003``.
    """
    for label, spec in (("basename", basename), ("shard", shard), ("num_shards", num_shards)):
        _scalar(label, spec)
    return _STRING


@op("MergeV2Checkpoints", effects="changes", reaches="files", public="", no_gradient=_FILES)
def merge_v2_checkpoints(
    checkpoint_prefixes: String,
    destination_prefix: String,
    notes: String | None = None,
    delete_old_dirs: bool = True,
) -> None:
    """Make one checkpoint of several: they are moved beside it, and then it takes its name.

    Args:
        checkpoint_prefixes: [n], the prefixes of the parts, which have no tensor in common.
        destination_prefix: [], the prefix of the whole.
        notes: [], what ``encode_notes`` returns.
        delete_old_dirs: Whether to remove the folders of the parts where they are empty then.
    """
    require(
        checkpoint_prefixes.rank in (None, 1),
        f"checkpoint_prefixes must be a vector, got shape {checkpoint_prefixes.shape}",
        InvalidArgumentError,
    )
    _scalar("destination_prefix", destination_prefix)


def _scalar(label: str, spec: TensorSpec) -> None:
    require(
        spec.rank in (None, 0),
        f"{label} must be a scalar, got shape {spec.shape}",
        InvalidArgumentError,
    )


def _vector(label: str, spec: TensorSpec, length: int) -> None:
    fits = spec.shape.is_compatible_with(Shape([length]))
    require(
        fits,
        f"{label} must have one element for each of the {length} tensors, got shape {spec.shape}",
        InvalidArgumentError,
    )
