"""Linear algebra: what is built of ops, errors, and gradients through vectors of free sign."""

from __future__ import annotations

import numpy as np
import pytest

import headrace as hr
from headrace.errors import (
    AttributeValueError,
    DTypeError,
    ExecutionError,
    NoGradientError,
    ShapeError,
)
from tests.steps import run

pytestmark = pytest.mark.needs("backend-cpu", "autodiff")

RNG = np.random.default_rng(5)
A = RNG.normal(size=(2, 3, 3))
S = A @ np.swapaxes(A, -1, -2) + np.eye(3)
B = RNG.normal(size=(2, 3, 2))
DEEP = RNG.normal(size=(4, 2))
C = A + 1j * RNG.normal(size=A.shape)
H = C @ np.conj(np.swapaxes(C, -1, -2)) + np.eye(3)

OFFSET = np.array([[0.0], [5.0], [0.0]])


def turned(x):
    return np.conj(np.swapaxes(x, -1, -2))


VALUES = {
    "matmul_adjoint": (lambda: hr.matmul(C, C, adjoint_a=True), turned(C) @ C),
    "matmul_adjoint_b": (
        lambda: hr.matmul(A, C.real, False, False, False, True),
        A @ turned(C.real),
    ),
    "matmul_sparse": (lambda: hr.matmul(A, B, a_is_sparse=True, b_is_sparse=True), A @ B),
    "matmul_lists": (lambda: hr.matmul([[1, 2]], [[3], [4]]), [[11]]),
    "matvec": (lambda: hr.linalg.matvec(A, B[:, :, 0]), (A @ B)[:, :, 0]),
    "matvec_list": (lambda: hr.linalg.matvec(A, [1, 2, 3]), A @ [1, 2, 3]),
    "matvec_adjoint": (lambda: hr.linalg.matvec(C, C[0, 0], adjoint_a=True), turned(C) @ C[0, 0]),
    "adjoint": (lambda: hr.linalg.adjoint(C), turned(C)),
    "transpose": (lambda: hr.linalg.transpose(C), np.swapaxes(C, -1, -2)),
    "matrix_transpose": (lambda: hr.matrix_transpose(C, conjugate=True), turned(C)),
    "trace": (lambda: hr.trace(B), B[:, 0, 0] + B[:, 1, 1]),
    "trace_int": (lambda: hr.linalg.trace([[1, 2, 3], [4, 5, 6]]), 6),
    "cross": (lambda: hr.cross(A, S), np.cross(A, S)),
    "cross_uint8": (lambda: hr.cross(np.uint8([1, 2, 3]), np.uint8([3, 4, 5])), [254, 4, 254]),
    "cholesky_solve": (
        lambda: hr.cholesky_solve(np.linalg.cholesky(S), B),
        np.linalg.solve(S, B),
    ),
    "logdet": (lambda: hr.linalg.logdet(S), np.log(np.linalg.det(S))),
    "logdet_complex": (lambda: hr.linalg.logdet(H), np.log(np.linalg.det(H).real)),
    "slogdet": (lambda: hr.linalg.slogdet(A)[1], np.log(np.abs(np.linalg.det(A)))),
    "pinv": (lambda: hr.linalg.pinv(DEEP), np.linalg.pinv(DEEP)),
    "pinv_rcond": (lambda: hr.linalg.pinv(A, rcond=0.5), np.linalg.pinv(A, 0.5)),
    "matrix_rank": (lambda: hr.linalg.matrix_rank([[1.0, 2.0], [2.0, 4.0]]), 1),
    "matrix_rank_tol": (lambda: hr.linalg.matrix_rank(np.diag([3.0, 0.1]), tol=0.2), 1),
    "lstsq": (
        lambda: hr.matrix_solve_ls(DEEP, DEEP + 1),
        np.linalg.lstsq(DEEP, DEEP + 1, None)[0],
    ),
    "lstsq_wide": (
        lambda: hr.linalg.lstsq(DEEP.T, DEEP.T + 1),
        np.linalg.lstsq(DEEP.T, DEEP.T + 1, None)[0],
    ),
    "lstsq_slow": (
        lambda: hr.linalg.lstsq([[1.0, 2.0], [2.0, 4.0]], [[1.0], [2.0]], fast=False),
        [[0.2], [0.4]],
    ),
    "lstsq_regularized": (
        lambda: hr.linalg.lstsq(DEEP, DEEP + 1, 0.3),
        np.linalg.solve(DEEP.T @ DEEP + 0.3 * np.eye(2), DEEP.T @ (DEEP + 1)),
    ),
    "lu_solve": (lambda: hr.linalg.lu_solve(*hr.linalg.lu(A), B), np.linalg.solve(A, B)),
    "lu_matrix_inverse": (
        lambda: hr.linalg.lu_matrix_inverse(*hr.linalg.lu(A)),
        np.linalg.inv(A),
    ),
    "lu_reconstruct": (lambda: hr.linalg.lu_reconstruct(*hr.linalg.lu(A)), A),
    "eigvals": (lambda: hr.self_adjoint_eigvals(H), np.linalg.eigvalsh(H)),
    "svd_values": (lambda: hr.svd(C, compute_uv=False), np.linalg.svd(C, compute_uv=False)),
}


