"""The order of sparse elements, counted axis by axis."""

from __future__ import annotations

import numpy as np
import pytest

import headrace as hr
from headrace_cpu.native_loops.sparse_order import digits_of

RNG = np.random.default_rng(3)
DIMS = [(5,), (40, 7), (3, 70_000), (1_000_000, 3), (20, 1, 300), (1 << 40, 9)]


def ordered(places, dims, **config):
    with hr.Graph().as_default():
        indices = hr.placeholder("int64", places.shape)
        values = hr.range(len(places))
        sparse = hr.sparse_reorder(hr.SparseTensor(indices, values, dims))
        with hr.Session(config=hr.Config(**config)) as session:
            step = [sparse.indices, sparse.values]
            for _ in range(2):
                found = session.run(step, {indices: places})
            return found


@pytest.mark.parametrize("arranged", ["by chance", "ordered", "by the last axis", "again"])
@pytest.mark.parametrize("count", [1, 2, 300, 5000])
@pytest.mark.parametrize("dims", DIMS, ids=str)
def test_elements_come_in_the_order_of_their_indices(dims, count, arranged):
    places = np.stack([RNG.integers(0, d, count) for d in dims], 1)
    if arranged == "ordered":
        places = places[np.lexsort(places.T[::-1])]
    elif arranged == "by the last axis":
        places = places[np.lexsort(places.T)]
    elif arranged == "again":
        places = places[RNG.integers(0, min(3, count), count)]
    found, values = ordered(places, dims, compile_after=0, compile_wait=True)
    order = np.lexsort(places.T[::-1])
    np.testing.assert_array_equal(values, order)
    np.testing.assert_array_equal(found, places[order])


@pytest.mark.parametrize("wrong", [-1, 7, 1 << 40])
def test_indices_out_of_range_are_ordered_as_the_plain_kernel_does(wrong):
    places = RNG.integers(0, 7, (50, 2))
    places[17, 1] = wrong
    found = ordered(places, (7, 7), compile_after=0, compile_wait=True)
    want = ordered(places, (7, 7), executor="plain")
    for one, other in zip(found, want, strict=True):
        np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize(
    ("size", "count", "passes"),
    [(1, 1, 1), (2, 9, 1), (256, 1, 1), (257, 1, 2), (8192, 1 << 20, 1), (8193, 1 << 20, 2)],
)
def test_digits_hold_all_numbers(size, count, passes):
    found, bits = digits_of(size, count)
    assert found == passes
    assert 1 << found * bits >= size
