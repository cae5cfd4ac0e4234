"""Samples of the pieces of strings. What comes out is what TensorFlow's ops gave."""

from __future__ import annotations

from typing import Any

import numpy as np

from headrace.errors import AttributeValueError, DTypeError, ExecutionError, ShapeError
from headrace_testing.inputs import array
from headrace_testing.sample import Reject, Row, Sample

_WORDS = array([b"a", b"b", b"c", b"d", b"e"], "string")
_RUNS = {
    "separator": "|",
    "ngram_widths": (3,),
    "left_pad": "L",
    "right_pad": "R",
    "pad_width": -1,
    "preserve_short_sequences": False,
}


def _text(*words: bytes) -> Any:
    return np.array(words, object)


SAMPLES: list[Row] = [
    Sample(
        "UnicodeDecode",
        [array(["Gö".encode(), b"", b"a\xff\t"], "string")],
        {"input_encoding": "UTF-8"},
        lambda s, **_: (
            np.array([0, 2, 2, 5]),
            np.array([71, 246, 97, 65533, 9], np.int32),
            np.array([0, 1, 0, 1, 2]),
        ),
        exact_shape=False,
    ),
    Sample(
        "UnicodeDecode",
        [array(["\U0001f642a".encode("utf-16-be") + b"\xd8", b"\0\t"], "string")],
        {"input_encoding": "UTF-16-BE", "errors": "ignore", "replace_control_characters": True},
        lambda s, **_: (
            np.array([0, 2, 2]),
            np.array([0x1F642, 97], np.int32),
            np.array([0, 4]),
        ),
        label="ignored",
        exact_shape=False,
    ),
    Sample(
        "UnicodeDecode",
        [array(np.zeros(0, object), "string")],
        {"input_encoding": "latin1", "replacement_char": 63},
        lambda s, **_: (np.array([0]), np.zeros(0, np.int32), np.zeros(0, np.int64)),
        label="empty",
        exact_shape=False,
    ),
    Reject(
        "UnicodeDecode",
        [array([b"\xff"], "string")],
        {"input_encoding": "UTF-8", "errors": "strict"},
        ExecutionError,
        "Invalid formatting",
        when="run",
        label="strict",
    ),
    Reject(
        "UnicodeDecode",
        [array([b"a"], "string")],
        {"input_encoding": "UTF-FOO"},
        AttributeValueError,
        "no encoding",
        label="encoding",
    ),
    Reject(
        "UnicodeDecode",
        [array([[b"a"]], "string")],
        {"input_encoding": "UTF-8"},
        ShapeError,
        "vector",
        label="matrix",
    ),
    Sample(
        "UnicodeEncodeRows",
        [array([71, 246, -1, 97], "int32"), array([0, 3, 3, 4], "int64")],
        {"output_encoding": "UTF-8", "replacement_char": 63},
        lambda codes, splits, **_: _text("Gö?".encode(), b"", b"a"),
    ),
    Sample(
        "UnicodeEncodeRows",
        [array([71, 0xD800, 97], "int32"), array([0, 3], "int32")],
        {"output_encoding": "UTF-16-BE", "errors": "ignore"},
        lambda codes, splits, **_: _text(b"\0G\0a"),
        label="ignored",
    ),
    Reject(
        "UnicodeEncodeRows",
        [array([71], "int32"), array([0, 2], "int64")],
        {"output_encoding": "UTF-8"},
        ExecutionError,
        "splits must ascend",
        when="run",
        label="splits",
    ),
    Reject(
        "UnicodeEncodeRows",
        [array([0x110000], "int32"), array([0, 1], "int64")],
        {"output_encoding": "UTF-8", "errors": "strict"},
        ExecutionError,
        "out of range",
        when="run",
        label="strict",
    ),
    Reject(
        "UnicodeEncodeRows",
        [array([71], "int64"), array([0, 1], "int64")],
        {"output_encoding": "UTF-8"},
        DTypeError,
        "int32",
        label="dtype",
    ),
    Sample(
        "UnicodeScript",
        [array([[0x61, 0x20], [0x43F, 0x65E5], [-1, 0x110000]], "int32")],
        {},
        lambda codes: np.array([[25, 0], [8, 17], [-1, -1]], np.int32),
    ),
    Reject("UnicodeScript", [array([97], "int64")], {}, DTypeError, "int32", label="dtype"),
    Sample(
        "StringNGrams",
        [_WORDS, array([0, 4, 4, 5], "int64")],
        _RUNS,
        lambda words, splits, **_: (
            _text(
                *(b"L|L|a", b"L|a|b", b"a|b|c", b"b|c|d", b"c|d|R", b"d|R|R"),
                *(b"L|L|R", b"L|R|R"),
                *(b"L|L|e", b"L|e|R", b"e|R|R"),
            ),
            np.array([0, 6, 8, 11]),
        ),
        exact_shape=False,
    ),
    Sample(
        "StringNGrams",
        [_WORDS, array([0, 4, 5], "int32")],
        {**_RUNS, "ngram_widths": (3, 2), "pad_width": 0, "preserve_short_sequences": True},
        lambda words, splits, **_: (
            _text(b"a|b|c", b"b|c|d", b"a|b", b"b|c", b"c|d", b"e"),
            np.array([0, 5, 6], np.int32),
        ),
        label="several",
        exact_shape=False,
    ),
    Reject(
        "StringNGrams",
        [_WORDS, array([0, 9], "int64")],
        _RUNS,
        ExecutionError,
        "splits must ascend",
        when="run",
        label="splits",
    ),
    Reject(
        "StringNGrams",
        [_WORDS, array([0, 5], "int64")],
        {**_RUNS, "ngram_widths": (0,)},
        AttributeValueError,
        "must be positive",
        label="width",
    ),
]
