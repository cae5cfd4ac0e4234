"""Ops that decode and encode images."""

from __future__ import annotations

import headrace as hr
from headrace import DType
from headrace.errors import (
    AttributeValueError,
    DTypeError,
    ShapeError,
    UnimplementedError,
    shown,
    told,
)
from headrace.extend import Index, Integer, Shape, Spec, String, TensorSpec, op, require
from headrace_io.ops.files import STRING, one

_DECODED = "images in files do not depend on tensors"
_CHANNELS = (0, 1, 3, 4)


def _image(contents: TensorSpec, channels: int, dtype: DType) -> TensorSpec:
    """Return the spec of one decoded image."""
    one(contents, "contents")
    if channels not in _CHANNELS:
        raise AttributeValueError(f"channels must be 0, 1, 3 or 4, got {channels}")
    if dtype not in (hr.uint8, hr.uint16):
        raise DTypeError(f"dtype must be uint8 or uint16, got {dtype}")
    return TensorSpec(dtype, Shape([None, None, channels or None]))


def _check_jpeg(
    ratio: int,
    fancy_upscaling: bool,
    try_recover_truncated: bool,
    acceptable_fraction: float,
    dct_method: str,
) -> None:
    if ratio not in (1, 2, 4, 8):
        raise AttributeValueError(f"ratio must be 1, 2, 4 or 8, got {ratio}")
    if dct_method not in ("", "INTEGER_FAST", "INTEGER_ACCURATE"):
        raise AttributeValueError(
            "dct_method must be '', 'INTEGER_FAST' or 'INTEGER_ACCURATE', got "
            f"{shown(dct_method, 40)}"
        )
    if not fancy_upscaling:
        raise UnimplementedError(
            "fancy_upscaling=False is not there: Pillow always smooths colours that have less "
            "resolution"
        )
    if try_recover_truncated or acceptable_fraction != 1:
        raise UnimplementedError(
            "try_recover_truncated and acceptable_fraction are not there: images that are cut "
            "short are refused"
        )


@op("DecodePng", public="image.decode_png", no_gradient=_DECODED)
def decode_png(contents: String, channels: int = 0, dtype: DType = hr.uint8) -> Spec:
    """Decode a PNG image; JPEG images are taken, too, and GIF images of one frame.

    Args:
        contents: [], the bytes of the image. Raises when it runs on what is none.
        channels: 1 for grey, 3 for RGB, 4 for RGBA; as many as there are for 0.
        dtype: ``hr.uint8`` or ``hr.uint16``.

    Returns:
        [height, width, channels].
    """
    return _image(contents, channels, dtype)


@op("DecodeJpeg", public="image.decode_jpeg", no_gradient=_DECODED)
def decode_jpeg(
    contents: String,
    channels: int = 0,
    ratio: int = 1,
    fancy_upscaling: bool = True,
    try_recover_truncated: bool = False,
    acceptable_fraction: float = 1,
    dct_method: str = "",
) -> Spec:
    """Decode a JPEG image; PNG images are taken, too, and GIF images of one frame.

    Args:
        contents: [], the bytes of the image. Raises when it runs on what is none.
        channels: 1 for grey, 3 for RGB; as many as there are for 0.
        ratio: How many times smaller to decode it: 1, 2, 4 or 8.
        fancy_upscaling: Smooth colours that have less resolution; False is refused.
        try_recover_truncated: Take images that are cut short; True is refused.
        acceptable_fraction: Of such an image the part that must be there; 1 only.
        dct_method: How to transform, ``""``, ``"INTEGER_FAST"`` or ``"INTEGER_ACCURATE"``: a wish
            that is not heeded, as Pillow always does the latter.

    Returns:
        [height, width, channels], uint8.
    """
    _check_jpeg(ratio, fancy_upscaling, try_recover_truncated, acceptable_fraction, dct_method)
    return _image(contents, channels, hr.uint8)


