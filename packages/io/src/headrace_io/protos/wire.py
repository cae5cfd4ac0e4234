"""The wire format of Protocol Buffers: values of fields out of messages, and into them.

References:
    Protocol Buffers, Encoding: https://protobuf.dev/programming-guides/encoding/.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from headrace.errors import DataLossError

if TYPE_CHECKING:
    from headrace import DType
    from headrace_io.protos.descriptors import Field

# The numbers that tags have for how values stand behind them.
_WIRES = {"varint": 0, "fixed64": 1, "sized": 2, "group": 3, "fixed32": 5}
_END_GROUP = 4
# As deep as the library goes.
_MOST_DEPTH = 100
_FIXED = {
    "double": "<f8",
    "float": "<f4",
    "fixed64": "<u8",
    "fixed32": "<u4",
    "sfixed64": "<i8",
    "sfixed32": "<i4",
}
_WORD = (1 << 64) - 1


def scan(data: bytes, fields: Mapping[int, Field]) -> dict[int, list[Any]]:
    """Return the values of fields in a message, by number, as they stand there.

    Values that stand there otherwise than their field says are passed over, as unknown fields are.

    Args:
        data: The message.
        fields: Fields by number.

    Returns:
        Integers for what is a varint, else bytes.

    Raises:
        DataLossError: if it is no message.
    """
    found: dict[int, list[Any]] = {number: [] for number in fields}
    at = 0
    while at < len(data):
        tag, at = _varint(data, at)
        number, wire = tag >> 3, tag & 7
        value, at = _value(data, at, number, wire, 0)
        field = fields.get(number)
        if field is None:
            continue
        if _WIRES[field.wire] == wire:
            found[number].append(value)
        elif wire == _WIRES["sized"]:
            found[number] += _unpacked(value, field.wire)
    return found


def _varint(data: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while shift < 70:
        if at >= len(data):
            break
        byte = data[at]
        value |= (byte & 0x7F) << shift
        at, shift = at + 1, shift + 7
        if byte < 0x80:
            return value & _WORD, at
    raise DataLossError("a message is cut off within a number, or holds one of more than 10 bytes")


def _value(data: bytes, at: int, number: int, wire: int, depth: int) -> tuple[Any, int]:
    """Return the value behind a tag, and where it ends."""
    if not number:
        raise DataLossError("a message has no fields of the number 0")
    if wire == 0:
        return _varint(data, at)
    if wire in (1, 5):
        size = 8 if wire == 1 else 4
    elif wire == 2:
        size, at = _varint(data, at)
    elif wire == 3:
        return _group(data, at, number, depth)
    else:
        raise DataLossError(f"a message has no values of the kind {wire}")
    if size > len(data) - at:
        raise DataLossError(f"a message is cut off within the field {number}")
    return data[at : at + size], at + size


def _group(data: bytes, at: int, number: int, depth: int) -> tuple[bytes, int]:
    if depth == _MOST_DEPTH:
        raise DataLossError(f"a message has groups more than {_MOST_DEPTH} deep")
    start = at
    while True:
        end = at
        tag, at = _varint(data, at)
        if tag & 7 == _END_GROUP:
            if tag >> 3 != number:
                raise DataLossError(f"the group {number} of a message ends as {tag >> 3}")
            return data[start:end], at
        _, at = _value(data, at, tag >> 3, tag & 7, depth + 1)


def _unpacked(data: bytes, wire: str) -> list[Any]:
    if wire == "varint":
        found, at = [], 0
        while at < len(data):
            value, at = _varint(data, at)
            found.append(value)
        return found
    if wire not in ("fixed64", "fixed32"):
        return []
    size = 8 if wire == "fixed64" else 4
    if len(data) % size:
        raise DataLossError(f"{len(data)} bytes are no numbers of {size} bytes each")
    return [data[i : i + size] for i in range(0, len(data), size)]


def numbers(values: Sequence[Any], field: Field, dtype: DType) -> Any:
    """Return the values of a field, as ``scan`` returns them, as an array [n]."""
    if field.type in _FIXED:
        return np.frombuffer(b"".join(values), _FIXED[field.type]).astype(dtype.numpy)
    if field.wire != "varint":
        made = np.empty(len(values), object)
        made[:] = list(values)
        return made
    words = np.array(values, np.uint64)
    if field.type == "bool":
        return words != 0
    if field.type in ("int64", "uint64", "sint64"):
        if field.type == "sint64":
            words = (words >> np.uint64(1)) ^ (~(words & np.uint64(1)) + np.uint64(1))
        return words.view(np.int64).astype(dtype.numpy)
    # Of 32 bits the lower ones count.
    short = words.astype(np.uint32)
    if field.type == "sint32":
        short = (short >> np.uint32(1)) ^ (~(short & np.uint32(1)) + np.uint32(1))
    return (short if field.type == "uint32" else short.view(np.int32)).astype(dtype.numpy)


def written(values: Any, field: Field) -> bytes:
    """Return values of a field as they stand in a message.

    Args:
        values: [n], of one of the dtypes of the field.
        field: The field.
    """
    parts = _encoded(values, field)
    if field.packed and field.wire not in ("sized", "group"):
        body = b"".join(parts)
        return _tag(field.number, "sized") + _as_varint(len(body)) + body
    tag = _tag(field.number, field.wire)
    if field.wire == "group":
        end = _as_varint(field.number << 3 | _END_GROUP)
        return b"".join(tag + part + end for part in parts)
    if field.wire == "sized":
        return b"".join(tag + _as_varint(len(part)) + part for part in parts)
    return b"".join(tag + part for part in parts)


def _tag(number: int, wire: str) -> bytes:
    return _as_varint(number << 3 | _WIRES[wire])


def _as_varint(value: int) -> bytes:
    made = bytearray()
    while value > 0x7F:
        made.append(value & 0x7F | 0x80)
        value >>= 7
    made.append(value)
    return bytes(made)


def _encoded(values: Any, field: Field) -> list[bytes]:
    if field.wire in ("sized", "group"):
        return list(values.tolist())
    if field.type in _FIXED:
        dtype = np.dtype(_FIXED[field.type])
        with np.errstate(over="ignore"):
            raw = values.astype(dtype).tobytes()
        return [raw[i : i + dtype.itemsize] for i in range(0, len(raw), dtype.itemsize)]
    if field.type == "sint32":
        short = values.astype(np.int32)
        words = ((short << np.int32(1)) ^ (short >> np.int32(31))).view(np.uint32)
    elif field.type == "sint64":
        words = ((values << np.int64(1)) ^ (values >> np.int64(63))).view(np.uint64)
    elif field.type == "uint32":
        words = values.astype(np.uint32)
    elif field.type in ("int32", "enum"):
        # Negative ones stand there as those of 64 bits.
        words = values.astype(np.int32).astype(np.int64).view(np.uint64)
    else:
        words = values.astype(np.uint64)
    return [_as_varint(int(word)) for word in words.tolist()]
