"""Kernels that read strings as numbers, bytes and records, and write them."""

from __future__ import annotations

import base64
import functools
import math
import re
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from headrace import DType
from headrace.errors import shown
from headrace.extend import KernelTable
from headrace.extend.kernels import rows_of
from headrace_cpu.delimited import (
    DECIMAL,
    FLOATS,
    INTEGERS,
    READ,
    TEXTS,
    UNREAD,
    Fields,
    fields_of,
)
from headrace_cpu.kernels.numeric import Array, widened
from headrace_cpu.kernels.tensor_proto import parse, serialize
from headrace_cpu.kernels.text import filled, mapped, one_string

KERNELS = KernelTable()

_WHITE = b" \t\n\r\v\f"
_INTEGER = re.compile(rb"[+-]?[0-9]+")
_FLOAT = re.compile(rb"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?")
_HEXADECIMAL = re.compile(
    rb"[+-]?0[xX]([0-9a-fA-F]+\.?[0-9a-fA-F]*|\.[0-9a-fA-F]+)([pP][+-]?[0-9]+)?"
)
_SPECIAL = re.compile(rb"([+-]?)(inf|infinity|nan(?:\([^)]*\))?)", re.IGNORECASE)

# Integers beyond have more digits than any dtype holds; Python refuses to read thousands.
_MAX_DIGITS = 4000


def number(text: bytes, dtype: Any) -> int | float | None:
    """Return the number of a NumPy dtype that a string stands for, None where it is none."""
    text = text.strip(_WHITE)
    dtype = np.dtype(dtype)
    if dtype.kind == "f":
        return _float(text)
    if len(text) > _MAX_DIGITS or not _INTEGER.fullmatch(text):
        return None
    found = int(text)
    limits = np.iinfo(dtype)
    return found if limits.min <= found <= limits.max else None


def _float(text: bytes) -> float | None:
    if _FLOAT.fullmatch(text):
        return float(text)
    special = _SPECIAL.fullmatch(text)
    if special is not None:
        size = math.nan if special[2][:1] in b"nN" else math.inf
        return -size if special[1] == b"-" else size
    if not _HEXADECIMAL.fullmatch(text):
        return None
    try:
        return float.fromhex(text.decode())
    except OverflowError:
        return -math.inf if text.startswith(b"-") else math.inf


@KERNELS.plain("StringToNumber")
def to_number(xp: Any, string_tensor: Array, *, out_type: DType) -> Array:
    """Read numbers."""

    def read(text: bytes) -> int | float:
        found = number(text, out_type.numpy)
        if found is None:
            raise ValueError(f"{text[:60]!r} is no number of dtype {out_type}")
        return found

    return mapped(read, string_tensor, out_type.numpy)


# Numbers of categories are small, and come again and again: below this they are written once.
_MOST_WRITTEN = 1 << 12


@functools.cache
def _written() -> Array:
    """Return small numbers as strings."""
    found = np.empty(_MOST_WRITTEN, object)
    found[:] = [b"%d" % number for number in range(_MOST_WRITTEN)]
    return found


@KERNELS.plain("AsString")
def as_string(
    xp: Any,
    input: Array,
    *,
    precision: int,
    scientific: bool,
    shortest: bool,
    width: int,
    fill: str,
) -> Array:
    """Write numbers."""
    input = np.asarray(input)
    size = str(width) if width > -1 else ""
    digits = f".{precision}" if precision > -1 else ""
    kind = "e" if scientific else "g" if shortest else "f"

    def real(value: float) -> str:
        if math.isfinite(value):
            return f"%{fill}{size}{digits}{kind}" % value
        # Zeros do not fill up what is no number, and NaN may have a sign.
        text = "nan" if math.isnan(value) else "inf"
        plus = {"+": "+", " ": " "}.get(fill, "")
        sign = "-" if math.copysign(1, value) < 0 else plus
        return f"{sign}{text}".ljust(width) if fill == "-" else f"{sign}{text}".rjust(width)

    def write(value: Any) -> bytes:
        if isinstance(value, bool):
            return b"true" if value else b"false"
        if isinstance(value, complex):
            return f"({real(value.real)},{real(value.imag)})".encode()
        if isinstance(value, bytes):
            return value.ljust(max(width, 0)) if fill == "-" else value.rjust(max(width, 0))
        if isinstance(value, int):
            return (f"%{fill}{size}d" % value).encode()
        return real(float(value)).encode()

    plain = input.dtype.kind in "iu" and not size and not fill
    if plain and input.size and input.min() >= 0 and input.max() < _MOST_WRITTEN:
        return _written()[input.ravel()].reshape(input.shape)
    values = widened(input).ravel().tolist()
    if plain and values:
        # Python writes a list at once, in a fraction of the time of its numbers one by one.
        return filled(str(values)[1:-1].encode().split(b", "), input.shape)
    if input.dtype.kind == "f" and values and np.isfinite(input).all():
        # So it does with one format for all of them.
        form = f"%{fill}{size}{digits}{kind}\n"
        return filled(
            ((form * len(values))[:-1] % tuple(values)).encode().split(b"\n"), input.shape
        )
    return filled(map(write, values), input.shape)


