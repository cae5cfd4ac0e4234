"""Samples of activation functions."""

from __future__ import annotations

import numpy as np

from headrace_testing.inputs import array, uniform
from headrace_testing.sample import Row, Sample
from headrace_testing.samples.elementwise import FLOATS

ACTIVATIONS = [
    Sample(
        "Relu",
        [uniform((4, 5), -3, 3, away_from=0.0)],
        {},
        lambda features: np.maximum(features, 0),
    ),
    Sample(
        "Relu",
        [array([np.nan, np.inf, -np.inf, 0.0, -0.0])],
        {},
        lambda features: np.maximum(features, 0),
        dtypes=FLOATS,
        grad=False,
        label="special",
    ),
    Sample("Softplus", [uniform((4, 5), -3, 3)], {}, lambda x: np.log1p(np.exp(x))),
    Sample(
        "Softplus",
        [array([-800.0, -0.0, 800.0, np.inf, -np.inf, np.nan])],
        {},
        lambda x: np.maximum(x, 0.0) + np.log1p(np.exp(-np.abs(x))),
        grad=False,
        label="large",
    ),
]

SAMPLES: list[Row] = [*ACTIVATIONS]
