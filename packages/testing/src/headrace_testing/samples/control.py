"""Samples of control flow, of the outputs that live."""

from __future__ import annotations

import numpy as np

from headrace.errors import DTypeError, ShapeError
from headrace_testing.inputs import array, booleans, integers, strings, uniform
from headrace_testing.sample import Reject, Row, Sample

SAMPLES: list[Row] = [
    *(
        Sample(
            "Switch",
            [uniform(shape), array(taken, "bool")],
            {},
            lambda data, pred: data,
            outputs=(int(taken),),
            label=f"{label}_{taken}".lower(),
        )
        for taken in (False, True)
        for label, shape in (("matrix", (2, 3)), ("scalar", ()), ("empty", (0, 2)))
    ),
    *(
        Sample(
            "Merge",
            [[uniform(shape)]],
            {},
            lambda inputs: (inputs[0], np.int32(0)),
            label=label,
        )
        for label, shape in (("matrix", (2, 3)), ("scalar", ()), ("empty", (0, 2)))
    ),
    Reject("Switch", [integers((2,), 0, 9), booleans((2,))], {}, ShapeError, "must be a scalar"),
    Reject(
        "Switch",
        [integers((2,), 0, 9), array(1, "int32")],
        {},
        DTypeError,
        "bool, got int32",
        label="dtype",
    ),
    Reject("Merge", [[integers((2,), 0, 9), strings((2,))]], {}, DTypeError, "string"),
]
