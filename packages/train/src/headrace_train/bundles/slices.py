"""Slices of tensors: under which keys an index has them, and how they make up the whole.

A variable that TensorFlow kept in partitions has one entry under its name, which lists its parts,
and one for each part. The key of a part is the name and the part's place in the order-keeping code
of TensorFlow's library ``ordered_code``: so parts sort before all whole tensors.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, final

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

# What a part covers: all of a dimension, which the code writes as a length of -1.
_ALL = -1
_ESCAPED = re.compile(rb"[\x00\xff]")


@final
@dataclass(frozen=True, slots=True)
class Part:
    """A part of a tensor.

    Attributes:
        starts: Where it begins in each dimension.
        lengths: How long it is there; -1 for all.
    """

    starts: tuple[int, ...]
    lengths: tuple[int, ...]

    @classmethod
    def of_message(cls, message: Any) -> Part:
        """Return what a ``TensorSliceProto`` describes."""
        lengths = [e.length if e.WhichOneof("has_length") else _ALL for e in message.extent]
        return cls(tuple(extent.start for extent in message.extent), tuple(lengths))

    def key(self, name: bytes) -> bytes:
        """Return the key of the part of the tensor ``name``."""
        made = _number(0) + _text(name) + _number(len(self.starts))
        for start, length in zip(self.starts, self.lengths, strict=True):
            made += _signed(start) + _signed(length)
        return made

    def within(self, shape: tuple[int, ...]) -> tuple[slice, ...]:
        """Return the indices of the part in a tensor of ``shape``.

        Raises:
            ValueError: if it does not lie within it.
        """
        if len(self.starts) != len(shape):
            raise ValueError(f"a part of {len(self.starts)} dimensions is none of shape {shape}")
        found = []
        for start, length, size in zip(self.starts, self.lengths, shape, strict=True):
            stop = size if length == _ALL else start + length
            if not 0 <= start <= stop <= size:
                raise ValueError(f"the part {start}:{stop} does not lie within 0:{size}")
            found.append(slice(start, stop))
        return tuple(found)


def check_cover(places: Sequence[tuple[slice, ...]], shape: tuple[int, ...]) -> None:
    """Refuse parts that overlap, or are not the whole of ``shape`` together.

    Raises:
        ValueError: if they are not.
    """
    full = [place for place in places if all(s.stop > s.start for s in place)]
    covered = sum(math.prod(s.stop - s.start for s in place) for place in full)
    if covered != math.prod(shape):
        raise ValueError(f"its parts have {covered} elements, expected {math.prod(shape)}")
    if len(full) < 2:
        return
    bounds = np.array([[(s.start, s.stop) for s in place] for place in full], np.int64)
    # One at a time against all that follow: few variables have more than some hundred parts.
    for number in range(len(full) - 1):
        this, others = bounds[number], bounds[number + 1 :]
        meets = (others[:, :, 0] < this[:, 1]) & (this[:, 0] < others[:, :, 1])
        if meets.all(axis=1).any():
            raise ValueError("its parts overlap")


def _number(value: int) -> bytes:
    """Return the code of a number that is not negative: its length, and it, the highest first."""
    nbytes = (value.bit_length() + 7) // 8
    return bytes([nbytes]) + value.to_bytes(nbytes, "big")


def _text(value: bytes) -> bytes:
    """Return the code of bytes: 00 and FF are escaped, and 00 01 ends them."""
    escaped = _ESCAPED.sub(lambda found: found[0] + bytes([found[0][0] ^ 0xFF]), value)
    return escaped + b"\0\1"


def _signed(value: int) -> bytes:
    """Return the code of a number of 64 bits: as many leading ones as bytes, then the number.

    Of ``n`` bytes, 7 n bits are the number in two's complement; what comes before them has the
    bits of ``n`` ones and a zero, and all bits flipped where the number is negative.
    """
    nbytes = 1
    while not -(1 << (7 * nbytes - 1)) <= value < 1 << (7 * nbytes - 1):
        nbytes += 1
    header = ((1 << nbytes) - 1) << (8 * nbytes - nbytes)
    made = (value & ((1 << (8 * nbytes)) - 1)) ^ header
    return made.to_bytes(nbytes, "big")
