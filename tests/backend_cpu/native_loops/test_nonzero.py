"""Where conditions hold, and groups of sparse elements: the same as plain kernels find."""

from __future__ import annotations

import numpy as np
import pytest

import headrace as hr

pytestmark = pytest.mark.needs("backend-cpu")

COMPILED = {"compile_after": 0, "compile_wait": True}
RNG = np.random.default_rng(3)


def run(build, *given, **config):
    with hr.Graph().as_default():
        feeds = [hr.placeholder(a.dtype, a.shape) for a in given]
        made = build(*feeds)
        with hr.Session(config=hr.Config(**config)) as session:
            found = [session.run(made, dict(zip(feeds, given, strict=True))) for _ in range(2)]
    return found[-1]


@pytest.mark.parametrize("threads", [1, 4])
@pytest.mark.parametrize("share", [0.0, 0.05, 0.6, 1.0])
@pytest.mark.parametrize(
    "shape",
    [(1,), (63,), (64,), (65,), (1000,), (3, 200), (200, 3), (7, 64, 2), (5, 1, 129), (2,) * 6,
     (400, 500)],
    ids=str,
)  # fmt: skip
def test_places_are_those_of_plain_kernels(shape, share, threads):
    given = RNG.random(shape) < share
    found = run(hr.where, given, threads=threads, **COMPILED)
    assert found.dtype == np.int64
    np.testing.assert_array_equal(found, np.argwhere(given))


@pytest.mark.parametrize("dtype", ["int32", "uint8", "float32", "float64", "complex64"])
def test_numbers_hold_where_they_are_not_zero(dtype):
    given = RNG.integers(0, 3, (20, 70)).astype(dtype)
    given[0, :3] = np.array([-0.0, np.nan, 5]).astype(dtype) if given.dtype.kind in "fc" else 1
    found = run(hr.where, given, **COMPILED)
    np.testing.assert_array_equal(found, run(hr.where, given, executor="plain"))


@pytest.mark.parametrize("shape", [(0,), (0, 3), (3, 0), ()], ids=str)
def test_nothing_and_scalars_are_left_to_plain_kernels(shape):
    given = np.ones(shape, bool)
    np.testing.assert_array_equal(run(hr.where, given, **COMPILED), np.argwhere(given))


def elements(dims, count, *, ordered=True):
    flat = RNG.choice(np.prod(dims), count, replace=False)
    flat = np.sort(flat) if ordered else flat
    return np.stack(np.unravel_index(flat, dims), 1).astype(np.int64)


REDUCTIONS = {
    "max": (hr.sparse_reduce_max, {}),
    "max_kept": (hr.sparse_reduce_max, {"keepdims": True}),
    "sum_sparse": (hr.sparse_reduce_sum_sparse, {}),
    "max_sparse_kept": (hr.sparse_reduce_max_sparse, {"keepdims": True}),
}


@pytest.mark.parametrize("ordered", [True, False])
@pytest.mark.parametrize(
    ("dims", "axis"),
    [((30, 40), 1), ((30, 40), 0), ((30, 40), None), ((9, 8, 7), [1, 2]), ((9, 8, 7), -1),
     ((9, 8, 7), [0, 2]), ((50,), 0)],
    ids=str,
)  # fmt: skip
@pytest.mark.parametrize("name", REDUCTIONS)
def test_reductions_are_those_of_plain_kernels(name, dims, axis, ordered):
    reduce, options = REDUCTIONS[name]
    places = elements(dims, 40, ordered=ordered)
    values = RNG.standard_normal(40).astype(np.float32)

    def build(places, values):
        made = reduce(hr.SparseTensor(places, values, dims), axis, **options)
        return list(made) if isinstance(made, hr.SparseTensor) else made

    if "sparse" in name:
        parts = reduce
        build = lambda p, v: [  # noqa: E731
            getattr(parts(hr.SparseTensor(p, v, dims), axis, **options), part)
            for part in ("indices", "values", "dense_shape")
        ]
    want = run(build, places, values, executor="plain")
    found = run(build, places, values, **COMPILED)
    for one, other in zip(
        found if isinstance(found, list) else [found],
        want if isinstance(want, list) else [want],
        strict=True,
    ):
        np.testing.assert_allclose(one, other, rtol=1e-6)


def test_shares_of_rows_are_those_of_plain_kernels():
    places, values = elements((60, 50), 200), RNG.standard_normal(200).astype(np.float32)

    def build(places, values):
        return hr.sparse_softmax(hr.SparseTensor(places, values, [60, 50])).values

    want = run(build, places, values, executor="plain")
    np.testing.assert_allclose(run(build, places, values, **COMPILED), want, rtol=1e-6)


@pytest.mark.parametrize("fold", [hr.unsorted_segment_max, hr.unsorted_segment_min])
def test_extremes_of_runs_keep_nan_and_infinity(fold):
    ids = np.sort(RNG.integers(0, 30, 400)).astype(np.int32)
    data = RNG.standard_normal(400).astype(np.float32)
    data[::37], data[5::41], data[7::53] = np.nan, np.inf, -np.inf
    build = lambda data, ids: fold(data, ids, 40)  # noqa: E731
    want = run(build, data, ids, executor="plain")
    np.testing.assert_array_equal(run(build, data, ids, **COMPILED), want)


@pytest.mark.parametrize("dtype", ["int32", "int64", "uint8", "int8", "bool", "float32"])
@pytest.mark.parametrize("options", [{}, {"width": 5, "fill": "0"}], ids=str)
def test_numbers_are_written_one_by_one_and_at_once_alike(dtype, options):
    given = RNG.integers(0, 100, (3, 4)).astype(dtype)
    if given.dtype.kind == "i":
        given[0, 0] = np.iinfo(dtype).min
    found = run(lambda x: hr.as_string(x, **options), given, **COMPILED)
    assert found.shape == (3, 4)
    for one, text in zip(given.ravel().tolist(), found.ravel(), strict=True):
        if given.dtype.kind in "iu":
            assert text == (f"%{options.get('fill', '')}{options.get('width', '')}d" % one).encode()
        assert text == run(lambda x: hr.as_string(x, **options), np.array([one], dtype))[0]
