"""The index of a bundle: what each of its entries says, checked before anything is read."""

from __future__ import annotations

import functools
import itertools
import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, final

import headrace as hr
from headrace.errors import (
    CheckpointDamagedError,
    DTypeError,
    UnimplementedError,
    shown,
)
from headrace_io.dtype_protos import dtype_of
from headrace_io.protos.pool import enum_values, parsed
from headrace_train.bundles.slices import Part, check_cover
from headrace_train.bundles.tables import read_table

if TYPE_CHECKING:
    import io

    from headrace import DType

# The version of the format that this reads, and that TensorFlow 1.15 writes.
VERSION = 1
_MOST_DIMENSIONS = 32
# The types of TensorFlow that Headrace lacks are read as the whole numbers that they hold.
_QUANTIZED = {11: "int8", 12: "uint8", 13: "int32", 15: "int16", 16: "uint16"}


@final
@dataclass(frozen=True, slots=True)
class BundleEntry:
    """What the index says of one tensor, or of a part of one.

    Attributes:
        name: Its name; of a part, that of the tensor.
        dtype: Name of the element type, as in ``"float32"``.
        shape: The shape.
        nbytes: Bytes of the elements in the files.
        crc32c: Their checksum; 0 for a tensor that is stored in parts.
        shard: The number of the file that holds it.
        offset: Where it begins there.
        key: Its key in the index.
        type_number: TensorFlow's number of the element type.
        parts: Of a tensor that is stored in parts, each with its place in it.
    """

    name: str
    dtype: str
    shape: tuple[int, ...]
    nbytes: int
    crc32c: int
    shard: int
    offset: int
    key: bytes
    type_number: int
    parts: tuple[tuple[tuple[slice, ...], BundleEntry], ...] = ()


@final
@dataclass(frozen=True, slots=True)
class Index:
    """A whole index.

    Attributes:
        shards: Among how many files the tensors are divided.
        tensors: The tensors by name, in the order of their names.
        stored: What lies in the files, tensors and parts, in the order of their keys.
    """

    shards: int
    tensors: dict[str, BundleEntry]
    stored: tuple[BundleEntry, ...]


def read_index(stream: io.BufferedIOBase, what: str) -> Index:
    """Read an index.

    Args:
        stream: The file.
        what: What errors call it.

    Raises:
        CheckpointDamagedError: if it is none, is damaged, or contradicts itself.
        UnimplementedError: if it is of a kind that is not read: of a version to come, or of a
            machine with the other order of bytes.
    """
    entries = read_table(stream, what)
    key, value = next(entries, (b"\0", b""))
    try:
        if key:
            raise ValueError("it does not begin with the header of a bundle")
        header = parsed("BundleHeaderProto", value, "its header")
        _check_header(header, what)
        messages = {
            key: parsed("BundleEntryProto", value, f"the entry {shown(key, 60)}")
            for key, value in entries
        }
        if messages and not 0 < header.num_shards < 100_000:
            raise ValueError(f"it names {header.num_shards} files")
        return _Joined(messages, header.num_shards).index()
    except (ValueError, OverflowError, DTypeError) as reason:
        if isinstance(reason, CheckpointDamagedError):
            raise
        raise CheckpointDamagedError(f"{what} is damaged: {reason}") from reason


def _check_header(header: Any, what: str) -> None:
    if header.endianness:
        raise UnimplementedError(
            f"{what} was written by a machine with the other order of bytes; expected the lowest "
            "byte first"
        )
    version = header.version
    if version.min_consumer > VERSION or VERSION in version.bad_consumers:
        raise UnimplementedError(
            f"{what} asks for readers of version {version.min_consumer} or later of the format; "
            f"this is version {VERSION}"
        )


