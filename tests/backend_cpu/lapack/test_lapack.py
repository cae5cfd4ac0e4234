"""Plans for LAPACK against NumPy: sizes at which they change, batches, failures, threads."""

from __future__ import annotations

import numpy as np
import pytest

import headrace as hr
from headrace_cpu.lapack import driver, eigen, elimination, orthogonal, products, run, triangles
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
    # As instructions do: BLAS has no threads of its own meanwhile.
    loaded_lapack().blas.alone(launch(kernel, address(words), threads))()
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
    cases += [((), (), 131), ((2,), (2,), 48), ((), (9,), 65)]
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


SHAPES = [(1, 1), (1, 4), (4, 1), (5, 5), (7, 3), (3, 7), (40, 20), (20, 300), (130, 130)]


def close(found, want, dtype, n):
    scale = 64 * n * np.finfo(dtype).eps
    np.testing.assert_allclose(found, np.broadcast_to(want, found.shape), rtol=scale, atol=scale)


def turned(x):
    return x.swapaxes(-1, -2)


@pytest.mark.parametrize("batch", BATCHES)
@pytest.mark.parametrize(("m", "n"), SHAPES)
@pytest.mark.parametrize("full", [False, True])
@pytest.mark.parametrize("dtype", DTYPES)
def test_orthogonal_factors_make_the_matrices(dtype, full, m, n, batch):
    x = np.random.default_rng(m).normal(size=(*batch, m, n)).astype(dtype)
    k, longer = min(m, n), max(m, n)
    q, r = run.computed(orthogonal.qr(batch, m, n, x.dtype, full=full), [x])
    p = m if full else k
    assert (q.shape, r.shape) == ((*batch, m, p), (*batch, p, n))
    assert not np.tril(r, -1).any()
    close(q @ r, x, dtype, longer)
    close(turned(q) @ q, np.eye(p), dtype, longer)
    plan = orthogonal.singular(batch, m, n, x.dtype, full=full, vectors=True)
    s, u, v = run.computed(plan, [x])
    assert (u.shape[-1], v.shape[-1]) == ((m, n) if full else (k, k))
    close((u[..., :k] * s[..., None, :]) @ turned(v[..., :k]), x, dtype, longer)
    close(turned(u) @ u, np.eye(u.shape[-1]), dtype, longer)
    close(turned(v) @ v, np.eye(v.shape[-1]), dtype, longer)
    plan = orthogonal.singular(batch, m, n, x.dtype, full=False, vectors=False)
    (alone,) = run.computed(plan, [x])
    want = np.linalg.svd(x.astype("float64"), compute_uv=False)
    close(s, want, dtype, longer)
    close(alone, want, dtype, longer)


@pytest.mark.parametrize("batch", BATCHES)
@pytest.mark.parametrize("n", [1, 2, 7, 24, 65, 130])
@pytest.mark.parametrize("dtype", DTYPES)
def test_eigenvectors_and_values_make_the_matrices(dtype, n, batch):
    half = np.random.default_rng(n).normal(size=(*batch, n, n)) / np.sqrt(n)
    x = (half + turned(half)).astype(dtype)
    # What is above the diagonal is not looked at.
    given = np.tril(x) + np.triu(np.full_like(x, np.nan), 1)
    values, vectors = run.computed(eigen.symmetric(batch, n, x.dtype, vectors=True), [given])
    (alone,) = run.computed(eigen.symmetric(batch, n, x.dtype, vectors=False), [given])
    close((vectors * values[..., None, :]) @ turned(vectors), x, dtype, n)
    close(turned(vectors) @ vectors, np.eye(n), dtype, n)
    close(alone, values, dtype, n)
    assert (np.diff(values) >= 0).all()


