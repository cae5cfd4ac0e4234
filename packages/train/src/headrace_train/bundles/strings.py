"""Tensors of strings as bundles hold them: the lengths, their checksum, and all strings."""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Any

import numpy as np

from headrace_train.bundles.checksums import extend_crc32c, masked
from headrace_train.bundles.varints import read_varint, varint

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

_CHECKSUM_BYTES = 4
_MOST_IN_32_BITS = (1 << 32) - 1


def encode_strings(strings: Sequence[bytes]) -> tuple[bytes, int]:
    """Return the bytes of strings, and their checksum, which is not masked."""
    crc = _of_lengths(len(item) for item in strings)
    check = struct.pack("<I", masked(crc))
    crc = extend_crc32c(crc, check)
    for item in strings:
        crc = extend_crc32c(crc, item)
    return b"".join([*(varint(len(item)) for item in strings), check, *strings]), crc


def decode_strings(data: bytes, count: int) -> tuple[NDArray[Any], int]:
    """Return strings, and their checksum, which is not masked.

    Args:
        data: Their bytes.
        count: How many they are, no more than the bytes can hold.

    Raises:
        ValueError: if they are not as many, or damaged.
    """
    if count > len(data):
        raise ValueError(f"{len(data)} bytes cannot be {count} strings")
    lengths = []
    place = 0
    for _ in range(count):
        length, place = read_varint(data, place)
        lengths.append(length)
    crc = _of_lengths(lengths)
    check = data[place : place + _CHECKSUM_BYTES]
    if check != struct.pack("<I", masked(crc)):
        raise ValueError("the checksum of the strings' lengths does not match")
    crc = extend_crc32c(crc, check)
    place += _CHECKSUM_BYTES
    if place + sum(lengths) != len(data):
        raise ValueError(f"strings take {place + sum(lengths)} bytes, expected {len(data)}")
    made: NDArray[Any] = np.empty(count, object)
    for number, length in enumerate(lengths):
        made[number] = item = data[place : place + length]
        crc = extend_crc32c(crc, item)
        place += length
    return made, crc


def _of_lengths(lengths: Any) -> int:
    """Return the checksum of lengths, each as a number of 32 bits, or of 64 if it needs them."""
    crc = 0
    for length in lengths:
        crc = extend_crc32c(crc, struct.pack("<I" if length <= _MOST_IN_32_BITS else "<Q", length))
    return crc