@pytest.mark.parametrize("name", VALUES)
def test_values(name):
    build, expected = VALUES[name]
    tensor = build()
    got = run(tensor)
    assert tensor.shape == got.shape
    np.testing.assert_allclose(got, expected, rtol=1e-6, atol=1e-7)


def test_svd_and_eig_return_tensors_in_order():
    s, u, v = run(hr.svd(C))
    assert s.dtype == np.float64
    np.testing.assert_allclose((u * s[..., None, :]) @ turned(v), C, atol=1e-12)
    e, v = run(hr.self_adjoint_eig(H))
    assert e.dtype == np.complex128
    np.testing.assert_allclose(H @ v, v * e[..., None, :], atol=1e-10)


@pytest.mark.parametrize("form", ["compact", "sequence", "matrix"])
def test_tridiagonal(form):
    above, main, below = np.array([1.0, 2, 0]), np.array([4.0, 5, 6]), np.array([0, 3.0, 1])
    dense = np.diag(main) + np.diag(above[:2], 1) + np.diag(below[1:], -1)
    given = {"compact": np.stack([above, main, below]), "sequence": [above[:2], main, below[1:]]}
    diagonals = given.get(form, dense)
    rhs = np.array([[1.0, 2], [3, 4], [5, 6]])
    solved = run(hr.linalg.tridiagonal_solve(diagonals, rhs, form))
    np.testing.assert_allclose(solved, np.linalg.solve(dense, rhs))
    product = run(hr.linalg.tridiagonal_matmul(diagonals, rhs, form))
    np.testing.assert_allclose(product, dense @ rhs)
    one = run(hr.linalg.tridiagonal_solve(diagonals, rhs[:, 0], form))
    np.testing.assert_allclose(one, np.linalg.solve(dense, rhs[:, 0]))
    other = run(hr.linalg.tridiagonal_solve(diagonals, rhs.T, form, transpose_rhs=True))
    np.testing.assert_allclose(other, solved.T)


def check_gradient(function, x, along=None, tolerance=1e-6):
    """Compare the gradient and the gradient of a gradient with central differences."""
    place = hr.placeholder(hr.float64, x.shape)
    y = function(place)
    rng = np.random.default_rng(1)
    with hr.Session() as session:
        weights = rng.normal(size=session.run(y, {place: x}).shape)
        loss = hr.reduce_sum(y * weights)
        (grad,) = hr.gradients(loss, [place])
        v = rng.normal(size=x.shape)
        (second,) = hr.gradients(hr.reduce_sum(grad * v), [place])
        u = rng.normal(size=x.shape)
        u = u if along is None else along(u)
        h = 1e-5
        for value, slope in ((loss, grad), (hr.reduce_sum(grad * v), second)):
            if slope is None:
                continue  # what is linear in x
            ahead, behind = (session.run(value, {place: x + t * u}) for t in (h, -h))
            wanted = (ahead - behind) / (2 * h)
            got = np.sum(session.run(slope, {place: x}) * u)
            assert got == pytest.approx(wanted, rel=tolerance * 10, abs=tolerance)


