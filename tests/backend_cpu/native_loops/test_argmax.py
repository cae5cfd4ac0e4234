"""Places of largest and smallest elements by native loops: those that the plain kernels find."""

from __future__ import annotations

import numpy as np
import pytest

import headrace as hr
from headrace import as_dtype

pytestmark = pytest.mark.needs("backend-cpu")

DTYPES = ("float32", "float64", "float16", "bfloat16", "int8", "uint8", "int16", "uint16", "int32",
          "uint32", "int64", "uint64")  # fmt: skip
# The shape, and the axis that is searched.
SHAPES = [((300, 10), 1), ((40, 64), -1), ((7,), 0), ((9, 30), 0), ((3, 5, 40), 1), ((2, 3, 1), 2),
          ((70, 1), 0), ((5, 2, 1500), 1), ((3, 2000), 1)]  # fmt: skip


def values_of(dtype, shape):
    kind = as_dtype(dtype).numpy
    rng = np.random.default_rng(0)
    if kind.kind in "iu":
        limits = np.iinfo(kind)
        values = rng.integers(0, 9, shape).astype(kind)
        values.flat[:: max(values.size // 7, 1)] = limits.max
        values.flat[1 :: max(values.size // 5, 1)] = limits.min
        return values
    values = np.round(rng.standard_normal(shape) * 4)
    for step, value in ((3, 0.0), (5, -0.0), (7, np.nan), (11, np.inf), (13, -np.inf)):
        values.flat[::step] = value
    values[..., :1] = np.where(rng.random((*shape[:-1], 1)) < 0.3, np.nan, values[..., :1])
    return values.astype(kind)


@pytest.mark.parametrize("dtype", DTYPES)
def test_places_of_extremes(dtype):
    for shape, axis in SHAPES:
        given = values_of(dtype, shape)
        with hr.Graph().as_default():
            x = hr.placeholder(given.dtype, [None] * given.ndim)
            places = [
                search(x, axis, output_type=kind)
                for search in (hr.argmax, hr.argmin)
                for kind in ("int32", "int64")
            ]
            with hr.Session(config=hr.Config(executor="plain")) as session:
                expected = session.run(places, {x: given})
            for threads in (1, 3):
                config = hr.Config(compile_after=0, compile_wait=True, threads=threads)
                with hr.Session(config=config) as session:
                    for _ in range(2):
                        found = session.run(places, {x: given})
                for one, other in zip(expected, found, strict=True):
                    assert (one.dtype, one.shape) == (other.dtype, other.shape)
                    assert one.tolist() == other.tolist(), (shape, axis, threads)


def test_rows_of_nothing_but_nan_and_the_worst():
    rows = np.float32([[np.nan] * 3, [np.nan, -np.inf, np.nan], [np.inf, np.nan, np.inf]])
    x = hr.placeholder("float32", [3, 3])
    fetches = [hr.argmax(x, 1), hr.argmin(x, 1), hr.argmax(x, 0), hr.argmin(x, 0)]
    with hr.Session(config=hr.Config(executor="plain")) as session:
        expected = [each.tolist() for each in session.run(fetches, {x: rows})]
    with hr.Session(config=hr.Config(compile_after=0, compile_wait=True)) as session:
        for _ in range(2):
            found = [each.tolist() for each in session.run(fetches, {x: rows})]
    assert found == expected


def test_an_empty_axis_is_refused():
    x = hr.placeholder("float32", [None, None])
    with hr.Session(config=hr.Config(compile_after=0, compile_wait=True)) as session:
        found = hr.argmax(x, 1)
        for _ in range(2):
            assert session.run(found, {x: [[1, 3, 2]]}).tolist() == [1]
        with pytest.raises(hr.errors.HeadraceError, match="is empty: no index to find"):
            session.run(found, {x: np.zeros((3, 0), np.float32)})
