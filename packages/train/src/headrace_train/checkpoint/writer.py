"""Writing a checkpoint: everything in a temporary file, verified, and only then under its name."""

from __future__ import annotations

import functools
import importlib.metadata
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from headrace.errors import CheckpointError, shorten
from headrace_train.checkpoint.encoding import (
    Stored,
    dataset_paths,
    encode,
    indices_of,
    stored_dtype,
)
from headrace_train.checkpoint.files import replaced
from headrace_train.checkpoint.header import (
    VERSION,
    Header,
    PartEntry,
    TensorEntry,
    block_bytes,
)
from headrace_train.checkpoint.late_errors import LateErrors
from headrace_train.checkpoint.reader import checksums

if TYPE_CHECKING:
    import types
    from collections.abc import Iterable, Mapping

    import numpy as np
    from numpy.typing import ArrayLike

_PRODUCERS = ("headrace-core", "headrace-train", "h5py", "numpy")


def write_checkpoint(
    path: str | Path,
    tensors: Mapping[str, ArrayLike],
    *,
    step: int | None = None,
    metadata: Mapping[str, Any] | None = None,
    parts: Mapping[PartEntry, Iterable[str]] | None = None,
) -> None:
    """Write tensors to a new file, or in the place of an old one.

    At every moment the file is either absent, or the old one in full, or the new one in full,
    also when the process is killed or the machine loses power. What was written is read back and
    compared before it takes its name. Equal tensors give equal files.

    Args:
        path: The file; its folder must exist.
        tensors: Arrays by name; nobody may change them meanwhile.
        step: The global step.
        metadata: Anything else worth keeping, a JSON object.
        parts: The files beside it that hold the tensors, with the names of those, where there
            are no ``tensors``.

    Raises:
        CheckpointError: if a name or an array cannot be stored, or the file cannot be written.
    """
    target = Path(path)
    stored = _encode_all(tensors)
    header = Header(
        step=None if step is None else int(step),
        metadata=dict(metadata or {}),
        producers=dict(_producers()),
        tensors=tuple(
            TensorEntry(name, item.dtype, item.elements.shape, item.nbytes, item.crc32, None)
            for name, item in stored.items()
        ),
        block_bytes=0,
        file_bytes=0,
        structure_crc32=0,
        parts=tuple(parts or ()),
    )
    header = replace(header, block_bytes=block_bytes(header))
    if not target.parent.is_dir():
        raise CheckpointError(
            f"there is no folder {target.parent} for the checkpoint {target.name}: make it first"
        )
    if target.is_dir():
        raise CheckpointError(f"{target} is a folder, expected the name of a file")
    try:
        with replaced(target) as temporary:
            offsets = _write_hdf5(temporary, header, stored, parts or {})
            header = replace(
                header,
                tensors=tuple(
                    replace(entry, offset=offsets.get(entry.name)) for entry in header.tensors
                ),
                file_bytes=temporary.stat().st_size,
            )
            _seal(temporary, header)
    # h5py raises either.
    except (OSError, RuntimeError) as reason:
        raise CheckpointError(
            f"the checkpoint {target} could not be written: {reason}\n"
            "  a file that was there before under this name is untouched"
        ) from reason


def _encode_all(tensors: Mapping[str, ArrayLike]) -> dict[str, Stored]:
    stored, faults = {}, []
    for name, value in tensors.items():
        try:
            if not name:
                raise CheckpointError("a name must not be empty")
            name.encode()
            stored[name] = encode(value)
        except (CheckpointError, UnicodeEncodeError) as reason:
            faults.append(f"  {name!r}: {reason}")
    if faults:
        raise CheckpointError(
            shorten([f"{len(faults)} of {len(tensors)} tensors cannot be stored:", *faults])
        )
    return stored


def _write_hdf5(
    file: Path,
    header: Header,
    stored: Mapping[str, Stored],
    parts: Mapping[PartEntry, Iterable[str]],
) -> dict[str, int]:
    """Write the HDF5 part after room for the header; return where each tensor begins."""
    import h5py

    paths = dataset_paths(stored)
    offsets = {}
    kind = {"userblock_size": header.block_bytes, "libver": ("v108", "v108")}
    with LateErrors(file) as place, h5py.File(place, "w", **kind) as out:
        out.attrs["headrace_checkpoint"] = VERSION
        out.attrs.update({f"producer {name}": text for name, text in header.producers.items()})
        if header.step is not None:
            out.attrs["step"] = header.step
        for name, item in stored.items():
            if item.dtype == "string":
                _write_strings(out, paths[name], item.elements, h5py)
                continue
            dataset = out.create_dataset(
                paths[name], data=item.elements, dtype=stored_dtype(item.dtype)
            )
            if item.dtype == "bfloat16":
                dataset.attrs["headrace_dtype"] = item.dtype
            if item.nbytes:
                offsets[name] = int(dataset.id.get_offset())
        _write_links(out, parts, h5py)
    return offsets


def _write_links(
    out: Any, parts: Mapping[PartEntry, Iterable[str]], h5py: types.ModuleType
) -> None:
    """Let HDF5 find the tensors of all parts in the one file; our reader never follows links."""
    inside = {part.file: dataset_paths(names) for part, names in parts.items()}
    here = dataset_paths([name for paths in inside.values() for name in paths])
    for file, paths in inside.items():
        for name, path in paths.items():
            out[here[name]] = h5py.ExternalLink(file, f"/{path}")


def _write_strings(
    out: Any, path: str, strings: np.ndarray[Any, Any], h5py: types.ModuleType
) -> None:
    import numpy as np

    kind = h5py.vlen_dtype(np.uint8)
    dataset = out.create_dataset(path, strings.shape, kind)
    dataset.attrs["headrace_dtype"] = "string"
    elements = np.empty(strings.shape, kind)
    for index in indices_of(strings.shape):
        elements[index] = np.frombuffer(strings[index], np.uint8)
    if elements.size:
        # All at once, past the selections of h5py, which would take 200 us for each.
        whole = h5py.h5s.ALL
        dataset.id.write(whole, whole, elements, h5py.h5t.py_create(kind))


def _seal(file: Path, header: Header) -> None:
    """Add the header, and compare what the file holds with what was meant to be in it."""
    with file.open("r+b", buffering=0) as stream:
        structure, found = checksums(stream, header)
        for entry in header.tensors:
            if found.get(entry.name, entry.crc32) != entry.crc32:
                raise CheckpointError(
                    f"tensor {entry.name!r} was changed while the checkpoint was written; "
                    "pass arrays that nobody writes to"
                )
        stream.seek(0)
        block = replace(header, structure_crc32=structure).encode()
        if stream.write(block) != len(block):
            raise OSError("the header was written in part only")


@functools.cache
def _producers() -> dict[str, str]:
    versions = {}
    for name in _PRODUCERS:
        try:
            versions[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            versions[name] = "unknown"
    return versions
