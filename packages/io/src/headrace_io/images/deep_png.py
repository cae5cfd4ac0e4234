"""PNG images of 16 bits for each channel, of which Pillow keeps 8 where there are colours.

References:
    Portable Network Graphics (PNG) Specification, https://www.w3.org/TR/png-3/
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from headrace.errors import InvalidArgumentError

Array: TypeAlias = Any

SIGNATURE = b"\x89PNG\r\n\x1a\n"
# The channels of each type of colour that has 16 bits: grey, RGB, grey and alpha, RGBA.
_CHANNELS = {0: 1, 2: 3, 4: 2, 6: 4}
_COLOURS = {channels: kind for kind, channels in _CHANNELS.items()}
# First column and row, and steps across and down, of what each pass of an interlaced image has.
_WHOLE = ((0, 0, 1, 1),)
_ADAM7 = (
    (0, 0, 8, 8),
    (4, 0, 8, 8),
    (0, 4, 4, 8),
    (2, 0, 4, 4),
    (0, 2, 2, 4),
    (1, 0, 2, 2),
    (0, 1, 1, 2),
)
# As many pixels as TensorFlow takes.
_MOST_PIXELS = 1 << 29
# The least that zlib needs is one byte for so many.
_LARGEST_RATIO = 1032
_BITS = 16


@dataclass(frozen=True)
class _Chunks:
    """What the chunks of an image say.

    Attributes:
        height: Rows.
        width: Columns.
        channels: 1 to 4.
        passes: As ``_ADAM7`` has them.
        compressed: The pixels, as zlib has them.
        clear: The pixel that is transparent, where there is one.
    """

    height: int
    width: int
    channels: int
    passes: tuple[tuple[int, int, int, int], ...]
    compressed: bytes
    clear: Array | None


def is_needed(data: bytes, channels: int, *, deep: bool) -> bool:
    """Whether a PNG image of 16 bits must be decoded here.

    Args:
        data: The bytes of the image.
        channels: 1, 3 or 4, or 0 for as many as there are.
        deep: Whether to return 16 bits for each channel, not 8.
    """
    if data[24:25] != bytes([_BITS]):
        return False
    if data[25:26] == b"\0":
        # Pillow knows grey, but not which one is transparent.
        return channels == 4 and b"tRNS" in data
    # Pillow makes RGBA of grey with alpha.
    return deep or channels in (1, 4) or data[25:26] == b"\4"


def decode(data: bytes, *, alpha: bool) -> Array:
    """Return an image.

    Args:
        data: Its bytes.
        alpha: Whether one that names a transparent colour gets an alpha channel of it.

    Returns:
        [height, width, 1 to 4 channels], uint16.

    Raises:
        InvalidArgumentError: if it is damaged, or cut short.
    """
    try:
        chunks = _read(data)
        pixels = _pixels(chunks)
    except (ValueError, struct.error, zlib.error) as error:
        raise InvalidArgumentError(
            f"the PNG image of {len(data)} bytes is damaged, or cut short: {error}"
        ) from error
    if alpha and chunks.clear is not None:
        shown = (pixels != chunks.clear).any(axis=2, keepdims=True)
        opaque = np.where(shown, np.uint16(0xFFFF), np.uint16(0))
        pixels = np.concatenate([pixels, opaque], axis=2)
    return pixels


def _split(data: bytes) -> Iterator[tuple[bytes, bytes]]:
    """Yield the name and content of each chunk up to the end of the image."""
    at = len(SIGNATURE)
    while True:
        length, name = struct.unpack_from(">I4s", data, at)
        content = data[at + 8 : at + 8 + length]
        (check,) = struct.unpack_from(">I", data, at + 8 + length)
        needed = name[:1].isupper()
        if check != zlib.crc32(name + content):
            if needed:
                raise ValueError(f"the checksum of {name!r} is wrong")
        elif needed or name == b"tRNS":
            yield name, content
        if name == b"IEND":
            return
        at += 12 + length


def _read(data: bytes) -> _Chunks:
    parts: list[bytes] = []
    clear: bytes | None = None
    head: bytes | None = None
    for name, content in _split(data):
        if (name == b"IHDR") != (head is None):
            raise ValueError("it does not begin with one header")
        if name == b"IHDR":
            head = content
        elif name == b"IDAT":
            parts.append(content)
        elif name == b"tRNS":
            # Only what stands before the pixels counts.
            clear = clear if parts else content
        elif name not in (b"IEND", b"PLTE"):
            raise ValueError(f"{name!r} is not known")
    width, height, bits, colour, compression, filtering, interlaced = struct.unpack(
        ">IIBBBBB", head or b""
    )
    if bits != _BITS or colour not in _CHANNELS or compression or filtering or interlaced > 1:
        raise ValueError("its header says what does not exist")
    if not (0 < width < 1 << 31 and 0 < height < 1 << 31 and width * height < _MOST_PIXELS):
        raise ValueError(f"{height} x {width} pixels are none, or too many")
    channels = _CHANNELS[colour]
    key = None
    # One that has an alpha channel needs no transparent colour.
    if clear is not None and channels in (1, 3) and len(clear) == 2 * channels:
        key = np.frombuffer(clear, ">u2")
    passes = _ADAM7 if interlaced else _WHOLE
    return _Chunks(height, width, channels, passes, b"".join(parts), key)


def _pixels(chunks: _Chunks) -> Array:
    height, width, channels = chunks.height, chunks.width, chunks.channels
    places = []
    size = 0
    for column, row, across, down in chunks.passes:
        rows, columns = -(-(height - row) // down), -(-(width - column) // across)
        if rows > 0 and columns > 0:
            places.append((column, row, across, down, rows, columns))
            size += rows * (1 + columns * channels * 2)
    if size > _LARGEST_RATIO * (len(chunks.compressed) + 1):
        raise ValueError(f"{len(chunks.compressed)} bytes cannot hold {height} x {width} pixels")
    raw = zlib.decompressobj().decompress(chunks.compressed, size)
    if len(raw) < size:
        raise ValueError(f"its pixels are {size} bytes, and {len(raw)} are there")
    lines = np.frombuffer(raw, np.uint8)
    found = np.empty((height, width, channels), np.uint16)
    at = 0
    for column, row, across, down, rows, columns in places:
        length = 1 + columns * channels * 2
        part = lines[at : at + rows * length].reshape(rows, length)
        at += rows * length
        made = _unfiltered(part[:, 0], part[:, 1:].reshape(rows, columns, channels * 2))
        found[row::down, column::across] = made.view(">u2")
    return found


def _unfiltered(kinds: Array, filtered: Array) -> Array:
    """Return the bytes of pixels from what is left of them beside what their neighbours foretell.

    Args:
        kinds: [rows], how each row is foretold: 0 to 4.
        filtered: [rows, columns, bytes of a pixel].
    """
    if (kinds > 4).any():
        raise ValueError("a row has a filter that does not exist")
    rows, columns, size = filtered.shape
    # A row and a column of zeros stand before the first.
    padded = np.zeros((rows + 1, columns + 1, size), np.uint8)
    padded[1:, 1:] = filtered
    if (kinds > 2).any():
        _along_diagonals(padded, kinds)
    else:
        for i in np.flatnonzero(kinds):
            line = padded[i + 1]
            if kinds[i] == 1:
                np.add.accumulate(line, axis=0, out=line)
            else:
                line += padded[i]
    return np.ascontiguousarray(padded[1:, 1:])


def _along_diagonals(padded: Array, kinds: Array) -> None:
    """Compute pixels in place, each from those on its left and above it.

    Pixels of a diagonal, from the upper right to the lower left, need none of one another.
    """
    rows, columns = padded.shape[0] - 1, padded.shape[1] - 1
    flat = padded.reshape(-1, padded.shape[2])
    width = columns + 1
    for diagonal in range(rows + columns - 1):
        first = max(0, diagonal - columns + 1)
        count = min(rows - 1, diagonal) - first + 1
        start = (first + 1) * width + diagonal - first + 1
        # From one to the next it is a row down and a column to the left.
        span = (count - 1) * columns + 1
        left, above, corner = (
            flat[at : at + span : columns].astype(np.int16)
            for at in (start - 1, start - width, start - width - 1)
        )
        kind = kinds[first : first + count, None]
        flat[start : start + span : columns] += _foretold(kind, left, above, corner)


def _foretold(kind: Array, left: Array, above: Array, corner: Array) -> Array:
    """Return what pixels are foretold to be, uint8, from neighbours, int16."""
    near_left, near_above = np.abs(above - corner), np.abs(left - corner)
    near_corner = np.abs(left + above - 2 * corner)
    nearest: Array = np.where(near_above <= near_corner, above, corner)
    nearest = np.where((near_left <= near_above) & (near_left <= near_corner), left, nearest)
    choices: Any = (np.zeros_like(left), left, above, (left + above) >> 1, nearest)
    return np.choose(kind, choices).astype(np.uint8)


def encode(pixels: Array, compression: int) -> bytes:
    """Return the bytes of an image.

    Args:
        pixels: [height, width, 1 to 4 channels], uint16.
        compression: 0 to 9, or -1 for zlib's default.
    """
    height, width, channels = pixels.shape
    head = struct.pack(">IIBBBBB", width, height, _BITS, _COLOURS[channels], 0, 0, 0)
    lines = zlib.compress(_filtered(pixels), compression)
    chunks = ((b"IHDR", head), (b"IDAT", lines), (b"IEND", b""))
    return SIGNATURE + b"".join(_chunk(name, content) for name, content in chunks)


def _chunk(name: bytes, content: bytes) -> bytes:
    check = zlib.crc32(name + content)
    return struct.pack(">I", len(content)) + name + content + struct.pack(">I", check)


def _filtered(pixels: Array) -> bytes:
    """Return rows, each with the filter that leaves the smallest numbers."""
    height, width, channels = pixels.shape
    padded = np.zeros((height + 1, width + 1, channels * 2), np.uint8)
    padded[1:, 1:] = pixels.astype(">u2").view(np.uint8).reshape(height, width, -1)
    here = padded[1:, 1:]
    left, above, corner = (
        part.astype(np.int16) for part in (padded[1:, :-1], padded[:-1, 1:], padded[:-1, :-1])
    )
    best = np.full(height, np.iinfo(np.int64).max)
    made = np.empty((height, 1 + here[0].size), np.uint8)
    for kind in range(5):
        rest = here - _foretold(np.array(kind), left, above, corner)
        # What is a little less than 256 is a little less than 0.
        weight = np.minimum(rest, -rest).sum(axis=(1, 2), dtype=np.int64)
        better = weight < best
        best[better] = weight[better]
        made[better, 0] = kind
        made[better, 1:] = rest.reshape(height, -1)[better]
    return made.tobytes()
