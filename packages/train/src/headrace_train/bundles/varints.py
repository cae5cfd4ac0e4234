"""Varints: integers of seven bits per byte, the lowest first."""

from __future__ import annotations

# Of a number of 64 bits.
_MOST_BYTES = 10


def read_varint(data: bytes | memoryview, start: int) -> tuple[int, int]:
    """Return a number, and where the next begins.

    Raises:
        ValueError: if none ends within ``data``, or it has more than 64 bits.
    """
    value = 0
    for place in range(_MOST_BYTES):
        if start + place >= len(data):
            raise ValueError("a number is cut short")
        byte = data[start + place]
        value |= (byte & 0x7F) << (7 * place)
        if byte < 0x80:
            if value >> 64:
                break
            return value, start + place + 1
    raise ValueError("a number has more than 64 bits")


def varint(value: int) -> bytes:
    """Return the bytes of a number that is not negative."""
    made = bytearray()
    while value >= 0x80:
        made.append(value & 0x7F | 0x80)
        value >>= 7
    made.append(value)
    return bytes(made)