@pytest.mark.parametrize(
    ("full", "shape"),
    [
        (False, (3, 3)),
        (False, (4, 2)),
        (False, (2, 4)),
        (True, (3, 2)),
        (True, (2, 3)),
        (True, (2, 2)),
    ],
)
def test_gradient_through_singular_vectors(full, shape):
    x = RNG.normal(size=shape)

    def function(place):
        s, u, v = hr.svd(place, full_matrices=full)
        parts = (s, hr.square(u), hr.square(v))
        return hr.concat([hr.reshape(t, [-1]) for t in parts], 0)

    check_gradient(function, x)


def test_gradient_through_eigenvectors():
    def function(place):
        e, v = hr.self_adjoint_eig(place)
        return hr.concat([hr.reshape(t, [-1]) for t in (e, hr.square(v))], 0)

    check_gradient(function, S)


@pytest.mark.parametrize(
    ("function", "x"),
    [
        (lambda x: hr.matrix_solve_ls(x, DEEP + 1), DEEP),
        (lambda x: hr.matrix_solve_ls(DEEP + 1, x, 0.5), DEEP),
        (lambda x: hr.linalg.lstsq(x, DEEP + 1, fast=False), DEEP),
        (hr.linalg.logdet, S),
        (lambda x: hr.linalg.lu_solve(*hr.linalg.lu(x), B), A),
        (lambda x: hr.linalg.tridiagonal_solve(x + OFFSET, [1.0, 2.0, 3.0]), A[0]),
        (lambda x: hr.cross(x, x * x), A),
        (hr.trace, A),
    ],
    ids=["lstsq", "lstsq_rhs", "lstsq_slow", "logdet", "lu_solve", "tridiagonal", "cross", "trace"],
)
def test_gradients_of_composites(function, x):
    along = (lambda u: u + np.swapaxes(u, -1, -2)) if x is S else None
    check_gradient(function, x, along)


def test_equal_singular_values_give_no_nan():
    place = hr.placeholder(hr.float64, [2, 2])
    _, u, v = hr.svd(place)
    (grad,) = hr.gradients(hr.matmul(u, v, transpose_b=True), [place])
    assert np.isfinite(run(grad, {place: np.eye(2)})).all()


def test_complex_gradients_are_those_of_a_real_loss():
    place = hr.placeholder(hr.complex128, [3, 3])
    weight = RNG.normal(size=()) + 1j * RNG.normal(size=())
    sign, logarithm = hr.linalg.slogdet(place)
    total = hr.matrix_determinant(place) + 0.7 * sign * (1 + 2j) + logarithm * (2 - 1j)
    loss = hr.real(total * hr.constant(np.conj(weight)))
    (grad,) = hr.gradients(loss, [place])
    x, u, h = C[0], C[1], 1e-6
    ahead, behind = (run(loss, {place: x + t * u}) for t in (h, -h))
    got = np.sum(np.conj(run(grad, {place: x})) * u).real
    assert got == pytest.approx((ahead - behind) / (2 * h), rel=1e-6)


REFUSED = [
    (lambda: hr.matmul(A, A, True, False, True), AttributeValueError, "only one of transpose_a"),
    (lambda: hr.matmul(A, A, False, True, False, True), AttributeValueError, "of transpose_b"),
    (lambda: hr.linalg.matvec(A, 1.0), ShapeError, "at least 1 dimension"),
    (lambda: hr.linalg.adjoint([1.0]), ShapeError, "at least 2 dimensions"),
    (lambda: hr.trace([1.0]), ShapeError, "x must have at least 2 dimensions"),
    (lambda: hr.trace([[True]]), DTypeError, "numeric dtype, got bool"),
    (lambda: hr.cross([1.0], [1.0]), ShapeError, r"must have shape \[..., 3\]"),
    (lambda: hr.cross(C, C), DTypeError, "real number"),
    (lambda: hr.cross(A, A[:1]), ShapeError, "incompatible"),
    (lambda: hr.matrix_solve_ls(DEEP, DEEP, -1.0), AttributeValueError, "must be >= 0"),
    (lambda: hr.matrix_solve_ls(DEEP, DEEP[:3]), ShapeError, "needs rhs of 4 rows"),
    (lambda: hr.linalg.tridiagonal_solve(A, B, "full"), AttributeValueError, "diagonals_format"),
    (lambda: hr.linalg.tridiagonal_solve(DEEP, B), ShapeError, r"must be \[..., 3, n\]"),
    (lambda: hr.linalg.tridiagonal_solve([A], B, "sequence"), ShapeError, "three vectors"),
]


