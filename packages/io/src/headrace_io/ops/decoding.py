"""Ops that turn strings into what they stand for: compressed data, and examples in JSON."""

from __future__ import annotations

from headrace.extend import Spec, String, TensorSpec, op
from headrace_io.streams import check_compression

_DECODED = "what is in strings does not depend on tensors"


@op("DecodeCompressed", elements_of="bytes", no_gradient=_DECODED)
def decode_compressed(bytes: String, compression_type: str = "") -> Spec:
    """Decompress strings.

    Args:
        bytes: [...], strings. Raises when it runs ``DataLossError`` on what is not compressed so,
            is damaged, or is cut short.
        compression_type: ``"ZLIB"``, ``"GZIP"``, or ``""`` for none.

    Returns:
        [...], string.
    """
    check_compression(compression_type)
    return TensorSpec(bytes.dtype, bytes.shape)


@op("DecodeJSONExample", no_gradient=_DECODED)
def decode_json_example(json_examples: String) -> Spec:
    """Turn ``Example`` messages in JSON into serialized ones.

    Args:
        json_examples: [...], each in the JSON form of Protocol Buffers. Raises when it runs on what
            is none.

    Returns:
        [...], string: what ``parse_example`` takes.
    """
    return TensorSpec(json_examples.dtype, json_examples.shape)
