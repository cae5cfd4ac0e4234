"""Kernels of decompositions of matrices, by LAPACK or what a GPU has in its place.

Matrices with NaN or infinities decompose into NaN, where the libraries raise, or never end.
"""

from __future__ import annotations

import contextlib
import functools
import importlib
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from headrace import DType
from headrace.extend import KernelTable
from headrace_cpu.kernels.numeric import Array

KERNELS = KernelTable()
# LU decompositions with their permutations are SciPy's, one matrix after the other.
HOST_KERNELS = KernelTable()


def matrix_dims(x: Array, label: str) -> tuple[int, int]:
    """Return rows and columns of matrices.

    Raises:
        ValueError: if there are fewer than 2 dimensions.
    """
    if x.ndim < 2:
        raise ValueError(f"{label} must have at least 2 dimensions, got shape {list(x.shape)}")
    return x.shape[-2], x.shape[-1]


def check_square(x: Array, label: str) -> int:
    """Return the size of square matrices.

    Raises:
        ValueError: if they are not square.
    """
    rows, columns = matrix_dims(x, label)
    if rows != columns:
        raise ValueError(f"{label} must be square matrices, got shape {list(x.shape)}")
    return int(rows)


@contextlib.contextmanager
def failures(xp: Any, message: str) -> Any:
    """Raise ``ValueError(message)`` where a library finds that a matrix does not do.

    CuPy says nothing of it unless it is asked to.
    """
    with contextlib.ExitStack() as stack:
        if xp.__name__ == "cupy" and getattr(xp, "cuda", None) is not None:
            with contextlib.suppress(ImportError):
                stack.enter_context(importlib.import_module("cupyx").errstate(linalg="raise"))
        try:
            yield
        except xp.linalg.LinAlgError as error:
            raise ValueError(message) from error


def all_finite(xp: Any, x: Array) -> bool:
    """Whether no element is NaN or infinite."""
    return bool(xp.isfinite(x).all())


def set_apart(xp: Any, x: Array) -> tuple[Array, Array | None]:
    """Return matrices with zeros for those that are not finite, and which those are, if any."""
    if all_finite(xp, x):
        return x, None
    lost = ~xp.isfinite(x).all(axis=(-2, -1))
    return xp.where(lost[..., None, None], xp.zeros((), x.dtype), x), lost


def blotted(xp: Any, result: Array, lost: Array | None, axes: int) -> Array:
    """Return ``result``, whose last ``axes`` are a matrix's, with NaN for those set apart."""
    if lost is None:
        return result
    mask = lost.reshape(lost.shape + (1,) * axes)
    return xp.where(mask, xp.asarray(np.nan, result.dtype), result)


# Below this size, and where there are many, NumPy is done before the calls are made one by one.
_SMALL, _MANY = 24, 8


def by_plan(xp: Any, x: Array, *, vectors: bool = False) -> bool:
    """Whether plans for LAPACK are worth it for the matrices of an array.

    Args:
        xp: The array module.
        x: [..., m, n].
        vectors: Whether results may be turned round: where NumPy computes in another precision
            than plans it turns other ones, so steps follow plans compiled or not.
    """
    if xp is not np or x.dtype.name not in ("float32", "float64") or not x.size:
        return False
    if vectors and x.dtype == np.float32:
        return True
    return bool(x.shape[-1] >= _SMALL and x.size < _MANY * x.shape[-1] * x.shape[-2])


def planned(family: str, name: str, arrays: Sequence[Array], *sizes: Any, **how: Any) -> Any:
    """Return what a plan computes of arrays, as a list; None where there is none or it fails.

    Args:
        family: The module of the plan in ``headrace_cpu.lapack``.
        name: The function that makes it.
        arrays: Its inputs.
        sizes: What the function takes before the dtype.
        how: What it takes by name.
    """
    # lazy: most programs have no matrices to decompose
    maker = getattr(importlib.import_module(f"headrace_cpu.lapack.{family}"), name)
    plan = maker(*sizes, arrays[0].dtype, **how)
    if plan is None:
        return None
    run = importlib.import_module("headrace_cpu.lapack.run")
    return run.computed(plan, arrays)


