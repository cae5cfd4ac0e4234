"""Samples of checks of values."""

from __future__ import annotations

import numpy as np

from headrace.errors import DTypeError, ExecutionError
from headrace_testing.inputs import array, integers, uniform
from headrace_testing.sample import Reject, Row, Sample

_MESSAGE = {"message": "loss"}

SAMPLES: list[Row] = [
    Sample("CheckNumerics", [uniform((4, 5))], _MESSAGE, lambda tensor, message: tensor),
    Reject(
        "CheckNumerics",
        [array([1.0, np.nan], "float32")],
        _MESSAGE,
        ExecutionError,
        "loss: tensor had NaN values",
        when="run",
        label="nan",
    ),
    Reject(
        "CheckNumerics",
        [array([np.inf, np.nan], "float64")],
        _MESSAGE,
        ExecutionError,
        "loss: tensor had Inf and NaN values",
        when="run",
        label="both",
    ),
    Reject("CheckNumerics", [integers((2,), 0, 9)], _MESSAGE, DTypeError, "floating, got int32"),
]
