"""The kernels of triangular systems and of transposed copies, called by hand."""

from __future__ import annotations

import numpy as np
import pytest

from headrace_cpu.lapack import run, substitution, triangles, turning
from headrace_cpu.lapack.library import loaded_lapack, prototype
from headrace_cpu.lapack.table import WORDS, Place, Table
from headrace_cpu.native.build import build
from headrace_cpu.native.memory import address


@pytest.mark.parametrize("sides", [1, 15, 16, 17, 63, 64, 65, 140])
@pytest.mark.parametrize("unknowns", [1, 2, 31])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_systems_of_a_kernel_are_solved_and_nothing_beside_them_is_touched(dtype, unknowns, sides):
    (kernel,) = build([substitution.source(dtype)])
    rng = np.random.default_rng(unknowns)
    wide, apart = unknowns + 3, sides + 5
    matrix = (rng.normal(size=(unknowns, wide)) / unknowns + np.eye(unknowns, wide)).astype(dtype)
    for backwards in (False, True):
        values = rng.normal(size=(unknowns, apart)).astype(dtype)
        given = values.copy()
        # Row i of the matrix holds the factors of equation i; known are those before, or behind.
        start, step = (unknowns - 1, -1) if backwards else (0, 1)
        sizes = np.array([unknowns, sides, step, step * wide, step * apart])
        first = matrix[start:, start:], values[start:]
        prototype(kernel, 3)(address(sizes), *(each.ctypes.data for each in first))
        square = matrix[:, :unknowns].astype("float64")
        triangle = np.triu(square) if backwards else np.tril(square)
        eps = 16 * unknowns * np.finfo(dtype).eps
        found = values[:, :sides].astype("float64")
        np.testing.assert_allclose(triangle @ found, given[:, :sides], rtol=eps, atol=eps)
        np.testing.assert_array_equal(values[:, sides:], given[:, sides:])


@pytest.mark.parametrize("shape", [(1, 1), (7, 8), (8, 8), (16, 24), (19, 33)])
def test_matrices_are_turned_and_nothing_beside_them_is_touched(shape):
    (kernel,) = build([turning.source()])
    rows, columns = shape
    given = np.random.default_rng(rows).normal(size=(columns, rows + 2))
    made = np.full((rows, columns + 3), 7.0)
    sizes = np.array([rows, columns, rows + 2, columns + 3])
    prototype(kernel, 3)(address(sizes), address(given), address(made))
    np.testing.assert_array_equal(made[:, :columns], given[:, :rows].T)
    assert (made[:, columns:] == 7.0).all()


@pytest.fixture
def without_kernels(monkeypatch):
    """Plans as they are where there is no compiler."""
    for plan in (triangles.cholesky, triangles.triangular):
        plan.cache_clear()
    monkeypatch.setattr(substitution, "_kernel", lambda dtype: None)
    monkeypatch.setattr(turning, "_kernel", lambda: None)
    yield
    for plan in (triangles.cholesky, triangles.triangular):
        plan.cache_clear()


@pytest.mark.skipif(loaded_lapack() is None, reason="there is no LAPACK to call")
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_without_a_compiler_functions_of_blas_do_the_work(without_kernels, dtype):
    rng = np.random.default_rng(3)
    half = rng.normal(size=(150, 150)) / np.sqrt(150)
    x = (half @ half.T + np.eye(150)).astype(dtype)
    y = rng.normal(size=(150, 70)).astype(dtype)
    eps = 600 * np.finfo(dtype).eps
    (factor,) = run.computed(triangles.cholesky((), 150, x.dtype), [x])
    np.testing.assert_allclose(factor @ factor.T, x, rtol=eps, atol=eps)
    plan = triangles.triangular(x.shape, y.shape, x.dtype, lower=True, adjoint=False)
    (found,) = run.computed(plan, [factor, y])
    np.testing.assert_allclose(factor @ found, y, rtol=eps, atol=eps)


def test_no_compiler_is_told_and_leaves_the_work_to_blas(monkeypatch):
    def fails(sources):
        raise ImportError("No module named 'llvmlite'")

    said = []
    monkeypatch.setattr("headrace_cpu.native.compiler.notice", said.append)
    monkeypatch.setattr(substitution, "build", fails)
    monkeypatch.setattr(turning, "build", fails)
    assert substitution._kernel.__wrapped__("float32") is None
    assert turning._kernel.__wrapped__() is None
    reason = "so plain kernels do its work: No module named 'llvmlite'"
    assert said == [
        f"no kernel can be generated for {op}, {reason}"
        for op in ("MatrixTriangularSolve", "Cholesky")
    ]


def owners(table):
    """Who makes each single call, None for borders and the end."""
    rows = table.words.reshape(-1, WORDS)
    return [int(row[2]) if row[0] > 0 and row[1] == 1 else None for row in rows]


@pytest.mark.skipif(loaded_lapack() is None, reason="there is no LAPACK to call")
def test_calls_of_a_chain_are_made_by_one_thread():
    table = Table(loaded_lapack(), np.dtype("float32"))
    copy = ("copy", 1, Place(1), 1, Place(2), 1)
    table.call(*copy)
    for _ in range(2):
        with table.chain():
            for _ in range(3):
                table.call(*copy)
    table.border()
    table.call(*copy)
    assert owners(table.end(0, 0)) == [0, 1, 1, 1, 2, 2, 2, None, 3, None]


@pytest.mark.skipif(loaded_lapack() is None, reason="there is no LAPACK to call")
def test_the_halves_of_a_system_wait_for_one_another():
    plan = triangles.triangular(
        (200, 200), (200, 400), np.dtype("float32"), lower=True, adjoint=False
    )
    found = owners(plan.table)
    # Copies of the parts of the right sides; then a system for each part, of several calls.
    parts = len(triangles.cuts(400)) - 1
    assert parts > 1
    solved = found[found.index(None) + 1 : -1]
    each = len(solved) // parts
    assert each > 1
    assert solved == [number for number in dict.fromkeys(solved) for _ in range(each)]
    assert len(set(solved)) == parts
