"""``ops.parsing_ops``: functions that read what strings of bytes hold."""

from __future__ import annotations

from typing import Any

import headrace as hr
from headrace_tensorflow.helpers import generated


def decode_raw(
    input_bytes: Any,
    out_type: Any,
    little_endian: bool = True,
    fixed_length: int | None = None,
    name: str | None = None,
) -> Any:
    """Read strings as the bytes of numbers.

    Args:
        input_bytes: [...], string, all equally long if there is no ``fixed_length``.
        out_type: The dtype of the numbers.
        little_endian: Whether the first byte of a number is the lowest.
        fixed_length: To how many bytes strings are cut, or filled with zeros.
        name: The name of the operations.

    Returns:
        [..., numbers], ``out_type``.

    Raises:
        AttributeValueError: if ``fixed_length`` is not positive, or holds no whole numbers.
    """
    if fixed_length is None:
        return hr.decode_raw(input_bytes, out_type, little_endian, name)
    build = generated.function("decode_padded_raw")
    return build(input_bytes, fixed_length, out_type, little_endian, name=name)
