"""Writing a bundle, as TensorFlow reads it: one file of tensors, and the index."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from headrace import as_dtype
from headrace.errors import CheckpointError, CheckpointMismatchError, DTypeError, shorten
from headrace_io.dtype_protos import number_of
from headrace_io.protos.pool import message_class
from headrace_train.bundles.checksums import extend_crc32c, masked
from headrace_train.bundles.index import VERSION
from headrace_train.bundles.paths import data_path, index_path
from headrace_train.bundles.strings import encode_strings
from headrace_train.bundles.table_writing import write_table
from headrace_train.checkpoint.files import replaced

if TYPE_CHECKING:
    import io
    from collections.abc import Mapping

    from numpy.typing import ArrayLike, NDArray

_PIECE_BYTES = 1 << 20


def write_bundle(prefix: str | Path, tensors: Mapping[str, ArrayLike]) -> None:
    """Write tensors to a new bundle, or in the place of an old one.

    The index takes its name last: a crash before leaves either no bundle, or an old index whose
    checksums tell that the tensors are others.

    Args:
        prefix: The bundle; its folder must exist.
        tensors: Arrays by name.

    Raises:
        CheckpointError: if a name or an array cannot be stored, or a file cannot be written.
    """
    arrays = _checked(tensors)
    data, index = data_path(prefix, 0, 1), index_path(prefix)
    try:
        with replaced(index) as new_index, replaced(data) as new_data:
            with new_data.open("wb") as stream:
                entries = _write_tensors(stream, arrays)
            with new_index.open("wb") as stream:
                write_table(stream, entries)
    except OSError as reason:
        raise CheckpointError(f"the checkpoint {prefix} could not be written: {reason}") from reason


def _checked(tensors: Mapping[str, ArrayLike]) -> list[tuple[bytes, NDArray[Any]]]:
    """Return the tensors as arrays in the order of the keys of an index."""
    found, faults = [], []
    for name, value in tensors.items():
        try:
            key = name.encode()
            if not key or key.startswith(b"\0"):
                raise CheckpointMismatchError("a name has at least one character, the first not 0")
            found.append((key, _array(value)))
        except (DTypeError, CheckpointError, UnicodeEncodeError) as reason:
            faults.append(f"  {name!r}: {reason}")
    if faults:
        raise CheckpointMismatchError(
            shorten([f"{len(faults)} of {len(tensors)} tensors cannot be stored:", *faults])
        )
    return sorted(found, key=lambda item: item[0])


def _array(value: ArrayLike) -> NDArray[Any]:
    array = np.asarray(value, object if isinstance(value, bytes | str) else None)
    if array.dtype.kind not in "OSU":
        dtype = as_dtype(array.dtype.newbyteorder("="))
        return np.asarray(array, dtype.numpy.newbyteorder("<"), order="C")
    strings: NDArray[Any] = np.empty(array.shape, object)
    for place in np.ndindex(array.shape) if array.size else ():
        item: Any = array[place]
        if not isinstance(item, bytes | str):
            raise CheckpointMismatchError(f"a {type(item).__name__} cannot be stored")
        strings[place] = item.encode() if isinstance(item, str) else bytes(item)
    return strings


def _write_tensors(
    stream: io.BufferedIOBase, arrays: list[tuple[bytes, NDArray[Any]]]
) -> list[tuple[bytes, bytes]]:
    """Write the bytes of tensors; return the entries of the index."""
    header = message_class("BundleHeaderProto")(num_shards=1)
    header.version.producer = VERSION
    entries = [(b"", header.SerializeToString())]
    offset = 0
    for key, array in arrays:
        dtype = as_dtype("string" if array.dtype.hasobject else array.dtype.newbyteorder("="))
        entry = message_class("BundleEntryProto")(dtype=number_of(dtype), offset=offset)
        # There also where there are no dimensions, as TensorFlow writes it.
        entry.shape.SetInParent()
        for size in array.shape:
            entry.shape.dim.add(size=size)
        if array.dtype.hasobject:
            data, crc = encode_strings(array.ravel().tolist())
            stream.write(data)
            entry.size = len(data)
        else:
            crc = _write_elements(stream, array)
            entry.size = array.nbytes
        entry.crc32c = masked(crc)
        offset += entry.size
        entries.append((key, entry.SerializeToString()))
    return entries


def _write_elements(stream: io.BufferedIOBase, array: NDArray[Any]) -> int:
    crc = 0
    flat = array.reshape(-1).view(np.uint8)
    for start in range(0, flat.size, _PIECE_BYTES):
        piece = flat[start : start + _PIECE_BYTES].tobytes()
        crc = extend_crc32c(crc, piece)
        stream.write(piece)
    return crc
