"""Kernels that decode and encode images."""

from __future__ import annotations

from typing import Any

import numpy as np

from headrace import DType
from headrace.errors import InvalidArgumentError
from headrace.extend import KernelTable
from headrace_io.images import decode, encode
from headrace_io.kernels.strings import one_string, string_scalar

KERNELS = KernelTable()


@KERNELS.plain("DecodePng")
def decode_png(xp: Any, contents: Any, *, channels: int, dtype: DType) -> Any:
    """Decode an image."""
    deep = dtype.itemsize == 2
    return decode.decode_still(one_string(contents, "contents"), channels, deep=deep)


@KERNELS.plain("DecodeJpeg")
def decode_jpeg(xp: Any, contents: Any, *, channels: int, ratio: int, **hints: Any) -> Any:
    """Decode an image."""
    data = one_string(contents, "contents")
    return decode.decode_still(data, channels, deep=False, ratio=ratio)


@KERNELS.plain("DecodeAndCropJpeg")
def decode_and_crop_jpeg(
    xp: Any, contents: Any, crop_window: Any, *, channels: int, ratio: int, **hints: Any
) -> Any:
    """Decode a part of an image."""
    window = np.asarray(crop_window).tolist()
    if len(window) != 4:
        raise InvalidArgumentError(f"crop_window must have shape [4], got [{len(window)}]")
    data = one_string(contents, "contents")
    return decode.crop(decode.decode_still(data, channels, deep=False, ratio=ratio), window)


@KERNELS.plain("DecodeGif")
def decode_gif(xp: Any, contents: Any) -> Any:
    """Decode frames."""
    return decode.decode_frames(one_string(contents, "contents"))


@KERNELS.plain("DecodeBmp")
def decode_bmp(xp: Any, contents: Any, *, channels: int) -> Any:
    """Decode an image."""
    return decode.decode_bmp(one_string(contents, "contents"), channels)


@KERNELS.plain("DecodeImage")
def decode_image(
    xp: Any, contents: Any, *, channels: int, deep: bool, expand_animations: bool
) -> Any:
    """Decode an image in any of the formats."""
    data = one_string(contents, "contents")
    kind = decode.format_of(data)
    if kind in ("PNG", "JPEG"):
        return decode.decode_still(data, channels, deep=deep)
    if (kind in ("GIF", "BMP") and channels == 1) or (kind == "GIF" and channels == 4):
        raise InvalidArgumentError(f"channels must be 0 or 3 for a {kind} image, got {channels}")
    if kind == "GIF":
        frames = decode.decode_frames(data)
        made = frames if expand_animations else frames[0]
    elif kind == "BMP":
        made = decode.decode_bmp(data, channels)
    else:
        raise InvalidArgumentError(
            f"expected an image in PNG, JPEG, GIF or BMP, got data that begin with {data[:8]!r}"
        )
    return made.astype(np.uint16) * 257 if deep else made


@KERNELS.plain("ExtractJpegShape")
def extract_jpeg_shape(xp: Any, contents: Any, *, output_type: DType) -> Any:
    """Return the shape of an image."""
    return np.array(decode.jpeg_shape(one_string(contents, "contents")), output_type.numpy)


@KERNELS.plain("EncodePng")
def encode_png(xp: Any, image: Any, *, compression: int) -> Any:
    """Encode an image."""
    return string_scalar(encode.encode_png(np.asarray(image), compression))


@KERNELS.plain("EncodeJpeg")
def encode_jpeg(
    xp: Any,
    image: Any,
    *,
    format: str,
    quality: int,
    progressive: bool,
    optimize_size: bool,
    chroma_downsampling: bool,
    density_unit: str,
    x_density: int,
    y_density: int,
    xmp_metadata: str,
) -> Any:
    """Encode an image."""
    pixels = np.asarray(image)
    wanted = {"": None, "grayscale": 1, "rgb": 3}[format]
    if wanted is not None and pixels.shape[-1] != wanted:
        raise InvalidArgumentError(
            f"format {format!r} needs {wanted} channels, got shape {list(pixels.shape)}"
        )
    data = encode.encode_jpeg(
        pixels,
        quality=quality,
        progressive=progressive,
        optimize_size=optimize_size,
        chroma_downsampling=chroma_downsampling,
        density_unit=density_unit,
        density=(x_density, y_density),
        xmp_metadata=xmp_metadata.encode(),
    )
    return string_scalar(data)


@KERNELS.plain("EncodeJpegVariableQuality")
def encode_jpeg_variable_quality(xp: Any, images: Any, quality: Any) -> Any:
    """Encode an image in a quality that the step brings."""
    given = np.asarray(quality)
    if given.ndim:
        raise InvalidArgumentError(f"quality must be a scalar, got shape {list(given.shape)}")
    if not 0 <= given <= 100:
        raise InvalidArgumentError(f"quality must be 0 to 100, got {given}")
    data = encode.encode_jpeg(np.asarray(images), quality=int(given))
    return string_scalar(data)
