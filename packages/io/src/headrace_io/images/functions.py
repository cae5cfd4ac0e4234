"""Functions of encoded images that are built of ops."""

from __future__ import annotations

from typing import Any

import numpy as np

import headrace as hr
from headrace import Tensor
from headrace.errors import AttributeValueError, shown, told
from headrace.extend.arguments import whole
from headrace_io.ops.images import decode_image_op, decode_jpeg, encode_jpeg_variable_quality


def decode_image(
    contents: Any,
    channels: int | None = None,
    dtype: Any = hr.uint8,
    name: str | None = None,
    expand_animations: bool = True,
) -> Tensor:
    """Decode an image in PNG, JPEG, GIF or BMP.

    Args:
        contents: [], the bytes of the image.
        channels: 1 for grey, 3 for RGB, 4 for RGBA; as many as there are for 0 or None. GIF images
            have 3, and JPEG and BMP images are not made to have 4.
        dtype: What to convert it to, as ``hr.image.convert_image_dtype`` does.
        name: The name of the operations.
        expand_animations: Whether a GIF image has a dimension of frames; if False it is the
            first frame, and the rank is known.

    Returns:
        [height, width, channels], or [frames, height, width, 3] for a GIF image. Running it raises
        ``InvalidArgumentError`` if it is no such image.

    Raises:
        AttributeValueError: if ``channels`` is none of those above.
    """
    if channels is not None and whole(channels, "channels") not in (0, 1, 3, 4):
        raise AttributeValueError(f"channels must be None, 0, 1, 3 or 4, got {told(channels)}")
    wanted = hr.as_dtype(dtype)
    with hr.name_scope(name, "decode_image"):
        deep = wanted != hr.uint8
        decoded = decode_image_op(contents, channels or 0, deep, expand_animations)
        if wanted == decoded.dtype:
            return decoded
        converted: Tensor = hr.image.convert_image_dtype(decoded, wanted)
        return converted


def is_jpeg(contents: Any, name: str | None = None) -> Tensor:
    """Return whether a string begins as JPEG images do, a bool scalar.

    Args:
        contents: [], the bytes of the image.
        name: The name of the operations.
    """
    with hr.name_scope(name, "is_jpeg"):
        begin = hr.strings.substr(contents, 0, 3)
        equal: Tensor = hr.equal(begin, b"\xff\xd8\xff")
        return equal


def adjust_jpeg_quality(image: Any, jpeg_quality: Any, name: str | None = None) -> Tensor:
    """Encode an image in JPEG and decode it, so that it looks as images of a quality do.

    Args:
        image: [height, width, channels], with 1 channel for grey or 3 for RGB.
        jpeg_quality: [], from 0, bad, to 100, good. Running it raises ``InvalidArgumentError`` on
            another that a step brings.
        name: The name of the operations.

    Returns:
        The shape and dtype of ``image``.

    Raises:
        AttributeValueError: if the quality is known to be another number.
    """
    with hr.name_scope(name, "adjust_jpeg_quality"):
        given = hr.convert_to_tensor(image)
        small = hr.image.convert_image_dtype(given, hr.uint8, saturate=True)
        channels = given.shape.with_rank(3).as_list()[-1]
        if not isinstance(jpeg_quality, Tensor | hr.Variable):
            jpeg_quality = hr.convert_to_tensor(jpeg_quality, hr.int32, name="quality")
        made = decode_jpeg(
            encode_jpeg_variable_quality(small, jpeg_quality), channels=channels or 0
        )
        made.set_shape(given.shape)
        converted: Tensor = hr.image.convert_image_dtype(made, given.dtype, saturate=True)
        return converted


def random_jpeg_quality(
    image: Any, min_jpeg_quality: int, max_jpeg_quality: int, seed: int | None = None
) -> Tensor:
    """Let an image look as images in JPEG of a quality do, which is drawn when the graph is built.

    Args:
        image: [height, width, channels], with 1 channel for grey or 3 for RGB.
        min_jpeg_quality: The least quality, 0 to 100.
        max_jpeg_quality: The number that the quality is below.
        seed: Seeds what is drawn.

    Returns:
        The shape and dtype of ``image``.

    Raises:
        AttributeValueError: if there is no quality to draw.
    """
    low = whole(min_jpeg_quality, "min_jpeg_quality")
    high = whole(max_jpeg_quality, "max_jpeg_quality")
    if min(low, high) < 0 or max(low, high) > 100:
        raise AttributeValueError(
            f"jpeg encoding range must be between 0 and 100, got {shown(low)} and {shown(high)}"
        )
    if low >= high:
        raise AttributeValueError(
            f"`min_jpeg_quality` must be less than `max_jpeg_quality`, got {shown(low)} and "
            f"{shown(high)}"
        )
    return adjust_jpeg_quality(image, int(np.random.RandomState(seed).randint(low, high)))
