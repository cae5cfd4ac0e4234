"""Scattered slices and parts by native loops: the bits of the plain kernels, for all dtypes."""

from __future__ import annotations

import numpy as np
import pytest

import headrace as hr
from headrace import as_dtype

DTYPES = ("float32", "float64", "float16", "bfloat16", "int8", "uint8", "int16", "int32", "int64")
# The shape that is scattered into, how long the tuples are, and how many there are.
SCATTERS = [((50,), 1, 300), ((40, 30), 2, 2000), ((40, 30), 1, 100), ((5, 6, 7), 2, 40),
            ((3, 4), 2, 1), ((9, 70), 1, 200), ((200, 300), 2, 20_000)]  # fmt: skip


def run(build, arrays, **settings):
    with hr.Graph().as_default():
        holders = [hr.placeholder(as_dtype(a.dtype), a.shape) for a in arrays]
        with hr.Session(config=hr.Config(**settings)) as session:
            fetches = build(*holders)
            for _ in range(2):
                found = session.run(fetches, dict(zip(holders, arrays, strict=True)))
    return list(found) if isinstance(found, list | tuple) else [found]


def check(build, *arrays):
    expected = run(build, arrays, executor="plain")
    for threads in (1, 2, 3):
        found = run(build, arrays, compile_after=0, compile_wait=True, threads=threads)
        for one, other in zip(expected, found, strict=True):
            assert (one.dtype, one.shape) == (other.dtype, other.shape)
            assert one.tobytes() == other.tobytes()


def given(dtype, dims, depth, count, index="int64"):
    rng = np.random.default_rng(count)
    tuples = np.stack([rng.integers(0, d, count) for d in dims[:depth]], 1).astype(index)
    values = np.round(rng.standard_normal((count, *dims[depth:])) * 20)
    kind = as_dtype(dtype).numpy
    values = (np.abs(values) if kind.kind == "u" else values).astype(kind)
    return tuples, values


@pytest.mark.parametrize("index", ["int32", "int64"])
@pytest.mark.parametrize("dtype", DTYPES)
def test_scattered_slices(dtype, index):
    for dims, depth, count in SCATTERS:
        tuples, values = given(dtype, dims, depth, count, index)
        check(lambda i, v, dims=dims: hr.scatter_nd(i, v, list(dims)), tuples, values)
        table = np.arange(np.prod(dims)).reshape(dims).astype(values.dtype)
        for scatter in (hr.tensor_scatter_update, hr.tensor_scatter_add, hr.tensor_scatter_sub):
            check(lambda t, i, v, put=scatter: put(t, i, v), table, tuples, values)


@pytest.mark.parametrize("dtype", [*DTYPES, "bool"])
def test_sparse_tensors_made_dense(dtype):
    rng = np.random.default_rng(0)
    for dims, count in (((30, 40), 300), ((2000,), 1), ((4, 5, 6), 120)):
        flat = np.sort(rng.permutation(np.prod(dims))[:count])
        places = np.stack(np.unravel_index(flat, dims), 1).astype(np.int64)
        values = rng.integers(0, 2, count).astype(as_dtype(dtype).numpy)

        def dense(i, v, dims=dims):
            return hr.sparse_tensor_to_dense(hr.SparseTensor(i, v, dims), default_value=1)

        if dtype != "bool":
            check(dense, places, values)
        check(
            lambda i, v, dims=dims: hr.sparse_to_dense(i, dims, v, False if dtype == "bool" else 0),
            places,
            values,
        )


@pytest.mark.parametrize("dtype", [*DTYPES, "bool"])
def test_parts(dtype):
    rng = np.random.default_rng(1)
    for count, row, parts in ((1000, (), 3), (500, (7,), 4), (3000, (2, 3), 300), (5, (4,), 9)):
        rows = rng.integers(0, 2, (count, *row)).astype(as_dtype(dtype).numpy)
        numbers = rng.integers(0, parts, count).astype(np.int32)
        check(lambda x, n, parts=parts: hr.dynamic_partition(x, n, parts), rows, numbers)


WRONG = {
    "scatter_nd": (lambda i, v: hr.scatter_nd(i, v, [4, 5]), "out of range"),
    "update": (lambda i, v: hr.tensor_scatter_update(hr.zeros([4, 5]), i, v), "out of range"),
    "dense": (lambda i, v: hr.sparse_to_dense(hr.cast(i, "int64"), [4, 5], v), "out of range"),
}


@pytest.mark.parametrize("wrong", [[4, 0], [0, 5], [-1, 0]])
@pytest.mark.parametrize(("program", "text"), WRONG.values(), ids=WRONG)
def test_indices_out_of_range_are_refused(program, text, wrong):
    i, v = hr.placeholder("int32", (2, 2)), hr.placeholder("float32", (2,))
    values = np.ones(2, np.float32)
    with hr.Session(config=hr.Config(compile_after=0, compile_wait=True)) as session:
        result = program(i, v)
        for _ in range(2):
            session.run(result, {i: [[0, 1], [1, 2]], v: values})
        with pytest.raises(hr.errors.HeadraceError, match=text):
            session.run(result, {i: [[0, 1], wrong], v: values})


def test_indices_out_of_order_and_parts_out_of_range_are_refused():
    i, v = hr.placeholder("int64", (2, 2)), hr.placeholder("float32", (2,))
    x, n = hr.placeholder("float32", (3,)), hr.placeholder("int32", (3,))
    values = np.ones(2, np.float32)
    with hr.Session(config=hr.Config(compile_after=0, compile_wait=True)) as session:
        dense, parts = hr.sparse_to_dense(i, [4, 5], v), hr.dynamic_partition(x, n, 2)
        for _ in range(2):
            session.run(dense, {i: [[0, 1], [1, 2]], v: values})
            session.run(parts, {x: [1, 2, 3], n: [0, 1, 0]})
        with pytest.raises(hr.errors.HeadraceError, match="out of order"):
            session.run(dense, {i: [[1, 2], [0, 1]], v: values})
        with pytest.raises(hr.errors.HeadraceError, match="is repeated"):
            session.run(dense, {i: [[1, 2], [1, 2]], v: values})
        with pytest.raises(hr.errors.HeadraceError, match="2 partitions"):
            session.run(parts, {x: [1, 2, 3], n: [0, 2, 0]})
