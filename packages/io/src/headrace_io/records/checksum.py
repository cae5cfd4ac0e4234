"""The checksum of records: CRC-32C, rotated and shifted, so that a checksum can be data, too.

A CRC is linear in the bits of its data: of records of one length the checksums can be checked all
at once, by one pass over the file's bytes as they are. Let R(r) be the remainder of a record, that
is of its length, its data and their checksums, and A what n zero bytes do to a remainder, where n
is the size of a record. The remainder of records one after the other is the sum (exclusive or) of
``A**(records behind) R(record)``. If the data have the checksums that stand behind them, R(record)
follows from these alone. As A can be inverted, a damage to one record changes the sum exactly if it
changes the checksum of that record; damages to several hide each other in one of 2**32 cases.
"""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable
from typing import Any, cast, final

import numpy as np

_SHIFT = 0xA282EAD8
_WORD = 0xFFFFFFFF


@functools.cache
def crc32c() -> Callable[[bytes], int]:
    """Return the function that computes CRC-32C, the checksum of RFC 3720."""
    # lazy: only who reads or writes records needs the library
    from google_crc32c import value

    return cast("Callable[[bytes], int]", value)


def masked(crc: int) -> int:
    """Return a checksum as it stands in files."""
    return ((crc >> 15 | crc << 17 & _WORD) + _SHIFT) & _WORD


def masked_all(crcs: Any) -> Any:
    """Return checksums as they stand in files, all at once; ``crcs`` is of uint32."""
    return (crcs >> np.uint32(15) | crcs << np.uint32(17)) + np.uint32(_SHIFT)


def extend_crc32c(crc: int, data: bytes) -> int:
    """Return the checksum of what ``crc`` is that of, followed by ``data``."""
    return _extend()(crc, data)


@functools.cache
def _extend() -> Callable[[int, bytes], int]:
    # lazy: as above
    from google_crc32c import extend

    return cast("Callable[[int, bytes], int]", extend)


# From how many records of one size on it pays to prepare checking many at once.
_FROM = 4096
_MOST = 4096
_SIZES = 8
_seen: dict[int, int] = {}
_checks: dict[int, Alike] = {}
_lock = threading.Lock()


def check_of(record: bytes, count: int) -> Alike | None:
    """Return what checks records of one size, None where there were only few of it so far.

    Args:
        record: An undamaged one.
        count: How many there are now.
    """
    size = len(record)
    with _lock:
        found = _checks.get(size)
        if found is not None:
            return found
        if len(_seen) > 32 * _SIZES:
            _seen.clear()
        seen = _seen[size] = _seen.get(size, 0) + count
        if seen < _FROM:
            return None
        if len(_checks) == _SIZES:
            _checks.clear()
        found = _checks[size] = Alike(record, _MOST)
        return found


@final
class Alike:
    """Checks records of one size, many at once.

    Attributes:
        most: How many it can check at once.
    """

    def __init__(self, record: bytes, most: int) -> None:
        """Make what checks records of the size of one.

        Args:
            record: A record as it stands in a file, with its length and its checksums, undamaged.
            most: How many it shall check at once.
        """
        self.most = most
        # What each bit of a checksum adds to the remainder of its record.
        bits = _Shift.by(4).columns
        (by_checksum,) = _sum(bits, _with_mask(np.frombuffer(record[-4:], "<u4")))
        constant = np.uint32(remainder(record)) ^ by_checksum
        # The same for the last of some records, for the last but one, and so on.
        rows = np.empty((most, 33), np.uint32)
        rows[0] = *bits, constant
        done, behind = 1, _Shift.by(len(record))
        while done < most:
            more = min(done, most - done)
            rows[done : done + more] = behind(rows[:more])
            done, behind = done + more, _Shift(behind(behind.columns))
        self._bits = np.ascontiguousarray(rows[:, :32])
        self._constants = np.bitwise_xor.accumulate(rows[:, 32])

    def right(self, records: bytes, checksums: Any, behind: bytes = b"") -> bool:
        """Return whether the data of all records have the checksums that stand behind them.

        Args:
            records: The records, at most ``most``, whose lengths and their checksums are right.
            checksums: [n], uint32, those of the data.
            behind: What stands behind the last of them in ``records``.
        """
        count = len(checksums)
        words = np.ascontiguousarray(_with_mask(checksums)[::-1], "<u4")
        chosen = np.unpackbits(words.view(np.uint8), bitorder="little").astype(np.uint32)
        # Times 0 or 1: a choice by mask would go another way for each bit.
        found = np.bitwise_xor.reduce(self._bits[:count].reshape(-1) * chosen)
        expected = int(found ^ self._constants[count - 1])
        return remainder(records) == (_remainder(expected, behind) if behind else expected)


class _Shift:
    """What zero bytes do to a remainder.

    Attributes:
        columns: [32], uint32, what they do to each bit.
    """

    def __init__(self, columns: Any) -> None:
        self.columns = columns
        values = np.arange(256, dtype=np.uint32)
        self._tables = [_sum(self.columns[at : at + 8], values) for at in range(0, 32, 8)]

    @classmethod
    def by(cls, count: int) -> _Shift:
        """Return what so many bytes do."""
        zeros = bytes(count)
        return cls(np.array([_remainder(1 << bit, zeros) for bit in range(32)], np.uint32))

    def __call__(self, remainders: Any) -> Any:
        parts = np.ascontiguousarray(remainders, "<u4").view(np.uint8).reshape(-1, 4)
        first, second, third, fourth = (t[parts[:, i]] for i, t in enumerate(self._tables))
        return (first ^ second ^ third ^ fourth).reshape(remainders.shape)


def _sum(columns: Any, values: Any) -> Any:
    """Return the sums of those columns whose bits are set in values."""
    found = np.zeros_like(values)
    for bit, column in enumerate(columns):
        found ^= np.where(values >> np.uint32(bit) & np.uint32(1), column, np.uint32(0))
    return found


def _with_mask(checksums: Any) -> Any:
    """Return checksums as they stand in files, plus what they are of data."""
    turned = checksums - np.uint32(_SHIFT)
    return checksums ^ (turned >> np.uint32(17) | turned << np.uint32(15))


def remainder(data: bytes) -> int:
    """Return what is left of data, without what makes a checksum of that."""
    return _remainder(0, data)


def _remainder(before: int, data: bytes) -> int:
    return extend_crc32c(before ^ _WORD, data) ^ _WORD
