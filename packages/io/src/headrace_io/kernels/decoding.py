"""Kernels that turn strings into what they stand for."""

from __future__ import annotations

import zlib
from collections.abc import Callable
from typing import Any

import numpy as np

from headrace.errors import DataLossError, InvalidArgumentError
from headrace.extend import KernelTable
from headrace_io import protos
from headrace_io.kernels.strings import string_array, string_scalar, strings_of
from headrace_io.streams import WINDOW_BITS

KERNELS = KernelTable()


@KERNELS.plain("DecodeCompressed")
def decode_compressed(xp: Any, bytes: Any, *, compression_type: str) -> Any:
    """Decompress."""
    if not compression_type:
        return bytes
    return _mapped(lambda data: _decompressed(data, compression_type), bytes)


def _decompressed(data: bytes, compression: str) -> bytes:
    parts = []
    while data:
        inflater = zlib.decompressobj(WINDOW_BITS[compression])
        try:
            parts.append(inflater.decompress(data))
        except zlib.error as error:
            raise DataLossError(
                f"the string is no {compression} data, or is damaged: {error}"
            ) from error
        if not inflater.eof:
            raise DataLossError(
                f"the string is cut short: its {compression} data end early, after "
                f"{sum(map(len, parts))} bytes of content"
            )
        data = inflater.unused_data
    return b"".join(parts)


@KERNELS.plain("DecodeJSONExample")
def decode_json_example(xp: Any, json_examples: Any) -> Any:
    """Read JSON."""
    return _mapped(_from_json, json_examples)


def _from_json(text: bytes) -> bytes:
    # lazy: few programs read JSON
    from google.protobuf.json_format import Parse, ParseError

    try:
        made: bytes = Parse(text, protos.Example()).SerializeToString()
    except (ParseError, UnicodeDecodeError, TypeError, AttributeError) as error:
        # The last two are what old releases make of JSON that is no object.
        raise InvalidArgumentError(f"{text[:80]!r} is no Example in JSON: {error}") from error
    return made


def _mapped(function: Callable[[bytes], bytes], strings: Any) -> Any:
    shape = np.shape(strings)
    found = [function(string) for string in strings_of(strings)]
    return string_array(found, shape) if shape else string_scalar(found[0])