@KERNELS.plain("DecodeRaw")
def decode_raw(xp: Any, input_bytes: Array, *, out_type: DType, little_endian: bool) -> Array:
    """Read bytes as elements."""
    rows = rows_of(input_bytes)
    if rows is None:
        strings = np.asarray(input_bytes, object)
        shape, texts = strings.shape, strings.ravel().tolist()
        sizes = set(map(len, texts))
        if len(sizes) > 1:
            raise ValueError(
                f"all strings must have one length, got {min(sizes)} and {max(sizes)} bytes"
            )
        size = sizes.pop() if sizes else 0
    else:
        shape, size = rows.shape[:1], rows.shape[1]
    if size % out_type.itemsize:
        raise ValueError(
            f"{size} bytes are no whole number of {out_type} elements of {out_type.itemsize} bytes"
        )
    shape = (*shape, size // out_type.itemsize)
    if rows is not None and out_type.itemsize == 1 and not out_type.is_bool:
        # Bytes are elements as they are, wherever they stand: whoever puts them together with
        # others copies them.
        return rows.view(out_type.numpy)
    # Of its own memory, which is aligned and may be written to.
    if rows is None:
        raw = np.frombuffer(bytearray().join(texts), np.uint8)
    else:
        raw = rows.copy().reshape(-1)
    if out_type.is_bool:
        return (raw != 0).reshape(shape)
    part = out_type.itemsize // 2 if out_type.is_complex else out_type.itemsize
    if not little_endian and part > 1:
        raw = raw.reshape((-1, part))[:, ::-1]
    # Words of this machine have the lowest byte first.
    return np.ascontiguousarray(raw).reshape(-1).view(out_type.numpy).reshape(shape)


@KERNELS.plain("EncodeBase64")
def encode_base64(xp: Any, input: Array, *, pad: bool) -> Array:
    """Write base64."""

    def encode(text: bytes) -> bytes:
        encoded = base64.urlsafe_b64encode(text)
        return encoded if pad else encoded.rstrip(b"=")

    return mapped(encode, input)


@KERNELS.plain("DecodeBase64")
def decode_base64(xp: Any, input: Array) -> Array:
    """Read base64."""
    alphabet = re.compile(rb"[A-Za-z0-9_-]*")

    def decode(text: bytes) -> bytes:
        bare = text.rstrip(b"=")
        missing = -len(bare) % 4
        padding = len(text) - len(bare)
        if missing == 3 or padding not in (0, missing) or not alphabet.fullmatch(bare):
            raise ValueError(f"{text[:60]!r} is no web-safe base64")
        return base64.urlsafe_b64decode(bare + b"=" * missing)

    return mapped(decode, input)


@KERNELS.plain("DecodeCSV")
def decode_csv(
    xp: Any,
    records: Array,
    record_defaults: list[Array],
    *,
    field_delim: str,
    use_quote_delim: bool,
    na_value: str,
    select_cols: Sequence[int],
) -> list[Array]:
    """Split records into fields, and read these."""
    records = np.asarray(records, object)
    delimiter, missing = field_delim.encode(), na_value.encode()
    defaults = [_checked_default(default) for default in record_defaults]
    columns = [_column(default, i) for i, default in enumerate(defaults)]
    listed = records.ravel().tolist()

    def read_one(row: int) -> list[Any]:
        fields = _fields(listed[row], delimiter, use_quote_delim, row)
        if select_cols:
            if select_cols[-1] >= len(fields):
                raise ValueError(f"record {row} has {len(fields)} fields, no {select_cols[-1]}")
            fields = [fields[i] for i in select_cols]
        if len(fields) != len(columns):
            raise ValueError(f"record {row} has {len(fields)} fields, expected {len(columns)}")
        pairs = zip(columns, fields, strict=True)
        return [read(b"" if field == missing else field, row) for read, field in pairs]

    kinds = [_KINDS[default.dtype.kind] for default in defaults]
    found = fields_of(listed, delimiter, kinds, select_cols, quotes=use_quote_delim)
    if found is not None:
        return [
            column.reshape(records.shape)
            for column in _columns_of(found, defaults, kinds, missing, read_one)
        ]
    values: list[list[Any]] = [[] for _ in columns]
    for row in range(len(listed)):
        for column, value in zip(values, read_one(row), strict=True):
            column.append(value)
    return [
        filled(column, records.shape, default.dtype)
        for column, default in zip(values, defaults, strict=True)
    ]


# What the native pass makes of columns, by the kind of their dtype.
_KINDS = {"O": TEXTS, "i": INTEGERS, "f": FLOATS}


def _columns_of(
    found: Fields,
    defaults: Sequence[Array],
    kinds: Sequence[int],
    missing: bytes,
    read_one: Callable[[int], list[Any]],
) -> list[Array]:
    """Return the columns of records, [n] each, whose fields were found in one pass.

    Args:
        found: The fields.
        defaults: The checked default of each column.
        kinds: What was to be made of each.
        missing: A text that means the same as an empty field.
        read_one: Returns the values of one record, or raises what is wrong with it.
    """
    odd, columns = found.odd, []
    for i, (default, kind) in enumerate(zip(defaults, kinds, strict=True)):
        absent = found.starts[i] == found.stops[i]
        if missing:
            absent |= found.equal(i, missing)
        if kind == TEXTS:
            column = np.empty(len(odd), object)
            column[:] = found.texts(i, slice(None))
        else:
            numbers, state = found.values[i], found.states[i]
            if kind == FLOATS:
                numbers = numbers.view(np.float64)
                longer = np.flatnonzero((state == DECIMAL) & ~absent)
                numbers[longer] = list(map(float, found.texts(i, longer)))
                odd |= (state == UNREAD) & ~absent
            else:
                limits = np.iinfo(default.dtype)
                odd |= ((state != READ) | (numbers < limits.min) | (numbers > limits.max)) & ~absent
            column = numbers.astype(default.dtype)
        if default.size:
            column[absent] = default.item()
        else:
            odd |= absent
        columns.append(column)
    # In their order, so that the first that is wrong is told of.
    for row in np.flatnonzero(odd).tolist():
        for column, value in zip(columns, read_one(row), strict=True):
            column[row] = value
    return columns


def _checked_default(default: Array) -> Array:
    array = np.asarray(default)
    if array.ndim > 1 or array.size > 1:
        raise ValueError(
            f"a default is a scalar, or a vector of at most one, got shape {list(array.shape)}"
        )
    return array


def _column(array: Array, index: int) -> Callable[[bytes, int], Any]:
    """Return the function that reads the fields of a column, of which this is the default."""
    fallback = array.ravel().tolist()

    def read(field: bytes, row: int) -> Any:
        if not field:
            if not fallback:
                raise ValueError(f"field {index} of record {row} is empty, and has no default")
            return fallback[0]
        if array.dtype == object:
            return field
        found = number(field, array.dtype)
        if found is None:
            raise ValueError(f"field {index} of record {row} is no {array.dtype}: {field[:60]!r}")
        return found

    return read


def _fields(record: bytes, delimiter: bytes, quotes: bool, row: int) -> list[bytes]:
    """Return the fields of a record."""
    plain = re.compile(b"[^" + re.escape(delimiter) + b"]*")
    quoted = re.compile(b'"((?:[^"]|"")*)"(?=' + re.escape(delimiter) + b"|\\Z)")
    fields: list[bytes] = []
    at = 0
    while at < len(record):
        if record[at] in b"\n\r":
            at += 1
            continue
        if quotes and record[at : at + 1] == b'"':
            match = quoted.match(record, at)
            if match is None:
                raise ValueError(
                    f"a quoted field of record {row} does not end with a quote and "
                    f"{shown(delimiter)}, "
                    "or has a single quote inside, which must be doubled"
                )
            fields.append(match[1].replace(b'""', b'"'))
        else:
            match = plain.match(record, at)
            assert match is not None
            if re.search(b'["\n\r]' if quotes else b"[\n\r]", match[0]):
                raise ValueError(
                    f"a field of record {row} has quotes or line ends, and is not quoted"
                )
            fields.append(match[0])
        at = match.end() + 1
    return [*fields, b""] if record.endswith(delimiter) else fields


@KERNELS.plain("SerializeTensor")
def serialize_tensor(xp: Any, tensor: Array) -> Array:
    """Write a tensor."""
    return filled([serialize(np.asarray(tensor))], ())


@KERNELS.plain("ParseTensor")
def parse_tensor(xp: Any, serialized: Array, *, out_type: DType) -> Array:
    """Read a tensor."""
    return parse(one_string(serialized, "serialized"), out_type)
