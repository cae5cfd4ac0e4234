"""Samples of candidate samplers: what they draw has no oracle, but rules that it must keep."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from headrace.errors import AttributeValueError, ExecutionError, ShapeError
from headrace_testing.inputs import array, integers
from headrace_testing.sample import Reject, Row, Sample

_SEEDS = (7, 3)
_TRUE = array([[0, 4], [3, 3], [9, 1]], "int64")
_TRUE_CLASSES = np.array([[0, 4], [3, 3], [9, 1]])


def _log_uniform(size: int) -> Any:
    return np.diff(np.log(np.arange(1, size + 2))) / np.log(size + 1)


def _right(chances: Any, *, unique: bool) -> Callable[[list[Any]], bool]:
    """Whether classes are in range, unique if asked for, and have the counts of their chances."""

    def holds(results: list[Any]) -> bool:
        sampled, true_expected, sampled_expected = map(np.asarray, results)
        count = sampled.size
        if sampled.min() < 0 or sampled.max() >= chances.size:
            return False
        if not unique:
            return np.allclose(true_expected, chances[_TRUE_CLASSES] * count, 1e-5) and np.allclose(
                sampled_expected, chances[sampled] * count, 1e-5
            )
        # All counts stand for one number of tries, at least that of the classes.
        p = np.concatenate([chances[_TRUE_CLASSES].ravel(), chances[sampled]])
        got = np.concatenate([true_expected.ravel(), sampled_expected])
        with np.errstate(all="ignore"):
            tries = np.log1p(-got.astype(np.float64)) / np.log1p(-p)
        first_try = np.allclose(got, p * count, 1e-5)
        usable = tries[(p > 0) & (got < 0.99)]
        one = first_try or (np.allclose(usable, usable.mean(), 1e-3) and usable.mean() >= count - 1)
        return len(set(sampled.tolist())) == count and bool(one)

    return holds


def _attrs(num_sampled: int, unique: bool, **more: Any) -> dict[str, Any]:
    return {
        "num_true": 2,
        "num_sampled": num_sampled,
        "unique": unique,
        "range_max": 10,
        "seeds": _SEEDS,
        **more,
    }


_UNIGRAMS = (4.0, 1.0, 0.0, 9.0, 16.0, 1.0, 1.0, 0.25, 4.0, 25.0)
_ROOTS = np.sqrt(np.array(_UNIGRAMS)) / np.sqrt(np.array(_UNIGRAMS)).sum()
_FIXED = {
    "vocab_file": "",
    "distortion": 0.5,
    "num_reserved_ids": 0,
    "num_shards": 1,
    "shard": 0,
    "unigrams": _UNIGRAMS,
}

DRAWN: list[Row] = [
    Sample(op, [_TRUE], _attrs(count, unique, **more), holds=_right(p, unique=unique), label=label)
    for op, p, more in (
        ("UniformCandidateSampler", np.full(10, 0.1), {}),
        ("LogUniformCandidateSampler", _log_uniform(10), {}),
        ("LearnedUnigramCandidateSampler", np.full(10, 0.1), {}),
        ("FixedUnigramCandidateSampler", _ROOTS, _FIXED),
    )
    for label, count, unique in (("repeated", 25, False), ("unique", 4, True), ("most", 9, True))
]

HITS: list[Row] = [
    Sample(
        "AllCandidateSampler",
        [_TRUE],
        {"num_true": 2, "num_sampled": 10, "unique": True},
        lambda true_classes, **_: (np.arange(10), np.ones((3, 2)), np.ones(10)),
    ),
    Sample(
        "ComputeAccidentalHits",
        [_TRUE, array([3, 5, 0, 9, 3], "int64")],
        {"num_true": 2},
        lambda *_, **__: (
            np.array([0, 1, 1, 2]),
            np.array([2, 4, 4, 3]),
            np.full(4, np.finfo(np.float32).min),
        ),
        exact_shape=False,
    ),
    Sample(
        "ComputeAccidentalHits",
        [_TRUE, array([], "int64")],
        {"num_true": 2},
        lambda *_, **__: (np.zeros(0), np.zeros(0), np.zeros(0)),
        exact_shape=False,
        label="none",
    ),
]

_CLASSES = integers((3, 2), 0, 10, "int64")
REJECTS: list[Row] = [
    Reject(
        "UniformCandidateSampler",
        [_CLASSES],
        _attrs(11, True),
        AttributeValueError,
        "unique classes cannot be drawn",
        label="unique",
    ),
    Reject(
        "UniformCandidateSampler",
        [_CLASSES],
        _attrs(0, False),
        AttributeValueError,
        r"num_sampled must be in \[1",
        label="count",
    ),
    Reject(
        "LogUniformCandidateSampler",
        [_CLASSES],
        _attrs(2, False, num_true=3),
        ShapeError,
        "num_true=3",
        label="shape",
    ),
    Reject(
        "LogUniformCandidateSampler",
        [_CLASSES],
        _attrs(2, False, range_max=0),
        AttributeValueError,
        "range_max must be",
        label="range",
    ),
    Reject(
        "LearnedUnigramCandidateSampler",
        [array([[3, 10]], "int64")],
        _attrs(2, False),
        ExecutionError,
        "index 10 is out of range",
        when="run",
        label="class",
    ),
    Reject(
        "LearnedUnigramCandidateSampler",
        [_CLASSES],
        _attrs(2, False, range_max=2**40),
        AttributeValueError,
        "a weight for each class",
        label="memory",
    ),
    Reject(
        "FixedUnigramCandidateSampler",
        [_CLASSES],
        _attrs(2, False, **{**_FIXED, "unigrams": ()}),
        AttributeValueError,
        "one of vocab_file and unigrams",
        label="counts",
    ),
    Reject(
        "FixedUnigramCandidateSampler",
        [_CLASSES],
        _attrs(2, False, **{**_FIXED, "num_shards": 2, "shard": 2}),
        AttributeValueError,
        "0 <= shard < num_shards",
        label="shard",
    ),
    Reject(
        "FixedUnigramCandidateSampler",
        [_CLASSES],
        _attrs(2, False, **{**_FIXED, "num_reserved_ids": 3}),
        ExecutionError,
        "need as many counts",
        when="run",
        label="reserved",
    ),
    Reject(
        "FixedUnigramCandidateSampler",
        [_CLASSES],
        _attrs(10, True, **_FIXED),
        ExecutionError,
        "only 9 have a weight",
        when="run",
        label="weights",
    ),
    Reject(
        "FixedUnigramCandidateSampler",
        [_CLASSES],
        _attrs(2, False, **{**_FIXED, "unigrams": (0.0,) * 10}),
        ExecutionError,
        "add up to a number > 0",
        when="run",
        label="zeros",
    ),
    Reject(
        "FixedUnigramCandidateSampler",
        [_CLASSES],
        _attrs(2, False, **{**_FIXED, "unigrams": (), "vocab_file": "no/such/file"}),
        ExecutionError,
        "no/such/file",
        when="run",
        label="file",
    ),
    Reject(
        "AllCandidateSampler",
        [_CLASSES],
        {"num_true": 1, "num_sampled": 4, "unique": True},
        ShapeError,
        "num_true=1",
    ),
    Reject(
        "ComputeAccidentalHits",
        [_CLASSES, _CLASSES],
        {"num_true": 2},
        ShapeError,
        "must be a vector",
    ),
]

SAMPLES: list[Row] = [*DRAWN, *HITS, *REJECTS]
