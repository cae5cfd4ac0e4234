"""Which operations on matrices are computed by plans."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

import numpy as np

from headrace import Operation
from headrace_cpu.kernels.decompositions import cholesky_by_numpy
from headrace_cpu.kernels.solving import triangular_by_numpy
from headrace_cpu.lapack import triangles
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
    tensors = (*op.inputs, *op.outputs)
    shapes = [t.spec.shape.dims for t in tensors]
    known = all(dims is not None and all(dims) and len(dims) >= 2 for dims in shapes)
    return known and all(t.dtype is op.inputs[0].dtype for t in tensors) and _named(op)


def _named(op: Operation) -> bool:
    return op.inputs[0].dtype.name in LETTERS


def make(candidate: Candidate) -> Instruction | None:
    """Return the instruction that follows the plan, None where there is none."""
    op = candidate.op
    planned, otherwise = _PLANS[op.type]
    plan = planned(op)
    if plan is None:
        return None
    numpy_kernel = functools.partial(otherwise, np, **op.attrs)
    name = "decompose" if op.type == "Cholesky" else "substitute"
    threads = candidate.settings.threads
    return LapackInstruction(op, plan, numpy_kernel, name=name, threads=threads)


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


_PLANS: Mapping[str, tuple[Callable[[Operation], Plan | None], Callable[..., Any]]] = (
    MappingProxyType(
        {
            "Cholesky": (_cholesky, cholesky_by_numpy),
            "MatrixTriangularSolve": (_triangular, triangular_by_numpy),
        }
    )
)
# What may be wanted.
TAKEN = frozenset(_PLANS)
