"""CRC-32C of files, in pieces, and its masked form."""

from __future__ import annotations

from typing import TYPE_CHECKING

from headrace_io.records.checksum import extend_crc32c, masked

if TYPE_CHECKING:
    import io
    from collections.abc import Iterator

__all__ = ["extend_crc32c", "masked", "pieces"]

_PIECE_BYTES = 1 << 20


def pieces(stream: io.BufferedIOBase | io.RawIOBase, start: int, nbytes: int) -> Iterator[bytes]:
    """Yield the bytes of a part of a file, at most one MiB at once.

    Raises:
        EOFError: if the file ends before.
    """
    stream.seek(start)
    left = nbytes
    while left:
        piece = stream.read(min(left, _PIECE_BYTES))
        if not piece:
            raise EOFError(f"it ends {left} bytes early")
        yield piece
        left -= len(piece)
