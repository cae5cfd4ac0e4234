"""Decompositions of matrices.

References:
    I. Murray, Differentiation of the Cholesky decomposition, 2016, https://arxiv.org/abs/1602.07527
    D. A. O. Roberts, L. R. Roberts, QR and LQ decomposition matrix backpropagation algorithms for
    square, wide, and deep matrices and their software implementation, 2020,
    https://arxiv.org/abs/2009.10071
    J. Townsend, Differentiating the singular value decomposition, 2016,
    https://j-towns.github.io/papers/svd-derivative.pdf
    M. B. Giles, Collected matrix derivative results for forward and reverse mode algorithmic
    differentiation, 2008, https://people.maths.ox.ac.uk/gilesm/files/AD2008.pdf
"""

from __future__ import annotations

from typing import Any

from headrace import dtypes
from headrace.dtypes import DType
from headrace.errors import AttributeValueError, ShapeError
from headrace.graph.convert import convert_to_tensor
from headrace.graph.spec import TensorSpec
from headrace.graph.tensor import Tensor
from headrace.ops.array import shape
from headrace.ops.constant import one_hot
from headrace.ops.conversion import cast
from headrace.ops.declare import Spec, op
from headrace.ops.flops import of_decomposition
from headrace.ops.kinds import Factored, Precise
from headrace.ops.linalg import diagonal_of
from headrace.ops.reduce import reduce_sum
from headrace.ops.transcendental import log
from headrace.shapes import Dim, Shape


def square_shape(spec: TensorSpec, label: str) -> Shape:
    """Return the shape of square matrices, with the size that either axis knows.

    Raises:
        ShapeError: if they are no square matrices.
    """
    if spec.shape.dims is None:
        return spec.shape
    if len(spec.shape.dims) < 2:
        raise ShapeError(f"{label} must have at least 2 dimensions, got shape {spec.shape}")
    *batch, rows, columns = spec.shape.dims
    if rows is not None and columns is not None and rows != columns:
        raise ShapeError(f"{label} must be square matrices, got shape {spec.shape}")
    size = columns if rows is None else rows
    return Shape([*batch, size, size])


def _sizes(spec: TensorSpec) -> tuple[list[Dim], Dim, Dim] | None:
    """Return leading dimensions, rows and columns of matrices, None for an unknown rank."""
    if spec.shape.dims is None:
        return None
    if len(spec.shape.dims) < 2:
        raise ShapeError(f"input must have at least 2 dimensions, got shape {spec.shape}")
    *batch, rows, columns = spec.shape.dims
    return batch, rows, columns


def _smaller(rows: Dim, columns: Dim) -> Dim:
    if rows == 0 or columns == 0:
        return 0
    return None if rows is None or columns is None else min(rows, columns)


@op("Cholesky", flops=of_decomposition)
def cholesky(input: Factored) -> Spec:
    """Lower triangular factors ``L`` of positive definite matrices ``L @ adjoint(L)``.

    A matrix that is not positive definite raises when it runs.

    Args:
        input: [..., n, n], symmetric (Hermitian where complex); only the lower triangle is looked
            at. The gradient is symmetric.

    Returns:
        The shape and dtype of ``input``, zeros above the diagonal.
    """
    return TensorSpec(input.dtype, square_shape(input, "input"))


@op("Qr", flops=of_decomposition)
def qr(input: Factored, full_matrices: bool = False) -> tuple[Spec, Spec]:
    """Products of matrices with orthonormal columns and upper triangular ones.

    Args:
        input: [..., m, n], floating or complex.
        full_matrices: Whether the orthogonal matrices are square, or have ``min(m, n)`` columns.
            There is a gradient only if that is the same.

    Returns:
        The orthogonal ones, [..., m, p], and the triangular ones, [..., p, n], where ``p`` is ``m``
        or ``min(m, n)``.
    """
    sizes = _sizes(input)
    if sizes is None:
        return TensorSpec(input.dtype), TensorSpec(input.dtype)
    batch, m, n = sizes
    p = m if full_matrices else _smaller(m, n)
    return (
        TensorSpec(input.dtype, Shape([*batch, m, p])),
        TensorSpec(input.dtype, Shape([*batch, p, n])),
    )


@op("Svd", public="", flops=of_decomposition)
def svd_op(
    input: Factored, full_matrices: bool = False, compute_uv: bool = True
) -> tuple[Spec, Spec, Spec]:
    """Singular values and vectors: ``input = u @ diag(s) @ adjoint(v)``.

    Args:
        input: [..., m, n], floating or complex.
        full_matrices: Whether ``u`` and ``v`` are square, or have ``min(m, n)`` columns.
        compute_uv: Whether vectors are computed; where not, ``u`` and ``v`` have no elements.

    Returns:
        The values, [..., min(m, n)], real, the largest first; ``u``, [..., m, p]; and ``v``,
        [..., n, q].
    """
    sizes = _sizes(input)
    real = input.dtype.real_dtype
    if sizes is None:
        return TensorSpec(real), TensorSpec(input.dtype), TensorSpec(input.dtype)
    batch, m, n = sizes
    k = _smaller(m, n)
    values = TensorSpec(real, Shape([*batch, k]))
    if not compute_uv:
        nothing = TensorSpec(input.dtype, Shape([0]))
        return values, nothing, nothing
    return (
        values,
        TensorSpec(input.dtype, Shape([*batch, m, m if full_matrices else k])),
        TensorSpec(input.dtype, Shape([*batch, n, n if full_matrices else k])),
    )


