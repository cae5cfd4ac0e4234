"""From arrays to the bytes of images."""

from __future__ import annotations

import io
import struct
from typing import Any

import numpy as np

from headrace.errors import InvalidArgumentError
from headrace_io.images import deep_png
from headrace_io.images.pillow import pillow

_JFIF = b"\xff\xe0\x00\x10JFIF\x00\x01"
_XMP = b"http://ns.adobe.com/xap/1.0/\x00"
_INCHES, _CENTIMETRES = 1, 2


def encode_png(pixels: Any, compression: int) -> bytes:
    """Return an image in PNG.

    Args:
        pixels: [height, width, 1 to 4 channels], uint8 or uint16.
        compression: As zlib has it: 0 to 9, or -1 for zlib's default.

    Raises:
        InvalidArgumentError: if there are no pixels, or more channels.
        UnimplementedError: if Pillow is not installed, and is needed for 8 bits.
    """
    _check(pixels, (1, 2, 3, 4))
    if pixels.dtype == np.uint16 and pixels.shape[2] > 1:
        return deep_png.encode(pixels, compression)
    options = {} if compression < 0 else {"compress_level": compression}
    return _saved(pixels, "PNG", options)


def encode_jpeg(
    pixels: Any,
    *,
    quality: int,
    progressive: bool = False,
    optimize_size: bool = False,
    chroma_downsampling: bool = True,
    density_unit: str = "in",
    density: tuple[int, int] = (300, 300),
    xmp_metadata: bytes = b"",
) -> bytes:
    """Return an image in JPEG.

    Args:
        pixels: [height, width, 1 or 3 channels], uint8.
        quality: 0 to 100.
        progressive: Whether the image gets sharper while it arrives.
        optimize_size: Whether to make the file smaller, and take longer for it.
        chroma_downsampling: Whether colours have half the resolution.
        density_unit: ``"in"`` or ``"cm"``.
        density: Pixels per unit, across and down.
        xmp_metadata: A packet of XMP to put in; empty for none.

    Raises:
        InvalidArgumentError: if there are no pixels, or other channels.
        UnimplementedError: if Pillow is not installed.
    """
    _check(pixels, (1, 3))
    options = {
        "quality": max(quality, 1),
        "progressive": progressive,
        "optimize": optimize_size,
        "subsampling": "4:2:0" if chroma_downsampling else "4:4:4",
    }
    data = _saved(pixels, "JPEG", options)
    # The segment that libjpeg begins with, with our density, and then that of the metadata.
    begin = 2 + len(_JFIF)
    unit = _INCHES if density_unit == "in" else _CENTIMETRES
    head = data[: begin + 1] + struct.pack(">BHH", unit, *density) + b"\x00\x00"
    return head + _segment(xmp_metadata) + data[begin + 8 :]


def _segment(xmp: bytes) -> bytes:
    if not xmp:
        return b""
    length = 2 + len(_XMP) + len(xmp)
    if length > 0xFFFF:
        raise InvalidArgumentError(f"xmp_metadata has {len(xmp)} bytes: too long for JPEG")
    return b"\xff\xe1" + struct.pack(">H", length) + _XMP + xmp


def _check(pixels: Any, channels: tuple[int, ...]) -> None:
    if pixels.ndim != 3:
        raise InvalidArgumentError(
            f"an image is [height, width, channels], got shape {list(pixels.shape)}"
        )
    if 0 in pixels.shape:
        raise InvalidArgumentError(f"an image has pixels, got shape {list(pixels.shape)}")
    if pixels.shape[2] not in channels:
        raise InvalidArgumentError(
            f"an image to encode has {', '.join(map(str, channels))} channels, got "
            f"{pixels.shape[2]}"
        )


def _saved(pixels: Any, kind: str, options: dict[str, Any]) -> bytes:
    squeezed = pixels[..., 0] if pixels.shape[2] == 1 else pixels
    image = pillow().fromarray(np.ascontiguousarray(squeezed))
    out = io.BytesIO()
    image.save(out, kind, **options)
    return out.getvalue()
