"""Samples of strings read and written. Expected values are written out, as TensorFlow has them."""

from __future__ import annotations

import base64
from typing import Any

import numpy as np

from headrace.errors import AttributeValueError, DTypeError, ExecutionError, ShapeError
from headrace_testing.inputs import array, strings, uniform
from headrace_testing.sample import Reject, Row, Sample

_WRONG = AttributeValueError
_EMPTY = array(np.zeros((0, 2), object), "string")


def _text(value: Any) -> Any:
    return array(value, "string")


def _words(*values: bytes) -> Any:
    return np.array(values, object)


def _elements(texts: Any, dtype: str, little_endian: bool) -> Any:
    """Return the elements in the rows of a column of strings."""
    ordered = np.dtype(dtype).newbyteorder("<" if little_endian else ">")
    return np.array([[np.frombuffer(row[0], ordered)] for row in texts]).astype(dtype)


def _encoded(texts: Any, pad: bool) -> Any:
    made = np.empty(texts.shape, object)
    for place in np.ndindex(texts.shape):
        encoded = base64.b64encode(texts[place], b"-_")
        made[place] = encoded if pad else encoded.rstrip(b"=")
    return made


_CSV = {"field_delim": ",", "use_quote_delim": True, "na_value": "", "select_cols": ()}

