"""Kernels that read fields of messages, and write them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from headrace import DType
from headrace.errors import DataLossError, InvalidArgumentError, ShapeError
from headrace.extend import KernelTable
from headrace_io.kernels.strings import string_array, strings_of
from headrace_io.protos.wire import numbers, scan, written

if TYPE_CHECKING:
    from headrace_io.protos.descriptors import Field

KERNELS = KernelTable()


@KERNELS.plain("DecodeProto")
def decode_proto(
    xp: Any,
    bytes: Any,
    *,
    message_type: str,
    field_names: tuple[str, ...],
    output_types: Sequence[DType],
    descriptions: bytes,
    message_format: str,
    sanitize: bool,
) -> list[Any]:
    """Read the fields."""
    # lazy: the library of messages takes longer to import than this package
    from headrace_io.protos.descriptors import fields_of, message_of

    messages, shape = strings_of(bytes), np.shape(bytes)
    if not messages:
        raise InvalidArgumentError("bytes must hold one message at least")
    if message_format == "text" or sanitize:
        made = message_of(descriptions, message_type)
        messages = [_anew(made, data, message_format) for data in messages]
    fields = fields_of(descriptions, message_type, field_names)
    wanted = {field.number: field for field in fields}
    read = [scan(data, wanted) for data in messages]
    sizes = np.zeros((len(messages), len(fields)), np.int32)
    found = []
    for i, (field, dtype) in enumerate(zip(fields, output_types, strict=True)):
        # Of what stands there once the last one counts.
        given = [each[field.number] if field.repeated else each[field.number][-1:] for each in read]
        sizes[:, i] = [len(values) for values in given]
        found.append(_padded(given, field, dtype).reshape((*shape, -1)))
    return [sizes.reshape((*shape, len(fields))), *found]


def _padded(given: list[list[Any]], field: Field, dtype: DType) -> Any:
    """Return the values of all messages, with defaults behind them."""
    counts = np.array([len(values) for values in given])
    most = max(1, int(counts.max()))
    made = np.full((len(given), most), field.default, dtype.numpy)
    flat = numbers([value for values in given for value in values], field, dtype)
    made[np.arange(most) < counts[:, None]] = flat
    return made


def _anew(made: Any, data: bytes, message_format: str) -> bytes:
    # lazy: few programs read text
    from google.protobuf import text_format
    from google.protobuf.message import DecodeError, EncodeError

    try:
        if message_format == "text":
            message = text_format.Parse(data, made())
        else:
            message = made.FromString(data)
        written_anew: bytes = message.SerializeToString()
    except (DecodeError, EncodeError, text_format.ParseError, UnicodeDecodeError) as error:
        name = made.DESCRIPTOR.full_name
        raise DataLossError(f"no {name} in {message_format} form: {error}") from error
    return written_anew


@KERNELS.plain("EncodeProto")
def encode_proto(
    xp: Any,
    sizes: Any,
    values: list[Any],
    *,
    field_names: tuple[str, ...],
    message_type: str,
    descriptions: bytes,
) -> Any:
    """Write the fields in the order of their numbers."""
    # lazy: the library of messages takes longer to import than this package
    from headrace_io.protos.descriptors import fields_of

    fields = fields_of(descriptions, message_type, field_names)
    for field, each in zip(fields, values, strict=True):
        if each.ndim < 2:
            raise ShapeError(
                f"values of the field {field.name!r} must have 2 dimensions or more, got shape "
                f"{list(each.shape)}"
            )
    batch = values[0].shape[:-1]
    for field, each in zip(fields, values, strict=True):
        if each.shape[:-1] != batch:
            raise ShapeError(
                f"values must agree but for their last dimension, got {list(values[0].shape)}, and "
                f"{list(each.shape)} for {field.name!r}"
            )
    if sizes.shape != (*batch, len(fields)):
        raise ShapeError(
            f"sizes must have the shape {[*batch, len(fields)]}, got {list(sizes.shape)}"
        )
    counts = sizes.reshape((-1, len(fields)))
    for i, (field, each) in enumerate(zip(fields, values, strict=True)):
        wrong = (counts[:, i] < 0) | (counts[:, i] > each.shape[-1])
        if wrong.any():
            raise InvalidArgumentError(
                f"sizes must be from 0 to {each.shape[-1]} for the field {field.name!r}, got "
                f"{int(counts[wrong.argmax(), i])} for message {int(wrong.argmax())}"
            )
    order = sorted(range(len(fields)), key=lambda i: fields[i].number)
    rows = [each.reshape((len(counts), each.shape[-1])) for each in values]
    messages = [
        b"".join(
            written(rows[i][message, : counts[message, i]], fields[i])
            for i in order
            if counts[message, i]
        )
        for message in range(len(counts))
    ]
    return string_array(messages, batch)
