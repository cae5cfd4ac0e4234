"""Strings to numbers, bytes and records, and back."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from headrace import dtypes
from headrace.arguments import items
from headrace.dtypes import DType
from headrace.errors import AttributeValueError, DTypeError, ShapeError, shown, told
from headrace.graph.convert import convert_to_tensor
from headrace.graph.dispatch import dispatched
from headrace.graph.spec import TensorSpec, like
from headrace.graph.tensor import Tensor
from headrace.ops.declare import Spec, op
from headrace.ops.kinds import Anything, String, Written
from headrace.shapes import SCALAR, UNKNOWN, Shape

_TEXT = "strings have no gradient"

# Longer texts of single numbers are mistakes.
_MAX_WIDTH = 1 << 16


@op("StringToNumber", public="", no_gradient=_TEXT)
def _to_number(string_tensor: String, out_type: DType) -> Spec:
    """Read strings as numbers.

    Args:
        string_tensor: [...], string.
        out_type: float32, float64, int32, int64, uint32 or uint64.

    Returns:
        [...], ``out_type``.
    """
    if out_type.name not in ("float32", "float64", "int32", "int64", "uint32", "uint64"):
        raise DTypeError(
            f"out_type must be float32, float64, int32, int64, uint32 or uint64, got {out_type}"
        )
    return TensorSpec(out_type, string_tensor.shape)


@dispatched("string_tensor")
def string_to_number(
    string_tensor: Any = None,
    out_type: Any = dtypes.float32,
    name: str | None = None,
    input: Any = None,
) -> Tensor:
    """Read strings as numbers.

    Args:
        string_tensor: [...], string. White space around a number is ignored; "inf", "nan" and
            hexadecimal floats are numbers, too. What is none, or an integer that ``out_type`` does
            not hold, raises when it runs.
        out_type: float32, float64, int32, int64, uint32 or uint64.
        name: The name of the operation.
        input: Another name of ``string_tensor``.

    Returns:
        [...], ``out_type``; infinities for floats too large for it.

    Raises:
        DTypeError: if strings are not read as ``out_type``.
    """
    if (string_tensor is None) == (input is None):
        raise AttributeValueError("give string_tensor or input, and only one of them")
    strings = string_tensor if string_tensor is not None else input
    return _to_number(strings, out_type, name=name or "StringToNumber")


@op("AsString", elements_of="input", no_gradient=_TEXT)
def as_string(
    input: Written,
    precision: int = -1,
    scientific: bool = False,
    shortest: bool = False,
    width: int = -1,
    fill: str = "",
) -> Spec:
    """Numbers as strings, written as C's ``printf`` does.

    Args:
        input: [...], any dtype. Booleans become "true" and "false", complex numbers "(re,im)".
        precision: Digits after the point (or in all, with ``shortest``) of floats; 6 if negative.
        scientific: Write floats with an exponent.
        shortest: Write floats in the shorter of both forms.
        width: The least number of characters, filled up on the left; none if negative.
        fill: "0" to fill up with zeros, "-" to fill up on the right, "+" or " " to put a sign or
            a space before positive numbers, "#" for C's alternative form.

    Returns:
        [...], string.
    """
    if scientific and shortest:
        raise AttributeValueError("scientific and shortest exclude each other")
    if (scientific or shortest or precision >= 0) and not (
        input.dtype.is_floating or input.dtype.is_complex
    ):
        raise AttributeValueError(
            f"scientific, shortest and precision are for floats and complex numbers, "
            f"got {input.dtype}"
        )
    if fill not in ("", " ", "+", "-", "0", "#"):
        raise AttributeValueError(
            f"fill must be one of ' ', '+', '-', '0' and '#', got {shown(fill, 40)}"
        )
    if max(width, precision) > _MAX_WIDTH:
        raise AttributeValueError(
            f"width and precision must be at most {_MAX_WIDTH}, got {told(width)} and "
            f"{told(precision)}"
        )
    return TensorSpec(dtypes.string, input.shape)


@op("DecodeRaw", public="", no_gradient=_TEXT)
def _decode_raw(input_bytes: String, out_type: DType, little_endian: bool) -> Spec:
    """Read the bytes of strings as the elements of tensors.

    Args:
        input_bytes: [...], string, all of one length.
        out_type: The dtype of the elements.
        little_endian: Whether the lowest byte of an element comes first.

    Returns:
        [..., n], ``out_type``.
    """
    if not (out_type.is_numeric or out_type.is_bool):
        raise DTypeError(f"bytes are read as numbers or booleans, not as {out_type}")
    count = None
    if input_bytes.value is not None:
        lengths = {len(text) for text in input_bytes.value.ravel().tolist()}
        if len(lengths) == 1 and not next(iter(lengths)) % out_type.itemsize:
            count = lengths.pop() // out_type.itemsize
        elif not lengths:
            count = 0
    return TensorSpec(out_type, input_bytes.shape.concatenate(Shape([count])))


def decode_raw(
    input_bytes: Any = None,
    out_type: Any = None,
    little_endian: bool = True,
    name: str | None = None,
    bytes: Any = None,
) -> Tensor:
    """Read the bytes of strings as the elements of tensors.

    Args:
        input_bytes: [...], string, all of one length, which is a multiple of an element's.
        out_type: The dtype of the elements.
        little_endian: Whether the lowest byte of an element comes first.
        name: The name of the operation.
        bytes: Another name of ``input_bytes``.

    Returns:
        [..., n], ``out_type``.

    Raises:
        DTypeError: if ``out_type`` is no dtype of numbers or booleans.
    """
    if (input_bytes is None) == (bytes is None):
        raise AttributeValueError("give input_bytes or bytes, and only one of them")
    if out_type is None:
        raise AttributeValueError("decode_raw needs out_type, a dtype")
    strings = input_bytes if input_bytes is not None else bytes
    return _decode_raw(strings, out_type, bool(little_endian), name=name or "DecodeRaw")


@op("EncodeBase64", elements_of="input", no_gradient=_TEXT)
def encode_base64(input: String, pad: bool = False) -> Spec:
    """Strings in the web-safe alphabet of base64 (RFC 4648, section 5).

    Args:
        input: [...], string.
        pad: Whether "=" fills up the last group of four.

    Returns:
        [...], string.
    """
    return like(input)


@op("DecodeBase64", elements_of="input", no_gradient=_TEXT)
def decode_base64(input: String) -> Spec:
    """Strings that were encoded in web-safe base64 (RFC 4648, section 5).

    Args:
        input: [...], string, padded or not. What is no base64 raises when it runs.

    Returns:
        [...], string.
    """
    return like(input)


_CSV = ("float32", "float64", "int32", "int64", "string")


@op("DecodeCSV", public="", no_gradient=_TEXT)
def _decode_csv(
    records: String,
    record_defaults: Sequence[Anything],
    field_delim: str,
    use_quote_delim: bool,
    na_value: str,
    select_cols: tuple[int, ...],
) -> list[Spec]:
    """Split records into fields, and read these.

    Args:
        records: [...], string.
        record_defaults: For each column [] or [1] with the value of empty fields, or [0] where
            there must be one. It also gives the dtype.
        field_delim: The character between fields.
        use_quote_delim: Whether fields may stand in double quotes.
        na_value: A text that means the same as an empty field.
        select_cols: The columns to read, ascending; all if empty.

    Returns:
        For each column [...], the dtype of its default.
    """
    if len(field_delim.encode()) != 1 or field_delim in '"\n\r':
        raise AttributeValueError(f"field_delim must be one byte, got {shown(field_delim, 40)}")
    if select_cols and len(select_cols) != len(record_defaults):
        raise AttributeValueError(
            f"there must be one default per selected column, got {len(record_defaults)} and "
            f"{len(select_cols)}"
        )
    if any(a >= b for a, b in pairwise(select_cols)) or any(c < 0 for c in select_cols):
        raise AttributeValueError(f"select_cols must be ascending and >= 0, got {select_cols}")
    for spec in record_defaults:
        if spec.dtype.name not in _CSV:
            raise DTypeError(f"fields are read as {', '.join(_CSV)}, not as {spec.dtype}")
        count = spec.shape.num_elements()
        if (spec.rank or 0) > 1 or (count is not None and count > 1):
            raise ShapeError(f"a default is a scalar, or a vector of at most one, got {spec.shape}")
    return [records.with_dtype(spec.dtype) for spec in record_defaults]


def decode_csv(
    records: Any,
    record_defaults: Any,
    field_delim: str = ",",
    use_quote_delim: bool = True,
    name: str | None = None,
    na_value: str = "",
    select_cols: Sequence[int] | None = None,
) -> list[Tensor]:
    """Read records of comma-separated values (RFC 4180), one tensor for each column.

    Args:
        records: [...], string, one record each. Records with another number of fields, or fields
            that are no value of their column's dtype, raise when it runs.
        record_defaults: For each column the value of empty fields, a scalar or a list of one; an
            empty list or tensor where there must be a value. It gives the column's dtype:
            float32, float64, int32, int64 or string.
        field_delim: The character between fields.
        use_quote_delim: Whether fields may stand in double quotes, which then are doubled inside.
        name: The name of the operation.
        na_value: A text that means the same as an empty field.
        select_cols: The columns to read, ascending; all if None. ``record_defaults`` are theirs.

    Returns:
        For each column a tensor of the shape of ``records``.

    Raises:
        AttributeValueError: if the delimiter is not one byte, or columns are not ascending.
        DTypeError: if a default has another dtype.
    """
    if not isinstance(record_defaults, list | tuple):
        raise DTypeError(
            f"record_defaults is a list of one default per column, got {shown(record_defaults)}"
        )
    defaults = [
        np.zeros(0, np.float32) if isinstance(d, list | tuple) and not len(d) else d
        for d in record_defaults
    ]
    return _decode_csv(
        convert_to_tensor(records, dtypes.string),
        defaults,
        field_delim,
        bool(use_quote_delim),
        na_value,
        tuple(items(select_cols, "select_cols")) if select_cols else (),
        name=name or "DecodeCSV",
    )


@op("SerializeTensor", no_gradient=_TEXT)
def serialize_tensor(tensor: Written) -> Spec:
    """A tensor as one string, which ``parse_tensor`` reads: TensorFlow's ``TensorProto``.

    Args:
        tensor: [...], any dtype.

    Returns:
        [], string.
    """
    return TensorSpec(dtypes.string, SCALAR)


@op("ParseTensor", no_gradient=_TEXT)
def parse_tensor(serialized: String, out_type: DType) -> Spec:
    """The tensor in a string that ``serialize_tensor`` wrote.

    Args:
        serialized: [], string. What is no tensor of ``out_type`` raises when it runs.
        out_type: The dtype of the tensor.

    Returns:
        A tensor of any shape, ``out_type``.
    """
    if serialized.rank not in (None, 0):
        raise ShapeError(f"serialized must be a scalar, got shape {serialized.shape}")
    if out_type.kind == "resource":
        raise DTypeError("handles are not serialized")
    return TensorSpec(out_type, UNKNOWN)
