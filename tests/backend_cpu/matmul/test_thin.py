"""Matmuls of a few rows or columns, against float64."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import headrace as hr
from headrace_cpu.matmul.match_thin import product_of
from headrace_cpu.native.assembly import vector_bytes
from headrace_cpu.native.threads import open_mp

pytestmark = pytest.mark.skipif(
    vector_bytes() < 32 or open_mp() is None,
    reason="the kernels want vectors of 32 bytes and OpenMP",
)

# Rows, inner and columns.
SIZES = [
    *((1, 7, 5), (1, 300, 1000), (1000, 1000, 1), (2, 33, 70), (3, 500, 129), (4, 511, 513)),
    *((600, 700, 3), (50, 1000, 2), (1, 100_000, 1), (2, 100_000, 3), (1, 1, 1), (3, 60_000, 7)),
    *((30_000, 3, 2), (7, 1, 1), (1, 1, 9)),
]
BATCHES = [
    *(((5, 1, 40), (5, 40, 30)), ((5, 3, 40), (40, 30)), ((1, 40), (6, 40, 33))),
    *(((2, 3, 1, 40), (2, 3, 40, 1)), ((7, 40, 50), (7, 50, 1)), ((7, 40, 50), (50, 1))),
    *(((3, 200, 200), (3, 200, 1)), ((40, 1, 64), (40, 64, 300)), ((2, 1, 3, 4), (3, 4, 5))),
]
TRANSPOSED = list(itertools.product((False, True), repeat=2))


def turned(shape, transposed):
    return (*shape[:-2], shape[-1], shape[-2]) if transposed else shape


def compare(left, right, transposes, dtype, threads):
    rng = np.random.default_rng(0)
    shapes = [turned(s, t) for s, t in zip((left, right), transposes, strict=True)]
    a, b = (rng.standard_normal(shape).astype(dtype) for shape in shapes)
    x, y = (hr.placeholder(dtype, value.shape) for value in (a, b))
    z = hr.matmul(x, y, transpose_a=transposes[0], transpose_b=transposes[1])
    config = hr.Config(compile_after=0, verify=True, threads=threads)
    with hr.Session(config=config) as session:
        found = session.run(z, {x: a, y: b})
    wide = [
        np.swapaxes(v, -1, -2) if t else v
        for v, t in zip((a.astype(np.float64), b.astype(np.float64)), transposes, strict=True)
    ]
    wanted = wide[0] @ wide[1]
    assert found.shape == wanted.shape
    error = np.finfo(dtype).eps * 8 * wide[0].shape[-1]
    np.testing.assert_allclose(found, wanted, rtol=0, atol=error)
    return z.op


@pytest.mark.one_in(5)
@pytest.mark.parametrize("threads", [1, 2, 5])
@pytest.mark.parametrize("transposes", TRANSPOSED)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("size", SIZES)
def test_matmuls_equal_those_in_float64(size, dtype, transposes, threads):
    rows, inner, columns = size
    op = compare((rows, inner), (inner, columns), transposes, dtype, threads)
    assert product_of(op) is not None


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("transposes", TRANSPOSED)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("shapes", BATCHES)
def test_batches_equal_those_in_float64(shapes, dtype, transposes, threads):
    compare(*shapes, transposes, dtype, threads)


def test_special_numbers_stay():
    a = np.array([[np.nan, 1.0, np.inf, 0.0]], np.float32)
    b = np.ones((4, 40), np.float32)
    b[:, 1] = 0.0
    x, y = (hr.placeholder(hr.float32, value.shape) for value in (a, b))
    with hr.Session(config=hr.Config(compile_after=0, verify=True)) as session:
        found = session.run(hr.matmul(x, y), {x: a, y: b})
    assert np.isnan(found).all()


def test_equal_runs_give_equal_bits():
    rng = np.random.default_rng(0)
    a, b = rng.standard_normal((2, 1, 300_000), np.float32)
    x, y = (hr.placeholder(hr.float32, value.shape) for value in (a, b))
    z = hr.matmul(x, y, transpose_b=True)
    with hr.Session(config=hr.Config(deterministic=True, threads=2)) as session:
        found = [session.run(z, {x: a, y: b}) for _ in range(5)]
    assert len({value.tobytes() for value in found}) == 1


def test_what_is_no_product_of_few_vectors_is_left_alone():
    for left, right in (((5, 6), (6, 7)), ((2, 1, 4, 5), (3, 5, 1))):
        x, y = (hr.placeholder(hr.float32, shape) for shape in (left, right))
        assert product_of(hr.matmul(x, y).op) is None
    x, y = (hr.placeholder(hr.int32, (3, 3)) for _ in range(2))
    assert product_of(hr.matmul(x, y).op) is None
