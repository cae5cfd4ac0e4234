"""Reading files of records.

A record is its length as a little-endian integer of 64 bits, a checksum of these 8 bytes, the
data, and a checksum of the data.
"""

from __future__ import annotations

import logging
import struct
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from headrace.errors import DataLossError
from headrace.extend.kernels import StringRows
from headrace_io.records.checksum import check_of, crc32c, masked, masked_all
from headrace_io.records.options import TFRecordOptions
from headrace_io.streams import CHUNK, LARGEST, FileName, InputStream

# The byte at which a record begins, the one at which the next does, and its data.
Framed: TypeAlias = tuple[int, int, bytes]


class Run(NamedTuple):
    """Records that stand one after the other.

    Attributes:
        begins: The bytes at which they begin, and the one at which the last one ends.
        data: The data of each; [n, length], uint8, to be read only, of records of one length that
            were read together.
    """

    begins: Sequence[int]
    data: list[bytes] | Any


LENGTH = struct.Struct("<QI")
CHECKSUM = struct.Struct("<I")

# How much is read and checked at a time for those who want less of records of one length: what each
# piece costs in Python is shared, and it stays in a cache until it was handed out.
_AHEAD = 1 << 21
# Fewer records of one length are put together with those around them.
_MANY = 32

_LOG = logging.getLogger("headrace.io")


def read_records(
    path: FileName, options: Any = None, *, start: int = 0, ignore_errors: bool = False
) -> Iterator[Framed]:
    """Yield the records of a file.

    Args:
        path: The file.
        options: How it is compressed: what ``TFRecordOptions`` takes, or one.
        start: The byte to begin at, of the content after decompression: one at which a record
            begins, as of an earlier reading.
        ignore_errors: Leave out records that are damaged, and say so in the log. Behind a damaged
            length, or where compressed data are damaged, nothing of the file can be read.

    Yields:
        The byte at which a record begins, the one at which the next does, and its data.

    Raises:
        NotFoundError: if the file is not there; see ``InputStream`` for others.
        DataLossError: if a record is damaged or cut short; names the file, the number of the
            record, counted from ``start``, and its byte.
    """
    for run in read_runs(path, options, start=start, ignore_errors=ignore_errors):
        begins, data = run
        strings = data if isinstance(data, list) else StringRows(data).tolist()
        yield from zip(begins, begins[1:], strings, strict=False)


def read_runs(
    path: FileName,
    options: Any = None,
    *,
    start: int = 0,
    ignore_errors: bool = False,
    wanted: Callable[[], tuple[int, int]] = lambda: (0, 0),
    size: int = 0,
) -> Iterator[Run]:
    """Yield the records of a file, many at once; otherwise as ``read_records``.

    Args:
        path: The file.
        options: As for ``read_records``.
        start: As for ``read_records``.
        ignore_errors: As for ``read_records``.
        wanted: Returns how many records its caller would like to get next, and how many after
            those each time, so that they come together if they are of one length.
        size: How long records are, with their lengths and checksums, if they are like others that
            the caller has read; 0 for unknown.
    """
    compression = TFRecordOptions.get_compression_type_string(options)
    with InputStream(path, compression) as stream:
        records = _Records(stream, start, wanted, size)
        while True:
            try:
                yield from records.runs()
                return
            except DataLossError as error:
                if not ignore_errors:
                    raise
                _LOG.warning("%s; left out", error)
                if not records.pass_over():
                    return


