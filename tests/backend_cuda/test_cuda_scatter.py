"""T1: sums of rows by index as kernels of compiled steps."""

from __future__ import annotations

import numpy as np
import pytest

import headrace as hr
from headrace_cuda.testing.host_compiler import host_compiler

pytestmark = [
    pytest.mark.needs("autodiff", "train"),
    pytest.mark.skipif(host_compiler() is None, reason="there is no C++ compiler"),
]

COMPILED = hr.Config(compile_after=0, verify=True)
PLAIN = hr.Config(executor="plain")


@pytest.fixture(autouse=True)
def graph(compiling_gpus):
    with hr.Graph().as_default() as graph, hr.device("/device:cuda:0"):
        yield graph


def drawn(rng, shape, dtype):
    whole = dtype.startswith("int")
    return (rng.integers(-9, 9, shape) if whole else rng.normal(size=shape)).astype(dtype)


def compiled_works(session, fetch, feeds):
    return [w.name for p in session.explain(fetch, feeds).parts for w in p.report.works if w.fused]


@pytest.mark.parametrize(
    ("dtype", "index"),
    [("float32", "int32"), ("float64", "int64"), ("int32", "int64"), ("int64", "int32")],
)
@pytest.mark.parametrize("shape", [((6,), (3,)), ((2, 4), (5, 2)), ((70,), ())], ids=str)
def test_segments_are_those_of_the_plain_kernel(shape, dtype, index):
    lead, row = shape
    rng = np.random.default_rng(4)
    data, ids = hr.placeholder(dtype, (*lead, *row)), hr.placeholder(index, lead)
    sums = hr.math.unsorted_segment_sum(data, ids, 5)
    feeds = {data: drawn(rng, (*lead, *row), dtype), ids: rng.integers(-1, 5, lead).astype(index)}
    with hr.Session(config=PLAIN) as session:
        expected = session.run(sums, feeds)
    with hr.Session(config=COMPILED) as session:
        for _ in range(3):
            np.testing.assert_allclose(session.run(sums, feeds), expected, rtol=1e-6, atol=1e-6)
        assert compiled_works(session, sums, feeds) == ["add_rows"]
        feeds[ids] = np.full(lead, 5, index)
        with pytest.raises(
            hr.errors.InvalidInputError, match=r"index 5 is out of range \[0, 5\) of 5 segments"
        ):
            session.run(sums, feeds)


@pytest.mark.parametrize("spread", [False, True], ids=["rows", "one number"])
@pytest.mark.parametrize("change", [hr.scatter_add, hr.scatter_sub])
def test_rows_are_added_to_a_variable_where_it_is(change, spread):
    rng = np.random.default_rng(5)
    first = drawn(rng, (7, 3), "float32")
    v = hr.Variable(first)
    at = hr.placeholder(hr.int32, [5])
    rows = hr.placeholder(hr.float32, [] if spread else [5, 3])
    step = change(v, at, rows).op
    given = {at: [1, 6, 1, 0, 1], rows: drawn(rng, () if spread else (5, 3), "float32")}
    found = []
    for config in (COMPILED, PLAIN):
        with hr.Session(config=config) as session:
            session.run(v.initializer)
            before = session.run(v)
            for _ in range(3):
                session.run(step, given)
            found.append(session.run(v))
            np.testing.assert_array_equal(before, first)
            if config is COMPILED:
                assert compiled_works(session, step, given) == ["add_rows"]
            kept = session.run(v)
            with pytest.raises(
                hr.errors.InvalidInputError, match=r"index 7 is out of range \[0, 7\) of the rows"
            ):
                session.run(step, {**given, at: [1, 6, 7, 0, 1]})
            # Nothing is added where one index is wrong.
            np.testing.assert_array_equal(session.run(v), kept)
    np.testing.assert_allclose(found[0], found[1], rtol=1e-5, atol=1e-6)


def test_the_new_value_of_the_whole_variable_comes_from_the_plain_kernel():
    v = hr.Variable(np.zeros((4, 2), np.float32))
    new = hr.scatter_add(v, [1, 1, 3], np.ones((3, 2), np.float32)) * 2.0
    with hr.Session(config=COMPILED) as session:
        session.run(v.initializer)
        assert session.run(new).tolist() == [[0, 0], [4, 4], [0, 0], [2, 2]]


def test_sums_in_any_order_are_refused_where_equal_bits_are_asked_for():
    data = hr.placeholder(hr.float32, [6, 3])
    sums = hr.math.unsorted_segment_sum(data, [0, 1, 1, 2, 0, 1], 3)
    config = hr.Config(compile_after=0, deterministic=True)
    with (
        hr.Session(config=config) as session,
        pytest.raises(hr.errors.DeterminismError, match="UnsortedSegmentSum"),
    ):
        session.run(sums, {data: np.zeros((6, 3), np.float32)})
