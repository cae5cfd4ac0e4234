"""Which matmuls of a region are computed by the kernel for a few rows."""

from __future__ import annotations

from headrace import Operation
from headrace_cpu.matmul.blas import Matmul
from headrace_cpu.matmul.match import matmul_of
from headrace_cpu.matmul.packing import ShortInstruction
from headrace_cpu.matmul.short import LANES, Short
from headrace_cpu.program.instruction import Instruction
from headrace_cpu.program.matches import Matches
from headrace_cpu.program.matching import Candidate
from headrace_cpu.program.patterns import chains

_FEWEST_ROWS, _MOST_ROWS = 8, 64
_FEWEST_FLOPS = 2_000_000
# What two cores have in their second caches.
_MOST_BYTES = 4 << 20


def wants(candidate: Candidate) -> bool:
    """Whether an operation is a matmul of a few rows with a matrix in near caches."""
    op = candidate.op
    if op.type != "MatMul" or op.control_inputs:
        return False
    matmul = matmul_of(op)
    return matmul is not None and pays(matmul)


def make(candidate: Candidate) -> Instruction | None:
    """Return the matmul with what its fallback takes along."""
    matmul, fallback = matmul_of(candidate.op), candidate.fallback
    assert matmul is not None
    assert isinstance(fallback, Instruction)
    matches, op, threads = candidate.matches, candidate.op, candidate.settings.threads
    return _instruction(matches, op, matmul, threads, fallback)


def pays(matmul: Matmul) -> bool:
    """Whether the kernel is quicker than others.

    On two cores with AVX-512 [20, 400] @ [400, 800] took 84 us where oneDNN's took 93, and
    [20, 800] @ [800, 400] with the right matrix transposed 88 where it took 174.
    """
    p = matmul
    step = LANES if p.transposed_b else 1
    if p.transposed_a or p.dtype != "float32" or p.columns % LANES or p.inner % step:
        return False
    if not _FEWEST_ROWS <= p.rows <= _MOST_ROWS or min(p.inner, p.columns) < 4 * LANES:
        return False
    return p.flops >= _FEWEST_FLOPS and 4 * p.inner * p.columns <= _MOST_BYTES


def _instruction(
    matches: Matches, op: Operation, matmul: Matmul, threads: int, instead: Instruction
) -> ShortInstruction:
    possible = chains(matches, op, len(op.outputs[0].shape.known) - 1)
    chain = next(c for c in possible if c.ops == instead.ops)
    operands = {"a": op.inputs[0], "b": op.inputs[1], "c": chain.result}
    operands |= {} if chain.bias is None else {"bias": chain.bias}
    operands |= {} if chain.addend is None else {"addend": chain.addend}
    kernel = Short(
        matmul.rows,
        matmul.inner,
        matmul.columns,
        transposed=matmul.transposed_b,
        bias=chain.bias is not None,
        addend=chain.addend is not None,
        relu=chain.relu,
    )
    return ShortInstruction(kernel, operands, threads=threads, instead=instead)
