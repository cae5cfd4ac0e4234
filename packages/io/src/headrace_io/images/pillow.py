"""Pillow, which decodes and encodes, where it is installed."""

from __future__ import annotations

import functools
from typing import Any

from headrace.errors import UnimplementedError


@functools.cache
def pillow() -> Any:
    """Return Pillow's module ``Image``, with the four formats.

    Raises:
        UnimplementedError: if it is not installed; says how to install it.
    """
    try:
        # lazy: only programs with images need it, and it is an extra
        from PIL import BmpImagePlugin, GifImagePlugin, Image, JpegImagePlugin, PngImagePlugin
    except ImportError as error:
        raise UnimplementedError(
            "images are decoded and encoded by Pillow, which is an extra of headrace-io: "
            f'pip install "headrace-io[images]" ({error})'
        ) from error
    del BmpImagePlugin, GifImagePlugin, JpegImagePlugin, PngImagePlugin
    return Image
