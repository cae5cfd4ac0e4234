"""Short rows with what they share, many of them side by side: against NumPy, and as long rows."""

from __future__ import annotations

import numpy as np
import pytest

import headrace as hr

COMPILED = {"compile_after": 0, "compile_wait": True}


def check(program, expected, *given, **config):
    """Run a program three times on arrays and compare; return the kernels of it."""
    graph = hr.Graph()
    with graph.as_default():
        inputs = [hr.placeholder(array.dtype.name, array.shape) for array in given]
        result = program(*inputs)
    feeds = dict(zip(inputs, given, strict=True))
    with hr.Session(graph=graph, config=hr.Config(**COMPILED, **config)) as session:
        for _ in range(3):
            found = session.run(result, feeds)
        kernels = session.explain(result, feeds).kernels
    np.testing.assert_allclose(found, expected(*given), rtol=2e-6, atol=2e-6)
    return kernels


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("columns", [2, 3, 5, 7, 8, 10, 13, 15])
@pytest.mark.parametrize("rows", [1024, 1000, 1009, 49 * 64, 60000])
def test_rows_are_scaled_and_moved_by_what_they_share(rows, columns, threads):
    rng = np.random.default_rng(columns)
    x = rng.integers(0, 256, (rows, columns)).astype(np.uint8)
    a, b = (rng.uniform(1, 2, columns).astype("float32") for _ in range(2))
    check(
        lambda x, a, b: (hr.cast(x, "float32") / 255.0 - a) / b,
        lambda x, a, b: (x.astype("float32") / np.float32(255) - a) / b,
        *(x, a, b),
        threads=threads,
    )


PROGRAMS = {
    "elementary": (lambda x, a: (x + a) * hr.exp(a), lambda x, a: (x + a) * np.exp(a)),
    "mean of rows": (
        lambda x, a: x * a + hr.reduce_mean(x, 1, keepdims=True),
        lambda x, a: x * a + x.mean(1, keepdims=True),
    ),
    "mean of columns": (lambda x, a: x * a - hr.reduce_mean(x, 0), lambda x, a: x * a - x.mean(0)),
    "sums": (lambda x, a: hr.reduce_sum(x * a, 0), lambda x, a: (x * a).sum(0, dtype="float64")),
    "sum": (lambda x, a: hr.reduce_sum(x * a), lambda x, a: (x * a).sum(dtype="float64")),
    "rows backwards": (lambda x, a: x[::-1] + a, lambda x, a: x[::-1] + a),
    "columns backwards": (lambda x, a: x[:, ::-1] + a[::-1], lambda x, a: x[:, ::-1] + a[::-1]),
    "neighbors": (lambda x, a: x[1:] - a * x[:-1], lambda x, a: x[1:] - a * x[:-1]),
    "choice": (lambda x, a: hr.where(x > a, x, -a + x), lambda x, a: np.where(x > a, x, -a + x)),
}


@pytest.mark.parametrize(("program", "expected"), PROGRAMS.values(), ids=PROGRAMS)
def test_other_programs_on_short_rows(program, expected):
    rng = np.random.default_rng(0)
    x = rng.uniform(0, 1, (1536, 6)).astype("float32")
    check(program, expected, x, rng.uniform(0, 1, 6).astype("float32"))


def test_batches_of_short_rows_have_long_ones():
    rng = np.random.default_rng(0)
    x, a = rng.normal(size=(8, 32, 32, 3)).astype("float32"), np.float32([1, 2, 3])
    (kernel,) = check(
        lambda x, a: hr.nn.relu(x * a + a), lambda x, a: np.maximum(x * a + a, 0), x, a
    )
    assert "remaining(k, 3)" in kernel.source


def test_shared_variable_is_updated_after_rows_have_read_it():
    x = hr.placeholder("float32", (2000, 3))
    b = hr.Variable(np.float32([1, 2, 3]))
    moved = x + b
    step = hr.group(b.assign_sub(hr.reduce_mean(moved, 0)), hr.identity(moved))
    given = np.random.default_rng(0).normal(size=(2000, 3)).astype("float32")
    expected = np.float32([1, 2, 3])
    with hr.Session(config=hr.Config(threads=2, **COMPILED)) as session:
        session.run(hr.global_variables_initializer())
        for _ in range(4):
            session.run([step, moved], {x: given})
            expected = expected - (given + expected).mean(0)
        np.testing.assert_allclose(session.run(b), expected, rtol=1e-4, atol=1e-5)


def test_functions_beside_whole_numbers_of_64_bits_fill_vectors():
    x = np.random.default_rng(0).normal(size=(40, 100)).astype("float32")
    n = np.arange(40, dtype=np.int64)
    kernels = check(
        lambda x, n: hr.where(hr.range(100, dtype="int64") < n[:, None], hr.exp(x), x * 2.0),
        lambda x, n: np.where(np.arange(100) < n[:, None], np.exp(x), x * 2),
        *(x, n),
    )
    assert any("full_range(" in kernel.source for kernel in kernels)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_softmax_of_masked_scores_is_zero_where_they_are(dtype):
    x = np.random.default_rng(0).normal(size=(50, 70)).astype(dtype)
    for far in (-1e9, -1e30, -np.inf, -800.0, -200.0):
        x[:, 20:] = far
        expected = np.exp(x - x.max(1, keepdims=True))
        expected /= expected.sum(1, keepdims=True)
        check(hr.nn.softmax, lambda _, expected=expected: expected, x)
