"""From JSON to arrays: what is a tensor, and what is refused, with where it stands."""

from __future__ import annotations

import json
import re
from typing import Any

import numpy as np
import pytest

import headrace as hr
from headrace_serve.errors import RequestError
from headrace_serve.models.signature import TensorInfo
from headrace_serve.requests.arrays import array_of

NAN, INF = float("nan"), float("inf")

TENSORS: list[tuple[str, str, Any, Any]] = [
    ("float32", "1", (), 1.0),
    ("float32", "[1, 2.5, -5e-1]", (3,), [1, 2.5, -0.5]),
    ("float64", "[[NaN, Infinity, -Infinity]]", (1, 3), [[NAN, INF, -INF]]),
    ("float16", "[2048, 65504]", (2,), [2048, 65504]),
    ("bfloat16", "[256, 1.5]", (2,), [256, 1.5]),
    ("float32", "[16777216, 33554432]", (2,), [16777216, 33554432]),
    ("float64", "[9007199254740992]", (1,), [9007199254740992]),
    ("int8", "[-128, 127]", (2,), [-128, 127]),
    ("uint8", "[[0], [255]]", (2, 1), [[0], [255]]),
    ("int64", "[-9223372036854775808, 9223372036854775807]", (2,), [-(2**63), 2**63 - 1]),
    ("uint64", "18446744073709551615", (), 2**64 - 1),
    ("bool", "[true, false]", (2,), [True, False]),
    ("string", '["a", "\\u00e9", ""]', (3,), [b"a", "é".encode(), b""]),
    ("string", '[["a", {"b64": "AP8="}]]', (1, 2), [[b"a", b"\x00\xff"]]),
    ("string", '{"b64": ""}', (), b""),
    ("float32", "[]", (0,), []),
    ("int32", "[[], []]", (2, 0), [[], []]),
]


@pytest.mark.parametrize(("dtype", "text", "shape", "expected"), TENSORS)
def test_json_becomes_an_array(dtype: str, text: str, shape: Any, expected: Any) -> None:
    info = TensorInfo(hr.as_dtype(dtype), None)
    found = array_of(json.loads(text), info, "x")
    assert found.shape == shape
    assert found.dtype == (object if dtype == "string" else hr.as_dtype(dtype).numpy)
    values = found.astype(np.float64).tolist() if dtype == "bfloat16" else found.tolist()
    np.testing.assert_equal(values, expected)


def test_a_float32_is_the_nearest_to_its_digits() -> None:
    found = array_of([0.1, 1e-45, 3.4028234e38], TensorInfo(hr.float32, (3,)), "x")
    assert found.tolist() == np.array([0.1, 1e-45, 3.4028234e38], np.float32).tolist()


def test_an_empty_list_has_the_other_axes_of_the_tensor() -> None:
    info = TensorInfo(hr.float32, (None, 3, 2))
    assert array_of([], info, "x").shape == (0, 3, 2)


REFUSED: list[tuple[str, Any, str, str]] = [
    ("float32", None, '"a"', "x: expected float32, got a string at the top"),
    ("float32", None, '[[1, 2], [3, "4"]]', "x: expected float32, got a string at [1][1]"),
    ("float32", None, "[1, true]", "x: expected float32, got a truth value at [1]"),
    ("float32", None, "[1, null]", "x: expected float32, got null at [1]"),
    ("float32", None, '[{"a": 1, "b": 2}]', "expected float32, got an object with 'a', 'b' at [0]"),
    ("int32", None, "[1, 2.0]", "x: expected int32, got a number with a fraction at [1]"),
    ("int32", None, "[0, 2147483648]", "x: int32 cannot hold 2147483648, at [1]"),
    ("uint8", None, "[[-1]]", "x: uint8 cannot hold -1, at [0][0]"),
    ("int64", None, f"[1{'0' * 400}]", "int64 cannot hold a number of more than 30 digits"),
    ("float64", None, f"[1, 1{'0' * 400}]", "float64 cannot hold a number of more than 30 digits"),
    ("float32", None, "[1e39]", "x: float32 cannot hold 1e+39, at [0]"),
    ("float32", None, "[0.5, 16777217]", "x: float32 cannot hold 16777217, at [1]"),
    ("float16", None, "[65536]", "x: float16 cannot hold 65536, at [0]"),
    ("bfloat16", None, "[257]", "x: bfloat16 cannot hold 257, at [0]"),
    ("bool", None, "[1]", "x: expected bool, got a number at [0]"),
    ("string", None, "[1]", 'x at [0]: expected a string or {"b64": "..."}, got a number'),
    ("string", None, '[{"b64": 1}]', 'expected a string or {"b64": "..."}, got an object with'),
    ("string", None, '[{"b64": "a"}]', "x at [0]: this is no base64"),
    ("string", None, '["\\ud800"]', "x at [0]: expected text, got half of a surrogate pair"),
    ("complex64", None, "[1]", "x: JSON has no form for values of the dtype complex64"),
    ("float32", None, "[[1], 2]", "equal lengths, got a number at [1] where [0] has a list of 1"),
    ("float32", None, "[2, [1]]", "got a list of 1 at [1] where [0] has a number"),
    ("float32", None, "[[[1], [2]], [[3], []]]", "got a list of 0 at [1][1] where [0][0] has a"),
    ("float32", (None, 3), "[[1, 2]]", "x: expected the shape [?, 3], got [1, 2]"),
    ("float32", (), "[1]", "x: expected the shape [], got [1]"),
    ("float32", (2,), "1", "x: expected the shape [2], got []"),
    ("float32", None, "[" * 40 + "]" * 40, "expected at most 32 lists inside each other, got more"),
]


@pytest.mark.parametrize(("dtype", "shape", "text", "said"), REFUSED, ids=range(len(REFUSED)))
def test_what_is_no_such_tensor_is_refused(dtype: str, shape: Any, text: str, said: str) -> None:
    info = TensorInfo(hr.as_dtype(dtype), shape)
    with pytest.raises(RequestError, match=re.escape(said)) as caught:
        array_of(json.loads(text), info, "x")
    assert caught.value.status == (501 if dtype == "complex64" else 400)


def test_a_million_elements_are_read_within_seconds() -> None:
    rows = [[float(i % 7) for i in range(1000)]] * 1000
    assert array_of(rows, TensorInfo(hr.float32, (None, 1000)), "x").sum() == np.sum(rows)
