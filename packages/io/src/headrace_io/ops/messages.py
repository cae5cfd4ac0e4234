"""Ops between messages of Protocol Buffers and tensors of their fields."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import headrace as hr
from headrace import DType, Tensor
from headrace.errors import AttributeValueError, ShapeError, shown
from headrace.extend import Anything, Index, Shape, Spec, String, TensorSpec, op
from headrace.extend.arguments import items, text

_DECODED = "what is in strings does not depend on tensors"


class DecodedProto(NamedTuple):
    """What ``decode_proto`` returns: how often each field is there, and its values."""

    sizes: Tensor
    values: list[Tensor]


@op("DecodeProto", public="", no_gradient=_DECODED)
def decode_proto_op(
    bytes: String,
    message_type: str,
    field_names: tuple[str, ...],
    output_types: tuple[DType, ...],
    descriptions: bytes,
    message_format: str = "binary",
    sanitize: bool = False,
) -> list[Spec]:
    """The fields of messages.

    Args:
        bytes: [...], messages. Raises when it runs on what is none.
        message_type: The full name of the message.
        field_names: The names of fields.
        output_types: The dtypes of their values.
        descriptions: A serialized ``FileDescriptorSet``; empty for the messages of the process.
        message_format: "binary" or "text".
        sanitize: Whether messages are written anew before they are read.

    Returns:
        [..., fields], int32, how often each field is there; and for each of them [..., most], its
        values, with defaults behind them, at least one.
    """
    # lazy: the library of messages takes longer to import than this package
    from headrace_io.protos.descriptors import check_dtypes, fields_of

    if message_format not in ("binary", "text"):
        raise AttributeValueError(
            f"message_format must be 'binary' or 'text', got {shown(message_format)}"
        )
    check_dtypes(fields_of(descriptions, message_type, field_names), output_types, "output_types")
    batch = bytes.shape
    sizes = batch.concatenate(Shape([len(field_names)]))
    return [
        TensorSpec(hr.int32, sizes),
        *(TensorSpec(dtype, batch.concatenate(Shape([None]))) for dtype in output_types),
    ]


@op("EncodeProto", public="", no_gradient="strings have no gradient")
def encode_proto_op(
    sizes: Index,
    values: Sequence[Anything],
    field_names: tuple[str, ...],
    message_type: str,
    descriptions: bytes,
) -> Spec:
    """Messages of the values of their fields.

    Args:
        sizes: [..., fields], int32, how many values of each field to write. Raises when it runs
            where there are not as many.
        values: [..., most] for each field.
        field_names: The names of the fields.
        message_type: The full name of the message.
        descriptions: A serialized ``FileDescriptorSet``; empty for the messages of the process.

    Returns:
        [...], string.
    """
    # lazy: the library of messages takes longer to import than this package
    from headrace_io.protos.descriptors import check_dtypes, fields_of

    fields = fields_of(descriptions, message_type, field_names)
    check_dtypes(fields, [spec.dtype for spec in values], "values")
    batch = Shape(None)
    for field, spec in zip(fields, values, strict=True):
        dims = spec.shape.dims
        if dims is None:
            continue
        if len(dims) < 2:
            raise ShapeError(
                f"values of the field {field.name!r} must have 2 dimensions or more, got shape "
                f"{spec.shape}"
            )
        batch = batch.merge_with(Shape(dims[:-1]))
    expected = batch.concatenate(Shape([len(fields)]))
    if not sizes.shape.is_compatible_with(expected):
        raise ShapeError(
            f"sizes must have a number for each field of each message, shape {expected}, got "
            f"{sizes.shape}"
        )
    return TensorSpec(hr.string, batch)


def decode_proto(
    bytes: Any,
    message_type: str,
    field_names: Any,
    output_types: Any,
    descriptor_source: Any = "local://",
    message_format: str = "binary",
    sanitize: bool = False,
    name: str | None = None,
) -> DecodedProto:
    """Read fields of serialized messages of Protocol Buffers.

    Args:
        bytes: [...], string, one message at least.
        message_type: The full name of the message, as in ``"tensorflow.Example"``.
        field_names: The names of fields, and full names of extensions.
        output_types: The dtypes of their values: for ``double`` float64; ``float`` float32 or
            float64; ``int32``, ``sint32`` and ``sfixed32`` int32 or int64; ``int64``, ``sint64``
            and ``sfixed64`` int64; ``uint32`` and ``fixed32`` uint32 or uint64; ``uint64`` and
            ``fixed64`` uint64; ``bool`` bool; enums int32; strings, bytes and messages string.
        descriptor_source: Where messages are described: the path of a file, or ``"bytes://"`` with
            the bytes behind it, of a serialized ``FileDescriptorSet``; or ``"local://"`` for those
            of this package and those that the program has imported. It is read at once, and
            becomes a part of the graph.
        message_format: "binary" or "text".
        sanitize: Whether messages are written anew by the library before they are read.
        name: The name of the operation.

    Returns:
        ``sizes``, [..., fields], int32, how often each field is there; and ``values``, for each
        field [..., most], its values, with its default behind them, at least one.

    Raises:
        AttributeValueError: if the message is not described, or has no such field.
        DTypeError: if a dtype does not hold the values of a field.
    """
    # lazy: the library of messages takes longer to import than this package
    from headrace_io.protos.descriptors import descriptions

    names = tuple(text(each, "field_names") for each in items(field_names, "field_names"))
    found = decode_proto_op(
        bytes,
        text(message_type, "message_type"),
        names,
        tuple(hr.as_dtype(each) for each in items(output_types, "output_types")),
        descriptions(descriptor_source),
        message_format,
        sanitize,
        name=name or "DecodeProtoV2",
    )
    return DecodedProto(found[0], list(found[1:]))


def encode_proto(
    sizes: Any,
    values: Any,
    field_names: Any,
    message_type: str,
    descriptor_source: Any = "local://",
    name: str | None = None,
) -> Tensor:
    """Write serialized messages of Protocol Buffers, in the order of the numbers of fields.

    Args:
        sizes: [..., fields], int32, how many values of each field to write.
        values: For each field [..., most], its values, of a dtype that ``decode_proto`` has for it.
        field_names: The names of the fields.
        message_type: The full name of the message.
        descriptor_source: As for ``decode_proto``.
        name: The name of the operation.

    Returns:
        [...], string.

    Raises:
        AttributeValueError: if the message is not described, has no such field, or there are not as
            many values as fields.
        DTypeError: if a dtype does not hold the values of a field.
        ShapeError: if shapes do not fit.
    """
    # lazy: the library of messages takes longer to import than this package
    from headrace_io.protos.descriptors import descriptions

    names = tuple(text(each, "field_names") for each in items(field_names, "field_names"))
    given = items(values, "values")
    if not names:
        raise AttributeValueError("field_names must name one field at least")
    if len(given) != len(names):
        raise AttributeValueError(
            f"values must have an entry for each of {len(names)} field_names, got {len(given)}"
        )
    found: Tensor = encode_proto_op(
        hr.convert_to_tensor(sizes, hr.int32),
        given,
        names,
        text(message_type, "message_type"),
        descriptions(descriptor_source),
        name=name or "EncodeProto",
    )
    return found
