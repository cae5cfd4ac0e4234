"""The checksum of records: CRC-32C, rotated and shifted, so that a checksum can be data, too."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, cast

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
