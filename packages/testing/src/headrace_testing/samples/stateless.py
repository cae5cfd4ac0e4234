"""Samples of random ops that are functions of a seed."""

from __future__ import annotations

import numpy as np

from headrace.errors import DTypeError, ExecutionError, ShapeError
from headrace_testing.inputs import array
from headrace_testing.sample import Reject, Row, Sample
from headrace_testing.samples.elementwise import FLOATS
from headrace_testing.samples.random import of_shape, spread, standard, truncated

_FLOATING = ("StatelessRandomUniform", "StatelessRandomNormal", "StatelessTruncatedNormal")
_HOLDS = (lambda results: spread(results, 0, 1), standard, truncated)

SAMPLES: list[Row] = [
    *(
        Sample(
            op,
            [array([50, 40], "int32"), array([7, -3], "int64")],
            {"dtype": dtype},
            holds=holds,
            label=dtype,
        )
        for op, holds in zip(_FLOATING, _HOLDS, strict=True)
        for dtype in FLOATS
    ),
    *(
        Sample(
            op,
            [array(np.array(shape, np.int64), "int32"), array([1, 2], "int32")],
            {"dtype": "float32"},
            holds=of_shape(*shape),
            label=label,
        )
        for op in _FLOATING
        for label, shape in (("scalar", []), ("empty", [0, 3]), ("odd", [3, 5]))
    ),
    Sample(
        "StatelessRandomUniformInt",
        [array([40, 10], "int32"), array([1, 2], "int32"), array(3), array(9)],
        holds=lambda results: set(np.unique(results[0]).tolist()) == {3, 4, 5, 6, 7, 8},
        dtypes=["int32", "int64", "uint8"],
        label="range",
    ),
    Sample(
        "StatelessMultinomial",
        [array([[0.0, -np.inf, 0.0]], "float32"), array(60, "int32"), array([1, 2], "int32")],
        {"output_dtype": "int32"},
        holds=lambda results: set(np.asarray(results[0]).ravel().tolist()) == {0, 2},
        label="classes",
    ),
    Reject(
        "StatelessRandomUniform",
        [array([2], "int32"), array([1, 2, 3], "int32")],
        {"dtype": "float32"},
        ShapeError,
        "seed must be two integers",
        label="seed",
    ),
    Reject(
        "StatelessRandomUniform",
        [array([2], "int32"), array([1, 2], "int32")],
        {"dtype": "int32"},
        DTypeError,
        "dtype must be floating",
        label="dtype",
    ),
    Reject(
        "StatelessRandomUniform",
        [array([2], "int32"), array([1.0, 2.0], "float32")],
        {"dtype": "float32"},
        DTypeError,
        "seed must be int32 or int64",
        label="seed_dtype",
    ),
    Reject(
        "StatelessRandomUniformInt",
        [array([2], "int32"), array([1, 2], "int32"), array([5, 6], "int32"), array(7, "int32")],
        {},
        ShapeError,
        "minval must be a scalar",
        label="bounds",
    ),
    Reject(
        "StatelessRandomUniformInt",
        [array([2], "int32"), array([1, 2], "int32"), array(5, "int32"), array(5, "int32")],
        {},
        ExecutionError,
        "maxval must be above minval",
        when="run",
        label="range",
    ),
]
