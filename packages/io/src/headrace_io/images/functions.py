"""Functions of encoded images that are built of ops."""

from __future__ import annotations

from typing import Any

import headrace as hr
from headrace import Tensor
from headrace.errors import AttributeValueError
from headrace_io.ops.images import decode_image_op


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
    if channels not in (None, 0, 1, 3, 4):
        raise AttributeValueError(f"channels must be None, 0, 1, 3 or 4, got {channels}")
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
