"""Histograms by native loops: what plain kernels count, for all dtypes and numbers of threads."""

from __future__ import annotations

import numpy as np
import pytest

import headrace as hr

pytestmark = pytest.mark.needs("backend-cpu")

DTYPES = ("int32", "int64")
# How many numbers there are, and below what they lie.
NUMBERS = [(1, 5), (7, 3), (1000, 1), (50_000, 60), (3000, 70_000), (20_000, 4000)]
BOUNDS = {
    "free": {}, "least": {"minlength": 10}, "most": {"maxlength": 20},
    "fixed": {"minlength": 99, "maxlength": 99}, "none": {"minlength": 9, "maxlength": 0},
}  # fmt: skip


def check(build, *arrays):
    with hr.Graph().as_default():
        holders = [hr.placeholder(a.dtype, [None] * a.ndim) for a in arrays]
        fetches = build(*holders)
        with hr.Session(config=hr.Config(executor="plain")) as session:
            expected = session.run(fetches, dict(zip(holders, arrays, strict=True)))
        for threads in (1, 3):
            config = hr.Config(compile_after=0, compile_wait=True, threads=threads)
            with hr.Session(config=config) as session:
                for _ in range(2):
                    found = session.run(fetches, dict(zip(holders, arrays, strict=True)))
            for one, other in zip(expected, found, strict=True):
                assert (one.dtype, one.shape) == (other.dtype, other.shape)
                assert one.tobytes() == other.tobytes()


@pytest.mark.parametrize("bounds", BOUNDS.values(), ids=BOUNDS)
@pytest.mark.parametrize("dtype", DTYPES)
def test_counts(dtype, bounds):
    rng = np.random.default_rng(0)
    for count, below in NUMBERS:
        numbers = rng.integers(0, below, count).astype(dtype)
        weights = rng.integers(-9, 9, count).astype(np.float32)
        check(
            lambda n, w: (
                *(hr.bincount(n, **bounds, dtype=kind) for kind in ("int32", "int64", "float32")),
                hr.bincount(n, w, **bounds),
            ),
            numbers,
            weights,
        )


@pytest.mark.parametrize("columns", DTYPES)
@pytest.mark.parametrize("rows", DTYPES)
def test_confusion_matrices(rows, columns):
    rng = np.random.default_rng(1)
    for count, classes in ((1, 3), (5000, 10), (30_000, 200)):
        labels = rng.integers(0, classes, count).astype(rows)
        predictions = rng.integers(0, classes, count).astype(columns)
        check(
            lambda x, y, size=classes: (
                hr.confusion_matrix(x, y, size),
                hr.confusion_matrix(x, y, dtype="float64"),
                hr.confusion_matrix(x, y, size, weights=hr.cast(x, "float32")),
            ),
            labels,
            predictions,
        )


WRONG = {
    "negative": ([1, -1, 3], "must not be negative, got -1"),
    "limit": ([1, 2**31 - 1], "no number of its dtype beyond"),
    "many": ([1, 2**30], "too many"),
}


@pytest.mark.parametrize(("numbers", "text"), WRONG.values(), ids=WRONG)
def test_numbers_that_are_refused(numbers, text):
    n = hr.placeholder("int32", [None])
    with hr.Session(config=hr.Config(compile_after=0, compile_wait=True)) as session:
        counts = hr.bincount(n)
        for _ in range(2):
            assert session.run(counts, {n: [1, 1, 3]}).tolist() == [0, 2, 0, 1]
        with pytest.raises(hr.errors.HeadraceError, match=text):
            session.run(counts, {n: numbers})


@pytest.mark.parametrize("wrong", [[[3], [0]], [[0], [3]], [[-1], [0]], [[0], [-1]]])
def test_classes_out_of_range_are_refused(wrong):
    x, y = hr.placeholder("int32", [None]), hr.placeholder("int64", [None])
    with hr.Session(config=hr.Config(compile_after=0, compile_wait=True)) as session:
        matrix = hr.confusion_matrix(x, y, 3)
        for _ in range(2):
            session.run(matrix, {x: [1], y: [2]})
        with pytest.raises(hr.errors.HeadraceError, match=r"out of range \[0, 3\)"):
            session.run(matrix, {x: wrong[0], y: wrong[1]})


@pytest.mark.parametrize("dtype", DTYPES)
def test_segments_of_sorted_ids(dtype):
    rng = np.random.default_rng(2)
    for count, below in ((1, 1), (1, 9), (640, 64), (30_000, 500)):
        ids = np.sort(rng.integers(0, below, count)).astype(dtype)
        rows = rng.integers(-9, 9, (count, 3)).astype(np.float32)
        check(lambda x, i: (hr.segment_sum(x, i), hr.segment_mean(x, i)), rows, ids)


@pytest.mark.parametrize("ids", [[0, 2, 1], [-1, 0, 1], [-2, -1, -1]])
def test_ids_in_no_order_are_refused(ids):
    x, i = hr.placeholder("float32", [None]), hr.placeholder("int32", [None])
    told = []
    for config in ({"executor": "plain"}, {"compile_after": 0, "compile_wait": True}):
        with hr.Session(config=hr.Config(**config)) as session:
            sums = hr.segment_sum(x, i, name="sums")
            for _ in range(2):
                assert session.run(sums, {x: [1, 2, 3], i: [0, 0, 2]}).tolist() == [3, 0, 3]
            with pytest.raises(hr.errors.HeadraceError, match="segment_ids must be") as info:
                session.run(sums, {x: [1, 2, 3], i: ids})
            told.append(str(info.value).splitlines()[0])
    assert told[0] == told[1]
