"""Matrices."""

from __future__ import annotations

import numpy as np

import headrace as hr

from .libraries import jnp, jsl, torch
from .rows import matrix, normal, row, symmetric, uniform

ROWS = [
    row("matmul", "jnp.matmul", normal(3, 4), normal(4, 2)),
    row("matmul", "jnp.matmul", normal(2, 1, 3, 4), normal(3, 4, 2), mode="batches"),
    row(
        "matmul",
        "jnp.matmul",
        normal(4, 3),
        normal(2, 4),
        ours=lambda x, y: hr.matmul(x, y, transpose_a=True, transpose_b=True),
        theirs=lambda x, y: jnp.matmul(x.T, y.T),
        mode="transposed",
    ),
    row("linalg.matvec", "jnp.matvec", normal(2, 3, 4), normal(2, 4)),
    row(
        "tensordot",
        "jnp.tensordot",
        normal(2, 3, 4),
        normal(4, 5, 3),
        ours=lambda x, y: hr.tensordot(x, y, [[1, 2], [2, 0]]),
        theirs=lambda x, y: jnp.tensordot(x, y, ((1, 2), (2, 0))),
    ),
    *[
        row(
            "einsum",
            "jnp.einsum",
            *inputs,
            ours=lambda *xs, equation=equation: hr.einsum(equation, *xs),
            theirs=lambda *xs, equation=equation: jnp.einsum(equation, *xs),
            mode=equation,
        )
        for equation, inputs in {
            "bij,bjk->bik": (normal(2, 3, 4), normal(2, 4, 2)),
            "ij,jk,kl->il": (normal(2, 3), normal(3, 4), normal(4, 2)),
            "ii->i": (normal(3, 3),),
        }.items()
    ],
    row("cross", "jnp.cross", normal(4, 3), normal(4, 3)),
    row(
        "trace",
        "jnp.trace",
        normal(2, 3, 3),
        theirs=lambda x: jnp.trace(x, axis1=-2, axis2=-1),
    ),
    row("matrix_inverse", "jnp.linalg.inv", matrix(2, 3, 3)),
    row("matrix_determinant", "jnp.linalg.det", matrix(2, 3, 3)),
    row(
        "linalg.slogdet",
        "jnp.linalg.slogdet",
        matrix(2, 3, 3),
        ours=lambda x: hr.linalg.slogdet(x)[1],
        theirs=lambda x: jnp.linalg.slogdet(x)[1],
    ),
    row("linalg.logdet", "torch.logdet", symmetric(2, 3, 3)),
    row(
        "cholesky",
        "jnp.linalg.cholesky",
        symmetric(2, 3, 3),
        ours=lambda x: hr.cholesky((x + hr.matrix_transpose(x)) / 2.0),
        theirs=lambda x: jnp.linalg.cholesky((x + jnp.matrix_transpose(x)) / 2),
    ),
    row(
        "cholesky_solve",
        "jsl.cho_solve",
        matrix(3, 3),
        normal(3, 2),
        ours=lambda x, y: hr.cholesky_solve(hr.matrix_band_part(x, -1, 0), y),
        theirs=lambda x, y: jsl.cho_solve((jnp.tril(x), True), y),
    ),
    row("qr", "jnp.linalg.qr", matrix(3, 3)),
    row(
        "qr",
        "jnp.linalg.qr",
        normal(2, 5, 3),
        theirs=lambda x: tuple(jnp.linalg.qr(x)),
        mode="tall",
    ),
    row(
        "svd",
        "jnp.linalg.svd",
        normal(2, 4, 3),
        ours=lambda x: hr.svd(x, compute_uv=False),
        theirs=lambda x: jnp.linalg.svd(x, compute_uv=False),
        mode="values",
    ),
    row(
        "svd",
        "jnp.linalg.svd",
        symmetric(3, 3),
        # Products of both vectors have no sign of their own.
        ours=lambda x: (lambda s, u, v: hr.matmul(u / s, v, transpose_b=True))(*hr.svd(x)),
        theirs=lambda x: (lambda u, s, vt: (u / s) @ vt)(*jnp.linalg.svd(x)),
        mode="vectors",
    ),
    row(
        "self_adjoint_eigvals",
        "jnp.linalg.eigvalsh",
        symmetric(2, 3, 3),
        ours=lambda x: hr.self_adjoint_eigvals((x + hr.matrix_transpose(x)) / 2.0),
    ),
    row(
        "self_adjoint_eig",
        "jnp.linalg.eigh",
        symmetric(2, 3, 3),
        ours=lambda x: (lambda e, v: (e, hr.square(v)))(
            *hr.self_adjoint_eig((x + hr.matrix_transpose(x)) / 2.0)
        ),
        theirs=lambda x: (lambda e, v: (e, jnp.square(v)))(*jnp.linalg.eigh(x)),
    ),
    row("matrix_solve", "jnp.linalg.solve", matrix(2, 3, 3), normal(2, 3, 2)),
    row(
        "matrix_solve",
        "jnp.linalg.solve",
        matrix(3, 3),
        normal(3, 2),
        ours=lambda x, y: hr.matrix_solve(x, y, adjoint=True),
        theirs=lambda x, y: jnp.linalg.solve(x.T, y),
        mode="adjoint",
    ),
    row(
        "matrix_triangular_solve",
        "jsl.solve_triangular",
        matrix(3, 3),
        normal(3, 2),
        theirs=lambda x, y: jsl.solve_triangular(x, y, lower=True),
    ),
    row(
        "matrix_triangular_solve",
        "jsl.solve_triangular",
        matrix(3, 3),
        normal(3, 2),
        ours=lambda x, y: hr.matrix_triangular_solve(x, y, lower=False, adjoint=True),
        theirs=lambda x, y: jsl.solve_triangular(x, y, trans=1),
        mode="upper, adjoint",
    ),
    row(
        "matrix_solve_ls",
        "jnp.linalg.lstsq",
        normal(5, 3),
        normal(5, 2),
        theirs=lambda x, y: jnp.linalg.lstsq(x, y)[0],
    ),
    row("linalg.expm", "jsl.expm", matrix(3, 3)),
    row(
        "linalg.pinv",
        "jnp.linalg.pinv",
        normal(4, 3),
        float32=5e-5,
        reason="its gradient grows with the cube of the pseudo-inverse",
    ),
    row(
        "linalg.lu",
        "jsl.lu_factor",
        matrix(3, 3),
        ours=lambda x: hr.linalg.lu(x)[0],
        theirs=lambda x: jsl.lu_factor(x)[0],
    ),
    row(
        "linalg.lu_solve",
        "jsl.lu_solve",
        matrix(3, 3),
        normal(3, 2),
        ours=lambda x, y: hr.linalg.lu_solve(x, [0, 1, 2], y),
        theirs=lambda x, y: jsl.lu_solve((x, np.arange(3, dtype=np.int32)), y),
    ),
    row(
        "linalg.lu_reconstruct",
        "torch.lu_unpack",
        matrix(3, 3),
        ours=lambda x: hr.linalg.lu_reconstruct(x, [0, 1, 2]),
        theirs=lambda x: (lambda p, low, up: p @ low @ up)(
            *torch.lu_unpack(x, torch.tensor([1, 2, 3], dtype=torch.int32))
        ),
    ),
    row(
        "linalg.lu_matrix_inverse",
        "jsl.lu_solve",
        matrix(3, 3),
        ours=lambda x: hr.linalg.lu_matrix_inverse(x, [0, 1, 2]),
        theirs=lambda x: jsl.lu_solve((x, np.arange(3, dtype=np.int32)), jnp.eye(3, dtype=x.dtype)),
    ),
    row(
        "linalg.tridiagonal_solve",
        "jnp.diag, jnp.linalg.solve",
        uniform(2.5, 4, 4),
        normal(3),
        normal(3),
        normal(4, 2),
        ours=lambda d, up, low, y: hr.linalg.tridiagonal_solve(
            (hr.pad(up, [[0, 1]]), d, hr.pad(low, [[1, 0]])), y, diagonals_format="sequence"
        ),
        theirs=lambda d, up, low, y: jnp.linalg.solve(
            jnp.diag(d) + jnp.diag(up, 1) + jnp.diag(low, -1), y
        ),
    ),
    row(
        "linalg.tridiagonal_matmul",
        "jnp.diag, jnp.matmul",
        normal(4),
        normal(3),
        normal(3),
        normal(4, 2),
        ours=lambda d, up, low, y: hr.linalg.tridiagonal_matmul(
            (hr.pad(up, [[0, 1]]), d, hr.pad(low, [[1, 0]])), y, diagonals_format="sequence"
        ),
        theirs=lambda d, up, low, y: jnp.matmul(
            jnp.diag(d) + jnp.diag(up, 1) + jnp.diag(low, -1), y
        ),
    ),
    # JAX's square root of a matrix has no derivative; that of a symmetric one follows from its
    # eigenvectors.
    row(
        "matrix_square_root",
        "jnp.linalg.eigh",
        symmetric(3, 3),
        ours=lambda x: hr.matrix_square_root((x + hr.matrix_transpose(x)) / 2.0),
        theirs=lambda x: (lambda e, v: (v * jnp.sqrt(e)) @ v.T)(*jnp.linalg.eigh(x)),
    ),
]