SAMPLES: list[Row] = [
    *(
        Sample(
            "StringToNumber",
            [_text([t.encode() for t in texts])],
            {"out_type": dtype},
            lambda s, out_type, values=values: np.array(values, out_type),
            label=dtype,
        )
        for dtype, texts, values in (
            (
                "float32",
                [" 1.5\t", "-.5e1", "5.", "0x10", "INF", "-infinity", "nan", "1e39", "+1e-400"],
                [1.5, -5, 5, 16, np.inf, -np.inf, np.nan, np.inf, 0],
            ),
            ("float64", ["1e400", "0x1p-3", "-0", "nan(1)"], [np.inf, 0.125, -0.0, np.nan]),
            ("int32", [" -2147483648 ", "0012", "+7"], [-(2**31), 12, 7]),
            ("int64", ["9223372036854775807"], [2**63 - 1]),
            ("uint64", ["18446744073709551615"], [2**64 - 1]),
        )
    ),
    Sample(
        "StringToNumber",
        [_EMPTY],
        {"out_type": "float32"},
        lambda s, out_type: np.zeros(s.shape, np.float32),
        label="empty",
    ),
    *(
        Reject(
            "StringToNumber",
            [_text(text.encode())],
            {"out_type": dtype},
            ExecutionError,
            f"is no number of dtype {dtype}",
            when="run",
            label=label,
        )
        for label, text, dtype in (
            ("empty", "", "float32"),
            ("word", "abc", "float32"),
            ("underscore", "1_000", "float64"),
            ("two", "1 2", "int64"),
            ("large", "2147483648", "int32"),
            ("fraction", "1.0", "int32"),
            ("long", "1" * 5000, "int64"),
            ("negative", "-1", "uint32"),
        )
    ),
    Reject(
        "StringToNumber",
        [_text(b"1")],
        {"out_type": "int16"},
        DTypeError,
        "got int16",
        label="dtype",
    ),
    *(
        Sample(
            "AsString",
            [array(values, dtype)],
            attrs,
            lambda x, result=result, **_: _words(*(r.encode() for r in result)),
            label=label,
        )
        for label, dtype, values, attrs, result in (
            (
                "floats",
                "float32",
                [1.5, -2.25, 1e10, np.nan, np.inf, -np.inf],
                {},
                ["1.500000", "-2.250000", "10000000000.000000", "nan", "inf", "-inf"],
            ),
            (
                "shortest",
                "float64",
                [1.5, 1e10, 1e-5],
                {"shortest": True},
                ["1.5", "1e+10", "1e-05"],
            ),
            ("scientific", "float32", [1.5], {"scientific": True}, ["1.500000e+00"]),
            ("precision", "float16", [1.5, 2.5], {"precision": 0}, ["2", "2"]),
            ("bfloat16", "bfloat16", [1.1], {}, ["1.101562"]),
            (
                "zeros",
                "float32",
                [np.nan, -1.5, np.inf],
                {"width": 9, "fill": "0", "precision": 2},
                ["      nan", "-00001.50", "      inf"],
            ),
            ("integers", "int8", [1, -20], {"width": 5, "fill": "0"}, ["00001", "-0020"]),
            ("left", "int64", [1, -20], {"width": 5, "fill": "-"}, ["1    ", "-20  "]),
            ("plus", "uint8", [1, 200], {"fill": "+"}, ["+1", "+200"]),
            ("large", "uint64", [2**64 - 1], {}, ["18446744073709551615"]),
            ("booleans", "bool", [True, False], {"width": 9}, ["true", "false"]),
            (
                "complex",
                "complex64",
                [1 + 2j, -1j],
                {"precision": 1, "width": 5},
                ["(  1.0,  2.0)", "( -0.0, -1.0)"],
            ),
            ("words", "string", [b"a", b"bcd"], {"width": 2}, [" a", "bcd"]),
        )
    ),
    Sample("AsString", [array(3, "int32")], {}, lambda x: np.array(b"3", object), label="scalar"),
    Sample(
        "AsString",
        [uniform((0, 3))],
        {},
        lambda x: np.zeros((0, 3), object),
        dtypes=["float32", "int32"],
        label="empty",
    ),
    *(
        Reject("AsString", [array([1], dtype)], attrs, AttributeValueError, match, label=label)
        for label, dtype, attrs, match in (
            ("both", "float32", {"scientific": True, "shortest": True}, "exclude each other"),
            ("integer", "int32", {"precision": 2}, "for floats and complex numbers"),
            ("fill", "int32", {"fill": "x"}, "fill must be one of"),
            ("width", "int32", {"width": 10**9}, "at most 65536"),
        )
    ),
    *(
        Sample(
            "DecodeRaw",
            [_text([[b"abcdefgh"], [b"\0\1\2\3\4\5\6\7"]])],
            {"out_type": dtype, "little_endian": little},
            lambda s, out_type, little_endian: _elements(s, out_type, little_endian),
            label=f"{dtype}_{little}".lower(),
        )
        for dtype, little in (
            ("uint8", False),
            ("int16", True),
            ("int16", False),
            ("uint32", True),
            ("float64", False),
            ("complex64", False),
        )
    ),
    Sample(
        "DecodeRaw",
        [_text([b"\0\1\2"])],
        {"out_type": "bool", "little_endian": True},
        lambda s, **_: np.array([[False, True, True]]),
        label="bool",
    ),
    Sample(
        "DecodeRaw",
        [_EMPTY],
        {"out_type": "int16", "little_endian": True},
        lambda s, **_: np.zeros((0, 2, 0), np.int16),
        label="empty",
    ),
    *(
        Reject(
            "DecodeRaw",
            [_text(texts)],
            {"out_type": "int16", "little_endian": True},
            ExecutionError,
            match,
            when="run",
            label=label,
        )
        for label, texts, match in (
            ("lengths", [b"ab", b"abcd"], "one length, got 2 and 4"),
            ("odd", [b"abc"], "no whole number of int16"),
        )
    ),
    Reject(
        "DecodeRaw",
        [_text(b"a")],
        {"out_type": "string", "little_endian": True},
        DTypeError,
        "not as string",
        label="dtype",
    ),
    *(
        Sample(
            "EncodeBase64",
            [maker],
            {"pad": pad},
            _encoded,
            label=f"{label}_{pad}".lower(),
        )
        for label, maker in (
            ("matrix", strings((3, 3))),
            ("scalar", _text(b"\xff\xfe?")),
            ("empty", _EMPTY),
        )
        for pad in (False, True)
    ),
    Reject("EncodeBase64", [array([1], "int32")], {}, DTypeError, "string"),
    Sample(
        "DecodeBase64",
        [_text([[b"aGVsbG8", b"aGVsbG8="], [b"YR", b"_-8"], [b"", b"YQ=="]])],
        {},
        lambda s: np.array([[b"hello", b"hello"], [b"a", b"\xff\xef"], [b"", b"a"]], object),
    ),
    Sample("DecodeBase64", [_EMPTY], {}, lambda s: s, label="empty"),
    *(
        Reject(
            "DecodeBase64",
            [_text(text)],
            {},
            ExecutionError,
            "no web-safe base64",
            when="run",
            label=label,
        )
        for label, text in (
            ("plus", b"ab+/"),
            ("short", b"a"),
            ("padding", b"YQ="),
            ("inside", b"Y=Q="),
            ("space", b"YQ Q"),
        )
    ),
    Sample(
        "DecodeCSV",
        [
            _text([b' 1 ,2.5,"x,""y"""', b",NA,"]),
            [array(7, "int32"), array([-1.0], "float64"), _text(b"none")],
        ],
        {**_CSV, "na_value": "NA"},
        lambda *_, **__: (
            np.array([1, 7], np.int32),
            np.array([2.5, -1.0]),
            _words(b'x,"y"', b"none"),
        ),
    ),
    Sample(
        "DecodeCSV",
        [_text([[b"1;2;3"]]), [array(np.zeros(0), "int64"), array(0.0, "float32")]],
        {**_CSV, "field_delim": ";", "select_cols": (0, 2)},
        lambda *_, **__: (np.array([[1]]), np.array([[3.0]], np.float32)),
        label="selected",
    ),
    Sample(
        "DecodeCSV",
        [_EMPTY, [array(0, "int32")]],
        _CSV,
        lambda *_, **__: np.zeros((0, 2), np.int32),
        label="empty",
    ),
    *(
        Reject(
            "DecodeCSV",
            [_text(record), [_text(b""), array(np.zeros(0), "int32")]],
            _CSV,
            ExecutionError,
            match,
            when="run",
            label=label,
        )
        for label, record, match in (
            ("fields", b"1,2,3", "record 0 has 3 fields, expected 2"),
            ("missing", b"1,", "field 1 of record 0 is empty"),
            ("number", b"1,x", "field 1 of record 0 is no int32"),
            ("quote", b'"a,1', "does not end with a quote"),
            ("inside", b'a"b,1', "not quoted"),
            ("line", b"a,1\n", "not quoted"),
        )
    ),
    *(
        Reject(
            "DecodeCSV",
            [_text(b"1"), [default]],
            {**_CSV, **attrs},
            error,
            match,
            label=label,
        )
        for label, default, attrs, error, match in (
            (
                "delimiter",
                array(1, "int32"),
                {"field_delim": "::"},
                _WRONG,
                "one byte",
            ),
            ("dtype", array(1, "int16"), {}, DTypeError, "not as int16"),
            ("default", array([1, 2], "int32"), {}, ShapeError, "at most one"),
            (
                "columns",
                array(1, "int32"),
                {"select_cols": (0, 1)},
                AttributeValueError,
                "one default",
            ),
        )
    ),
    Sample(
        "SerializeTensor",
        [array([[1, 2], [3, 4]], "int32")],
        {},
        lambda x: np.array(
            b'\x08\x03\x12\x08\x12\x02\x08\x02\x12\x02\x08\x02"\x10\x01\0\0\0\x02\0\0\0\x03\0\0\0\x04\0\0\0',
            object,
        ),
    ),
    Sample(
        "SerializeTensor",
        [_text([b"a", b"bc"])],
        {},
        lambda x: np.array(b"\x08\x07\x12\x04\x12\x02\x08\x02B\x01aB\x02bc", object),
        label="strings",
    ),
    Sample(
        "SerializeTensor",
        [array(np.zeros((0, 3)), "float32")],
        {},
        lambda x: np.array(b"\x08\x01\x12\x06\x12\x00\x12\x02\x08\x03", object),
        label="empty",
    ),
    Sample(
        "ParseTensor",
        [_text(b'\x08\x01\x12\x04\x12\x02\x08\x01"\x04\0\0\xc0?')],
        {"out_type": "float32"},
        lambda s, out_type: np.array([1.5], np.float32),
        exact_shape=False,
    ),
    Sample(
        "ParseTensor",
        [_text(b"\x08\x07\x12\x04\x12\x02\x08\x02B\x01aB\x02bc")],
        {"out_type": "string"},
        lambda s, out_type: _words(b"a", b"bc"),
        exact_shape=False,
        label="strings",
    ),
    *(
        Reject(
            "ParseTensor",
            [_text(text)],
            {"out_type": "int32"},
            ExecutionError,
            match,
            when="run",
            label=label,
        )
        for label, text, match in (
            ("dtype", b'\x08\x01\x12\x00"\x04\0\0\0\0', "is float32, expected int32"),
            ("nothing", b"", "expected int32"),
            ("cut_off", b"\x08\x03\x12\x7f", "cut off"),
            ("no_message", b"\x0f", "no serialized tensor"),
            (
                "size",
                b"\x08\x03\x12\x08\x12\x06\x08\xff\xff\xff\xff\x7f",
                "holds 0 elements",
            ),
        )
    ),
    Reject(
        "ParseTensor",
        [_text([b""])],
        {"out_type": "int32"},
        ShapeError,
        "must be a scalar",
        label="vector",
    ),
]
