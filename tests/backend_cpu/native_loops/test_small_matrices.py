"""Small matrices side by side: beside float64, plain kernels and one another; no results."""

from __future__ import annotations

import numpy as np
import pytest

import headrace as hr

pytestmark = pytest.mark.needs("backend-cpu")

COMPILED = {"compile_after": 0, "compile_wait": True}
NATIVE_LOOPS = ("inverses", "solutions", "determinants", "factors", "substituted")


def turned(x):
    return np.swapaxes(x, -1, -2)


def triangle(lower, x):
    return np.tril(x) if lower else np.triu(x)


def solved(lower, adjoint):
    def build(a, b):
        return hr.linalg.triangular_solve(a, b, lower=lower, adjoint=adjoint)

    def oracle(a, b):
        matrix = triangle(lower, a)
        return np.linalg.solve(turned(matrix) if adjoint else matrix, b)

    return build, oracle


# The operation, and what NumPy computes in float64.
OPERATIONS = {
    "inverse": (lambda a, b: hr.linalg.inv(a), lambda a, b: np.linalg.inv(a)),
    "inverse_adjoint": (
        lambda a, b: hr.linalg.inv(a, adjoint=True), lambda a, b: np.linalg.inv(turned(a))),
    "solve": (hr.linalg.solve, np.linalg.solve),
    "solve_adjoint": (
        lambda a, b: hr.linalg.solve(a, b, adjoint=True),
        lambda a, b: np.linalg.solve(turned(a), b)),
    "determinant": (lambda a, b: hr.linalg.det(a), lambda a, b: np.linalg.det(a)),
    "cholesky": (lambda a, b: hr.linalg.cholesky(a), lambda a, b: np.linalg.cholesky(a)),
    "lower": solved(lower=True, adjoint=False),
    "lower_adjoint": solved(lower=True, adjoint=True),
    "upper": solved(lower=False, adjoint=False),
    "upper_adjoint": solved(lower=False, adjoint=True),
}  # fmt: skip


def given(name, batch, n, m, dtype):
    rng = np.random.default_rng(n)
    a, b = rng.standard_normal((*batch, n, n)), rng.standard_normal((*batch, n, m))
    if name == "cholesky":
        # What is above the diagonal is not read.
        a = np.tril(a @ turned(a) + np.eye(n)) + np.triu(a, 1)
    elif name not in ("inverse", "inverse_adjoint", "solve", "solve_adjoint", "determinant"):
        a = a + 3 * np.eye(n)
    return a.astype(dtype), b.astype(dtype)


def run(name, a, b, **config):
    with hr.Graph().as_default():
        a_, b_ = (hr.placeholder(x.dtype, x.shape) for x in (a, b))
        y = OPERATIONS[name][0](a_, b_)
        with hr.Session(config=hr.Config(**config)) as session:
            found = [session.run(y, {a_: a, b_: b}) for _ in range(2)]
            told = str(session.explain(y, {a_: a, b_: b}))
    assert found[0].tobytes() == found[1].tobytes()
    return found[1], told


@pytest.mark.parametrize(
    ("batch", "n", "m", "dtype"),
    [
        ((), 4, 2, np.float32),
        ((3,), 8, 1, np.float32),
        ((17,), 3, 1, np.float32),
        ((5,), 16, 32, np.float32),
        ((), 1, 1, np.float64),
        ((2, 2), 2, 3, np.float64),
        ((40,), 6, 4, np.float64),
    ],
)
@pytest.mark.parametrize("name", OPERATIONS)
def test_results_are_those_of_float64(name, batch, n, m, dtype):
    a, b = given(name, batch, n, m, dtype)
    oracle = OPERATIONS[name][1](a.astype(np.float64), b.astype(np.float64))
    if name == "cholesky":
        oracle = np.linalg.cholesky(np.tril(a) + turned(np.tril(a, -1)).astype(np.float64))
    used = a if name[:5] not in ("lower", "upper") else triangle(name.startswith("lower"), a)
    bound = 20 * np.finfo(dtype).eps * np.linalg.cond(used.astype(np.float64)).max()
    bits = set()
    for config in ({"executor": "plain"}, {"threads": 2, **COMPILED}, {"compile_after": None}):
        found, told = run(name, a, b, **config)
        assert found.dtype == dtype
        assert found.shape == oracle.shape
        assert np.abs(found - oracle).max() <= bound * np.abs(oracle).max()
        if "executor" not in config:
            assert any(native_loop in told for native_loop in NATIVE_LOOPS)
            bits.add(found.tobytes())
    # Steps give the same before and after they are compiled.
    assert len(bits) == 1


