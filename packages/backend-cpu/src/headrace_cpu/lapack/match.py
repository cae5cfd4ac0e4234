"""Which operations on matrices are computed by plans."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

import numpy as np

from headrace import Operation, Tensor
from headrace_cpu.kernels.decompositions import (
    cholesky_by_numpy,
    eigen_by_numpy,
    qr_by_numpy,
    svd_by_numpy,
)
from headrace_cpu.kernels.linalg import matmul
from headrace_cpu.kernels.solving import (
    determinant_by_numpy,
    inverse_by_numpy,
    log_determinant_by_numpy,
    solution_by_numpy,
    triangular_by_numpy,
)
from headrace_cpu.lapack import eigen, elimination, orthogonal, products, triangles
from headrace_cpu.lapack.instruction import LapackInstruction
from headrace_cpu.lapack.library import LETTERS
from headrace_cpu.lapack.plan import Plan
from headrace_cpu.program.instruction import Instruction
from headrace_cpu.program.matching import Candidate


def wants(candidate: Candidate) -> bool:
    """Whether an operation is one on matrices of float32 or float64 that has a plan."""
    op = candidate.op
    if op.type not in _PLANS or op.control_inputs:
        return False
    dtype = op.inputs[0].dtype
    if dtype.name not in LETTERS or any(t.dtype is not dtype for t in op.inputs):
        return False
    # A result of no elements is nobody's work.
    if any(t.shape.known == (0,) and _is_needed(candidate, t) for t in op.outputs):
        return False
    shapes = [t.spec.shape.dims for t in op.inputs]
    return all(dims is not None and all(dims) and len(dims) >= 2 for dims in shapes)


def _is_needed(candidate: Candidate, tensor: Tensor) -> bool:
    return candidate.matches.needed_outside(tensor, [candidate.op])


def make(candidate: Candidate) -> Instruction | None:
    """Return the instruction that follows the plan, None where there is none."""
    op = candidate.op
    planned, otherwise, name = _PLANS[op.type]
    plan = planned(op)
    if plan is None:
        return None
    numpy_kernel = functools.partial(otherwise, np, **op.attrs)
    threads = candidate.settings.threads
    return LapackInstruction(op, plan, numpy_kernel, name=name, threads=threads)


def make_products(candidate: Candidate) -> Instruction | None:
    """Return the instruction that multiplies them, None where there is none."""
    op = candidate.op
    plan = products.products(_shape(op, 0), _shape(op, 1), op.inputs[0].dtype.numpy, **op.attrs)
    if plan is None:
        return None
    otherwise = functools.partial(matmul, np, **op.attrs)
    threads = candidate.settings.threads
    return LapackInstruction(op, plan, otherwise, name="multiply_each", threads=threads)


def _shape(op: Operation, index: int) -> tuple[int, ...]:
    return op.inputs[index].shape.known


def _cholesky(op: Operation) -> Plan | None:
    *batch, n, columns = _shape(op, 0)
    if n != columns:
        return None
    return triangles.cholesky(tuple(batch), n, op.inputs[0].dtype.numpy)


def _triangular(op: Operation) -> Plan | None:
    matrix, sides = _shape(op, 0), _shape(op, 1)
    if not triangles.agree(matrix, sides):
        return None
    return triangles.triangular(matrix, sides, op.inputs[0].dtype.numpy, **op.attrs)


def _square(op: Operation) -> tuple[tuple[int, ...], int] | None:
    """Return how many square matrices there are, and their size; None for others."""
    *batch, n, columns = _shape(op, 0)
    return (tuple(batch), n) if n == columns else None


def _eigen(op: Operation) -> Plan | None:
    found = _square(op)
    if found is None:
        return None
    return eigen.symmetric(*found, op.inputs[0].dtype.numpy, vectors=op.attrs["compute_v"])


def _qr(op: Operation) -> Plan | None:
    *batch, m, n = _shape(op, 0)
    full = op.attrs["full_matrices"]
    return orthogonal.qr(tuple(batch), m, n, op.inputs[0].dtype.numpy, full=full)


def _svd(op: Operation) -> Plan | None:
    *batch, m, n = _shape(op, 0)
    full, vectors = op.attrs["full_matrices"], op.attrs["compute_uv"]
    dtype = op.inputs[0].dtype.numpy
    return orthogonal.singular(tuple(batch), m, n, dtype, full=full, vectors=vectors)


def _inverse(op: Operation) -> Plan | None:
    found = _square(op)
    if found is None:
        return None
    return elimination.inverse(*found, op.inputs[0].dtype.numpy, adjoint=op.attrs["adjoint"])


def _solution(op: Operation) -> Plan | None:
    found, sides = _square(op), _shape(op, 1)
    if found is None or sides[:-1] != (*found[0], found[1]):
        return None
    dtype = op.inputs[0].dtype.numpy
    return elimination.solution(*found, sides[-1], dtype, adjoint=op.attrs["adjoint"])


def _determinant(op: Operation) -> Plan | None:
    found = _square(op)
    if found is None:
        return None
    logarithm = op.type == "LogMatrixDeterminant"
    return elimination.determinant(*found, op.inputs[0].dtype.numpy, logarithm=logarithm)


# For each type of op: what makes its plan, what computes it otherwise, and its instruction's name.
_PLANS: Mapping[str, tuple[Callable[[Operation], Plan | None], Callable[..., Any], str]] = (
    MappingProxyType(
        {
            "Cholesky": (_cholesky, cholesky_by_numpy, "decompose"),
            "LogMatrixDeterminant": (_determinant, log_determinant_by_numpy, "eliminate"),
            "MatrixDeterminant": (_determinant, determinant_by_numpy, "eliminate"),
            "MatrixInverse": (_inverse, inverse_by_numpy, "eliminate"),
            "MatrixSolve": (_solution, solution_by_numpy, "eliminate"),
            "MatrixTriangularSolve": (_triangular, triangular_by_numpy, "substitute"),
            "Qr": (_qr, qr_by_numpy, "decompose"),
            "SelfAdjointEig": (_eigen, eigen_by_numpy, "decompose"),
            "Svd": (_svd, svd_by_numpy, "decompose"),
        }
    )
)
# What may be wanted.
TAKEN = frozenset(_PLANS)