@pytest.mark.parametrize(("build", "error", "match"), REFUSED, ids=range(len(REFUSED)))
def test_refused(build, error, match):
    with pytest.raises(error, match=match):
        build()


@pytest.mark.parametrize(
    ("build", "match"),
    [
        (lambda x: hr.qr(x, full_matrices=True)[0], "do not settle the further columns"),
        (lambda x: hr.svd(x, full_matrices=True)[1], "do not settle the further vectors"),
        (lambda x: hr.real(hr.qr(hr.cast(x, hr.complex128))[0]), "complex"),
        (lambda x: hr.real(hr.svd(hr.cast(x, hr.complex128))[1]), "complex"),
    ],
    ids=["qr_full", "svd_full", "qr_complex", "svd_complex"],
)
def test_gradients_that_there_are_not(build, match):
    place = hr.placeholder(hr.float64, [4, 2])
    y = build(place)
    with pytest.raises(NoGradientError, match=match):
        hr.gradients(y, [place])


def test_shapes_that_only_a_step_knows():
    place = hr.placeholder(hr.float64)
    right = hr.placeholder(hr.float64)
    fetched = [
        hr.linalg.inv(place) @ place,
        hr.trace(place),
        hr.matrix_solve_ls(place, right),
        hr.linalg.adjoint(place),
        hr.linalg.logdet(place @ hr.linalg.adjoint(place)),
    ]
    unit, trace, solved, turn, log = run(fetched, {place: A, right: B})
    np.testing.assert_allclose(unit, np.broadcast_to(np.eye(3), A.shape), atol=1e-12)
    np.testing.assert_allclose(trace, np.trace(A, axis1=1, axis2=2))
    np.testing.assert_allclose(solved, np.linalg.solve(A, B), atol=1e-8)
    np.testing.assert_allclose(turn, turned(A))
    np.testing.assert_allclose(log, 2 * np.log(np.abs(np.linalg.det(A))))


def test_a_singular_matrix_of_least_squares_is_an_error():
    singular = hr.constant([[1.0, 2.0], [2.0, 4.0]])
    with pytest.raises(ExecutionError, match="not positive definite"):
        run(hr.matrix_solve_ls(singular, singular))


@pytest.mark.parametrize("executor", ["plan", "plain"])
@pytest.mark.parametrize(
    ("sizes", "known", "match"),
    [
        ([(2, 3), (3, 2)], None, "must have one shape"),
        ([(2, 3), (3, 2)], [None, None], "must have one shape"),
        ([(2, 3), (6,)], None, "one shape"),
        ([(4, 1, 3), (2, 2, 3)], [None, None, 3], "must have one shape"),
        ([(2, 3), (1, 3)], [None, 3], "elements"),
        ([(2, 4), (2, 4)], None, "elements"),
    ],
)
def test_vectors_of_other_shapes_are_refused_in_a_step(executor, sizes, known, match) -> None:
    x, y = (hr.placeholder(hr.float64, known) for _ in sizes)
    with (
        hr.Session(config=hr.Config(executor=executor)) as session,
        pytest.raises(hr.errors.InvalidArgumentError, match=match),
    ):
        session.run(hr.cross(x, y), {x: np.ones(sizes[0]), y: np.ones(sizes[1])})


def test_shorter_diagonals_of_unknown_lengths_are_lengthened() -> None:
    def fed(values: list[float]) -> hr.Tensor:
        return hr.placeholder_with_default(np.float64(values), [None])

    parts = fed([2, 1, 4]), fed([1, 3, 2, 2]), fed([1, -1, 1])
    whole = fed([2, 1, 4, 0]), fed([1, 3, 2, 2]), fed([0, 1, -1, 1])
    rhs = fed([1, 2, 3, 4])
    found = [hr.linalg.tridiagonal_solve(each, rhs, "sequence") for each in (parts, whole)]
    with hr.Session() as session:
        short, full = session.run(found)
    np.testing.assert_array_equal(short, full)
    with pytest.raises(ShapeError, match="the ranks of diagonals must be known"):
        hr.linalg.tridiagonal_solve([hr.placeholder(hr.float64)] * 3, rhs, "sequence")
