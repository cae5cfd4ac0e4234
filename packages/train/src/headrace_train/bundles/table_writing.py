"""Writing sorted tables of LevelDB, the form of a bundle's index (see ``tables``)."""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING

from headrace_train.bundles.checksums import extend_crc32c, masked
from headrace_train.bundles.tables import FOOTER_BYTES, MAGIC, PLAIN
from headrace_train.bundles.varints import varint

if TYPE_CHECKING:
    import io
    from collections.abc import Iterable

_BLOCK_BYTES = 4096
# After so many entries, a key is written whole, so that a search can begin there.
_RESTART_ENTRIES = 16

_Entry = tuple[bytes, bytes]


def write_table(stream: io.BufferedIOBase | io.RawIOBase, entries: Iterable[_Entry]) -> None:
    """Write keys with their values.

    Args:
        stream: An empty file.
        entries: In the order of the keys.
    """
    offset = 0

    def put(block: list[_Entry]) -> bytes:
        """Write a block; return where it lies, as other blocks name it."""
        nonlocal offset
        data = _block(block) + bytes([PLAIN])
        stream.write(data + struct.pack("<I", masked(extend_crc32c(0, data))))
        handle = varint(offset) + varint(len(data) - 1)
        offset += len(data) + 4
        return handle

    index: list[_Entry] = []
    waiting: list[_Entry] = []
    waiting_bytes = 0
    for key, value in entries:
        waiting.append((key, value))
        waiting_bytes += len(key) + len(value)
        if waiting_bytes >= _BLOCK_BYTES:
            index.append((key, put(waiting)))
            waiting, waiting_bytes = [], 0
    if waiting:
        index.append((waiting[-1][0], put(waiting)))
    footer = put([]) + put(index)
    stream.write(footer.ljust(FOOTER_BYTES - 8, b"\0") + struct.pack("<Q", MAGIC))


def _block(entries: list[_Entry]) -> bytes:
    made = bytearray()
    restarts = [0]
    last = b""
    for number, (key, value) in enumerate(entries):
        shared = _shared(last, key)
        if number and not number % _RESTART_ENTRIES:
            restarts.append(len(made))
            shared = 0
        made += varint(shared) + varint(len(key) - shared) + varint(len(value))
        made += key[shared:] + value
        last = key
    return bytes(made) + struct.pack(f"<{len(restarts) + 1}I", *restarts, len(restarts))


def _shared(first: bytes, second: bytes) -> int:
    """Return how many bytes two keys have in common at their beginning."""
    count = 0
    for one, other in zip(first, second, strict=False):
        if one != other:
            break
        count += 1
    return count
