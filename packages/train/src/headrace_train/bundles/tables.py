"""Sorted tables of LevelDB, the form of a bundle's index: read as keys with values.

A table is a row of blocks, each with a byte for its compression and a checksum; an index block
that names the others; and a footer of 48 bytes that names the index.

References:
    LevelDB, File format, https://github.com/google/leveldb/blob/main/doc/table_format.md.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, final

from headrace.errors import CheckpointDamagedError, shown
from headrace_train.bundles.checksums import extend_crc32c, masked
from headrace_train.bundles.snappy import decompressed
from headrace_train.bundles.varints import read_varint

if TYPE_CHECKING:
    import io
    from collections.abc import Iterator

MAGIC = 0xDB4775248B80FB57
FOOTER_BYTES = 48
# After a block: its compression, and the checksum of both.
TRAILER_BYTES = 5
PLAIN, SNAPPY = 0, 1


def is_table(stream: io.BufferedIOBase) -> bool:
    """Whether a file ends as a table does."""
    end = stream.seek(0, 2)
    if end < FOOTER_BYTES:
        return False
    stream.seek(end - 8)
    return stream.read(8) == struct.pack("<Q", MAGIC)


def read_table(stream: io.BufferedIOBase, what: str) -> Iterator[tuple[bytes, bytes]]:
    """Yield the keys of a table with their values, in the order of the keys.

    One block is in memory at once.

    Args:
        stream: The file.
        what: What errors call it.

    Raises:
        CheckpointDamagedError: if it is no table, or its bytes do not match their checksums.
        UnimplementedError: if it is compressed, and what decompresses it is not installed.
    """
    return _Table(stream, what).entries()


@final
class _Table:
    def __init__(self, stream: io.BufferedIOBase, what: str) -> None:
        self._stream = stream
        self._what = what
        self._bytes = stream.seek(0, 2)

    def entries(self) -> Iterator[tuple[bytes, bytes]]:
        if self._bytes < FOOTER_BYTES:
            raise self._damaged(f"it has {self._bytes} bytes, expected {FOOTER_BYTES} or more")
        self._stream.seek(self._bytes - FOOTER_BYTES)
        footer = self._stream.read(FOOTER_BYTES)
        if footer[-8:] != struct.pack("<Q", MAGIC):
            raise self._damaged("it does not end as such a file does")
        last: bytes | None = None
        try:
            _, place = _handle(footer, 0)
            index, _ = _handle(footer, place)
            for _, handle in _block_entries(self._block(*index)):
                span, _ = _handle(handle, 0)
                for key, value in _block_entries(self._block(*span)):
                    if last is not None and key <= last:
                        raise ValueError(
                            f"the keys {shown(last, 60)} and {shown(key, 60)} are out of order"
                        )
                    last = key
                    yield key, value
        except ValueError as reason:
            raise self._damaged(str(reason)) from reason

    def _block(self, offset: int, nbytes: int) -> bytes:
        if offset + nbytes + TRAILER_BYTES > self._bytes - FOOTER_BYTES:
            raise ValueError(f"a block of {nbytes} bytes at {offset} does not fit into it")
        self._stream.seek(offset)
        data = self._stream.read(nbytes + TRAILER_BYTES)
        if len(data) != nbytes + TRAILER_BYTES:
            raise ValueError(f"the block at {offset} is cut short")
        (stored,) = struct.unpack_from("<I", data, nbytes + 1)
        found = masked(extend_crc32c(0, data[: nbytes + 1]))
        if found != stored:
            raise ValueError(
                f"the checksum of the block at {offset} is {found:08x}, expected {stored:08x}"
            )
        kind = data[nbytes]
        if kind == SNAPPY:
            return decompressed(data[:nbytes], self._what)
        if kind != PLAIN:
            raise ValueError(f"the block at {offset} has the unknown compression {kind}")
        return data[:nbytes]

    def _damaged(self, reason: str) -> CheckpointDamagedError:
        return CheckpointDamagedError(f"{self._what} is damaged, or no index of a bundle: {reason}")


def _handle(data: bytes, start: int) -> tuple[tuple[int, int], int]:
    """Return where a block lies, offset and bytes, and where the next number begins."""
    offset, place = read_varint(data, start)
    nbytes, place = read_varint(data, place)
    return (offset, nbytes), place


def _block_entries(block: bytes) -> Iterator[tuple[bytes, bytes]]:
    """Yield the entries of a block, whose keys say only how they differ from the one before."""
    if len(block) < 4:
        raise ValueError("a block is cut short")
    (restarts,) = struct.unpack_from("<I", block, len(block) - 4)
    end = len(block) - 4 * (restarts + 1)
    if end < 0:
        raise ValueError("a block is shorter than the list at its end")
    place = 0
    key = b""
    while place < end:
        shared, place = read_varint(block, place)
        rest, place = read_varint(block, place)
        size, place = read_varint(block, place)
        if shared > len(key) or place + rest + size > end:
            raise ValueError("an entry of a block does not fit into it")
        key = key[:shared] + block[place : place + rest]
        place += rest
        yield key, block[place : place + size]
        place += size
