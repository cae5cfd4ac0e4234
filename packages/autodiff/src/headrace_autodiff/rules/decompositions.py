"""Gradients of decompositions of matrices.

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

from headrace import (
    Operation,
    Tensor,
    cast,
    concat,
    equal,
    expand_dims,
    matmul,
    matrix_triangular_solve,
    ones_like,
    self_adjoint_eig,
    zeros_like,
)
from headrace.errors import NoGradientError
from headrace.extend import GradientTable
from headrace.extend.primitives import (
    adjoint,
    choose,
    diagonal_matrix,
    lower_part,
    on_diagonal,
    permutation_matrix,
    svd_op,
    swap_last_axes,
    upper_part,
)

RULES = GradientTable()


def _halved_diagonal(x: Tensor) -> Tensor:
    return choose(on_diagonal(x), x * 0.5, x)


@RULES.add("Cholesky")
def _cholesky(op: Operation, grad: Tensor) -> Tensor:
    factor = op.outputs[0]
    middle = _halved_diagonal(lower_part(matmul(factor, grad, adjoint_a=True)))
    half = matrix_triangular_solve(factor, middle, lower=True, adjoint=True)
    whole = adjoint(matrix_triangular_solve(factor, adjoint(half), lower=True, adjoint=True))
    return (whole + adjoint(whole)) * 0.5


@RULES.add("Qr")
def _qr(op: Operation, grad_q: Tensor | None, grad_r: Tensor | None) -> Tensor:
    x, (q, r) = op.inputs[0], op.outputs
    if x.dtype.is_complex:
        raise NoGradientError("qr: there is no gradient for complex matrices")
    if x.shape.rank is None or None in (x.spec.shape[-2], x.spec.shape[-1]):
        raise NoGradientError(
            f"qr: the gradient depends on which side of the matrices is longer, their shape is "
            f"{x.spec.shape}; give them one with hr.ensure_shape"
        )
    m, n = x.spec.shape[-2], x.spec.shape[-1]
    if op.attrs["full_matrices"] and m > n:
        raise NoGradientError(
            f"qr: there is no gradient for full_matrices=True and more rows than columns, {m} and "
            f"{n}: the matrices do not settle the further columns of q"
        )
    to_q = zeros_like(q) if grad_q is None else grad_q
    to_r = zeros_like(r) if grad_r is None else grad_r
    if m >= n:
        return _of_deep(q, r, to_q, to_r)
    to_rest = to_r[..., m:]
    to_q = to_q + matmul(x[..., m:], to_rest, transpose_b=True)
    first = _of_deep(q, r[..., :m], to_q, to_r[..., :m])
    return concat([first, matmul(q, to_rest)], -1)


def _of_deep(q: Tensor, r: Tensor, grad_q: Tensor, grad_r: Tensor) -> Tensor:
    """Return the gradient of matrices with at least as many rows as columns."""
    inner = matmul(r, grad_r, transpose_b=True) - matmul(grad_q, q, transpose_a=True)
    below = lower_part(inner, strictly=True)
    mirrored = lower_part(inner) + swap_last_axes(below)
    right = grad_q + matmul(q, mirrored)
    return swap_last_axes(matrix_triangular_solve(r, swap_last_axes(right), lower=False))


def _inverse_differences(values: Tensor) -> Tensor:
    """Return [..., n, n]: ``1 / (values[j] - values[i])``, zero where they are equal.

    Equal values have no vectors of their own: what does not depend on the choice of the vectors
    has the gradient that this gives.
    """
    columns, rows = expand_dims(values, -2), expand_dims(values, -1)
    same = equal(columns, rows)
    gap = columns - rows
    return choose(same, zeros_like(gap), 1 / choose(same, ones_like(gap), gap))


@RULES.add("Svd")
def _svd(
    op: Operation, grad_s: Tensor | None, grad_u: Tensor | None, grad_v: Tensor | None
) -> Tensor | None:
    x, full = op.inputs[0], op.attrs["full_matrices"]
    if not op.attrs["compute_uv"]:
        if grad_s is None:
            return None
        _, u, v = svd_op(x)
        return _between(u, cast(grad_s, x.dtype), v)
    s, u, v = op.outputs
    if grad_u is None and grad_v is None and not full:
        return None if grad_s is None else _between(u, cast(grad_s, x.dtype), v)
    m, n = (x.spec.shape[-2], x.spec.shape[-1]) if x.shape.rank is not None else (None, None)
    if x.dtype.is_complex:
        raise NoGradientError("svd: there is no gradient through the vectors of complex matrices")
    if m is None or n is None:
        raise NoGradientError(
            f"svd: the gradient through vectors needs a shape that is known, not {x.spec.shape}; "
            "give it one with hr.ensure_shape"
        )
    if full and abs(m - n) > 1:
        raise NoGradientError(
            f"svd: there is no gradient for full_matrices=True and {m} rows, {n} columns: the "
            "matrices do not settle the further vectors"
        )
    k = min(m, n)
    to_u = zeros_like(u) if grad_u is None else grad_u
    to_v = zeros_like(v) if grad_v is None else grad_v
    thin_u, thin_v = u[..., :k], v[..., :k]
    f = _inverse_differences(s * s)
    rotation_u = f * _skew(thin_u, to_u[..., :k])
    rotation_v = f * _skew(thin_v, to_v[..., :k])
    row, column = expand_dims(s, -2), expand_dims(s, -1)
    inner = rotation_u * row + column * rotation_v
    if grad_s is not None:
        inner = inner + diagonal_matrix(grad_s)
    total = matmul(thin_u, matmul(inner, thin_v, transpose_b=True))
    if m > k:
        total = total + matmul(_outside(u, to_u, k, full) / row, thin_v, transpose_b=True)
    if n > k:
        total = total + matmul(thin_u, _outside(v, to_v, k, full) / row, transpose_b=True)
    return total


def _between(u: Tensor, values: Tensor, v: Tensor) -> Tensor:
    return matmul(u * expand_dims(values, -2), v, adjoint_b=True)


def _skew(vectors: Tensor, grad: Tensor) -> Tensor:
    product = matmul(vectors, grad, transpose_a=True)
    return product - swap_last_axes(product)


def _outside(vectors: Tensor, grad: Tensor, k: int, full: bool) -> Tensor:
    """Return the part of the gradient of the first ``k`` vectors at right angles to them all.

    Where there is one vector more, it turns against the others.
    """
    thin, to_thin = vectors[..., :k], grad[..., :k]
    if not full:
        return to_thin - matmul(thin, matmul(thin, to_thin, transpose_a=True))
    last, to_last = vectors[..., k:], grad[..., k:]
    along = matmul(last, to_thin, transpose_a=True) - matmul(to_last, thin, transpose_a=True)
    return matmul(last, along)


@RULES.add("SelfAdjointEig")
def _self_adjoint_eig(op: Operation, grad_e: Tensor | None, grad_v: Tensor | None) -> Tensor | None:
    if not op.attrs["compute_v"]:
        if grad_e is None:
            return None
        e, v = self_adjoint_eig(op.inputs[0])
        grad_v = None
    else:
        e, v = op.outputs
    parts = []
    if grad_e is not None:
        parts.append(diagonal_matrix(grad_e))
    if grad_v is not None:
        parts.append(_inverse_differences(e) * matmul(v, grad_v, adjoint_a=True))
    if not parts:
        return None
    inner = parts[0] if len(parts) == 1 else parts[0] + parts[1]
    whole = matmul(v, matmul(inner, v, adjoint_b=True))
    # Only the lower triangle is looked at.
    return _halved_diagonal(lower_part(whole + adjoint(whole)))


@RULES.add("Lu")
def _lu(op: Operation, grad: Tensor | None, grad_order: None) -> Tensor | None:
    if grad is None:
        return None
    factors, order = op.outputs
    ones = choose(on_diagonal(factors), ones_like(factors), factors)
    lower, upper = lower_part(ones), upper_part(factors)
    to_lower, to_upper = lower_part(grad, strictly=True), upper_part(grad)
    inner = lower_part(matmul(lower, to_lower, adjoint_a=True), strictly=True) + upper_part(
        matmul(to_upper, upper, adjoint_b=True)
    )
    half = matrix_triangular_solve(lower, inner, lower=True, adjoint=True)
    permuted = adjoint(matrix_triangular_solve(upper, adjoint(half), lower=False))
    return matmul(permutation_matrix(order, factors), permuted, transpose_a=True)