def in_single(kernel: Callable[..., Any]) -> Callable[..., Any]:
    """Return a kernel that computes in float32 what is float16, which the libraries do not take."""

    @functools.wraps(kernel)
    def computed(xp: Any, *arrays: Array, **attrs: Any) -> Any:
        if arrays[0].dtype != np.float16:
            return kernel(xp, *arrays, **attrs)
        found = kernel(xp, *(x.astype(np.float32) for x in arrays), **attrs)
        with np.errstate(over="ignore"):
            if isinstance(found, tuple):
                return tuple(part.astype(np.float16) for part in found)
            return found.astype(np.float16)

    return computed


@KERNELS.plain("Cholesky")
@in_single
def cholesky(xp: Any, x: Array) -> Array:
    """Decompose positive definite matrices."""
    size = check_square(x, "input")
    if not x.size:
        return xp.zeros(x.shape, x.dtype)
    if by_plan(xp, x):
        found = planned("triangles", "cholesky", (x,), x.shape[:-2], size)
        if found is not None:
            return found[0]
    return cholesky_by_numpy(xp, x)


def cholesky_by_numpy(xp: Any, x: Array) -> Array:
    """Decompose positive definite matrices, with NaN for those that are not finite."""
    size = x.shape[-1]
    below = xp.arange(size)[:, None] >= xp.arange(size)
    matrices = xp.where(below, x, xp.zeros((), x.dtype))
    matrices, lost = set_apart(xp, matrices)
    if lost is not None:
        matrices = matrices + xp.where(lost[..., None, None], xp.eye(size, dtype=x.dtype), 0)
    with failures(
        xp, "a matrix is not positive definite: the Cholesky decomposition was not successful"
    ):
        factors = xp.linalg.cholesky(matrices.astype(x.dtype, copy=False))
    return xp.where(below, blotted(xp, factors, lost, 2), xp.zeros((), x.dtype))


@KERNELS.plain("Qr")
@in_single
def qr(xp: Any, x: Array, *, full_matrices: bool) -> tuple[Array, Array]:
    """Decompose into orthogonal and triangular matrices."""
    m, n = matrix_dims(x, "input")
    batch, k = x.shape[:-2], min(m, n)
    p = m if full_matrices else k
    if not x.size:
        unit = xp.broadcast_to(xp.eye(m, p, dtype=x.dtype), (*batch, m, p))
        return unit.copy(), xp.zeros((*batch, p, n), x.dtype)
    if by_plan(xp, x, vectors=True):
        found = planned("orthogonal", "qr", (x,), batch, m, n, full=full_matrices)
        if found is not None:
            return found[0], found[1]
    return qr_by_numpy(xp, x, full_matrices=full_matrices)


def qr_by_numpy(xp: Any, x: Array, *, full_matrices: bool) -> tuple[Array, Array]:
    """Decompose into orthogonal and triangular matrices, NaN of those that are not finite."""
    m, n = x.shape[-2:]
    p = m if full_matrices else min(m, n)
    matrices, lost = set_apart(xp, x)
    q, r = xp.linalg.qr(matrices, mode="complete" if full_matrices else "reduced")
    if lost is None:
        return q, r
    above = xp.arange(p)[:, None] <= xp.arange(n)
    spoiled = xp.where(above, blotted(xp, r, lost, 2), xp.zeros((), x.dtype))
    return blotted(xp, q, lost, 2), spoiled


@KERNELS.plain("Svd")
@in_single
def svd(xp: Any, x: Array, *, full_matrices: bool, compute_uv: bool) -> tuple[Array, Array, Array]:
    """Compute singular values and vectors."""
    m, n = matrix_dims(x, "input")
    batch, k = x.shape[:-2], min(m, n)
    real = np.finfo(x.dtype).dtype
    nothing = xp.zeros((0,), x.dtype)
    if not x.size:
        values = xp.zeros((*batch, k), real)
        if not compute_uv:
            return values, nothing, nothing
        p, q = (m, n) if full_matrices else (k, k)
        left = xp.broadcast_to(xp.eye(m, p, dtype=x.dtype), (*batch, m, p)).copy()
        right = xp.broadcast_to(xp.eye(n, q, dtype=x.dtype), (*batch, n, q)).copy()
        return values, left, right
    if by_plan(xp, x, vectors=True):
        sizes = x.shape[:-2], m, n
        full = full_matrices and compute_uv
        found = planned("orthogonal", "singular", (x,), *sizes, full=full, vectors=compute_uv)
        if found is not None:
            return tuple(found) if compute_uv else (found[0], nothing, nothing)
    return svd_by_numpy(xp, x, full_matrices=full_matrices, compute_uv=compute_uv)


