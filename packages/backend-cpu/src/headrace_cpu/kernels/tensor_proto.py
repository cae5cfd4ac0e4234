"""TensorFlow's ``TensorProto``, as far as serialized tensors have it.

The fields are those of tensorflow/core/framework/tensor.proto: 1 the dtype's number, 2 the shape
(its field 2 is a dimension, of which field 1 is the size), 4 the raw elements, 8 a string each.
Strings may also stand in field 4: first all lengths, then all bytes.
They are written as in https://protobuf.dev/programming-guides/encoding.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from typing import Any

import numpy as np

from headrace import DType, as_dtype
from headrace.errors import DTypeError

_NDArray = np.ndarray[Any, np.dtype[Any]]

_VARINT, _WORD, _BYTES, _HALF_WORD = 0, 1, 2, 5
_MAX_RANK = 64


def serialize(array: _NDArray, *, packed: bool = False) -> bytes:
    """Return an array as a message.

    Args:
        array: The array.
        packed: Whether strings stand in the field of raw elements, too.
    """
    name = "string" if array.dtype == object else array.dtype.name
    dims = b"".join(_field(2, _number(1, d)) for d in array.shape)
    head = _number(1, as_dtype(name).as_datatype_enum) + _field(2, dims)
    if name == "string" and not packed:
        return head + b"".join(_field(8, text) for text in array.ravel().tolist())
    if name == "string":
        texts = array.ravel().tolist()
        content = b"".join([*(_write(len(text)) for text in texts), *texts])
    else:
        content = np.ascontiguousarray(array).tobytes()
    return head + (_field(4, content) if content else b"")


def parse(data: bytes, dtype: DType) -> _NDArray:
    """Return the array of a message.

    Raises:
        ValueError: if it is none, or of another dtype.
    """
    number, content, strings = 0, b"", []
    dims: list[int] = []
    for field, value in _fields(data):
        if field == 1 and isinstance(value, int):
            number = value
        elif field == 2 and isinstance(value, bytes):
            dims = [_size(part) for key, part in _fields(value) if key == 2]
        elif field == 4 and isinstance(value, bytes):
            content = value
        elif field == 8 and isinstance(value, bytes):
            strings.append(value)
        elif field != 3:
            raise ValueError(f"the serialized tensor keeps its elements in field {field}, not 4")
    if number != dtype.as_datatype_enum:
        found = _name_of(number)
        raise ValueError(f"the serialized tensor is {found}, expected {dtype}")
    if dtype.kind == "string" and content and not strings:
        strings = _unpacked(content, math.prod(dims))
    return _array(dtype, dims, content, strings)


def _unpacked(content: bytes, count: int) -> list[bytes]:
    """Return the strings in the field of raw elements."""
    if not 0 <= count <= len(content):
        raise ValueError(f"the serialized tensor has no room for {count} strings")
    sizes, at = [], 0
    for _ in range(count):
        size, at = _read(content, at)
        sizes.append(size)
    if at + sum(sizes) != len(content):
        raise ValueError("the serialized tensor is cut off")
    ends = list(itertools.accumulate(sizes, initial=at))
    return [content[start:end] for start, end in itertools.pairwise(ends)]


def _array(dtype: DType, dims: list[int], content: bytes, strings: list[bytes]) -> _NDArray:
    count = math.prod(dims)
    if len(dims) > _MAX_RANK or any(d < 0 for d in dims):
        raise ValueError(f"the serialized tensor has no possible shape: {dims[:_MAX_RANK]}")
    held = len(strings) if dtype.kind == "string" else len(content) / dtype.itemsize
    # Only now that the data is known to be there is anything of the array's size made.
    if held != count:
        raise ValueError(f"the serialized tensor of shape {dims} holds {held:g} elements")
    if dtype.kind == "string":
        made = np.empty(count, object)
        made[:] = strings
    elif dtype.is_bool:
        made = np.frombuffer(content, np.uint8) != 0
    else:
        made = np.frombuffer(content, np.uint8).copy().view(dtype.numpy)
    return made.reshape(dims)


def _size(part: int | bytes) -> int:
    sizes = [v for key, v in _fields(part) if key == 1] if isinstance(part, bytes) else []
    found = sizes[-1] if sizes else 0
    return found if isinstance(found, int) and found < 2**63 else -1


def _fields(data: bytes) -> Iterator[tuple[int, int | bytes]]:
    """Yield number and content of each field of a message."""
    at = 0
    while at < len(data):
        key, at = _read(data, at)
        field, kind = key >> 3, key & 7
        if kind == _VARINT:
            value, at = _read(data, at)
            yield field, value
            continue
        size = 8 if kind == _WORD else 4
        if kind == _BYTES:
            size, at = _read(data, at)
        elif kind not in (_WORD, _HALF_WORD):
            raise ValueError("the string is no serialized tensor")
        if at + size > len(data):
            raise ValueError("the serialized tensor is cut off")
        yield field, data[at : at + size]
        at += size


def _read(data: bytes, at: int) -> tuple[int, int]:
    """Return a number of any length, seven bits in each byte, and where it ends."""
    value = 0
    for shift in range(0, 70, 7):
        if at >= len(data):
            raise ValueError("the serialized tensor is cut off")
        value |= (data[at] & 0x7F) << shift
        at += 1
        if data[at - 1] < 0x80:
            return value, at
    raise ValueError("the string is no serialized tensor")


def _write(value: int) -> bytes:
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*out, value])


def _number(field: int, value: int) -> bytes:
    """Return a field with a number, nothing for zero, which is what is left out."""
    return _write(field << 3 | _VARINT) + _write(value) if value else b""


def _field(field: int, content: bytes) -> bytes:
    return _write(field << 3 | _BYTES) + _write(len(content)) + content


def _name_of(number: int) -> str:
    try:
        return as_dtype(number).name
    except DTypeError:
        return f"an unknown dtype {number}"
