"""Translations of linear algebra, transforms and random numbers."""

from __future__ import annotations

from typing import Any

from headrace.extend.translations import TranslationTable
from headrace_io.translation.library import hr
from headrace_io.translation.rows.elementwise import same

ROWS = TranslationTable()

ROWS.call("MatMul", hr.matmul, "transpose_a transpose_b")


ROWS.call("MatrixSolveLs", hr.matrix_solve_ls, "fast")
ROWS.call("Lu", hr.linalg.lu, "output_idx_type", outputs="lu p")


@ROWS.add("TridiagonalMatMul")
def _tridiagonal_matmul(node: Any) -> Any:
    above, main, below, rhs = node.tensors
    # The op takes the diagonals as rows.
    diagonals = hr.concat([above, main, below], -2)
    return hr.linalg.tridiagonal_matmul(diagonals, rhs, diagonals_format="compact")


@ROWS.add("Einsum")
def _einsum(node: Any) -> Any:
    return hr.einsum(node.text("equation"), *node.tensors)


ROWS.call("SparseMatMul", hr.sparse_matmul, "transpose_a transpose_b a_is_sparse b_is_sparse")
for _name in ("BatchMatMul", "BatchMatMulV2"):
    ROWS.call(_name, hr.matmul, "adj_x=adjoint_a adj_y=adjoint_b")
for _batch in ("", "Batch"):
    ROWS.call(f"{_batch}Cholesky", hr.cholesky)
    ROWS.call(f"{_batch}MatrixDeterminant", hr.matrix_determinant)
    ROWS.call(f"{_batch}MatrixInverse", hr.matrix_inverse, "adjoint")
    ROWS.call(f"{_batch}MatrixSolve", hr.matrix_solve, "adjoint")
    ROWS.call(f"{_batch}MatrixTriangularSolve", hr.matrix_triangular_solve, "lower adjoint")
ROWS.call("LogMatrixDeterminant", hr.linalg.slogdet, outputs="sign log_abs_determinant")
ROWS.call("MatrixExponential", hr.linalg.expm)
ROWS.call("MatrixLogarithm", hr.linalg.logm)
ROWS.call("MatrixSquareRoot", hr.linalg.sqrtm)
ROWS.call("Qr", hr.qr, "full_matrices", outputs="q r")
for _name in ("FFT", "IFFT", "FFT2D", "IFFT2D", "FFT3D", "IFFT3D"):
    ROWS.call(_name, same(_name))
for _name in ("RFFT", "IRFFT", "RFFT2D", "IRFFT2D", "RFFT3D", "IRFFT3D"):
    ROWS.call(_name, getattr(hr.signal, _name.lower()))


@ROWS.add("Svd", outputs="s u v")
def _svd(node: Any) -> Any:
    both = bool(node.attr("compute_uv", True))
    full = bool(node.attr("full_matrices", False))
    found = hr.svd(node.tensor(0), full_matrices=full, compute_uv=both)
    if both:
        return list(found)
    return [found, hr.zeros([0], found.dtype), hr.zeros([0], found.dtype)]


@ROWS.add("SelfAdjointEigV2", outputs="e v")
def _eig(node: Any) -> Any:
    if node.attr("compute_v", True):
        return list(hr.self_adjoint_eig(node.tensor(0)))
    found = hr.self_adjoint_eigvals(node.tensor(0))
    return [found, hr.zeros([0], found.dtype)]


def _seed(node: Any) -> int | None:
    """Return one seed for TensorFlow's two, None where both say that there is none."""
    first, second = node.attr("seed", 0), node.attr("seed2", 0)
    return (first * 1_000_003 + second) % (1 << 31) if first or second else None


@ROWS.add("RandomUniform", "RandomStandardNormal", "TruncatedNormal")
def _random(node: Any) -> Any:
    function = {
        "RandomUniform": hr.random_uniform,
        "RandomStandardNormal": hr.random_normal,
        "TruncatedNormal": hr.truncated_normal,
    }[node.op]
    return function(node.tensor(0), dtype=node.attr("dtype"), seed=_seed(node))


@ROWS.add("RandomUniformInt")
def _random_int(node: Any) -> Any:
    shape, low, high = node.tensors
    return hr.random_uniform(shape, low, high, dtype=low.dtype, seed=_seed(node))


@ROWS.add("RandomShuffle")
def _shuffle(node: Any) -> Any:
    return hr.random_shuffle(node.tensor(0), seed=_seed(node))


@ROWS.add("Multinomial")
def _multinomial(node: Any) -> Any:
    kind = node.attr("output_dtype", hr.int64)
    return hr.random.categorical(*node.tensors, dtype=kind, seed=_seed(node))


@ROWS.add("RandomGamma")
def _gamma(node: Any) -> Any:
    shape, alpha = node.tensors
    return hr.random_gamma(shape, alpha, dtype=alpha.dtype, seed=_seed(node))


@ROWS.add("RandomPoissonV2", "RandomPoisson")
def _poisson(node: Any) -> Any:
    shape, rate = node.tensors
    kind = node.attr("dtype", hr.float32)
    return hr.random_poisson(rate, shape, dtype=kind, seed=_seed(node))
