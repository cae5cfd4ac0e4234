"""Folds of picked rows are one kernel, with the bits of the operations by themselves."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import headrace as hr
from headrace import as_dtype

pytestmark = pytest.mark.needs("autodiff")

ROWS, PICKED, NUMBER = 400, 5000, 300


def _run(build: Callable[..., Any], arrays: Any, **settings: Any) -> tuple[Any, str]:
    with hr.Graph().as_default():
        holders = [hr.placeholder(as_dtype(a.dtype), a.shape) for a in arrays]
        fetches = build(*holders)
        feeds = dict(zip(holders, arrays, strict=True))
        with hr.Session(config=hr.Config(**settings)) as session:
            found = session.run(fetches, feeds)
            return found, str(session.explain(fetches, feeds))


def _check(build: Callable[..., Any], *arrays: Any, fused: bool = True) -> None:
    expected, _ = _run(build, arrays, executor="plain")
    # With no kernels yet, the instruction runs the plain ones.
    for settings in ({"threads": 1}, {"threads": 2}, {"threads": 3}, {"compile_after": 9}):
        found, explained = _run(build, arrays, **{"compile_after": 0, **settings})
        assert ("fold_picked" in explained) == fused
        np.testing.assert_array_equal(found, expected)
        assert found.dtype == expected.dtype


def _arrays(dtype: str, *row: int, least: int = -1) -> tuple[Any, Any, Any]:
    rng = np.random.default_rng(sum(row) + len(dtype))
    table = np.round(rng.standard_normal((ROWS, *row)) * 4).astype(dtype)
    picks = rng.integers(0, ROWS, PICKED).astype(np.int32)
    return table, picks, rng.integers(least, NUMBER, PICKED).astype(np.int64)


@pytest.mark.parametrize("fold", ["sum", "prod", "max", "min"])
@pytest.mark.parametrize("dtype", ["float32", "float64", "int32", "int8"])
def test_rows_are_folded_as_they_are_picked(dtype, fold) -> None:
    folded = getattr(hr, f"unsorted_segment_{fold}")
    for row in ((), (3,), (16,), (5, 30)):
        table, picks, ids = _arrays(dtype, *row)
        for order in (ids, np.sort(ids), np.sort(ids) * 0 + 7):
            _check(lambda t, p, i: folded(hr.gather(t, p), i, NUMBER), table, picks, order)


@pytest.mark.parametrize("row", [(), (3,), (70,), (4, 9)])
def test_weights_of_rows_come_along(row) -> None:
    table, picks, ids = _arrays("float32", *row)
    weights = np.random.default_rng(1).standard_normal(PICKED).astype(np.float32)
    column = weights.reshape((PICKED, *(1,) * len(row)))

    def build(t, p, i, w, first=True):
        rows = hr.gather(t, p)
        return hr.unsorted_segment_sum(w * rows if first else rows * w, i, NUMBER)

    for order in (ids, np.sort(ids)):
        _check(build, table, picks, order, column)
        _check(lambda *a: build(*a, first=False), table, picks, order, column)


def test_weights_of_elements_are_multiplied_before() -> None:
    table, picks, ids = _arrays("float32", 16)
    weights = np.random.default_rng(1).standard_normal((PICKED, 16)).astype(np.float32)
    one = weights[:1]
    for each in (weights, one):
        _check(
            lambda t, p, i, w: hr.unsorted_segment_sum(hr.gather(t, p) * w, i, NUMBER),
            *(table, picks, ids, each),
            fused=False,
        )

    def squared(t, p, i):
        rows = hr.gather(t, p)
        return hr.unsorted_segment_sum(rows * rows, i, NUMBER)

    _check(squared, table[:, 0].copy(), picks, ids, fused=False)


def test_picked_rows_that_others_read_are_stored() -> None:
    def build(t, p, i):
        rows = hr.gather(t, p)
        return hr.unsorted_segment_sum(rows, i, NUMBER) * hr.reduce_sum(rows)

    _check(build, *_arrays("float32", 8), fused=False)


@pytest.mark.parametrize("after", [0, 9])
@pytest.mark.parametrize("threads", [1, 2])
def test_what_is_out_of_range_is_told_of_who_picks_or_folds(threads, after) -> None:
    def build(t, p, i):
        return hr.unsorted_segment_sum(hr.gather(t, p, name="pick"), i, NUMBER, name="fold")

    table, picks, ids = _arrays("float32", 8)
    settings = {"compile_after": after, "threads": threads}
    wrong, far = picks.copy(), ids.copy()
    wrong[4000], far[4000] = ROWS, NUMBER
    with pytest.raises(hr.errors.InvalidInputError, match=r"(?s)index 400 is out of.*'pick'"):
        _run(build, (table, wrong, ids), **settings)
    with pytest.raises(hr.errors.InvalidInputError, match=r"(?s)index 300 is out of.*'fold'"):
        _run(build, (table, picks, far), **settings)


def test_gradients_through_messages_are_folded_as_they_are_picked() -> None:
    table, picks, ids = _arrays("float32", 8, least=0)

    def build(t, p, i):
        sums = hr.unsorted_segment_sum(hr.gather(t * 2.0, p), i, NUMBER)
        return hr.gradients(hr.reduce_sum(hr.square(sums)), [t])[0]

    _check(build, table, picks, ids)


@pytest.mark.parametrize("dtype", ["float32", "float64", "uint8", "int16", "bool", "complex64"])
@pytest.mark.parametrize("axes", [(0, 1), (1, 0), (2, 0), (0, 2), (1, 2), (-1, 0)])
def test_sequences_reversed(axes, dtype):
    rng = np.random.default_rng(0)
    for shape in ((7, 9, 5), (30, 40, 1), (6, 5, 4, 3), (3, 3, 0), (0, 4, 2), (70, 60, 16)):
        x = (rng.normal(size=shape) * 50).astype(dtype)
        seq, batch = (axis % len(shape) for axis in axes)
        for index in ("int32", "int64"):
            lengths = rng.integers(0, shape[seq] + 1, shape[batch]).astype(index)
            with hr.Graph().as_default():
                holder, given = hr.placeholder(dtype, shape), hr.placeholder(index, lengths.shape)
                y = hr.reverse_sequence(holder, given, seq_axis=axes[0], batch_axis=axes[1])
                found = []
                for config in ({"executor": "plain"}, {"compile_after": 0, "compile_wait": True}):
                    with hr.Session(config=hr.Config(**config)) as session:
                        for _ in range(2):
                            values = session.run(y, {holder: x, given: lengths})
                        found.append(values)
            assert found[0].dtype == found[1].dtype
            assert found[0].tobytes() == found[1].tobytes()


@pytest.mark.parametrize("length", [-1, 10])
def test_sequences_that_are_longer_than_there_are_elements_are_refused(length):
    x, lengths = hr.placeholder("float32", [2, 9, 3]), hr.placeholder("int32", [2])
    y = hr.reverse_sequence(x, lengths, seq_axis=1)
    config = hr.Config(compile_after=0, compile_wait=True)
    with hr.Session(config=config) as session:
        for _ in range(2):
            with pytest.raises(hr.errors.HeadraceError, match="out of range"):
                session.run(y, {x: np.zeros((2, 9, 3), np.float32), lengths: [3, length]})
