"""From the bytes of images to arrays."""

from __future__ import annotations

import io
import struct
import warnings
from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np

from headrace.errors import InvalidArgumentError, UnimplementedError, told
from headrace_io.images import deep_png
from headrace_io.images.pillow import pillow

Array: TypeAlias = Any

# What files of each format begin with.
_BEGINNINGS = {
    "PNG": b"\x89PNG\r\n\x1a\n",
    "JPEG": b"\xff\xd8\xff",
    "GIF": b"GIF8",
    "BMP": b"BM",
}
# Modes of Pillow that arrays have as they are, by their number of channels.
_MODES = {1: "L", 2: "LA", 3: "RGB", 4: "RGBA"}
# Rec. 601 in 15 bits, as libpng weighs red, green and blue.
_WEIGHTS = np.array([9797, 19234, 3737], np.uint32)


def format_of(data: bytes) -> str:
    """Return the format of an image: "PNG", "JPEG", "GIF", "BMP", or "" for another."""
    found = (name for name, begin in _BEGINNINGS.items() if data.startswith(begin))
    return next(found, "")


def opened(data: bytes, formats: Sequence[str]) -> Any:
    """Return an image of Pillow, whose pixels are not decoded yet.

    Raises:
        InvalidArgumentError: if the bytes are no image of one of the formats.
        UnimplementedError: if Pillow is not installed.
    """
    image = pillow()
    found = format_of(data)
    if found not in formats:
        what = f"{found} data" if found else f"data that begin with {data[:8]!r}"
        raise InvalidArgumentError(f"expected an image in {', '.join(formats)}, got {what}")
    try:
        # Pillow warns of images of more than 89 million pixels, and refuses those of twice as many.
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", image.DecompressionBombWarning)
            return image.open(io.BytesIO(data), formats=[found])
    except Exception as error:
        raise _damaged(found, data, error) from error


def _damaged(kind: str, data: bytes, error: Exception) -> InvalidArgumentError:
    return InvalidArgumentError(
        f"the {kind} image of {len(data)} bytes is damaged, or cut short: {error}"
    )


def _loaded(image: Any, data: bytes) -> Any:
    """Decode the pixels of an image."""
    try:
        image.load()
        # Pillow takes a PNG image without its end.
        if image.format == "PNG" and b"IEND" not in data[-64:]:
            raise ValueError("it has no end")
    except Exception as error:
        raise _damaged(image.format, data, error) from error
    return image


def decode_still(data: bytes, channels: int, *, deep: bool, ratio: int = 1) -> Array:
    """Return a PNG, JPEG or GIF image, [height, width, channels]; a GIF of one frame.

    Args:
        data: The bytes.
        channels: 1, 3 or 4, or 0 for as many as there are.
        deep: Whether to return 16 bits for each channel, not 8.
        ratio: How many times smaller to decode a JPEG image: 1, 2, 4 or 8.

    Raises:
        InvalidArgumentError: if it is no such image, has not these channels, or several frames.
        UnimplementedError: if Pillow cannot.
    """
    if format_of(data) == "PNG" and deep_png.is_needed(data, channels, deep=deep):
        made = with_channels(deep_png.decode(data, alpha=channels == 4), channels)
        return made if deep else (made >> 8).astype(np.uint8)
    image = opened(data, ("PNG", "JPEG", "GIF"))
    if image.format == "JPEG":
        return _deepened(_jpeg(image, data, channels, ratio), deep=deep)
    if image.format == "GIF" and _count(image, data) > 1:
        raise InvalidArgumentError(
            f"the GIF image has {_count(image, data)} frames: only decode_gif and decode_image "
            "take several"
        )
    image = _loaded(image, data)
    if image.mode in ("I;16", "I", "F"):
        pixels = np.asarray(image).astype(np.uint16)[..., None]
        if deep:
            return with_channels(pixels, channels)
        # Of 16 bits the upper 8.
        pixels = (pixels >> 8).astype(np.uint8)
    else:
        if channels == 4 and image.mode in ("L", "RGB") and "transparency" in image.info:
            image = image.convert("RGBA")
        pixels = _pixels(image)
    return _deepened(with_channels(pixels, channels), deep=deep)


def _pixels(image: Any) -> Array:
    """Return the pixels of a loaded image, with the channels that it has."""
    if image.mode not in _MODES.values():
        if image.mode == "1":
            mode = "L"
        else:
            mode = "RGBA" if "transparency" in image.info or image.mode == "PA" else "RGB"
        image = image.convert(mode)
    found = np.array(image)
    return found[..., None] if found.ndim == 2 else found


def with_channels(pixels: Array, channels: int) -> Array:
    """Return pixels with 1, 3 or 4 channels, or as they are for 0.

    What is grey is repeated, what has colours is weighed, and what has no alpha is opaque.
    """
    have = pixels.shape[2]
    if channels in (0, have):
        return pixels
    if channels == 1:
        if have < 3:
            return pixels[..., :1]
        # Which it rounds of 16 bits, and cuts off of 8.
        half = np.uint32(0 if pixels.dtype == np.uint8 else 1 << 14)
        grey = ((pixels[..., :3].astype(np.uint32) @ _WEIGHTS) + half) >> 15
        return grey.astype(pixels.dtype)[..., None]
    colours = pixels[..., :3] if have > 2 else np.repeat(pixels[..., :1], 3, axis=2)
    if channels == 3:
        return np.ascontiguousarray(colours)
    opaque = np.full((*pixels.shape[:2], 1), np.iinfo(pixels.dtype).max, pixels.dtype)
    return np.concatenate([colours, pixels[..., 1:2] if have == 2 else opaque], axis=2)