def svd(
    tensor: Any, full_matrices: bool = False, compute_uv: bool = True, name: str | None = None
) -> Tensor | tuple[Tensor, Tensor, Tensor]:
    """Return singular values and vectors: ``tensor = u @ diag(s) @ adjoint(v)``.

    Gradients through the vectors need distinct singular values, and are refused where
    ``full_matrices`` adds vectors that the matrix does not settle: where ``m`` and ``n`` differ by
    more than 1.

    Args:
        tensor: [..., m, n], floating or complex.
        full_matrices: Whether ``u`` and ``v`` are square, or have ``min(m, n)`` columns.
        compute_uv: Whether vectors are wanted.
        name: The name of the operation.

    Returns:
        The values ``s``, [..., min(m, n)], real, the largest first; or, with vectors, the tensors
        ``s``, ``u`` and ``v``.

    Raises:
        ShapeError: if there are fewer than 2 dimensions.
    """
    s, u, v = svd_op(tensor, full_matrices, compute_uv, name=name)
    return (s, u, v) if compute_uv else s


@op("SelfAdjointEig", public="", node_name="SelfAdjointEigV2", flops=of_decomposition)
def _self_adjoint_eig(input: Factored, compute_v: bool = True) -> tuple[Spec, Spec]:
    """Eigenvalues and eigenvectors of symmetric, or Hermitian, matrices.

    Args:
        input: [..., n, n], floating or complex; only the lower triangle is looked at, and only it
            has a gradient.
        compute_v: Whether vectors are computed; where not, ``v`` has no elements.

    Returns:
        The values, [..., n], the smallest first, and the vectors as columns, [..., n, n], both of
        the dtype of ``input``.
    """
    square = square_shape(input, "input")
    vectors = square if compute_v else Shape([0])
    return TensorSpec(input.dtype, square[:-1]), TensorSpec(input.dtype, vectors)


def self_adjoint_eig(tensor: Any, name: str | None = None) -> tuple[Tensor, Tensor]:
    """Return eigenvalues and eigenvectors of symmetric, or Hermitian, matrices.

    Gradients through the vectors need distinct eigenvalues.

    Args:
        tensor: [..., n, n], floating or complex; only the lower triangle is looked at.
        name: The name of the operation.

    Returns:
        The values, [..., n], the smallest first, and the vectors as columns, [..., n, n], both of
        the dtype of ``tensor``.

    Raises:
        ShapeError: if the matrices are not square.
    """
    e, v = _self_adjoint_eig(tensor, True, name=name)
    return e, v


def self_adjoint_eigvals(tensor: Any, name: str | None = None) -> Tensor:
    """Return the eigenvalues of symmetric, or Hermitian, matrices.

    Args:
        tensor: [..., n, n], floating or complex; only the lower triangle is looked at.
        name: The name of the operation.

    Returns:
        [..., n], the smallest first, the dtype of ``tensor``.

    Raises:
        ShapeError: if the matrices are not square.
    """
    e, _ = _self_adjoint_eig(tensor, False, name=name)
    return e


@op("Lu", public="")
def _lu(input: Precise, output_idx_type: DType = dtypes.int32) -> tuple[Spec, Spec]:
    """Triangular factors of square matrices whose rows are reordered.

    A matrix that is not invertible raises when it runs.

    Args:
        input: [..., n, n], floating or complex.
        output_idx_type: int32 or int64.

    Returns:
        Both factors in one matrix, [..., n, n], the ones on the diagonal of the lower one left
        out; and the order of the rows, [..., n], ``output_idx_type``.
    """
    if output_idx_type not in (dtypes.int32, dtypes.int64):
        raise AttributeValueError(f"output_idx_type must be int32 or int64, got {output_idx_type}")
    square = square_shape(input, "input")
    return TensorSpec(input.dtype, square), TensorSpec(output_idx_type, square[:-1])


def lu(
    input: Any, output_idx_type: Any = dtypes.int32, name: str | None = None
) -> tuple[Tensor, Tensor]:
    """Return triangular factors ``L @ U`` of square matrices whose rows are reordered.

    Args:
        input: [..., n, n], floating or complex, invertible.
        output_idx_type: int32 or int64.
        name: The name of the operation.

    Returns:
        Both factors in one matrix, [..., n, n], the ones on the diagonal of ``L`` left out; and
        the order of the rows, [..., n]: row ``i`` of the product is row ``p[i]`` of ``input``.

    Raises:
        ShapeError: if the matrices are not square.
    """
    factors, order = _lu(input, output_idx_type, name=name)
    return factors, order


def permutation_matrix(perm: Any, like: Tensor) -> Tensor:
    """Return [..., n, n]: the matrices that pick rows ``perm``, of the dtype of ``like``."""
    order = convert_to_tensor(perm)
    size = order.spec.shape[-1] if order.shape.rank else None
    depth: Any = shape(order)[-1] if size is None else size
    return one_hot(order, depth, dtype=like.dtype)


def log_of_diagonal(triangle: Tensor) -> Tensor:
    """Return the sums of the logarithms of the diagonals of matrices, which are positive."""
    diagonal = diagonal_of(triangle)
    real = cast(diagonal, triangle.dtype.real_dtype) if triangle.dtype.is_complex else diagonal
    return reduce_sum(log(real), -1)