@final
class _Joined:
    """The entries of an index, each found by its key, and parts found by the tensor's name."""

    def __init__(self, messages: dict[bytes, Any], shards: int) -> None:
        self._messages = messages
        self._shards = shards
        self._stored: dict[bytes, BundleEntry] = {}

    def index(self) -> Index:
        tensors = {}
        for key, message in self._messages.items():
            if key.startswith(b"\0"):
                continue
            name = key.decode()
            entry = self._whole(name, message) if message.slices else self._entry(name, key)
            tensors[name] = entry
        lost = [key for key in self._messages if key.startswith(b"\0") and key not in self._stored]
        if lost:
            raise ValueError(f"the part {shown(lost[0], 60)} belongs to no tensor")
        stored = tuple(sorted(self._stored.values(), key=lambda entry: entry.key))
        _check_places(stored)
        return Index(self._shards, tensors, stored)

    def _whole(self, name: str, message: Any) -> BundleEntry:
        """Return a tensor that is stored in parts."""
        shape = _shape(name, message)
        dtype = _dtype_name(message.dtype)
        parts = []
        for described in message.slices:
            part = Part.of_message(described)
            place = part.within(shape)
            key = part.key(name.encode())
            if key not in self._messages:
                raise ValueError(f"the part {part.starts} of {shown(name)} is not there")
            entry = self._entry(name, key)
            if entry.dtype != dtype or entry.shape != tuple(s.stop - s.start for s in place):
                raise ValueError(
                    f"the part {part.starts} of {shown(name)} is {entry.dtype}{list(entry.shape)}"
                )
            parts.append((place, entry))
        try:
            check_cover([place for place, _ in parts], shape)
        except ValueError as reason:
            raise ValueError(f"tensor {name!r}: {reason}") from None
        nbytes = sum(entry.nbytes for _, entry in parts)
        key = name.encode()
        lies = (nbytes, 0, 0, 0, key, message.dtype)
        return BundleEntry(name, dtype, shape, *lies, tuple(parts))

    def _entry(self, name: str, key: bytes) -> BundleEntry:
        """Return a tensor or part that is stored as a whole."""
        message = self._messages[key]
        shape = _shape(name, message)
        dtype = _dtype_name(message.dtype)
        if message.offset < 0 or message.size < 0 or not 0 <= message.shard_id < self._shards:
            raise ValueError(
                f"tensor {name!r} lies at {message.offset} of file {message.shard_id}, with "
                f"{message.size} bytes"
            )
        itemsize = _itemsize(message.dtype)
        if itemsize and message.size != itemsize * math.prod(shape):
            raise ValueError(
                f"tensor {name!r}, {dtype}{list(shape)}, has {message.size} bytes, expected "
                f"{itemsize * math.prod(shape)}"
            )
        place = (message.size, message.crc32c, message.shard_id, message.offset, key)
        made = self._stored[key] = BundleEntry(name, dtype, shape, *place, message.dtype)
        return made


def _check_places(stored: tuple[BundleEntry, ...]) -> None:
    """Refuse entries that share bytes: they could ask for far more memory than the files take."""
    by_place = sorted((e.shard, e.offset, e.nbytes, e.name) for e in stored if e.nbytes)
    for first, second in itertools.pairwise(by_place):
        if first[0] == second[0] and first[1] + first[2] > second[1]:
            raise ValueError(f"the tensors {first[3]!r} and {second[3]!r} overlap")


def _shape(name: str, message: Any) -> tuple[int, ...]:
    shape = tuple(dim.size for dim in message.shape.dim)
    if message.shape.unknown_rank or min(shape, default=0) < 0 or len(shape) > _MOST_DIMENSIONS:
        raise ValueError(f"tensor {name!r} has the shape {list(shape)}")
    return shape


@functools.cache
def _dtype(number: int) -> DType | None:
    """Return the dtype of a number, None if Headrace has none that tensors in files may have."""
    if number in _QUANTIZED:
        return hr.as_dtype(_QUANTIZED[number])
    try:
        found = dtype_of(number)
    except DTypeError:
        return None
    return found if found == hr.string or not found.numpy.hasobject else None


@functools.cache
def _dtype_name(number: int) -> str:
    dtype = _dtype(number)
    if dtype is not None:
        return dtype.name
    return next((name for name, n in _numbers().items() if n == number), f"type {number}")


def _itemsize(number: int) -> int:
    """Return the bytes of an element, 0 for those whose bytes differ."""
    dtype = _dtype(number)
    return 0 if dtype is None or dtype.numpy.hasobject else int(dtype.numpy.itemsize)


def _numbers() -> dict[str, int]:
    """Return the numbers of all dtypes of TensorFlow, by names such as ``"variant"``."""
    return {name.removeprefix("DT_").lower(): n for name, n in enum_values("DataType").items()}
