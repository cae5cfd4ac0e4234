"""Samples of ops that hand tensors through."""

from __future__ import annotations

from headrace import Shape
from headrace.errors import ShapeError
from headrace_testing.inputs import integers, strings, uniform
from headrace_testing.sample import Reject, Row, Sample

FORWARDED = [
    *(
        Sample(op, [uniform(shape)], {}, lambda input: input, label=label)
        for op in ("Identity", "StopGradient")
        for label, shape in (("matrix", (3, 4)), ("scalar", ()), ("empty", (0, 2)))
    ),
    Sample(
        "IdentityN",
        [[uniform((2, 3)), integers((2,), 0, 9), strings(())]],
        {},
        lambda input: tuple(input),
    ),
    Sample(
        "IdentityN",
        [[uniform(()), uniform((0, 1))]],
        {},
        lambda input: tuple(input),
        label="scalar",
    ),
]

STATED = [
    Sample(
        "EnsureShape",
        [uniform((2, 3))],
        {"shape": Shape([None, 3])},
        lambda x, shape: x,
        label="matrix",
    ),
    Sample("EnsureShape", [uniform(())], {"shape": Shape(())}, lambda x, shape: x, label="scalar"),
    Sample("EnsureShape", [uniform((0,))], {"shape": Shape(None)}, lambda x, shape: x, label="any"),
]

DEFAULTS = [
    Sample(
        "PlaceholderWithDefault",
        [uniform((2, 3))],
        {"shape": Shape([None, 3])},
        lambda x, shape: x,
        exact_shape=False,
    ),
]

REJECTS: list[Row] = [
    Reject(
        "PlaceholderWithDefault",
        [integers((2, 3), 0, 9)],
        {"shape": Shape([None, 2])},
        ShapeError,
        "which does not fit",
    ),
    Reject(
        "EnsureShape",
        [integers((2, 3), 0, 9)],
        {"shape": Shape([None, 2])},
        ShapeError,
        "incompatible",
    ),
]

SAMPLES: list[Row] = [*FORWARDED, *STATED, *DEFAULTS, *REJECTS]
