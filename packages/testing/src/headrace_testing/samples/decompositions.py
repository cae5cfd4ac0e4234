"""Samples of decompositions of matrices.

The oracles are the textbook's loops. Signs of singular vectors and eigenvectors are free: of these
it is checked that they make up the matrix again.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from headrace import DType
from headrace.errors import AttributeValueError, DTypeError, ExecutionError, ShapeError
from headrace_testing.inputs import Input, NDArray, array
from headrace_testing.sample import Reject, Row, Sample


def matrices(shape: Sequence[int], shift: float = 0.0, hermitian: bool = False) -> Input:
    """Make matrices with elements between -1 and 1, and ``shift`` added to the diagonal."""

    def fill(rng: np.random.Generator, dtype: DType) -> Any:
        values = rng.uniform(-1, 1, shape)
        if dtype.is_complex:
            values = values + 1j * rng.uniform(-1, 1, shape)
        if hermitian:
            values = (values + np.conj(np.swapaxes(values, -1, -2))) / 2
        return values + shift * np.eye(shape[-2], shape[-1])

    text = f"matrices({list(shape)}, {shift:g}{', hermitian' if hermitian else ''})"
    return Input(text, fill)


def each(function: Callable[..., Any], *stacks: Any, **attrs: Any) -> Any:
    """Apply a function of single matrices to stacks of them."""
    batch = stacks[0].shape[:-2]
    found = [function(*(s[at] for s in stacks), **attrs) for at in np.ndindex(batch)]
    if isinstance(found[0], tuple):
        parts = zip(*found, strict=True)
        return tuple(np.array(p).reshape(batch + np.shape(p[0])) for p in parts)
    return np.array(found).reshape(batch + np.shape(found[0]))


def _cholesky(a: NDArray) -> NDArray:
    n = len(a)
    low = np.zeros_like(a)
    for j in range(n):
        low[j, j] = np.sqrt(a[j, j].real - np.sum(np.abs(low[j, :j]) ** 2))
        for i in range(j + 1, n):
            low[i, j] = (a[i, j] - np.sum(low[i, :j] * np.conj(low[j, :j]))) / low[j, j]
    return low


def _qr(a: NDArray, full_matrices: bool = False) -> tuple[NDArray, NDArray]:
    """Reflect columns one after the other (Householder); diagonals have the sign of LAPACK."""
    m, n = a.shape
    q, r = np.eye(m, dtype=a.dtype), a.copy()
    for j in range(min(m, n)):
        x = r[j:, j]
        if not np.any(x[1:]) and x[0].imag == 0:
            continue
        beta = -np.copysign(np.linalg.norm(x), x[0].real)
        v = x.copy()
        v[0] -= beta
        v /= v[0]
        tau = (beta - x[0]) / beta
        reflect = np.eye(m - j, dtype=a.dtype) - np.conj(tau) * np.outer(v, np.conj(v))
        r[j:] = reflect @ r[j:]
        q[:, j:] = q[:, j:] @ np.conj(reflect.T)
    p = m if full_matrices else min(m, n)
    return q[:, :p], np.triu(r[:p])


def _lu(a: NDArray, output_idx_type: Any = "int32") -> tuple[NDArray, NDArray]:
    packed, order = a.copy(), np.arange(len(a))
    for j in range(len(a)):
        best = j + int(np.argmax(np.abs(packed[j:, j].real) + np.abs(packed[j:, j].imag)))
        packed[[j, best]], order[[j, best]] = packed[[best, j]], order[[best, j]]
        packed[j + 1 :, j] /= packed[j, j]
        packed[j + 1 :, j + 1 :] -= np.outer(packed[j + 1 :, j], packed[j, j + 1 :])
    return packed, order


def _eigenvalues(x: NDArray, compute_v: bool = True) -> Any:
    """Return the roots of characteristic polynomials."""
    lower = np.tril(x)
    whole = lower + np.conj(np.swapaxes(np.tril(x, -1), -1, -2))
    return each(lambda a: np.sort(np.roots(np.poly(a)).real).astype(a.dtype), whole)


def _singular_values(x: NDArray, **attrs: bool) -> Any:
    short = x if x.shape[-2] <= x.shape[-1] else np.swapaxes(x, -1, -2)
    gram = short @ np.conj(np.swapaxes(short, -1, -2))
    return each(lambda a: np.sqrt(np.sort(np.roots(np.poly(a)).real)[::-1]), gram)


def _symmetric(x: NDArray) -> NDArray:
    return x + np.swapaxes(x, -1, -2)


_WIDE = np.array([[2.0, -1.0, 0.5], [1.0, 3.0, -2.0]])
_SQUARE = np.array([[2.0, 1.0, 0.0], [1.0, 3.0, -1.0], [0.0, -1.0, 4.0]])


def _makes(a: NDArray) -> Callable[[list[Any]], bool]:
    """Check that singular values and vectors make up a matrix, and vectors are orthonormal."""

    def holds(results: list[Any]) -> bool:
        s, u, v = (np.asarray(r, np.float64) for r in results)
        k = len(s)
        again = (u[:, :k] * s) @ v[:, :k].T
        unit = np.allclose(u.T @ u, np.eye(u.shape[1]), atol=1e-5)
        unit = unit and np.allclose(v.T @ v, np.eye(v.shape[1]), atol=1e-5)
        return unit and np.allclose(again, a, atol=1e-5) and bool((np.diff(s) <= 0).all())

    return holds


def _eigenvectors(results: list[Any]) -> bool:
    e, v = (np.asarray(r, np.float64) for r in results)
    unit = np.allclose(v.T @ v, np.eye(3), atol=1e-5)
    return unit and np.allclose((v * e) @ v.T, _SQUARE, atol=1e-5)


_NAN = [[[np.nan, 1.0], [1.0, 2.0]], [[2.0, 0.0], [0.0, 3.0]]]

SAMPLES: list[Row] = [
    Sample(
        "Cholesky",
        [matrices((2, 3, 3), 3, hermitian=True)],
        oracle=lambda x: each(_cholesky, x),
        along=_symmetric,
        label="batch",
    ),
    Sample("Cholesky", [array([[4.0]])], oracle=np.sqrt, label="one"),
    Sample(
        "Cholesky",
        [array([[4.0, 100.0], [2.0, 5.0]])],
        oracle=lambda x: np.array([[2.0, 0.0], [1.0, 2.0]]),
        grad=False,
        label="upper_ignored",
    ),
    Sample("Cholesky", [array(np.zeros((2, 0, 0)))], oracle=np.copy, label="empty"),
    Sample(
        "Cholesky",
        [array(_NAN)],
        oracle=lambda x: np.array(
            [[[np.nan, 0], [np.nan, np.nan]], [[np.sqrt(2), 0], [0, np.sqrt(3)]]]
        ),
        grad=False,
        label="nan",
    ),
    *(
        Sample(
            "Qr",
            [matrices(shape, 1)],
            {"full_matrices": full},
            lambda x, full_matrices: each(_qr, x, full_matrices=full_matrices),
            grad=not full,
            label=f"{label}{'_full' if full else ''}",
        )
        for label, shape in (("square", (2, 3, 3)), ("deep", (4, 2)), ("wide", (2, 4)))
        for full in (False, True)
    ),
    Sample(
        "Qr",
        [array(np.zeros((2, 3, 0)))],
        oracle=lambda x: (np.zeros((2, 3, 0)), np.zeros((2, 0, 0))),
        grad=False,
        label="no_columns",
    ),
    Sample(
        "Qr",
        [array(_NAN)],
        oracle=lambda x: (
            np.array([np.full((2, 2), np.nan), np.eye(2)]),
            np.array([[[np.nan, np.nan], [0, np.nan]], [[2, 0], [0, 3]]]),
        ),
        grad=False,
        label="nan",
    ),
    *(
        Sample(
            "Svd",
            [matrices(shape)],
            {"compute_uv": vectors},
            _singular_values,
            outputs=[0],
            tolerance=2e-5,
            label=f"{label}{'' if vectors else '_values'}",
        )
        for label, shape, vectors in (
            ("square", (2, 3, 3), True),
            ("deep", (4, 2), False),
            ("wide", (2, 2, 4), True),
        )
    ),
    *(
        Sample(
            "Svd",
            [array(values, "float32")],
            {"full_matrices": full},
            holds=_makes(values),
            label=label,
        )
        for label, values, full in (
            ("vectors", _WIDE, False),
            ("vectors_full", _WIDE.T, True),
            ("vectors_square", _SQUARE, False),
        )
    ),
    Sample(
        "Svd",
        [array(np.zeros((2, 0, 3)))],
        {"full_matrices": True},
        lambda x, full_matrices: (
            np.zeros((2, 0)),
            np.zeros((2, 0, 0)),
            np.broadcast_to(np.eye(3), (2, 3, 3)),
        ),
        grad=False,
        label="no_rows",
    ),
    Sample(
        "Svd",
        [array(_NAN)],
        {"compute_uv": False},
        lambda x, compute_uv: np.array([[np.nan, np.nan], [3, 2]]),
        outputs=[0],
        grad=False,
        label="nan",
    ),
    *(
        Sample(
            "SelfAdjointEig",
            [matrices((2, 3, 3), hermitian=True)],
            {"compute_v": vectors},
            _eigenvalues,
            outputs=[0],
            tolerance=2e-5,
            label="batch" if vectors else "values",
        )
        for vectors in (True, False)
    ),
    Sample("SelfAdjointEig", [array(_SQUARE, "float32")], holds=_eigenvectors, label="vectors"),
    Sample(
        "SelfAdjointEig",
        [array(np.zeros((2, 0, 0)))],
        oracle=lambda x: (np.zeros((2, 0)), np.zeros((2, 0, 0))),
        grad=False,
        label="empty",
    ),
    Sample(
        "Lu",
        [matrices((2, 3, 3))],
        oracle=lambda x: each(_lu, x),
        label="batch",
    ),
    Sample(
        "Lu",
        [array(np.zeros((0, 3, 3)))],
        {"output_idx_type": "int64"},
        lambda x, output_idx_type: (np.zeros((0, 3, 3)), np.zeros((0, 3))),
        label="empty",
    ),
    *(
        Reject(op, [array(np.ones(shape), "float32")], {}, ShapeError, match, label=label)
        for op in ("Cholesky", "SelfAdjointEig", "Lu")
        for label, shape, match in (
            ("square", (2, 3), "must be square matrices"),
            ("rank", (2,), "at least 2 dimensions"),
        )
    ),
    *(
        Reject(op, [array([1.0], "float32")], {}, ShapeError, "at least 2 dimensions", label="rank")
        for op in ("Qr", "Svd")
    ),
    *(
        Reject(op, [array([[1]], "int32")], {}, DTypeError, "must be .*float32", label="dtype")
        for op in ("Cholesky", "SelfAdjointEig", "Lu", "Qr", "Svd")
    ),
    *(
        Reject(
            "Cholesky",
            [array(values, "float64")],
            {},
            ExecutionError,
            "not positive definite",
            when="run",
            label=label,
        )
        for label, values in (("singular", [[1.0, 2.0], [2.0, 4.0]]), ("negative", [[-1.0]]))
    ),
    Reject(
        "SelfAdjointEig",
        [array([[np.nan]], "float32")],
        {},
        ExecutionError,
        "NaN or infinite",
        when="run",
        label="nan",
    ),
    *(
        Reject(
            "Lu",
            [array(values, "float32")],
            {},
            ExecutionError,
            "not invertible",
            when="run",
            label=label,
        )
        for label, values in (("singular", [[1.0, 2.0], [2.0, 4.0]]), ("nan", [[np.nan]]))
    ),
    Reject(
        "Lu",
        [array([[1.0]], "float32")],
        {"output_idx_type": "float32"},
        AttributeValueError,
        "int32 or int64",
        label="index",
    ),
]
