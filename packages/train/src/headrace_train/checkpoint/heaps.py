"""The heaps of HDF5, in which elements of variable length lie, believing nothing that they say.

A heap is called a global heap collection (HDF5 File Format Specification 3.0, III.E): the
signature, a version, its size, and objects one after the other, each with a number, its size and
its bytes, up to one without a number, which stands for the room that is left.
"""

from __future__ import annotations

import io
import struct
from typing import TypeAlias, final

import numpy as np
from numpy.typing import NDArray

Stream: TypeAlias = io.BufferedIOBase | io.RawIOBase

# What stands for an element in its dataset: its length in bytes, the heap, the object in it.
REFERENCE = np.dtype([("length", "<u4"), ("heap", "<u8"), ("number", "<u4")])

_HEAD = struct.Struct("<4sB3xQ")
_OBJECT = struct.Struct("<HHxxxxQ")
_SIGNATURE, _VERSION = b"GCOL", 1


def piece(stream: Stream, start: int, length: int, file_bytes: int) -> bytes:
    """Return bytes of a file.

    Raises:
        ValueError: if the file ends before.
    """
    if length > file_bytes - start:
        raise ValueError("the file ends inside of it")
    stream.seek(start)
    found = stream.read(length)
    if found is None or len(found) != length:
        raise ValueError("the file ends inside of it")
    return found


@final
class Heaps:
    """The heaps of a file, each read when something of it is asked for."""

    def __init__(self, stream: Stream, base: int, file_bytes: int) -> None:
        """Begin with none.

        Args:
            stream: The file.
            base: The byte from which addresses are counted.
            file_bytes: The size of the file.
        """
        self._stream = stream
        self._base = base
        self._file_bytes = file_bytes
        # Heaps do not overlap, so that all together are no larger than the file.
        self._left = file_bytes
        self._found: dict[int, dict[int, bytes]] = {}

    def element(self, length: int, heap: int, number: int) -> NDArray[np.uint8]:
        """Return the bytes of an element.

        Args:
            length: How many there are.
            heap: The address of the heap.
            number: Of the object in it.

        Raises:
            ValueError: if there is no such object, or it is shorter.
        """
        if not length:
            return np.empty(0, np.uint8)
        if heap not in self._found:
            self._found[heap] = self._read(heap)
        content = self._found[heap].get(number)
        if content is None or len(content) < length:
            raise ValueError(f"the heap at byte {self._base + heap} lacks its object {number}")
        return np.frombuffer(content, np.uint8, length)

    def _read(self, heap: int) -> dict[int, bytes]:
        """Return the objects of a heap by their numbers."""
        start = self._base + heap
        head = piece(self._stream, start, _HEAD.size, self._file_bytes)
        signature, version, size = _HEAD.unpack(head)
        if (signature, version) != (_SIGNATURE, _VERSION) or size > self._left:
            raise ValueError(f"there is no heap at byte {start}")
        self._left -= size
        content = piece(self._stream, start, size, self._file_bytes)
        found: dict[int, bytes] = {}
        at = _HEAD.size
        while at + _OBJECT.size <= size:
            number, _, length = _OBJECT.unpack_from(content, at)
            if not number:
                break
            at += _OBJECT.size
            if length > size - at or number in found:
                raise ValueError(f"the heap at byte {start} is damaged")
            found[number] = content[at : at + length]
            # Objects begin at multiples of eight bytes.
            at += -(-length // 8) * 8
        return found
