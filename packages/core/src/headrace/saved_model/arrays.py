"""The values of variables as one ``.npz`` file, which ``numpy.load`` reads, too.

An array of a dtype that NumPy does not have, such as bfloat16, is stored as integers of its bits,
and strings as their bytes in a row, with their lengths in the manifest. Nothing is pickled.
"""

from __future__ import annotations

import math
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, final

import numpy as np

from headrace.dtypes import DType, as_dtype
from headrace.errors import HeadraceError, SavedModelDamagedError, SavedModelError, shown

_Array = np.ndarray[Any, np.dtype[Any]]
# One date for all, so that equal variables make equal files.
_DATE = (1980, 1, 1, 0, 0, 0)
_MAX_HEADER = 10_000


@final
@dataclass(frozen=True, slots=True)
class StoredArray:
    """What the manifest says of an array.

    Attributes:
        dtype: The name of its dtype.
        shape: Its shape.
        lengths: Of strings, how many bytes each has.
    """

    dtype: str
    shape: tuple[int, ...]
    lengths: tuple[int, ...] | None = None


def write_arrays(file: BinaryIO, arrays: Mapping[str, _Array]) -> dict[str, StoredArray]:
    """Write arrays, and return what the manifest has to say of them.

    Raises:
        SavedModelError: if an array cannot be stored.
    """
    if not callable(getattr(file, "write", None)):
        raise SavedModelError(f"arrays are written into an open file, got {shown(file)}")
    records = {}
    with zipfile.ZipFile(file, "w", zipfile.ZIP_STORED) as archive:
        for name, array in arrays.items():
            raw, records[name] = _encoded(name, np.asarray(array))
            entry = zipfile.ZipInfo(f"{name}.npy", _DATE)
            with archive.open(entry, "w", force_zip64=True) as part:
                np.lib.format.write_array(part, raw, allow_pickle=False)
    return records


class ArrayReader:
    """Reads arrays that ``write_arrays`` wrote, and believes nothing that the file says of them."""

    def __init__(self, path: Path, records: Mapping[str, StoredArray]) -> None:
        self.path = path
        self.records = records

    def read(self, names: list[str]) -> dict[str, _Array]:
        """Return arrays by name.

        Raises:
            SavedModelDamagedError: if one is not what the manifest says.
        """
        try:
            with zipfile.ZipFile(self.path) as archive:
                return {name: self._array(archive, name) for name in names}
        except HeadraceError:
            raise
        except (
            zipfile.BadZipFile,
            OSError,
            EOFError,
            ValueError,
            KeyError,
            NotImplementedError,
        ) as error:
            raise SavedModelDamagedError(f"{self.path} is damaged: {error}") from error

    def _array(self, archive: zipfile.ZipFile, name: str) -> _Array:
        record = self.records[name]
        dtype = as_dtype(record.dtype)
        entry = archive.getinfo(f"{name}.npy")
        size = math.prod(record.shape)
        stored = _stored_dtype(dtype)
        shape = (sum(record.lengths),) if record.lengths is not None else record.shape
        wanted = math.prod(shape) * stored.itemsize
        # What is compressed could be any size, and a header can claim any shape.
        if entry.compress_type != zipfile.ZIP_STORED or entry.flag_bits & 1:
            raise SavedModelDamagedError(f"{self.path}: {name!r} is compressed, which is refused")
        if not wanted <= entry.file_size <= wanted + _MAX_HEADER:
            raise self._differs(name, record)
        with archive.open(entry) as part:
            version = np.lib.format.read_magic(part)
            read_header = (
                np.lib.format.read_array_header_1_0
                if version == (1, 0)
                else np.lib.format.read_array_header_2_0
            )
            found_shape, fortran, found_dtype = read_header(part, max_header_size=_MAX_HEADER)
            content = part.read()
        if (found_shape, found_dtype, len(content)) != (shape, stored, wanted):
            raise self._differs(name, record)
        array = np.frombuffer(content, stored)
        if record.lengths is not None:
            return _strings(array.tobytes(), record.lengths, size).reshape(record.shape)
        return array.view(dtype.numpy).reshape(record.shape, order="F" if fortran else "C")

    def _differs(self, name: str, record: StoredArray) -> SavedModelDamagedError:
        return SavedModelDamagedError(
            f"{self.path}: {name!r} is not the {record.dtype}{list(record.shape)} that the "
            "manifest says it is"
        )


def _encoded(name: str, array: _Array) -> tuple[_Array, StoredArray]:
    if array.dtype == object:
        items = array.ravel().tolist()
        if not all(isinstance(item, bytes) for item in items):
            raise SavedModelError(f"{name!r} holds objects that are no strings")
        raw = np.frombuffer(b"".join(items), np.uint8)
        return raw, StoredArray("string", array.shape, tuple(map(len, items)))
    dtype = as_dtype(array.dtype)
    record = StoredArray(dtype.name, array.shape)
    # asarray keeps what has no dimensions so, unlike ascontiguousarray.
    ordered = np.asarray(array, order="C")
    return ordered.view(_stored_dtype(dtype)), record


def _stored_dtype(dtype: DType) -> np.dtype[Any]:
    if dtype.name == "string":
        return np.dtype(np.uint8)
    if dtype.name == "bfloat16":
        return np.dtype("<u2")
    return dtype.numpy.newbyteorder("<")


def _strings(content: bytes, lengths: tuple[int, ...], size: int) -> _Array:
    if len(lengths) != size:
        raise SavedModelDamagedError(f"{size} strings cannot have {len(lengths)} lengths")
    found = np.empty(size, object)
    start = 0
    for i, length in enumerate(lengths):
        found[i] = content[start : start + length]
        start += length
    return found
