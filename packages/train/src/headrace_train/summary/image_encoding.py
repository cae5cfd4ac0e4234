"""Image summaries: values converted to bytes, and these to PNG files.

References:
    Portable Network Graphics (PNG) Specification, W3C, 2003: sections 5 (datastream) and 11
    (chunks).
"""

from __future__ import annotations

import struct
import zlib
from typing import Any

import numpy as np

_Array = np.ndarray[Any, np.dtype[Any]]

# Red and opaque stands where a value is not finite.
_BAD = np.array([255, 0, 0, 255], np.uint8)
# Images whose values are all smaller are black.
_THRESHOLD = 1e-6
_COLOUR_TYPES = {1: 0, 3: 2, 4: 6}


def as_bytes(image: _Array) -> _Array:
    """Return an image as uint8.

    Floating values are scaled so that the largest is 255, and where some are negative, so that 0
    is 128 and the one farthest from it 1 or 255. Pixels with values that are not finite are red.

    Args:
        image: [height, width, channels], uint8 or floating.
    """
    if image.dtype == np.uint8:
        return image
    # What is computed in float16 would be rough; float64 stays what it is.
    values = image.astype(np.float32) if image.dtype == np.float16 else image
    dtype = values.dtype.type
    good = np.isfinite(values).all(axis=-1)
    finite = values[good]
    low = finite.min() if finite.size else dtype(0)
    high = finite.max() if finite.size else dtype(0)
    if low < 0:
        farthest = max(abs(low), abs(high))
        scale, offset = (dtype(127) / farthest if farthest >= _THRESHOLD else dtype(0)), 128
    else:
        scale, offset = (dtype(255) / high if high >= _THRESHOLD else dtype(0)), 0
    scaled = np.where(good[..., None], values, dtype(0)) * scale + dtype(offset)
    made = scaled.astype(np.uint8)
    made[~good] = _BAD[: image.shape[-1]]
    return made


def png(image: _Array) -> bytes:
    """Return an image as a PNG file.

    Args:
        image: [height, width, channels], uint8, with 1, 3 or 4 channels.
    """
    height, width, channels = image.shape
    header = struct.pack(">IIBBBBB", width, height, 8, _COLOUR_TYPES[channels], 0, 0, 0)
    # Each row begins with the number of its filter: 0 for none.
    rows = np.zeros((height, width * channels + 1), np.uint8)
    rows[:, 1:] = image.reshape(height, -1)
    chunks = ((b"IHDR", header), (b"IDAT", zlib.compress(rows.tobytes())), (b"IEND", b""))
    return b"\x89PNG\r\n\x1a\n" + b"".join(_chunk(*chunk) for chunk in chunks)


def _chunk(kind: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