@op("DecodeAndCropJpeg", public="image.decode_and_crop_jpeg", no_gradient=_DECODED)
def decode_and_crop_jpeg(
    contents: String,
    crop_window: Index,
    channels: int = 0,
    ratio: int = 1,
    fancy_upscaling: bool = True,
    try_recover_truncated: bool = False,
    acceptable_fraction: float = 1,
    dct_method: str = "",
) -> Spec:
    """Decode a part of a JPEG image.

    Args:
        contents: [], the bytes of the image. Raises when it runs on what is none.
        crop_window: [4], the first row and column, and how many rows and columns, within the
            image after ``ratio``. Raises when it runs on one that does not lie in it.
        channels: As for ``decode_jpeg``.
        ratio: As for ``decode_jpeg``.
        fancy_upscaling: As for ``decode_jpeg``.
        try_recover_truncated: As for ``decode_jpeg``.
        acceptable_fraction: As for ``decode_jpeg``.
        dct_method: As for ``decode_jpeg``.

    Returns:
        [rows, columns, channels], uint8.
    """
    _check_jpeg(ratio, fancy_upscaling, try_recover_truncated, acceptable_fraction, dct_method)
    require(
        crop_window.shape.is_compatible_with([4]),
        f"crop_window must have shape [4], got {crop_window.shape}",
        ShapeError,
    )
    image = _image(contents, channels, hr.uint8)
    if crop_window.value is None:
        return image
    rows, columns = (int(size) for size in crop_window.value[2:])
    return TensorSpec(hr.uint8, Shape([rows, columns, channels or None]))


@op("DecodeGif", public="image.decode_gif", no_gradient=_DECODED)
def decode_gif(contents: String) -> Spec:
    """Decode all frames of a GIF image; PNG and JPEG images, which have one, are taken, too.

    Args:
        contents: [], the bytes of the image. Raises when it runs on what is none.

    Returns:
        [frames, height, width, 3], uint8.
    """
    one(contents, "contents")
    return TensorSpec(hr.uint8, Shape([None, None, None, 3]))


@op("DecodeBmp", public="image.decode_bmp", no_gradient=_DECODED)
def decode_bmp(contents: String, channels: int = 0) -> Spec:
    """Decode a BMP image.

    Args:
        contents: [], the bytes of the image. Raises when it runs on what is none.
        channels: As many as there must be, 1, 3 or 4; 0 for any.

    Returns:
        [height, width, channels], uint8.
    """
    return _image(contents, channels, hr.uint8)


@op("DecodeImage", public="", no_gradient=_DECODED)
def decode_image_op(contents: String, channels: int, deep: bool, expand_animations: bool) -> Spec:
    """Decode an image in any of the formats.

    Args:
        contents: [], the bytes of the image. Raises when it runs on what is none.
        channels: As for ``decode_png``; GIF images have 3.
        deep: Whether to return 16 bits for each channel, not 8.
        expand_animations: Whether a GIF image has a dimension of frames; else it is the first.

    Returns:
        [height, width, channels], or [frames, height, width, 3], uint8 or uint16.
    """
    image = _image(contents, channels, hr.uint16 if deep else hr.uint8)
    return TensorSpec(image.dtype, Shape(None)) if expand_animations else image


@op("ExtractJpegShape", public="image.extract_jpeg_shape", no_gradient=_DECODED)
def extract_jpeg_shape(contents: String, output_type: DType = hr.int32) -> Spec:
    """The shape of a JPEG image, which is not decoded for it.

    Args:
        contents: [], the bytes of the image. Raises when it runs on what is none.
        output_type: ``hr.int32`` or ``hr.int64``.

    Returns:
        [3]: height, width and channels.
    """
    one(contents, "contents")
    if output_type not in (hr.int32, hr.int64):
        raise DTypeError(f"output_type must be int32 or int64, got {output_type}")
    return TensorSpec(output_type, Shape([3]))


