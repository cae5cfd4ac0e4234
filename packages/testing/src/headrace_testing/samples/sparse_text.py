"""Samples of sparse tensors as strings; the bytes are what TensorFlow 1.15 writes."""

from __future__ import annotations

from typing import Any

import numpy as np

from headrace.errors import DTypeError, ExecutionError, ShapeError
from headrace_testing.inputs import Input, array
from headrace_testing.sample import Reject, Row, Sample

_PLACES = array([[0, 1], [1, 0], [1, 2]], "int64")
_DIMS = array([3, 4], "int64")


def _text(items: Any) -> Input:
    return array(np.array(items, object), "string")


def _numbers(*items: int) -> bytes:
    return np.array(items, "<i8").tobytes()


def _matrix(rows: int, columns: int, *items: int) -> bytes:
    content = _numbers(*items)
    return (
        b"\x08\t\x12\x08\x12\x02\x08%c\x12\x02\x08%c" % (rows, columns)
        + b'"%c' % len(content)
        + content
    )


def _vector(*items: int) -> bytes:
    return b'\x08\t\x12\x04\x12\x02\x08%c"%c' % (len(items), 8 * len(items)) + _numbers(*items)


_FLOATS = b'\x08\x01\x12\x04\x12\x02\x08\x03"\x0c\0\0\x80?\0\0\0@\0\0@@'
_STRINGS = b'\x08\x07\x12\x04\x12\x02\x08\x03"\x06\x01\x02\0abc'
_NO_PLACES = b"\x08\t\x12\x06\x12\0\x12\x02\x08\x01"
_ROWS = [
    [_matrix(1, 1, 1), b'\x08\x01\x12\x04\x12\x02\x08\x01"\x04\0\0\x80?', _vector(4)],
    [_matrix(2, 1, 0, 2), b'\x08\x01\x12\x04\x12\x02\x08\x02"\x08\0\0\0@\0\0@@', _vector(4)],
    [_NO_PLACES, b"\x08\x01\x12\x02\x12\0", _vector(4)],
]
_STRING_ROWS = [
    [_matrix(1, 1, 1), b'\x08\x07\x12\x04\x12\x02\x08\x01"\x02\x01a', _vector(4)],
    [_matrix(2, 1, 0, 2), b'\x08\x07\x12\x04\x12\x02\x08\x02"\x04\x02\0bc', _vector(4)],
    [_NO_PLACES, b"\x08\x07\x12\x02\x12\0", _vector(4)],
]
_WHOLE = [_matrix(3, 2, 0, 1, 1, 0, 1, 2), _FLOATS, _vector(3, 4)]


def _joined(places: Any, values: Any, dims: Any) -> Any:
    return np.array(places, np.int64), values, np.array(dims, np.int64)


SAMPLES: list[Row] = [
    Sample(
        "SerializeSparse",
        [_PLACES, array([1, 2, 3], "float32"), _DIMS],
        {},
        lambda *_: np.array(_WHOLE, object),
    ),
    Sample(
        "SerializeSparse",
        [_PLACES, _text([b"a", b"bc", b""]), _DIMS],
        {},
        lambda *_: np.array([_WHOLE[0], _STRINGS, _WHOLE[2]], object),
        label="strings",
    ),
    Sample(
        "SerializeManySparse",
        [_PLACES, array([1, 2, 3], "float32"), _DIMS],
        {},
        lambda *_: np.array(_ROWS, object),
        exact_shape=False,
    ),
    Sample(
        "SerializeManySparse",
        [_PLACES, _text([b"a", b"bc", b""]), _DIMS],
        {},
        lambda *_: np.array(_STRING_ROWS, object),
        exact_shape=False,
        label="strings",
    ),
    Sample(
        "SerializeManySparse",
        [array(np.zeros((0, 2)), "int64"), array(np.zeros(0), "float32"), array([0, 4], "int64")],
        {},
        lambda *_: np.empty((0, 3), object),
        exact_shape=False,
        label="no_rows",
    ),
    Reject(
        "SerializeManySparse",
        [array([[0]], "int64"), array([1], "float32"), array([3], "int64")],
        {},
        ShapeError,
        "needs 2 dimensions or more, got 1",
        label="vector",
    ),
    *(
        Reject(
            "SerializeManySparse",
            [array(places, "int64"), array([1, 2], "float32"), _DIMS],
            {},
            ExecutionError,
            match,
            when="run",
            label=label,
        )
        for label, places, match in (
            ("order", [[2, 0], [0, 0]], "not in order of their rows"),
            ("outside", [[0, 0], [3, 0]], "must be from 0 to 2"),
            ("parts", [[0, 0]], "do not make a sparse tensor"),
        )
    ),
    Sample(
        "DeserializeManySparse",
        [_text(_ROWS)],
        {"dtype": "float32"},
        lambda s, dtype: _joined([[0, 1], [1, 0], [1, 2]], np.array([1, 2, 3], np.float32), [3, 4]),
        exact_shape=False,
    ),
    Sample(
        "DeserializeManySparse",
        [_text(_STRING_ROWS)],
        {"dtype": "string"},
        lambda s, dtype: _joined(
            [[0, 1], [1, 0], [1, 2]], np.array([b"a", b"bc", b""], object), [3, 4]
        ),
        exact_shape=False,
        label="strings",
    ),
    Sample(
        "DeserializeManySparse",
        [_text([_WHOLE, [_matrix(3, 2, 6, 0, 6, 1, 6, 4), _FLOATS, _vector(7, 5)]])],
        {"dtype": "float32"},
        lambda s, dtype: _joined(
            [[0, 0, 1], [0, 1, 0], [0, 1, 2], [1, 6, 0], [1, 6, 1], [1, 6, 4]],
            np.array([1, 2, 3, 1, 2, 3], np.float32),
            [2, 7, 5],
        ),
        exact_shape=False,
        label="other_shapes",
    ),
    *(
        Reject(
            "DeserializeManySparse",
            [_text(rows)],
            {"dtype": "float32"},
            ExecutionError,
            match,
            when="run",
            label=label,
        )
        for label, rows, match in (
            ("nothing", np.empty((0, 3), object), "has no rows"),
            ("dtype", _STRING_ROWS, "is string, expected float32"),
            ("rank", [_WHOLE, _ROWS[0]], "row 1 has 1 dimensions, those before it have 2"),
            ("outside", [[_WHOLE[0], _FLOATS, _vector(1, 4)]], "outside of its shape"),
            ("parts", [[_WHOLE[0], _FLOATS, _vector(3)]], "row 0 is no sparse tensor"),
            ("text", [[b"a", b"b", b"c"]], "cut off|no serialized tensor"),
        )
    ),
    Reject(
        "DeserializeManySparse",
        [_text([b"", b"", b""])],
        {"dtype": "float32"},
        ShapeError,
        "must be .rows, 3., got shape",
        label="vector",
    ),
    Reject(
        "DeserializeManySparse",
        [_text(_ROWS)],
        {"dtype": "resource"},
        DTypeError,
        "handles are not serialized",
        label="handles",
    ),
]
