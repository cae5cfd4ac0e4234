"""Fixed-length records in files, between a header and a footer."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from headrace.errors import AttributeValueError, DataLossError, InvalidArgumentError, shown, told
from headrace.extend.kernels import StringRows
from headrace_io.streams import CHUNK, LARGEST, FileName, InputStream


def check_lengths(record_bytes: int, **others: int) -> None:
    """Refuse lengths that are none.

    Raises:
        AttributeValueError: if a record has no bytes, or another length is negative.
    """
    if record_bytes < 1:
        raise AttributeValueError(f"record_bytes must be >= 1, got {told(record_bytes)}")
    for name, length in others.items():
        if length < 0:
            raise AttributeValueError(f"{name} must be >= 0, got {length}")


def read_fixed(
    path: FileName,
    record_bytes: int,
    header_bytes: int = 0,
    footer_bytes: int = 0,
    hop_bytes: int = 0,
    compression: str = "",
    *,
    start: int | None = None,
    whole: bool = False,
) -> Iterator[tuple[int, int, bytes]]:
    """Yield the records of a file.

    Args:
        path: The file.
        record_bytes: How long each record is.
        header_bytes: How much stands before the first.
        footer_bytes: How much stands after the last.
        hop_bytes: From the beginning of a record to that of the next; ``record_bytes`` if 0.
        compression: ``""``, ``"ZLIB"`` or ``"GZIP"``.
        start: The byte to begin at, of the content after decompression: one at which a record
            begins, as of an earlier reading; that after the header if None.
        whole: Whether to refuse what is left before the footer, and is no record. It is left out
            otherwise.

    Yields:
        The byte at which a record begins, the one at which the next does, and the record.

    Raises:
        AttributeValueError: if a length is none.
        NotFoundError: if the file is not there; see ``InputStream`` for others.
        DataLossError: if compressed data are damaged, or end early; where ``whole`` is set, if
            their content does not consist of records, which their end tells.
        InvalidArgumentError: likewise, of a file that is not compressed, before its first record.
    """
    lengths = record_bytes, header_bytes, footer_bytes, hop_bytes
    hop = hop_bytes or record_bytes
    position = header_bytes if start is None else start
    for rows in read_fixed_runs(path, *lengths, compression, start=start, whole=whole):
        for record in StringRows(rows).tolist():
            yield position, position + hop, record
            position += hop


def read_fixed_runs(
    path: FileName,
    record_bytes: int,
    header_bytes: int = 0,
    footer_bytes: int = 0,
    hop_bytes: int = 0,
    compression: str = "",
    *,
    start: int | None = None,
    whole: bool = False,
    wanted: Callable[[], int] = lambda: 0,
) -> Iterator[Any]:
    """Yield the records of a file, many at once: [n, record_bytes], uint8, to be read only.

    Args and errors are those of ``read_fixed``; ``wanted`` returns how many records its caller
    would like to get next.
    """
    check_lengths(
        record_bytes, header_bytes=header_bytes, footer_bytes=footer_bytes, hop_bytes=hop_bytes
    )
    hop = hop_bytes or record_bytes
    with InputStream(path, compression) as stream:
        length = stream.length() if whole else None
        if length is not None:
            body = length - header_bytes - footer_bytes
            if body < 0 or body % record_bytes:
                raise InvalidArgumentError(
                    f"{_tail(stream, record_bytes, header_bytes, footer_bytes)}, got {body}"
                )
        stream.skip(header_bytes if start is None else start)
        buffer, at = b"", 0
        # A record is one where the footer, too, has room behind it.
        needed = record_bytes + footer_bytes
        while True:
            while len(buffer) - at < needed:
                # Records that lie far apart: what is between them is passed over.
                gap = max(at - len(buffer), 0)
                stream.skip(gap)
                rest = buffer[at:]
                wished = min(wanted() * hop + footer_bytes, LARGEST) - len(rest)
                chunk = stream.read(max(CHUNK, needed, wished))
                if not chunk:
                    if whole and len(rest) != footer_bytes:
                        raise DataLossError(
                            f"{_tail(stream, record_bytes, header_bytes, footer_bytes)}, but ends "
                            f"with {len(rest)} bytes that are neither a record nor a footer"
                        )
                    return
                buffer, at = rest + chunk if rest else chunk, 0
            count = (len(buffer) - at - needed) // hop + 1
            yield np.ndarray((count, record_bytes), np.uint8, buffer, at, (hop, 1))
            at += count * hop


def _tail(stream: InputStream, record: int, header: int, footer: int) -> str:
    return (
        f"{shown(stream.name)} must hold a whole number of records of {record} bytes between a "
        f"header of {header} and a footer of {footer}"
    )