@pytest.mark.parametrize("batch", BATCHES)
@pytest.mark.parametrize("n", [1, 2, 7, 24, 100, 130])
@pytest.mark.parametrize("dtype", DTYPES)
def test_elimination_solves_and_inverts(dtype, n, batch):
    rng = np.random.default_rng(n)
    x = (rng.normal(size=(*batch, n, n)) / np.sqrt(n) + 3 * np.eye(n)).astype(dtype)
    for adjoint in (False, True):
        used = turned(x) if adjoint else x
        plan = elimination.inverse(batch, n, x.dtype, adjoint=adjoint)
        close(used @ run.computed(plan, [x])[0], np.eye(n), dtype, n)
        for k in (1, 2, 9):
            y = rng.normal(size=(*batch, n, k)).astype(dtype)
            plan = elimination.solution(batch, n, k, x.dtype, adjoint=adjoint)
            close(used @ run.computed(plan, [x, y])[0], y, dtype, n)
    wide = np.linalg.slogdet(x.astype("float64"))
    plan = elimination.determinant(batch, n, x.dtype, logarithm=True)
    assert (plan is None) == (n < 24 or (n < 100 and np.prod(batch) < 8))
    if plan is not None:
        sign, logarithm = run.computed(plan, [x])
        np.testing.assert_array_equal(sign, wide[0])
        close(logarithm, wide[1], dtype, n)


