"""How a tensor is laid down in HDF5: the path of its dataset, and the form of its elements.

Paths. A tensor lies under its own name, with ``/`` making groups as usual in HDF5. Where a name is
also the folder of another one (``w`` beside ``w/Adam``), HDF5 has no room for both, and the tensor
lies one level deeper, as ``w/:value``. Parts of a name that HDF5 could not store are escaped: an
empty part is ``%``, the parts ``.`` and ``..`` are ``%2E`` and ``%2E%2E``; a percent sign is
``%25``, a zero character ``%00``, and a colon at the start of a part ``%3A``.

Elements. Numbers are stored as themselves, little-endian, in one contiguous piece; ``bool`` is
h5py's enumeration, complex numbers its pair of ``r`` and ``i``. HDF5 has no ``bfloat16``: its 16
bits are stored as ``uint16``, and the attribute ``headrace_dtype`` says so. Strings are sequences
of bytes (``uint8``) of variable length, since HDF5's own strings cannot hold zero bytes.
"""

from __future__ import annotations

import zlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, final

import numpy as np

from headrace import as_dtype
from headrace.errors import CheckpointError, DTypeError

if TYPE_CHECKING:
    from collections.abc import Iterable

    from numpy.typing import NDArray

VALUE = ":value"


def dataset_paths(names: Iterable[str]) -> dict[str, str]:
    """Return where in the HDF5 file each of the tensors lies that are stored together."""
    parts = {name: tuple(name.split("/")) for name in names}
    folders = {path[:depth] for path in parts.values() for depth in range(1, len(path))}
    return {
        name: "/".join([*map(_escape, path), *([VALUE] if path in folders else [])])
        for name, path in parts.items()
    }


def _escape(part: str) -> str:
    if part == "":
        return "%"
    if part in (".", ".."):
        return part.replace(".", "%2E")
    escaped = part.replace("%", "%25").replace("\0", "%00")
    return f"%3A{escaped[1:]}" if escaped.startswith(":") else escaped


@final
@dataclass(frozen=True, slots=True)
class Stored:
    """A tensor as it goes into the file.

    Attributes:
        dtype: Name of its element type.
        elements: The array to store, contiguous; of strings, an object array of ``bytes``.
        nbytes: Bytes of the elements.
        crc32: Their checksum.
    """

    dtype: str
    elements: NDArray[Any]
    nbytes: int
    crc32: int


def encode(value: Any) -> Stored:
    """Return the form in which ``value`` is stored.

    Raises:
        CheckpointError: if it is not an array of one of Headrace's dtypes.
    """
    # NumPy's own strings cannot end with zero bytes.
    array = np.asarray(value, object if isinstance(value, bytes | str) else None)
    if array.dtype.kind in "OSU":
        return _encode_strings(array)
    try:
        dtype = as_dtype(array.dtype.newbyteorder("="))
    except DTypeError as reason:
        raise CheckpointError(f"{array.dtype} cannot be stored") from reason
    # ascontiguousarray makes a vector of a scalar, hence the reshape.
    elements = np.ascontiguousarray(array).reshape(array.shape)
    if dtype.name == "bfloat16":
        elements = elements.view(np.uint16)
    elements = elements.astype(stored_dtype(dtype.name), copy=False)
    return Stored(dtype.name, elements, elements.nbytes, zlib.crc32(_bytes_of(elements)))


def decode(elements: NDArray[Any], dtype: str, crc32: int) -> NDArray[Any]:
    """Return the tensor of ``dtype`` that was stored as ``elements``.

    Raises:
        ValueError: if its checksum is not ``crc32``.
    """
    if dtype == "string":
        strings = np.empty(elements.shape, object)
        for index in indices_of(elements.shape):
            strings[index] = elements[index].tobytes()
        found = _crc32_of_strings(strings)
    else:
        found = zlib.crc32(_bytes_of(elements))
    if found != crc32:
        raise ValueError(f"the checksum is {found:08x}, expected {crc32:08x}")
    if dtype == "string":
        return strings
    native = as_dtype(dtype).numpy
    if dtype == "bool":
        # A file of a stranger may hold other bytes than 0 and 1.
        truths: NDArray[Any] = elements.view(np.uint8) != 0
        return truths
    return elements.view(native) if dtype == "bfloat16" else elements.astype(native, copy=False)


def indices_of(shape: tuple[int, ...]) -> Iterable[tuple[int, ...]]:
    """Return the indices of all elements; none of what is empty, however large its other axes."""
    # NumPy's own would list the numbers below each size.
    return np.ndindex(shape) if 0 not in shape else ()


def stored_dtype(dtype: str) -> np.dtype[Any]:
    """Return the NumPy dtype of the dataset that holds a numeric tensor of ``dtype``."""
    return np.dtype("<u2") if dtype == "bfloat16" else as_dtype(dtype).numpy.newbyteorder("<")


def _encode_strings(array: NDArray[Any]) -> Stored:
    strings = np.empty(array.shape, object)
    for index in indices_of(array.shape):
        item: Any = array[index]
        if not isinstance(item, bytes | str):
            raise CheckpointError(f"an object of type {type(item).__name__} cannot be stored")
        strings[index] = item.encode() if isinstance(item, str) else bytes(item)
    nbytes = sum(len(item) for item in strings.flat)
    return Stored("string", strings, nbytes, _crc32_of_strings(strings))


def _crc32_of_strings(strings: NDArray[Any]) -> int:
    """Return a checksum that also tells ``["ab", "c"]`` from ``["a", "bc"]``."""
    crc32 = 0
    for item in strings.flat:
        crc32 = zlib.crc32(item, zlib.crc32(len(item).to_bytes(8, "little"), crc32))
    return crc32


def _bytes_of(elements: NDArray[Any]) -> memoryview:
    """Return the memory of a contiguous array, without a copy."""
    return elements.reshape(-1).view(np.uint8).data
