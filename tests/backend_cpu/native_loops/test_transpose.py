"""Transpositions by native loops: the elements of NumPy's, whatever the axes."""

from __future__ import annotations

import numpy as np
import pytest

import headrace as hr
from headrace_cpu.native_loops.transpose import lanes_for, matrices_of, moves_elements

pytestmark = pytest.mark.needs("backend-cpu", "autodiff")

COMPILED = {"compile_after": 0, "compile_wait": True}


def runs(build, given, **config):
    with hr.Graph().as_default():
        x = hr.placeholder(given.dtype, given.shape)
        found = build(x)
        with hr.Session(config=hr.Config(**config)) as session:
            for _ in range(2):
                values = session.run(found, {x: given})
    return values


def numbers(shape, dtype, rng):
    found = (rng.normal(size=shape) * 100).astype(dtype)
    if found.dtype.kind == "f" and found.size:
        found.reshape(-1)[rng.integers(found.size)] = np.nan
    return found


@pytest.mark.parametrize("dtype", ["float32", "float64", "int32", "int64", "bool", "complex64"])
@pytest.mark.parametrize("seed", range(12))
def test_random_axes_in_random_orders(seed, dtype):
    rng = np.random.default_rng(seed)
    rank = int(rng.integers(2, 6))
    most = {2: 300, 3: 40, 4: 20, 5: 9}[rank]
    shape = tuple(int(n) for n in rng.integers(0 if seed == 3 else 1, most, rank))
    perm = [int(axis) for axis in rng.permutation(rank)]
    given = numbers(shape, dtype, rng)
    for threads in (1, 3):
        found = runs(lambda x: hr.transpose(x, perm), given, threads=threads, **COMPILED)
        assert found.dtype == given.dtype
        assert found.shape == given.transpose(perm).shape
        assert found.tobytes() == np.ascontiguousarray(given.transpose(perm)).tobytes()


@pytest.mark.parametrize("rows", [4, 7, 8, 15, 16, 17, 33, 40])
@pytest.mark.parametrize("columns", [5, 8, 16, 31, 64])
def test_matrices_of_all_sizes(rows, columns):
    rng = np.random.default_rng(rows)
    for dtype in ("float32", "float64"):
        given = numbers((20, rows, columns), dtype, rng)
        found = runs(lambda x: hr.transpose(x, [0, 2, 1]), given, **COMPILED)
        np.testing.assert_array_equal(found, given.transpose(0, 2, 1))


@pytest.mark.parametrize("shape", [(130, 140), (300, 37), (20, 40, 50)])
def test_what_kernels_read_of_them_and_the_gradient(shape):
    given = np.random.default_rng(0).normal(size=shape).astype(np.float32)

    def build(x):
        y = hr.transpose(x) * 2.0 + 1.0
        z = hr.reduce_sum(hr.transpose(hr.exp(-x * x)), 0) + hr.reduce_sum(y, 0)
        return [y, z, *hr.gradients([y * y, z], [x])]

    for one, other in zip(
        runs(build, given, executor="plain", optimize=False),
        runs(build, given, **COMPILED),
        strict=True,
    ):
        np.testing.assert_allclose(one, other, rtol=1e-4, atol=1e-4)


def test_shapes_that_are_known_when_a_step_runs():
    with hr.Graph().as_default():
        x = hr.placeholder("float32", [None, None])
        y = hr.transpose(x)
        with hr.Session(config=hr.Config(**COMPILED)) as session:
            for shape in ((64, 48), (3, 1000), (0, 5), (64, 48), (1, 2000)):
                given = np.random.default_rng(0).normal(size=shape).astype(np.float32)
                np.testing.assert_array_equal(session.run(y, {x: given}), given.T)


def test_axes_that_stay_together_are_one():
    found = matrices_of((16, 64, 1, 64, 8), (0, 1, 3, 4, 2), 4)
    assert found is None
    found = matrices_of((16, 64, 64, 8), (0, 2, 3, 1), 4)
    assert found is not None
    assert (found.sizes, found.rows, found.columns) == ((16,), 512, 64)
    assert lanes_for(found, 4) >= 4
    # Rows that stay together are NumPy's, and so are matrices of two columns.
    assert matrices_of((8, 9, 10), (1, 0, 2), 4) is None
    thin = matrices_of((1000, 2), (1, 0), 4)
    assert thin is not None
    assert lanes_for(thin, 4) == 0


@pytest.mark.parametrize(
    ("shape", "perm", "dtype", "moves"),
    [
        ((300, 3, 20), (0, 2, 1), "float32", True),
        ((300, 20, 2), (0, 2, 1), "float64", True),
        ((300, 5, 20), (0, 2, 1), "float32", False),
        ((30, 40, 20), (0, 2, 1), "uint8", True),
        ((4, 50, 6, 32), (0, 2, 1, 3), "float32", True),
        ((4, 50, 6, 80), (0, 2, 1, 3), "float32", False),
        ((40, 60), (0, 1), "float32", False),
    ],
)
def test_short_rows_and_few_columns_are_moved_by_kernels(shape, perm, dtype, moves):
    given = numbers(shape, dtype, np.random.default_rng(1))
    with hr.Graph().as_default():
        x = hr.placeholder(dtype, shape)
        made = hr.transpose(x, perm)
        assert moves_elements(made.op) == moves
        with hr.Session(config=hr.Config(**COMPILED)) as session:
            found = session.run(made, {x: given})
            assert ("def fused(" in session.explain(made, {x: given}).source()) == moves
    np.testing.assert_array_equal(found, given.transpose(perm))
