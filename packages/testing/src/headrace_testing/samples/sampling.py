"""Samples of ops that draw from distributions with parameters: moments, ranges, and refusals."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from headrace.errors import AttributeValueError, DTypeError, ExecutionError, ShapeError
from headrace_testing.inputs import array
from headrace_testing.sample import Reject, Row, Sample
from headrace_testing.samples.elementwise import FLOATS

_SEEDS = (7, 3)
_MANY = 4000


def _moments(means: Any, variances: Any) -> Callable[[list[Any]], bool]:
    """Check means and variances of columns: within six of their standard errors, or nearly."""

    def holds(results: list[Any]) -> bool:
        values = np.asarray(results[0]).astype(np.float64)
        mean, variance = values.mean(0), values.var(0)
        error = 6 * np.sqrt(np.asarray(variances) / len(values))
        near = np.abs(mean - means) <= error + 0.01 * np.abs(means)
        return bool((near & (np.abs(variance / variances - 1) < 0.35)).all())

    return holds


def _of_shape(*shape: int) -> Callable[[list[Any]], bool]:
    return lambda results: np.shape(results[0]) == shape


# Computed with 50 digits: minus the derivative of the distribution function by alpha, divided by
# the density, for alpha 0.5, 4 and 32 and samples 0.25, 3, 8 and 40.
_DERIVATIVES = np.array(
    [
        [0.9080144917641113, 2.912942416440365, 3.928629348148958, 5.608063777992852],
        [0.1908802462713393, 0.8995215859245937, 1.444830417495179, 2.6528690106078],
        [0.03831996465442435, 0.2459507145630313, 0.4643618222191963, 1.121538930966897],
    ]
)

_CLASSES = np.log([[0.1, 0.2, 0.7], [0.5, 0.5, 1e-30]])


def _frequencies(results: list[Any]) -> bool:
    drawn = np.asarray(results[0])
    first = np.bincount(drawn[0], minlength=3) / drawn.shape[1]
    second = np.bincount(drawn[1], minlength=3) / drawn.shape[1]
    return bool(
        np.abs(first - [0.1, 0.2, 0.7]).max() < 0.05
        and abs(second[0] - 0.5) < 0.05
        and not second[2]
    )


SAMPLES: list[Row] = [
    *(
        Sample(
            "RandomGamma",
            [array([_MANY], "int32"), array([0.5, 1.0, 20.0], dtype)],
            {"seeds": _SEEDS},
            holds=_moments([0.5, 1.0, 20.0], [0.5, 1.0, 20.0]),
            label=dtype,
        )
        for dtype in FLOATS
    ),
    Sample(
        "RandomGamma",
        [array([2], "int64"), array([-1.0, np.nan, 0.0, np.inf], "float32")],
        {"seeds": None},
        holds=lambda results: np.array_equal(
            results[0], [[np.nan, np.nan, 0, np.inf]] * 2, equal_nan=True
        ),
        label="special",
    ),
    *(
        Sample(
            "RandomGamma",
            [array(np.array(shape, np.int64), "int32"), array(np.ones(of), "float32")],
            {"seeds": None},
            holds=_of_shape(*shape, *of),
            label=label,
        )
        for label, shape, of in (("scalar", [], ()), ("empty", [0, 3], (2,)), ("none", [2], (0,)))
    ),
    Sample(
        "RandomGammaGrad",
        [array([[0.5], [4.0], [32.0]]), array([0.25, 3.0, 8.0, 40.0])],
        oracle=lambda a, z: _DERIVATIVES,
        label="broadcast",
    ),
    Sample(
        "RandomGammaGrad",
        [array([1.0, np.nan, 2.0]), array([np.nan, 1.0, 0.0])],
        oracle=lambda a, z: np.array([np.nan, np.nan, 0.0]),
        label="special",
    ),
    *(
        Sample(
            "RandomPoisson",
            [array([_MANY], "int32"), array([0.5, 9.0, 80.0], rate)],
            {"dtype": dtype, "seeds": _SEEDS},
            holds=_moments([0.5, 9.0, 80.0], [0.5, 9.0, 80.0]),
            label=f"{rate}_{dtype}",
        )
        for rate, dtype in (
            ("float32", "float32"),
            ("float64", "int32"),
            ("float16", "float64"),
            ("float32", "int64"),
        )
    ),
    Sample(
        "RandomPoisson",
        [array([2], "int64"), array([-1.0, np.nan, 0.0, np.inf], "float32")],
        {"dtype": "float32", "seeds": None},
        holds=lambda results: np.array_equal(
            results[0], [[np.nan, np.nan, 0, np.inf]] * 2, equal_nan=True
        ),
        label="special",
    ),
    Sample(
        "RandomPoisson",
        [array([0, 3], "int32"), array(2, "int32")],
        {"dtype": "int32", "seeds": None},
        holds=_of_shape(0, 3),
        label="empty",
    ),
    *(
        Sample(
            "Multinomial",
            [array(_CLASSES, logits), array(_MANY, "int32")],
            {"output_dtype": dtype, "seeds": _SEEDS},
            holds=_frequencies,
            label=f"{logits}_{dtype}",
        )
        for logits, dtype in (("float32", "int64"), ("float64", "int32"))
    ),
    Sample(
        "Multinomial",
        [
            array([[-np.inf, 0, -np.inf], [np.inf, 0, np.nan], [0, 0, -np.inf]], "float32"),
            array(50, "int64"),
        ],
        {"output_dtype": "int64", "seeds": _SEEDS},
        holds=lambda results: bool((results[0][:2] == 1).all() and set(results[0][2]) == {0, 1}),
        label="special",
    ),
    *(
        Sample(
            "Multinomial",
            [array(np.zeros(shape), "float32"), array(count, "int32")],
            {"output_dtype": "int64", "seeds": None},
            holds=_of_shape(shape[0], count),
            label=label,
        )
        for label, shape, count in (
            ("no_batch", (0, 3), 2),
            ("none", (2, 3), 0),
            ("no_classes", (2, 0), 0),
        )
    ),
    Reject(
        "RandomPoisson",
        [array([1], "int32"), array(-1.0, "float32")],
        {"dtype": "int32", "seeds": None},
        ExecutionError,
        "means must be finite and >= 0",
        when="run",
        label="negative",
    ),
    Reject(
        "RandomPoisson",
        [array([1], "int32"), array(1.0, "float32")],
        {"dtype": "bool", "seeds": None},
        DTypeError,
        "floating or integer",
        label="dtype",
    ),
    Reject(
        "RandomGamma",
        [array([1], "int32"), array(1, "int32")],
        {"seeds": None},
        DTypeError,
        "alpha must be floating",
        label="dtype",
    ),
    *(
        Reject(
            "Multinomial",
            [array(np.zeros(shape), "float32"), array(count, "int32")],
            {"output_dtype": dtype, "seeds": None},
            error,
            match,
            label=label,
        )
        for label, shape, count, dtype, error, match in (
            ("rank", (3,), 1, "int32", ShapeError, "batch, classes"),
            ("count", (1, 3), -1, "int32", AttributeValueError, "num_samples must be >= 0"),
            ("counts", (1, 3), [1], "int32", ShapeError, "num_samples must be a scalar"),
            ("dtype", (1, 3), 1, "int8", DTypeError, "int32 or int64"),
        )
    ),
    *(
        Reject(
            "Multinomial",
            [array(values, "float32"), array(1, "int32")],
            {"output_dtype": "int64", "seeds": None},
            ExecutionError,
            match,
            when="run",
            label=label,
        )
        for label, values, match in (
            ("no_classes", np.zeros((2, 0)), "at least one class"),
            ("infinite", [[0.0, 1.0], [-np.inf, np.nan]], "one finite element"),
        )
    ),
]