@pytest.mark.parametrize("factor", [1.0, -1e30, 1e-30])
@pytest.mark.parametrize("n", [100, 600])
def test_determinants_neither_overflow_nor_underflow_on_the_way(n, factor):
    diagonal = np.ones(n)
    diagonal[: n // 2] = factor
    diagonal[n // 2 : n // 2 * 2] = 1 / factor
    x = np.diag(diagonal)[::-1].copy()
    (found,) = run.computed(elimination.determinant((), n, x.dtype, logarithm=False), [x])
    np.testing.assert_allclose(found, np.linalg.slogdet(x)[0], rtol=1e-12)


MANY = {
    "eigen": lambda x: hr.linalg.eigh(x),
    "eigenvalues": lambda x: hr.linalg.eigvalsh(x),
    "qr": lambda x: hr.linalg.qr(x),
    "svd": lambda x: hr.linalg.svd(x),
    "singular values": lambda x: hr.linalg.svd(x, compute_uv=False),
    "inverse": lambda x: hr.linalg.inv(x),
    "solution": lambda x: hr.linalg.solve(x, x[..., :2]),
    "determinant": lambda x: hr.linalg.det(x),
    "logarithm": lambda x: hr.linalg.slogdet(x),
}


@pytest.mark.parametrize("shape", [(5, 5), (130, 130), (12, 26, 26)])
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", MANY)
def test_steps_decompose_alike_before_and_after_they_are_compiled(name, dtype, shape):
    n = shape[-1]
    rng = np.random.default_rng(6)
    x = hr.placeholder(dtype, shape)
    made = MANY[name](x)
    program = list(made) if isinstance(made, tuple) else [made]
    feeds = {x: (rng.normal(size=shape) / np.sqrt(n) + 2 * np.eye(n)).astype(dtype)}
    plain, first, compiled = steps(program, feeds)
    for a, b, c in zip(plain, first, compiled, strict=True):
        np.testing.assert_array_equal(b, c)
        scale = 3e-3 if dtype == "float32" else 1e-9
        np.testing.assert_allclose(a, b, rtol=scale, atol=scale)


@pytest.mark.parametrize("n", [3, 130])
@pytest.mark.parametrize("bad", [np.nan, np.inf])
@pytest.mark.parametrize("name", MANY)
def test_what_is_not_finite_ends_alike_in_plain_and_compiled_steps(name, bad, n):
    x = hr.placeholder("float32", (n, n))
    made = MANY[name](x)
    program = list(made) if isinstance(made, tuple) else [made]
    given = np.eye(n, dtype="float32")
    given[-1, 0] = bad
    ends = []
    for settings in ({"executor": "plain"}, {"compile_after": 1, "compile_wait": True}):
        with hr.Session(config=hr.Config(**settings)) as session:
            for _ in range(2):
                try:
                    ends.append([np.isfinite(each) for each in session.run(program, {x: given})])
                except hr.errors.InvalidArgumentError as error:
                    ends.append(str(error).partition("\n")[0])
    for end in ends[1:]:
        if isinstance(end, str):
            assert end == ends[0]
        else:
            assert all(np.array_equal(a, b) for a, b in zip(end, ends[0], strict=True))


@pytest.mark.parametrize("name", ["inverse", "solution"])
@pytest.mark.parametrize("n", [3, 130])
def test_matrices_without_inverses_are_told(n, name):
    x = hr.placeholder("float64", (n, n))
    program = MANY[name](x)
    with hr.Session(config=hr.Config(compile_after=0)) as session:
        for _ in range(2):
            with pytest.raises(hr.errors.InvalidArgumentError, match="not invertible"):
                session.run(program, {x: np.ones((n, n))})
        assert np.isfinite(session.run(program, {x: np.eye(n)})).all()


@pytest.mark.parametrize("threads", [2, 3])
@pytest.mark.parametrize("batch", [(), (11,)])
def test_decompositions_do_not_depend_on_threads(batch, threads):
    n = 40
    x = positive(np.random.default_rng(7), batch, n, "float32")
    plans = [
        eigen.symmetric(batch, n, x.dtype, vectors=True),
        orthogonal.qr(batch, n, n, x.dtype, full=False),
        orthogonal.singular(batch, n, n, x.dtype, full=False, vectors=True),
        elimination.inverse(batch, n, x.dtype, adjoint=False),
    ]
    for plan in plans:
        alone = run.computed(plan, [x])
        for found, want in zip(driven(plan, [x], threads), alone, strict=True):
            np.testing.assert_array_equal(found, want)


@pytest.mark.parametrize("transpose_a", [False, True])
@pytest.mark.parametrize("transpose_b", [False, True])
@pytest.mark.parametrize("dtype", DTYPES)
def test_products_of_many_matrices(dtype, transpose_a, transpose_b):
    rng = np.random.default_rng(8)
    batches = [((3,), (3,)), ((), (4,)), ((2, 3), (1,)), ((2, 3), (2, 3)), ((1, 1), (2, 3))]
    for left, right in batches:
        for m, n, inner in ((1, 1, 1), (2, 5, 3), (17, 9, 40)):
            a = rng.normal(size=(*left, inner, m) if transpose_a else (*left, m, inner))
            b = rng.normal(size=(*right, n, inner) if transpose_b else (*right, inner, n))
            a, b = a.astype(dtype), b.astype(dtype)
            how = {"transpose_a": transpose_a, "transpose_b": transpose_b}
            plan = products.products(a.shape, b.shape, a.dtype, **how)
            want = (turned(a) if transpose_a else a) @ (turned(b) if transpose_b else b)
            for found in (run.computed(plan, [a, b])[0], driven(plan, [a, b], 2)[0]):
                close(found, want, dtype, inner)
    assert products.products((2, 1, 3, 3), (1, 4, 3, 3), np.dtype(dtype), **how) is None


def test_steps_multiply_many_matrices_by_a_plan():
    a, b = hr.placeholder("float64", (30, 8, 9)), hr.placeholder("float64", (30, 7, 9))
    program = hr.matmul(a, b, transpose_b=True)
    rng = np.random.default_rng(9)
    feeds = {a: rng.normal(size=(30, 8, 9)), b: rng.normal(size=(30, 7, 9))}
    with hr.Session(config=hr.Config(compile_after=0)) as session:
        found = session.run(program, feeds)
        assert "multiply_each" in str(session.explain(program, feeds))
    np.testing.assert_allclose(found, feeds[a] @ turned(feeds[b]), rtol=1e-12, atol=1e-12)
