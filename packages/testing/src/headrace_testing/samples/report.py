"""Samples of text made of tensors. What comes out is what TensorFlow's ops gave."""

from __future__ import annotations

from typing import Any

import numpy as np

from headrace.errors import AttributeValueError
from headrace_testing.inputs import array, uniform
from headrace_testing.sample import Reject, Row, Sample

_HOW = {"placeholder": "{}", "summarize": 3}


def _text(template: str, expected: str, *inputs: Any, label: str, **how: Any) -> Sample:
    return Sample(
        "StringFormat",
        [list(inputs)],
        {"template": template, **_HOW, **how},
        lambda *_, **__: np.array(expected.encode(), object),
        label=label,
    )


SAMPLES: list[Row] = [
    _text(
        "x={} y={}",
        "x=[1 2 3 ... 6 7 8] y=2.5",
        array(np.arange(1, 9), "int32"),
        array(2.5, "float32"),
        label="vector_and_scalar",
    ),
    _text("{}", "[[1 2]\n [3 4]]", array([[1, 2], [3, 4]], "int64"), label="matrix"),
    _text("%", '["a" "b\\n"]', array([b"a", b"b\n"], "string"), placeholder="%", label="strings"),
    _text("{}", "[1 0]", array([True, False], "bool"), label="booleans"),
    _text(
        "{}",
        "[0.1 0.33333333333333331 10000000000 nan inf]",
        array([0.1, 1 / 3, 1e10, np.nan, np.inf], "float64"),
        summarize=-1,
        label="doubles",
    ),
    _text(
        "{}",
        "[0.1 1e+10 ... 4 -1]",
        array([0.1, 1e10, 3, 4, -1], "float32"),
        summarize=2,
        label="floats",
    ),
    _text("nothing", "nothing", label="no_tensors"),
    _text("{}", "[]", array(np.zeros(0), "float32"), label="empty"),
    Reject(
        "StringFormat",
        [[array([1], "int32")]],
        {"template": "{} {}", **_HOW},
        AttributeValueError,
        "2 placeholders '{}' for 1 tensors",
    ),
    Reject(
        "StringFormat",
        [[array([1], "int32")]],
        {"template": "{}", "placeholder": "", "summarize": 3},
        AttributeValueError,
        "must not be empty",
        label="placeholder",
    ),
    Sample(
        "Print",
        [uniform((2, 3)), [array([1, 2], "int32"), array(b"x", "string")]],
        {"message": "", "first_n": 0, "summarize": 3},
        lambda x, data, **_: x,
        dtypes=["float32", "float64", "int32", "complex64", "string"],
        grad=["input"],
    ),
    Sample(
        "Print",
        [uniform(()), []],
        {"message": "", "first_n": 0, "summarize": 3},
        lambda x, data, **_: x,
        dtypes=["float32"],
        grad=["input"],
        label="scalar",
    ),
]