def _deepened(pixels: Array, *, deep: bool) -> Array:
    return pixels.astype(np.uint16) * 257 if deep else pixels


def _jpeg(image: Any, data: bytes, channels: int, ratio: int) -> Array:
    if channels == 4:
        raise InvalidArgumentError("channels must be 0, 1 or 3 for a JPEG image, got 4")
    wanted = {0: image.mode if image.mode in ("L", "RGB") else "RGB", 1: "L", 3: "RGB"}[channels]
    width, height = image.size
    # libjpeg makes grey images and smaller ones while it decodes.
    image.draft(wanted, (max(width // ratio, 1), max(height // ratio, 1)))
    expected = -(-width // ratio), -(-height // ratio)
    if image.size != expected:
        raise UnimplementedError(
            f"a JPEG image of {height} x {width} pixels is not decoded {ratio} times smaller"
        )
    image = _loaded(image, data)
    return _pixels(image if image.mode == wanted else image.convert(wanted))


def decode_frames(data: bytes) -> Array:
    """Return all frames of a GIF image, [frames, height, width, 3]; one of a PNG or JPEG image.

    Raises:
        InvalidArgumentError: if it is none.
        UnimplementedError: if Pillow cannot.
    """
    if format_of(data) in ("PNG", "JPEG"):
        return decode_still(data, 3, deep=False)[None]
    image = opened(data, ("GIF", "PNG", "JPEG"))
    count, frames = _count(image, data), []
    try:
        for number in range(count):
            image.seek(number)
            frames.append(np.array(image.convert("RGB")))
    except Exception as error:
        raise _damaged("GIF", data, error) from error
    return np.stack(frames)


def _count(image: Any, data: bytes) -> int:
    """Return the number of frames of a GIF image."""
    try:
        return int(image.n_frames)
    except Exception as error:
        raise _damaged("GIF", data, error) from error


def decode_bmp(data: bytes, channels: int) -> Array:
    """Return a BMP image, [height, width, channels].

    Raises:
        InvalidArgumentError: if it is none, or has not these channels.
        UnimplementedError: if Pillow is not installed.
    """
    pixels = _grey_bmp(data)
    if pixels is None:
        image = opened(data, ("BMP",))
        if len(data) < 30:
            raise _damaged("BMP", data, ValueError("it has no header"))
        (bits,) = struct.unpack_from("<H", data, 28)
        image = _loaded(image, data)
        # Pillow takes the fourth channel for nothing, unless the header says that it is alpha.
        pixels = _pixels(image)
        if bits == 32 and pixels.shape[2] == 3:
            alpha = _fourth_channel(data, image.size)
            pixels = np.concatenate([pixels, alpha], axis=2)
    if channels not in (0, pixels.shape[2]):
        raise InvalidArgumentError(
            f"the BMP image has {pixels.shape[2]} channels, expected {told(channels)}"
        )
    return pixels


def _grey_bmp(data: bytes) -> Array | None:
    """Return the pixels of an image of 8 bits without a palette, which Pillow does not read.

    None where it is another image, or has fewer pixels than its header says.
    """
    if len(data) < 34 or not data.startswith(_BEGINNINGS["BMP"]):
        return None
    begin, header, width, height = struct.unpack_from("<IIii", data, 10)
    bits, compression = struct.unpack_from("<HI", data, 28)
    if bits != 8 or compression or begin != 14 + header or width <= 0 or not height:
        return None
    rows = abs(height)
    # Each row takes whole words; the last one may end without its padding.
    stride = -(-width // 4) * 4
    if len(data) - begin < stride * (rows - 1) + width:
        return None
    raw = data[begin : begin + stride * rows].ljust(stride * rows, b"\0")
    pixels = np.frombuffer(raw, np.uint8).reshape(rows, stride)[:, :width, None]
    return (pixels[::-1] if height > 0 else pixels).copy()


def _fourth_channel(data: bytes, size: tuple[int, int]) -> Array:
    (begin,), (height,) = struct.unpack_from("<I", data, 10), struct.unpack_from("<i", data, 22)
    width, rows = size
    raw = np.frombuffer(data, np.uint8, rows * width * 4, begin).reshape(rows, width, 4)
    # A positive height counts from the bottom.
    return (raw[::-1] if height > 0 else raw)[..., 3:]


def crop(pixels: Array, window: Sequence[int]) -> Array:
    """Return a part of an image.

    Args:
        pixels: [height, width, channels].
        window: The first row and column, and how many rows and columns.

    Raises:
        InvalidArgumentError: if it does not lie within the image.
    """
    y, x, height, width = window
    inside = y >= 0 and x >= 0 and height > 0 and width > 0
    if not inside or y + height > pixels.shape[0] or x + width > pixels.shape[1]:
        raise InvalidArgumentError(
            f"crop_window {list(window)} (row, column, rows, columns) does not lie within an image "
            f"of {pixels.shape[0]} x {pixels.shape[1]} pixels"
        )
    return np.ascontiguousarray(pixels[y : y + height, x : x + width])


def jpeg_shape(data: bytes) -> tuple[int, int, int]:
    """Return height, width and channels of a JPEG image, without decoding it.

    Raises:
        InvalidArgumentError: if it is none.
        UnimplementedError: if Pillow is not installed.
    """
    image = opened(data, ("JPEG",))
    width, height = image.size
    return height, width, len(image.getbands())