@pytest.mark.parametrize("name", OPERATIONS)
def test_a_matrix_has_the_same_bits_among_others_and_on_several_threads(name):
    a, b = given(name, (300,), 6, 3, np.float32)
    alone, _ = run(name, a[:9], b[:9], threads=1, **COMPILED)
    for threads in (1, 2, 3):
        among, _ = run(name, a, b, threads=threads, **COMPILED)
        assert among[:9].tobytes() == alone.tobytes()


def test_larger_matrices_are_left_to_lapack():
    for batch, n in (((3,), 9), ((8,), 17)):
        a, b = given("inverse", batch, n, 1, np.float32)
        _, told = run("inverse", a, b, **COMPILED)
        assert "inverses" not in told


SINGULAR = np.array([[1.0, 2.0], [2.0, 4.0]], np.float32)
HOLED = np.array([[0.0, 1.0], [1.0, 1.0]], np.float32)
# The operation, what has no result, and what is said.
REFUSED = {
    "inverse": (SINGULAR, "a matrix is not invertible"),
    "solve": (SINGULAR, "a matrix is not invertible"),
    "cholesky": (-np.eye(2, dtype=np.float32), "positive definite"),
    "lower": (HOLED, "a matrix is not invertible: it has a zero on its diagonal"),
}


@pytest.mark.parametrize("batch", [1, 20])
@pytest.mark.parametrize("name", REFUSED)
def test_what_has_no_result_is_told_as_plain_kernels_tell_it(name, batch):
    wrong, message = REFUSED[name]
    b = np.ones((batch, 2, 1), np.float32)
    a = np.tile(np.eye(2, dtype=np.float32), (batch, 1, 1))
    a[-1] = wrong
    with hr.Graph().as_default():
        a_, b_ = (hr.placeholder(x.dtype, x.shape) for x in (a, b))
        y = OPERATIONS[name][0](a_, b_)
        told = []
        for config in ({"executor": "plain"}, COMPILED):
            with hr.Session(config=hr.Config(**config)) as session:
                with pytest.raises(hr.errors.InvalidArgumentError, match=message) as info:
                    session.run(y, {a_: a, b_: b})
                told.append(str(info.value))
                # The next step is one like any.
                fine = np.tile(np.eye(2, dtype=np.float32), (batch, 1, 1))
                session.run(y, {a_: fine, b_: b})
    assert told[0] == told[1]


@pytest.mark.parametrize("value", [np.nan, np.inf])
@pytest.mark.parametrize("name", OPERATIONS)
def test_what_is_not_finite_gives_what_plain_kernels_give(name, value):
    a, b = given(name, (6,), 3, 1, np.float64)
    a[2, 1, 0] = value
    outcomes = []
    for config in ({"executor": "plain"}, COMPILED):
        try:
            outcomes.append(run(name, a, b, **config)[0])
        except hr.errors.InvalidArgumentError as error:
            outcomes.append(str(error).splitlines()[0])
    plain, compiled = outcomes
    if isinstance(plain, str):
        assert compiled == plain
    else:
        np.testing.assert_allclose(compiled, plain, rtol=1e-9, atol=1e-12)


def test_determinants_are_exact_where_products_leave_the_range_on_their_way():
    diagonals = np.array(
        [[1e30, 1e30, 1e-30, 1e-30], [1e-30, 1e-20, 1e30, 1e20], [2, 3, 4, 5], [1, 0, 2, 3]],
        np.float32,
    )
    a = diagonals[:, :, None] * np.eye(4, dtype=np.float32)
    found, _ = run("determinant", a, a[..., :1], **COMPILED)
    np.testing.assert_allclose(found, [1, 1, 120, 0], rtol=1e-5)
    # Rows that are exchanged turn the sign.
    exchanged = a[:, [1, 0, 2, 3]]
    found, _ = run("determinant", exchanged, a[..., :1], **COMPILED)
    np.testing.assert_allclose(found, [-1, -1, -120, 0], rtol=1e-5)


def test_native_loops_run_in_the_rounds_of_loops():
    a = np.array([[2.0, 1.0], [1.0, 3.0]], np.float32)
    matrix = hr.placeholder("float32", [2, 2])
    found = hr.while_loop(
        lambda i, x: i < 5, lambda i, x: (i + 1, hr.linalg.inv(x + matrix)), (0, matrix)
    )[1]
    expected = a.astype(np.float64)
    for _ in range(5):
        expected = np.linalg.inv(expected + a)
    for config in ({"executor": "plain"}, COMPILED):
        with hr.Session(config=hr.Config(**config)) as session:
            np.testing.assert_allclose(session.run(found, {matrix: a}), expected, rtol=1e-5)
