"""Reductions that take a few short rows in one step: what they are row by row."""

from __future__ import annotations

import re

import numpy as np
import pytest

import headrace as hr
from headrace_cpu.fusion import loops

# Shapes and the axis that is reduced: in bands, between others, first, and with gaps in vectors.
SHAPES = [
    ((16, 12, 12), 1), ((40, 16, 8), 1), ((30, 3, 33), 1), ((9, 30), 0), ((20, 5, 4, 12), 2),
    ((6, 7, 64), 1), ((5, 4, 3, 17), (1, 2)),
]  # fmt: skip
FOLDS = {
    "reduce_sum": np.sum, "reduce_max": np.max, "reduce_min": np.min, "reduce_prod": np.prod,
}  # fmt: skip


def reduced(fold, x, axis, threads, monkeypatch, most):
    monkeypatch.setattr(loops, "_MOST_TOGETHER", most)
    given = hr.placeholder(x.dtype.name, x.shape)
    y = getattr(hr, fold)(given * 2 + 1, axis)
    config = hr.Config(compile_after=0, compile_wait=True, verify=True, threads=threads)
    with hr.Session(config=config) as session:
        found = [session.run(y, {given: x}) for _ in range(2)][-1]
        return found, session.explain(y).source()


@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("dtype", ["float32", "float64", "int32", "int64"])
@pytest.mark.parametrize("fold", FOLDS)
@pytest.mark.parametrize(("shape", "axis"), SHAPES, ids=str)
def test_rows_taken_at_once_are_reduced_as_one_by_one(
    shape, axis, fold, dtype, threads, monkeypatch
):
    rng = np.random.default_rng(len(shape))
    x = rng.integers(-3, 4, shape) if dtype[0] == "i" else rng.normal(size=shape)
    x = x.astype(dtype)
    if fold in ("reduce_max", "reduce_min") and dtype[0] == "f":
        x.reshape(-1)[[3, 40]] = np.nan, -np.inf
    found, source = reduced(fold, x, axis, threads, monkeypatch, 16)
    single, other = reduced(fold, x, axis, threads, monkeypatch, 0)
    assert source != other
    wanted = FOLDS[fold](x * 2 + 1, axis).astype(dtype)
    # One by one, LLVM may add up rows in any order; at once they are added in theirs, as by NumPy.
    near = {"rtol": 2e-4 if dtype == "float32" else 1e-9, "atol": 1e-4}
    np.testing.assert_allclose(found, single, **near)
    if isinstance(axis, int) and threads == 1:
        np.testing.assert_array_equal(found, wanted)
    np.testing.assert_allclose(found, wanted, **near)


def test_positions_along_what_is_reduced_are_those_of_each_row():
    x = np.random.default_rng(0).normal(size=(8, 5, 20)).astype("float32")
    given = hr.placeholder("float32", x.shape)
    places = hr.reshape(hr.cast(hr.range(5), "float32"), [1, 5, 1])
    y = hr.reduce_sum(given * places, 1)
    with hr.Session(config=hr.Config(compile_after=0, compile_wait=True, verify=True)) as session:
        found = [session.run(y, {given: x}) for _ in range(2)][-1]
    np.testing.assert_allclose(found, np.einsum("abc,b->ac", x, np.arange(5)), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("kind", ["int32", "int64"])
@pytest.mark.parametrize("dtype", ["float32", "float64", "int32", "int64"])
@pytest.mark.parametrize("name", ["argmax", "argmin"])
@pytest.mark.parametrize(("shape", "axis"), [((16, 12, 12), 1), ((4, 9), 0), ((3, 16, 4, 13), -3)])
def test_places_of_extremes_are_the_first_of_equals_and_never_those_of_nan(
    shape, axis, name, dtype, kind, threads
):
    rng = np.random.default_rng(1)
    x = rng.integers(-2, 3, shape).astype(dtype)
    first = np.moveaxis(x, axis, 0)
    if dtype[0] == "f":
        first[1, ..., 2] = np.nan
        first[:, ..., 3] = np.nan
        first[:, ..., 4] = -np.inf
        first[:, ..., 5] = np.inf
        first[0, ..., 6], first[1:, ..., 6] = -0.0, 0.0
    else:
        limits = np.iinfo(dtype)
        first[:, ..., 2], first[:, ..., 3] = limits.min, limits.max
    given = hr.placeholder(dtype, shape)
    y = getattr(hr, name)(hr.reverse(given, [0]) + 0, axis, output_type=kind)
    found = []
    for settings in ({"executor": "plain"}, {"compile_after": 0, "compile_wait": True}):
        with hr.Session(config=hr.Config(threads=threads, **settings)) as session:
            found.append([session.run(y, {given: x}) for _ in range(2)][-1])
            source = session.explain(y).source()
    op = {"argmax": "ArgMax", "argmin": "ArgMin"}[name]
    assert re.search(rf"^# .*\b{op}\n# space", source, re.MULTILINE)
    np.testing.assert_array_equal(found[0], found[1])
    assert found[1].dtype == kind
    worst = -np.inf if name == "argmax" else np.inf
    known = x[::-1].astype(object)
    known[np.isnan(x[::-1].astype("float64"))] = worst
    np.testing.assert_array_equal(found[1], getattr(np, name)(known, axis))


def test_places_along_other_axes_are_left_to_sweeps():
    x = np.random.default_rng(2).normal(size=(6, 17, 9, 70)).astype("float32")
    given = hr.placeholder("float32", x.shape)
    for axis in (1, 2, 3):
        y = hr.argmax(given * 2, axis)
        with hr.Session(config=hr.Config(compile_after=0, compile_wait=True)) as session:
            found = [session.run(y, {given: x}) for _ in range(2)][-1]
            assert not re.search(r"\bArgMax\n# space", session.explain(y).source())
        np.testing.assert_array_equal(found, np.argmax(x, axis))
