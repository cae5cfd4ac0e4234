"""Plans for LAPACK against NumPy: sizes at which they change, batches, failures, threads."""

from __future__ import annotations

import numpy as np
import pytest

import headrace as hr
from headrace_cpu.lapack import driver, run, triangles
from headrace_cpu.lapack.library import loaded_lapack
from headrace_cpu.native.build import build
from headrace_cpu.native.memory import address, allocate
from headrace_cpu.native.threads import launch

pytestmark = pytest.mark.skipif(loaded_lapack() is None, reason="there is no LAPACK to call")

DTYPES = ["float32", "float64"]
SIZES = [1, 2, 5, 31, 128, 255, 256, 300, 385]
BATCHES = [(), (1,), (3,), (2, 5)]


def positive(rng, batch, n, dtype):
    half = rng.normal(size=(*batch, n, n)) / np.sqrt(n)
    return (half @ half.swapaxes(-1, -2) + np.eye(n)).astype(dtype)


def driven(plan, inputs, threads):
    """The results of a plan whose calls the kernel makes."""
    (kernel,) = build([driver.source()])
    outputs = [np.empty(shape, plan.dtype) for shape in plan.outputs]
    scratch = allocate(plan.scratch(threads))
    bases = [0, *map(address, (*inputs, *outputs)), address(scratch)]
    words = np.array([address(plan.table.words), *bases], np.int64)
    launch(kernel, address(words), threads)()
    return outputs


def steps(program, feeds, **config):
    """What a program yields in the plain executor, and in a compiled step before and after."""
    found = []
    for settings in ({"executor": "plain"}, {"compile_after": 1, "compile_wait": True, **config}):
        with hr.Session(config=hr.Config(**settings)) as session:
            found += [session.run(program, feeds) for _ in range(2)]
    return found[1:]


@pytest.mark.parametrize("batch", BATCHES)
@pytest.mark.parametrize("n", SIZES)
@pytest.mark.parametrize("dtype", DTYPES)
def test_decompositions_multiply_to_what_they_are_of(dtype, n, batch):
    x = positive(np.random.default_rng(n), batch, n, dtype)
    plan = triangles.cholesky(batch, n, np.dtype(dtype))
    # What is above the diagonal is not looked at.
    given = np.tril(x) + np.triu(np.full_like(x, np.nan), 1)
    (factor,) = run.computed(plan, [given])
    assert not np.triu(factor, 1).any()
    scale = 4 * n * np.finfo(dtype).eps
    np.testing.assert_allclose(factor @ factor.swapaxes(-1, -2), x, rtol=scale, atol=scale)


@pytest.mark.parametrize("k", [1, 2, 95, 96, 200])
@pytest.mark.parametrize("adjoint", [False, True])
@pytest.mark.parametrize("lower", [False, True])
@pytest.mark.parametrize("dtype", DTYPES)
def test_solutions_solve(dtype, lower, adjoint, k):
    rng = np.random.default_rng(k)
    cases = [((), (), 40), ((3,), (3,), 7), ((), (2, 2), 9), ((9,), (), 6), ((1,), (4,), 5)]
    for matrices, sides, n in cases:
        x = rng.normal(size=(*matrices, n, n)) / n + np.eye(n)
        triangle = np.tril(x) if lower else np.triu(x)
        y = rng.normal(size=(*sides, n, k)).astype(dtype)
        shapes = (*matrices, n, n), (*sides, n, k)
        plan = triangles.triangular(*shapes, np.dtype(dtype), lower=lower, adjoint=adjoint)
        (found,) = run.computed(plan, [x.astype(dtype), y])
        used = triangle.swapaxes(-1, -2) if adjoint else triangle
        eps = 64 * n * np.finfo(dtype).eps
        want = np.broadcast_to(y, found.shape)
        np.testing.assert_allclose(used @ found, want, rtol=eps, atol=eps)


def test_batches_that_broadcast_both_ways_have_no_plan():
    assert (
        triangles.triangular((2, 1, 4, 4), (1, 3, 4, 2), np.dtype("f4"), lower=True, adjoint=False)
        is None
    )


@pytest.mark.parametrize("threads", [1, 2, 3])
@pytest.mark.parametrize(("n", "batch"), [(385, ()), (300, (2,)), (20, (50,))])
def test_results_do_not_depend_on_threads(n, batch, threads):
    rng = np.random.default_rng(0)
    x = positive(rng, batch, n, "float32")
    plan = triangles.cholesky(batch, n, x.dtype)
    (want,) = run.computed(plan, [x])
    (found,) = driven(plan, [x], threads)
    np.testing.assert_array_equal(found, want)
    y = rng.normal(size=(*batch, n, n)).astype("float32")
    plan = triangles.triangular(want.shape, y.shape, y.dtype, lower=True, adjoint=True)
    (solved,) = run.computed(plan, [want, y])
    np.testing.assert_array_equal(driven(plan, [want, y], threads)[0], solved)


@pytest.mark.parametrize("shape", [(40, 40), (300, 300), (12, 6, 6)])
@pytest.mark.parametrize("dtype", DTYPES)
def test_steps_compute_the_same_before_and_after_they_are_compiled(dtype, shape):
    x = hr.placeholder(dtype, shape)
    y = hr.placeholder(dtype, (*shape[:-1], 3))
    factor = hr.linalg.cholesky(x)
    solution = hr.linalg.triangular_solve(factor, y)
    rng = np.random.default_rng(1)
    feeds = {
        x: positive(rng, shape[:-2], shape[-1], dtype),
        y: rng.normal(size=(*shape[:-1], 3)).astype(dtype),
    }
    plain, first, compiled = steps([factor, solution], feeds)
    for a, b, c in zip(plain, first, compiled, strict=True):
        np.testing.assert_array_equal(b, c)
        np.testing.assert_allclose(a, b, rtol=1e-3 if dtype == "float32" else 1e-11, atol=1e-5)


@pytest.mark.parametrize("n", [3, 40, 300])
def test_matrices_that_are_not_finite_become_nan(n):
    rng = np.random.default_rng(2)
    batch = positive(rng, (3,), n, "float64")
    batch[1, n - 1, 0] = np.nan
    batch[2, 0, 0] = np.inf
    x = hr.placeholder("float64", batch.shape)
    for factor in steps(hr.linalg.cholesky(x), {x: batch}):
        assert np.isfinite(factor[0]).all()
        assert np.isnan(factor[1:][:, *np.tril_indices(n)]).all()


@pytest.mark.parametrize("n", [3, 40, 300])
def test_failures_are_told(n):
    bad = positive(np.random.default_rng(3), (), n, "float32")
    bad[n - 1, n - 1] = -1.0
    flat = np.tril(np.ones((n, n), "float32"))
    flat[n // 2, n // 2] = 0.0
    x = hr.placeholder("float32", (n, n))
    programs = [
        (hr.linalg.cholesky(x), bad, "not positive definite"),
        (hr.linalg.triangular_solve(x, x), flat, "zero on its diagonal"),
    ]
    for program, given, message in programs:
        with hr.Session(config=hr.Config(compile_after=0)) as session:
            for _ in range(2):
                with pytest.raises(hr.errors.InvalidArgumentError, match=message):
                    session.run(program, {x: given})
            good = positive(np.random.default_rng(4), (), n, "float32")
            assert np.isfinite(session.run(program, {x: good})).all()
