"""Which operations of a region are computed as matrix multiplications, by BLAS or own kernels."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from headrace import Operation, Tensor
from headrace.extend.records import dataclass
from headrace_cpu.matmul import narrow, panels, streamed
from headrace_cpu.matmul.blas import Blas, Matmul, loaded_blas
from headrace_cpu.matmul.instruction import MatmulInstruction, Rate, pays_deep, pays_outer
from headrace_cpu.program.instruction import Instruction
from headrace_cpu.program.matches import Matches
from headrace_cpu.program.matching import Candidate
from headrace_cpu.program.settings import CompileSettings

_DTYPES = ("float32", "float64")
# How the sign of an update enters.
_SIGNS = {"AssignAddVariable": 1.0, "AssignSubVariable": -1.0}
# What may be wanted: updates of variables, and multiplications.
UPDATES = frozenset(_SIGNS)
MATMULS = frozenset({"MatMul"})


def wants_update(candidate: Candidate) -> bool:
    """Whether an operation adds to a variable, perhaps a matrix multiplication."""
    return candidate.op.type in _SIGNS


def make_uneven_update(candidate: Candidate) -> Instruction | None:
    """Return a matmul that is added to a variable, of few columns or a small one of many rows."""
    return _update(candidate, uneven_only=True)


def make_update(candidate: Candidate) -> Instruction | None:
    """Return a matmul that is added to a variable."""
    return _update(candidate, uneven_only=False)


def _update(candidate: Candidate, *, uneven_only: bool) -> Instruction | None:
    found, blas = _accumulation(candidate.matches, candidate.op), loaded_blas()
    if found is None or blas is None:
        return None
    matmul, threads = found.matmul, candidate.settings.threads
    own = narrow.pays(matmul) or pays_outer(matmul) or pays_deep(matmul, threads)
    if uneven_only and not own:
        return None
    return found.instruction(blas, candidate.settings)


def wants_matmul(candidate: Candidate) -> bool:
    """Whether an operation is one matrix multiplication; for batches of matmuls, NumPy stays."""
    op = candidate.op
    return op.type == "MatMul" and not op.control_inputs and matmul_of(op) is not None


def wants_products(candidate: Candidate) -> bool:
    """Whether an operation multiplies many matrices of float64; oneDNN takes those of float32."""
    op = candidate.op
    dtype = op.inputs[0].dtype
    if op.control_inputs or dtype.name != "float64" or op.inputs[1].dtype is not dtype:
        return False
    shapes = [t.spec.shape.dims for t in (*op.inputs, *op.outputs)]
    if not all(dims is not None and all(dims) and len(dims) >= 2 for dims in shapes):
        return False
    return math.prod(op.outputs[0].shape.known[:-2]) > 1


def make_uneven_matmul(candidate: Candidate) -> Instruction | None:
    """Return a matmul for whose sizes there are kernels of our own.

    These are matmuls of few columns, of few rows with a large matrix, of very many columns, small
    ones of very many rows, and large ones of few.
    """
    matmul, threads = matmul_of(candidate.op), candidate.settings.threads
    assert matmul is not None
    if narrow.pays(matmul) or streamed.pays(matmul, threads):
        return make_matmul(candidate)
    if pays_deep(matmul, threads) or pays_outer(matmul):
        return make_matmul(candidate)
    handed_out = _handed_out(candidate.matches, candidate.op.outputs[0])
    return make_matmul(candidate) if panels.pays(matmul) and not handed_out else None


def make_matmul(candidate: Candidate) -> Instruction | None:
    """Return a matmul into a buffer of its own."""
    op, blas = candidate.op, loaded_blas()
    matmul = matmul_of(op)
    if matmul is None or blas is None:
        return None
    a, b = op.inputs
    return MatmulInstruction(
        (op,),
        matmul,
        (a, b),
        op.outputs[0],
        blas=blas,
        threads=candidate.settings.threads,
        handed_out=_handed_out(candidate.matches, op.outputs[0]),
        repeated=candidate.settings.keen,
    )


def _handed_out(matches: Matches, tensor: Tensor) -> bool:
    """Whether a tensor, or the same memory under another shape, is wanted outside."""
    return tensor in matches.results or any(
        user.schema.view and user.inputs[0] is tensor and _handed_out(matches, user.outputs[0])
        for user in matches.users(tensor)
    )


def matmul_of(op: Operation) -> Matmul | None:
    """Return the sizes of a ``MatMul`` of known shapes, None where it is not one matmul.

    A batch of left matrices times one right matrix is one matmul of more rows.
    """
    a, b = op.inputs
    dtype = a.dtype.name
    if dtype not in _DTYPES:
        return None
    left, right = a.spec.shape.known, b.spec.shape.known
    transposed_a, transposed_b = bool(op.attrs["transpose_a"]), bool(op.attrs["transpose_b"])
    if math.prod(right[:-2]) != 1 or (transposed_a and math.prod(left[:-2]) != 1):
        return None
    out = op.outputs[0].spec.shape.known
    rows, columns = math.prod(out[:-1]), out[-1]
    inner = right[-1] if transposed_b else right[-2]
    if not rows or not columns or not inner:
        return None
    return Matmul(rows, columns, inner, transposed_a, transposed_b, dtype)


@dataclass(frozen=True, slots=True)
class _Accumulation:
    """An update ``handle += rate * (a @ b)``, and the operations that it is made of."""

    ops: tuple[Operation, ...]
    matmul: Matmul
    handle: Tensor
    rate: Rate

    def instruction(self, blas: Blas, settings: CompileSettings) -> MatmulInstruction:
        a, b = self.ops[0].inputs
        return MatmulInstruction(
            self.ops,
            self.matmul,
            (a, b),
            self.handle,
            blas=blas,
            threads=settings.threads,
            rate=self.rate,
        )


def _accumulation(matches: Matches, update: Operation) -> _Accumulation | None:
    """Return what an update of a variable adds, if it is a matmul that nobody else reads."""
    handle, value = update.inputs
    content = handle.spec.content
    if update.control_inputs or matches.needed_outside(update.outputs[0], ()):
        return None
    if (
        content is None
        or content.shape.dims != value.spec.shape.dims
        or content.dtype != value.dtype
    ):
        return None
    factor = _SIGNS[update.type]
    scalar: Tensor | None = None
    chain = [update]
    while True:
        op = value.op
        if not matches.free(op) or op.control_inputs or matches.needed_outside(value, chain[-1:]):
            return None
        chain.append(op)
        if op.type == "MatMul":
            break
        step = _scaled(op)
        if step is None or value.spec.shape.dims != step.value.spec.shape.dims:
            return None
        if step.scalar is not None:
            if scalar is not None:
                return None
            scalar = step.scalar
        factor *= step.factor
        value = step.value
    matmul = matmul_of(chain[-1])
    if matmul is None:
        return None
    return _Accumulation(tuple(reversed(chain)), matmul, handle, Rate(factor, scalar))


@dataclass(frozen=True, slots=True)
class _Scaled:
    """An operation that multiplies a tensor by a number and perhaps by a scalar tensor."""

    value: Tensor
    factor: float = 1.0
    scalar: Tensor | None = None


def _scaled(op: Operation) -> _Scaled | None:
    if op.type == "Neg":
        return _Scaled(op.inputs[0], -1.0)
    if op.type != "Mul":
        return None
    # The matmul is the operand that a MatMul, or another factor, made.
    for value, other in (op.inputs, op.inputs[::-1]):
        made = value.op.type == "MatMul" or value.op.type in ("Mul", "Neg")
        if math.prod(other.spec.shape.known) != 1 or not made:
            continue
        number = _number(other)
        if number is not None:
            return _Scaled(value, number)
        return _Scaled(value, scalar=other)
    return None


def _number(tensor: Tensor) -> float | None:
    """Return the value of a constant of one element."""
    if tensor.op.type != "Const" or tensor.op.control_inputs:
        return None
    value: Any = np.asarray(tensor.op.attrs["value"])
    return float(value.reshape(-1)[0])
