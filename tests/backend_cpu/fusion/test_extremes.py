"""The largest and smallest of what kernels compute row by row: NaN wins wherever it is."""

from __future__ import annotations

import numpy as np
import pytest

import headrace as hr

# Reductions of x [4, 9, 33]: of sums of rows, which a kernel takes one by one, and over an outer
# axis, which it takes for all columns at once.
FOLDS = {
    "largest sum": (
        lambda x: hr.reduce_max(hr.reduce_sum(x * 2, 2), 1),
        lambda x: (x * 2).sum(2).max(1),
    ),
    "smallest sum": (
        lambda x: hr.reduce_min(hr.reduce_sum(x * 2, 2), 1),
        lambda x: (x * 2).sum(2).min(1),
    ),
    "largest of each column": (lambda x: hr.reduce_max(x * 2, 1), lambda x: (x * 2).max(1)),
    "smallest of each column": (lambda x: hr.reduce_min(x * 2, 1), lambda x: (x * 2).min(1)),
    "largest of each row": (lambda x: hr.reduce_max(x * 2, 2), lambda x: (x * 2).max(2)),
    "smallest of each row": (lambda x: hr.reduce_min(x * 2, 2), lambda x: (x * 2).min(2)),
    "largest of all": (lambda x: hr.reduce_max(x * 2), lambda x: (x * 2).max()),
}
ODD = {"none": (), "nan": (np.nan,), "infinities": (np.inf, -np.inf), "all": (np.nan, np.inf)}


@pytest.mark.parametrize("place", [0, 1, 7, 8])
@pytest.mark.parametrize("odd", ODD)
@pytest.mark.parametrize("dtype", ["float32", "float64", "int32"])
@pytest.mark.parametrize("name", FOLDS)
def test_extremes_are_what_numpy_finds(name, dtype, odd, place):
    build, compute = FOLDS[name]
    given = np.random.default_rng(place).integers(-50, 50, (4, 9, 33)).astype(dtype)
    if dtype != "int32":
        for row, value in enumerate(ODD[odd]):
            given[row, place, 5] = value
            given[3, (place + row) % 9, 6] = value
    x = hr.placeholder(dtype, given.shape)
    with hr.Session(config=hr.Config(compile_after=0, compile_wait=True)) as session:
        found = session.run(build(x), {x: given})
    np.testing.assert_array_equal(found, compute(given))


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("width", [1, 6, 31, 33, 64, 150, 211, 1030])
def test_not_a_number_of_either_sign_is_found_wherever_it_is(width, dtype):
    given = np.random.default_rng(width).standard_normal((3 * width + 4, width)).astype(dtype)
    given[-1], given[-2], given[-3] = np.inf, -np.inf, np.nan
    # One in each row, at every place: as it is read, and as processors make it.
    for row in range(2 * width):
        given[row, row % width] = np.copysign(np.nan, 1 if row < width else -1)
    x = hr.placeholder(dtype, given.shape)
    made = hr.reduce_max(x * 2, 1), hr.reduce_min(x * 2, 1)
    config = hr.Config(compile_after=0, compile_wait=True)
    with hr.Session(config=config) as session:
        largest, smallest = session.run(made, {x: given})
        source = session.explain(made, {x: given}).source()
    np.testing.assert_array_equal(largest, (given * 2).max(1))
    np.testing.assert_array_equal(smallest, (given * 2).min(1))
    assert width == 1 or ("largest_number(" in source and "smallest_number(" in source)