def _to_encode(image: TensorSpec, dtypes: tuple[DType, ...]) -> None:
    if image.dtype not in dtypes:
        names = " or ".join(map(str, dtypes))
        raise DTypeError(f"image must be {names}, got {image.dtype}")
    require(
        image.rank in (None, 3),
        f"image must have shape [height, width, channels], got {image.shape}",
        ShapeError,
    )


def _check_quality(quality: int) -> None:
    if not 0 <= quality <= 100:
        raise AttributeValueError(f"quality must be 0 to 100, got {told(quality)}")


@op("EncodePng", public="image.encode_png", no_gradient=_DECODED)
def encode_png(image: Integer, compression: int = -1) -> Spec:
    """Encode an image in PNG.

    Args:
        image: [height, width, channels], uint8 or uint16, with 1 channel for grey, 2 for grey and
            alpha, 3 for RGB, 4 for RGBA.
        compression: From 0, fast, to 9, small; -1 for zlib's default.

    Returns:
        [], string.
    """
    _to_encode(image, (hr.uint8, hr.uint16))
    if not -1 <= compression <= 9:
        raise AttributeValueError(f"compression must be -1 to 9, got {told(compression)}")
    return STRING


@op("EncodeJpeg", public="image.encode_jpeg", no_gradient=_DECODED)
def encode_jpeg(
    image: Integer,
    format: str = "",
    quality: int = 95,
    progressive: bool = False,
    optimize_size: bool = False,
    chroma_downsampling: bool = True,
    density_unit: str = "in",
    x_density: int = 300,
    y_density: int = 300,
    xmp_metadata: str = "",
) -> Spec:
    """Encode an image in JPEG.

    Args:
        image: [height, width, channels], uint8, with 1 channel for grey or 3 for RGB.
        format: ``"grayscale"`` or ``"rgb"``, which the image must be; any for ``""``.
        quality: From 0, small, to 100, good.
        progressive: Whether the image gets sharper while it arrives.
        optimize_size: Whether to make it smaller, and take longer for it.
        chroma_downsampling: Whether colours have half the resolution.
        density_unit: ``"in"`` or ``"cm"``.
        x_density: Pixels per unit across.
        y_density: Pixels per unit down.
        xmp_metadata: A packet of XMP to put in; empty for none.

    Returns:
        [], string.
    """
    _to_encode(image, (hr.uint8,))
    if format not in ("", "grayscale", "rgb"):
        raise AttributeValueError(
            f"format must be '', 'grayscale' or 'rgb', got {shown(format, 40)}"
        )
    wanted = {"": None, "grayscale": 1, "rgb": 3}[format]
    have = None if image.rank is None else image.shape[2]
    if wanted is not None and have not in (None, wanted):
        raise ShapeError(f"format {format!r} needs {wanted} channels, got shape {image.shape}")
    _check_quality(quality)
    if density_unit not in ("in", "cm"):
        raise AttributeValueError(
            f"density_unit must be 'in' or 'cm', got {shown(density_unit, 40)}"
        )
    for name, density in (("x_density", x_density), ("y_density", y_density)):
        if not 0 < density < 1 << 16:
            raise AttributeValueError(f"{name} must be 1 to 65535, got {density}")
    return STRING


@op("EncodeJpegVariableQuality", public="", no_gradient=_DECODED)
def encode_jpeg_variable_quality(images: Integer, quality: Index) -> Spec:
    """Encode an image in JPEG, in a quality that a step brings.

    Args:
        images: [height, width, channels], uint8, with 1 channel for grey or 3 for RGB.
        quality: [], from 0, small, to 100, good. Raises when it runs on another.

    Returns:
        [], string.
    """
    _to_encode(images, (hr.uint8,))
    one(quality, "quality")
    if quality.value is not None:
        _check_quality(int(quality.value))
    return STRING
