"""Positions as bytes: a tree of plain values and arrays, as JSON and raw elements.

A position is a list, dict, number, string, bytes, array, or a data set of elements that are there.
Layout: the magic, the length of the JSON text (8 bytes, little-endian), the text, then the bytes of
all arrays one after the other, and a CRC-32 of all of that. In the text everything but numbers,
strings, lists and None is an object with one key: ``a`` for an array, [dtype, shape, offset,
length]; ``s`` for strings, [shape, [[offset, length], ...]]; ``b`` for bytes, [offset, length];
``d`` for a dict, [[key, value], ...]; ``f`` for a float; ``e`` for the elements of a data set;
``l`` for a list of tensors; ``h`` for an array of data sets, [shape, [item, ...]]. Nothing is
pickled.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Callable
from typing import Any

import numpy as np

from headrace import as_dtype
from headrace.errors import DataLossError, FailedPreconditionError
from headrace.extend import ListValue
from headrace_data.runtime.stream import DatasetValue
from headrace_data.sources.tensors import elements_value

_MAGIC = b"HRPOS001"


def encode(tree: Any) -> bytes:
    """Return a position as bytes.

    Raises:
        FailedPreconditionError: if it holds a data set that a function made, which cannot be saved.
    """
    writer = _Writer()
    text = json.dumps(writer.write(tree), separators=(",", ":")).encode()
    body = b"".join([_MAGIC, len(text).to_bytes(8, "little"), text, *writer.chunks])
    return body + zlib.crc32(body).to_bytes(4, "little")


def decode(data: bytes) -> Any:
    """Return the position that ``encode`` gave as ``data``.

    Raises:
        DataLossError: if it is damaged, or none.
    """
    if len(data) < 20 or data[:8] != _MAGIC:
        raise DataLossError(
            f"the saved position of an iterator is damaged: {len(data)} bytes that do not begin as "
            "one"
        )
    if zlib.crc32(data[:-4]) != int.from_bytes(data[-4:], "little"):
        raise DataLossError(
            f"the saved position of an iterator is damaged: its {len(data)} bytes do not have the "
            "checksum that they state"
        )
    size = int.from_bytes(data[8:16], "little")
    return _read(json.loads(data[16 : 16 + size]), memoryview(data)[16 + size : -4])


class _Writer:
    def __init__(self) -> None:
        self.chunks: list[bytes] = []
        self._offset = 0

    def _add(self, chunk: bytes) -> list[int]:
        place = [self._offset, len(chunk)]
        self.chunks.append(chunk)
        self._offset += len(chunk)
        return place

    def write(self, item: Any) -> Any:
        if item is None or isinstance(item, bool | str | int):
            return item
        if isinstance(item, np.generic):
            # NumPy's float64 is one of Python's floats, too.
            return self._array(np.asarray(item))
        if isinstance(item, float):
            return {"f": item.hex()}
        if isinstance(item, bytes):
            return {"b": self._add(item)}
        if isinstance(item, list | tuple):
            return [self.write(part) for part in item]
        if isinstance(item, dict):
            return {"d": [[key, self.write(part)] for key, part in item.items()]}
        if isinstance(item, DatasetValue):
            return self._dataset(item)
        if isinstance(item, ListValue):
            return {"l": [self.write(part) for part in item.map(np.asarray).items]}
        return self._array(np.asarray(item))

    def _dataset(self, value: DatasetValue) -> Any:
        if value.kind != "elements":
            raise FailedPreconditionError(
                f"the position cannot be saved: a buffer of the pipeline holds data sets of the "
                f"kind {value.kind!r} that a function made; flatten them (flat_map, interleave) "
                "before shuffle, prefetch, cache and parallel map"
            )
        return {"e": [self.write(list(element)) for element in value.settings["elements"]]}

    def _array(self, array: Any) -> Any:
        shape = list(array.shape)
        if array.dtype == object and array.size and isinstance(array.flat[0], DatasetValue):
            return {"h": [shape, [self.write(item) for item in array.flat]]}
        if array.dtype == object:
            return {"s": [shape, [self._add(item) for item in array.ravel().tolist()]]}
        name = as_dtype(array.dtype).name
        return {"a": [name, shape, *self._add(np.ascontiguousarray(array).tobytes())]}


def _read(item: Any, chunks: memoryview) -> Any:
    if isinstance(item, list):
        return [_read(part, chunks) for part in item]
    if not isinstance(item, dict):
        return item
    ((tag, content),) = item.items()
    return _READERS[tag](content, chunks)


def _read_array(content: Any, chunks: memoryview) -> Any:
    name, shape, offset, length = content
    dtype = as_dtype(name).numpy
    # A copy: it may be handed to a step as it is, and must be aligned.
    return np.frombuffer(bytes(chunks[offset : offset + length]), dtype).reshape(shape)


def _read_handles(content: Any, chunks: memoryview) -> Any:
    shape, written = content
    items = np.empty(len(written), object)
    items[:] = [_read(item, chunks) for item in written]
    return items.reshape(shape)


def _read_strings(content: Any, chunks: memoryview) -> Any:
    shape, places = content
    items = np.empty(len(places), object)
    items[:] = [bytes(chunks[offset : offset + length]) for offset, length in places]
    return items.reshape(shape)


_READERS: dict[str, Callable[[Any, memoryview], Any]] = {
    "f": lambda content, chunks: float.fromhex(content),
    "b": lambda content, chunks: bytes(chunks[content[0] : content[0] + content[1]]),
    "d": lambda content, chunks: {key: _read(part, chunks) for key, part in content},
    "e": lambda content, chunks: elements_value(
        [tuple(_read(element, chunks)) for element in content]
    ),
    "a": _read_array,
    "s": _read_strings,
    "h": _read_handles,
    "l": lambda content, chunks: ListValue(_read(part, chunks) for part in content),
}
