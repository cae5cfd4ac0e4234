"""Sums of sparse tensors along axes, as NumPy adds up dense ones."""

from __future__ import annotations

import numpy as np
import pytest

import headrace as hr
from headrace.errors import HeadraceError, ShapeError

pytestmark = pytest.mark.needs("backend-cpu", "autodiff")

CONFIGS = ({"executor": "plain"}, {"compile_after": 0, "compile_wait": True})


@pytest.mark.parametrize("known", [True, False], ids=["known", "shape fed"])
@pytest.mark.parametrize("seed", range(24))
def test_random_sums(seed, known):
    rng = np.random.default_rng(seed)
    rank = int(rng.integers(1, 5))
    dims = [int(d) for d in rng.integers(1, 6, rank)]
    axes = None if seed % 6 == 0 else [int(a) for a in range(-rank, 0) if rng.random() < 0.5]
    keep = bool(rng.integers(2))
    count = int(rng.integers(0, 20))
    # Some places come twice, and in no order.
    places = np.stack([rng.integers(0, d, count) for d in dims], 1).astype(np.int64)
    dtype = ["float32", "float64", "int32", "complex64"][seed % 4]
    values = np.round(rng.normal(size=count) * 9).astype(dtype)
    dense = np.zeros(dims, dtype)
    np.add.at(dense, tuple(places.T), values)
    wanted = dense.sum(axis=None if axes is None else tuple(axes), keepdims=keep, dtype=dtype)
    for config in CONFIGS:
        with hr.Graph().as_default():
            i, v = hr.placeholder("int64", [None, rank]), hr.placeholder(dtype, [None])
            shape = hr.constant(dims, "int64") if known else hr.placeholder("int64", [rank])
            fed = {i: places, v: values} if known else {i: places, v: values, shape: dims}
            sparse = hr.SparseTensor(i, v, shape)
            found = hr.sparse_reduce_sum(sparse, axes, keepdims=keep)
            if known:
                assert found.shape.as_list() == list(wanted.shape)
            fetched = [found]
            if dtype.startswith("float"):
                fetched += hr.gradients([found * found], [v])
            with hr.Session(config=hr.Config(**config)) as session:
                got = session.run(fetched, fed)
        assert got[0].dtype == wanted.dtype
        np.testing.assert_array_equal(got[0], wanted)
        if len(got) > 1:
            full = np.broadcast_to(
                dense.sum(None if axes is None else tuple(axes), keepdims=True), dims
            )
            np.testing.assert_array_equal(got[1], 2 * full[tuple(places.T)])


def test_places_outside_and_axes_that_there_are_not_are_refused():
    i, v = hr.placeholder("int64", [2, 2]), hr.constant([1.0, 2.0])
    sparse = hr.SparseTensor(i, v, [3, 4])
    with pytest.raises(ShapeError, match="axis"):
        hr.sparse_reduce_sum(sparse, 2)
    total = hr.sparse_reduce_sum(sparse, 1)
    with hr.Session() as session:
        for place in (3, -1):
            with pytest.raises(HeadraceError, match=rf"index {place} is out of range \[0, 3\)"):
                session.run(total, {i: [[0, 1], [place, 0]]})
