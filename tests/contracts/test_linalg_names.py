"""Names and arguments of linear algebra, random numbers and initializers are TensorFlow 1.15's."""

from __future__ import annotations

import inspect
from operator import attrgetter

import pytest

import headrace as hr

# What a name is called with, in order; names after a bar stand for the same function.
SIGNATURES = """
matmul|linalg.matmul: a b transpose_a transpose_b adjoint_a adjoint_b a_is_sparse b_is_sparse name
linalg.matvec: a b transpose_a adjoint_a a_is_sparse b_is_sparse name
tensordot|linalg.tensordot: a b axes name
einsum|linalg.einsum: equation inputs kwargs
matrix_inverse|linalg.inv: input adjoint name
matrix_determinant|linalg.det: input name
linalg.slogdet: input name
linalg.logdet: matrix name
cholesky|linalg.cholesky: input name
cholesky_solve|linalg.cholesky_solve: chol rhs name
qr|linalg.qr: input full_matrices name
svd|linalg.svd: tensor full_matrices compute_uv name
self_adjoint_eig|linalg.eigh: tensor name
self_adjoint_eigvals|linalg.eigvalsh: tensor name
matrix_solve|linalg.solve: matrix rhs adjoint name
matrix_triangular_solve|linalg.triangular_solve: matrix rhs lower adjoint name
matrix_solve_ls|linalg.lstsq: matrix rhs l2_regularizer fast name
trace|linalg.trace: x name
cross|linalg.cross: a b name
linalg.expm: input name
linalg.logm: input name
matrix_square_root|linalg.sqrtm: input name
linalg.lu: input output_idx_type name
linalg.pinv: a rcond validate_args name
linalg.adjoint: matrix name
matrix_transpose|linalg.transpose: a name conjugate
linalg.tridiagonal_solve: diagonals rhs diagonals_format transpose_rhs conjugate_rhs name
random_gamma|random.gamma: shape alpha beta dtype seed name
random_poisson|random.poisson: lam shape dtype seed name
random_uniform|random.uniform: shape minval maxval dtype seed name
random_normal|random.normal: shape mean stddev dtype seed name
truncated_normal|random.truncated_normal: shape mean stddev dtype seed name
multinomial|random.multinomial: logits num_samples seed name output_dtype
random.categorical: logits num_samples dtype seed name
random_shuffle|random.shuffle: value seed name
random_crop: value size seed name
get_seed|random.get_seed: op_seed
random.stateless_uniform: shape seed minval maxval dtype name
random.stateless_normal: shape seed mean stddev dtype name
random.stateless_truncated_normal: shape seed mean stddev dtype name
random.stateless_multinomial: logits num_samples seed output_dtype name
random.stateless_categorical: logits num_samples seed dtype name
zeros_initializer|initializers.zeros: dtype
ones_initializer|initializers.ones: dtype
constant_initializer|initializers.constant: value dtype verify_shape
random_uniform_initializer|initializers.random_uniform: minval maxval seed dtype
random_normal_initializer|initializers.random_normal: mean stddev seed dtype
truncated_normal_initializer|initializers.truncated_normal: mean stddev seed dtype
uniform_unit_scaling_initializer|initializers.uniform_unit_scaling: factor seed dtype
variance_scaling_initializer|initializers.variance_scaling: scale mode distribution seed dtype
orthogonal_initializer|initializers.orthogonal: gain seed dtype
glorot_uniform_initializer|initializers.glorot_uniform: seed dtype
glorot_normal_initializer|initializers.glorot_normal: seed dtype
initializers.identity: gain dtype
initializers.he_normal: seed
initializers.he_uniform: seed
initializers.lecun_normal: seed
initializers.lecun_uniform: seed
"""
LINES = [line.split(": ") for line in SIGNATURES.strip().splitlines()]


@pytest.mark.parametrize(("names", "arguments"), LINES, ids=[names for names, _ in LINES])
def test_arguments_stand_in_order(names, arguments):
    first, *others = (attrgetter(name)(hr) for name in names.split("|"))
    assert all(other is first for other in others)
    known = list(inspect.signature(first).parameters)
    wanted = arguments.split()
    assert known[: len(wanted)] == wanted