def svd_by_numpy(
    xp: Any, x: Array, *, full_matrices: bool, compute_uv: bool
) -> tuple[Array, Array, Array]:
    """Compute singular values and vectors, NaN of matrices that are not finite."""
    nothing = xp.zeros((0,), x.dtype)
    matrices, lost = set_apart(xp, x)
    with failures(xp, "the singular value decomposition did not converge"):
        if not compute_uv:
            values = xp.linalg.svd(matrices, full_matrices=False, compute_uv=False)
            return blotted(xp, values, lost, 1), nothing, nothing
        u, values, vh = xp.linalg.svd(matrices, full_matrices=full_matrices)
    v = xp.conj(vh).swapaxes(-1, -2)
    return blotted(xp, values, lost, 1), blotted(xp, u, lost, 2), blotted(xp, v, lost, 2)


@KERNELS.plain("SelfAdjointEig")
@in_single
def self_adjoint_eig(xp: Any, x: Array, *, compute_v: bool) -> tuple[Array, Array]:
    """Compute eigenvalues and eigenvectors of symmetric matrices, from their lower triangles."""
    size = check_square(x, "input")
    nothing = xp.zeros((0,), x.dtype)
    if not x.size:
        return xp.zeros(x.shape[:-1], x.dtype), xp.zeros(x.shape, x.dtype) if compute_v else nothing
    if by_plan(xp, x, vectors=True):
        found = planned("eigen", "symmetric", (x,), x.shape[:-2], size, vectors=compute_v)
        if found is not None:
            return found[0], found[1] if compute_v else nothing
    return eigen_by_numpy(xp, x, compute_v=compute_v)


def eigen_by_numpy(xp: Any, x: Array, *, compute_v: bool) -> tuple[Array, Array]:
    """Compute eigenvalues and eigenvectors of symmetric matrices, all of which must be finite."""
    size, nothing = x.shape[-1], xp.zeros((0,), x.dtype)
    below = xp.arange(size)[:, None] >= xp.arange(size)
    matrices, lost = set_apart(xp, xp.where(below, x, xp.zeros((), x.dtype)))
    if lost is not None:
        raise ValueError("the input has NaN or infinite elements: it has no eigenvalues")
    with failures(xp, "the eigenvalue decomposition did not converge"):
        if not compute_v:
            values = xp.linalg.eigvalsh(matrices, UPLO="L")
            return values.astype(x.dtype, copy=False), nothing
        values, vectors = xp.linalg.eigh(matrices, UPLO="L")
    return values.astype(x.dtype, copy=False), vectors


@HOST_KERNELS.plain("Lu")
def lu(xp: Any, x: Array, *, output_idx_type: DType) -> tuple[Array, Array]:
    """Decompose into triangular matrices, with exchanges of rows."""
    from scipy.linalg import get_lapack_funcs

    size = check_square(x, "input")
    factors = np.array(x)
    order = np.zeros(x.shape[:-1], output_idx_type.numpy)
    if not x.size:
        return factors, order
    getrf = get_lapack_funcs("getrf", (x,))
    for at in np.ndindex(x.shape[:-2]):
        packed, pivots, info = getrf(x[at])
        if info > 0 or not np.isfinite(x[at]).all():
            raise ValueError(f"the matrix{_named(at)} is not invertible")
        rows = np.arange(size)
        for i, j in enumerate(pivots):
            rows[[i, j]] = rows[[j, i]]
        factors[at], order[at] = packed, rows
    return factors, order


def _named(at: tuple[int, ...]) -> str:
    return f" at {list(map(int, at))}" if at else ""