class _Records:
    """The records of a stream, from which one can go on after damaged data."""

    def __init__(
        self,
        stream: InputStream,
        start: int,
        wanted: Callable[[], tuple[int, int]],
        size: int,
    ) -> None:
        self._stream = stream
        self._wanted = wanted
        # How long the last record was as a whole.
        self._size = size
        self._buffer = b""
        # Where in the buffer the next record begins, and where that is in the file.
        self._at = 0
        self._position = start
        self._number = 0
        self._framed = 0
        stream.skip(start)

    def runs(self) -> Iterator[Run]:
        """Yield the records that are in the buffer as a whole: those of one length at once.

        Raises:
            DataLossError: if the next record is damaged.
        """
        crc, checksum_of = crc32c(), CHECKSUM.unpack_from
        # The length and its checksum that were checked last: those of the next are mostly alike.
        head, length = b"", 0
        while True:
            buffer, at = self._buffer, self._at
            end = len(buffer)
            # From places in the buffer to places in the file.
            ahead = self._position - at
            begins, found = [self._position], list[bytes]()
            damage, framed = "", 0
            while at + LENGTH.size <= end:
                if not (head and buffer.startswith(head, at)):
                    head = buffer[at : at + LENGTH.size]
                    length, check = LENGTH.unpack(head)
                    if masked(crc(head[:8])) != check:
                        damage, head = "the checksum of its length does not match", b""
                        break
                size = 16 + length
                stop = at + size
                if stop > end:
                    break
                if buffer.startswith(head, stop):
                    several = _alike(buffer, at, head, length)
                    if len(several):
                        first, at = at, at + len(several) * size
                        if len(several) >= _MANY and not found:
                            self._size = size
                            begins_here = range(first + ahead, at + ahead + 1, size)
                            yield self._passed(at, Run(begins_here, several))
                            begins = [self._position]
                            continue
                        begins += range(first + size + ahead, at + ahead + 1, size)
                        found += StringRows(several).tolist()
                        continue
                data = buffer[at + 12 : stop - 4]
                if masked(crc(data)) != checksum_of(buffer, stop - 4)[0]:
                    damage, framed = "the checksum of its data does not match", stop - at
                    break
                at = stop
                begins.append(at + ahead)
                found.append(data)
            if found:
                yield self._passed(at, Run(begins, found))
            if damage:
                self._framed = framed
                raise self._damaged(damage)
            if not self._fill():
                return

    def _passed(self, at: int, run: Run) -> Run:
        """Note that a run is read, up to a place in the buffer: who takes it may not come back."""
        self._position += at - self._at
        self._at = at
        self._number += len(run.data)
        return run

    def pass_over(self) -> bool:
        """Go on to the record after the damaged one; False where nobody knows where that is."""
        framed, self._framed = self._framed, 0
        self._at += framed
        self._position += framed
        self._number += 1
        return bool(framed)

    def _fill(self) -> bool:
        """Have the next record in the buffer as a whole, or its length; False at the end."""
        rest = self._buffer[self._at :]
        self._at = 0
        wished = self._wished()
        needed = 12
        if len(rest) >= 12:
            needed = 16 + LENGTH.unpack_from(rest)[0]
        # Nothing is copied where nothing is left.
        parts, have = [rest] if rest else [], len(rest)
        while have < needed:
            chunk = self._stream.read(max(CHUNK, wished - have))
            if not chunk:
                self._buffer = b"".join(parts)
                if not have:
                    return False
                raise self._damaged(f"the file ends after {have} bytes of it", "is cut short")
            parts.append(chunk)
            have += len(chunk)
        self._buffer = b"".join(parts)
        return True

    def _wished(self) -> int:
        """Return how many bytes to read: some whole reads of the caller, where these are small."""
        now, then = (count * self._size for count in self._wanted())
        if not now:
            return 0
        return min(now + then * max(0, (_AHEAD - now) // then), LARGEST)

    def _damaged(self, why: str, what: str = "is damaged") -> DataLossError:
        return DataLossError(
            f"record {self._number} of {self._stream.name!r}, at byte {self._position}, {what}: "
            f"{why}"
        )


def _alike(buffer: bytes, at: int, head: bytes, length: int) -> Any:
    """Return the data of the next records that are of one length, up to the first damaged one.

    Args:
        buffer: What was read.
        at: Where the first begins.
        head: The length of it and its checksum, which are right.
        length: The length.

    Returns:
        [n, length], uint8.
    """
    size = 16 + length
    most = (len(buffer) - at) // size

    def words(dtype: str, offset: int) -> Any:
        return np.ndarray((most,), dtype, buffer, at + offset, (size,))

    framed = (words("<u8", 0) == length) & (words("<u4", 8) == CHECKSUM.unpack_from(head, 8)[0])
    count = most if framed.all() else int(framed.argmin())
    rows = np.ndarray((count, length), np.uint8, buffer, at + 12, (size, 1))
    stored = words("<u4", size - 4)[:count]
    if _are_right(buffer, at, length, stored):
        return rows
    crcs = np.fromiter(map(crc32c(), StringRows(rows).tolist()), np.uint32, count)
    right = masked_all(crcs) == stored
    return rows if right.all() else rows[: int(right.argmin())]


def _are_right(buffer: bytes, at: int, length: int, stored: Any) -> bool:
    """Return whether records of one length have their checksums, if they can be checked at once.

    Args:
        buffer: What was read.
        at: Where the first begins.
        length: The length of each.
        stored: [n], uint32, the checksums of their data.
    """
    count, size = len(stored), 16 + length
    if count < _MANY or masked(crc32c()(buffer[at + 12 : at + 12 + length])) != stored[0]:
        return False
    check = check_of(buffer[at : at + size], count)
    if check is None:
        return False
    most = check.most
    if not at and count <= most:
        # Not one byte is copied but what stands behind the last.
        return check.right(buffer, stored, buffer[count * size :])
    return all(
        check.right(buffer[at + i * size : at + min(i + most, count) * size], stored[i : i + most])
        for i in range(0, count, most)
    )


def tf_record_iterator(path: FileName, options: Any = None) -> Iterator[bytes]:
    """Yield the records of a file.

    Args:
        path: The file.
        options: How it is compressed: what ``TFRecordOptions`` takes, or one.

    Yields:
        The data of each record.

    Raises:
        NotFoundError: if the file is not there; see ``InputStream`` for others.
        DataLossError: if a record is damaged or cut short; names the file, record and byte.
    """
    for _, _, data in read_records(path, options):
        yield data
