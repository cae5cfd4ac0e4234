"""Matrix products of a region, with what follows them."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import replace

from headrace import Operation
from headrace_cpu.for_backends import Candidate, chains, shape_of
from headrace_cuda.matmul.instruction import Multiply, Skip
from headrace_cuda.matmul.library import MatmulShape
from headrace_cuda.program.settings import CudaSettings

MATMULS = frozenset({"MatMul"})
# cublasLt counts batches with 32 bits.
_MOST = 2**31 - 1
# More products than this are better computed by what broadcasts the operands first.
_MOST_STARTS = 64


def wants(candidate: Candidate) -> bool:
    """Whether an operation is a product of matrices of known shapes that are not empty."""
    op = candidate.op
    dtype = op.inputs[0].dtype
    if op.type not in MATMULS or op.control_inputs:
        return False
    if not dtype.is_floating and not dtype.is_complex:
        return False
    return all(all(shape_of(t)) for t in (*op.inputs, *op.outputs))


def make(candidate: Candidate) -> Multiply | None:
    """Return the product with the longest chain after it that the library computes at once."""
    settings = candidate.settings
    assert isinstance(settings, CudaSettings)
    op = candidate.op
    found = matmul_shape(op, settings.precision)
    if found is None:
        return None
    product, skips = found
    left, right = op.inputs
    for chain in chains(candidate.matches, op, len(shape_of(op.outputs[0])) - 1):
        shape = replace(
            product,
            bias=chain.bias is not None,
            addend=chain.addend is not None,
            relu=chain.relu,
            deterministic=settings.deterministic,
        )
        matmul = settings.platform.matmuls.plan(shape)
        if matmul is not None:
            return Multiply(
                *(chain.ops, shape, matmul, left, right, chain.result, chain.bias, chain.addend),
                skips,
            )
    return None


def matmul_shape(op: Operation, precision: str) -> tuple[MatmulShape, tuple[Skip, ...]] | None:
    """Return the products that ``MatMul`` computes, and where each of them begins.

    One product has a batch over the last axes along which each operand either goes on or stays;
    along the axes in front of these there is a product for every element.

    Args:
        op: The operation, of known shapes.
        precision: With which bits of float32.

    Returns:
        None where there would be many.
    """
    left, right = map(shape_of, op.inputs)
    out = shape_of(op.outputs[0])
    transpose_left, transpose_right = op.attrs["transpose_a"], op.attrs["transpose_b"]
    batch, (rows, columns) = out[:-2], out[-2:]
    depth = left[-2] if transpose_left else left[-1]
    if math.prod(right[:-2]) == 1 and not transpose_left:
        # The same matrix for all rows of the batch.
        rows, batch, left = rows * math.prod(batch), (), (rows * math.prod(batch), depth)
    operands = [(1,) * (len(batch) + 2 - len(shape)) + tuple(shape) for shape in (left, right)]
    operands = [shape[len(shape) - len(batch) - 2 :] for shape in operands]
    outer = 0
    while None in (steps := [_step(shape[outer:], batch[outer:]) for shape in operands]):
        outer += 1
    if math.prod(batch[:outer]) > _MOST_STARTS or math.prod(batch[outer:]) > _MOST:
        return None
    shape = MatmulShape(
        rows=rows,
        columns=columns,
        depth=depth,
        transpose_left=transpose_left,
        transpose_right=transpose_right,
        batch=math.prod(batch[outer:]),
        left_step=steps[0] or 0,
        right_step=steps[1] or 0,
        dtype=op.outputs[0].dtype.name,
        precision=precision,
    )
    size, made = op.outputs[0].dtype.numpy.itemsize, (*batch, rows, columns)
    strides = [[each * size for each in _strides(each, outer)] for each in (*operands, made)]
    skips = []
    for index in itertools.product(*map(range, batch[:outer])):
        skipped = [sum(i * n for i, n in zip(index, by, strict=True)) for by in strides]
        skips.append(Skip(*skipped))
    return shape, tuple(skips)


def _step(shape: Sequence[int], batch: Sequence[int]) -> int | None:
    """Return the elements from one matrix of a batch to the next; None where it is not one number.

    Args:
        shape: Of the matrices.
        batch: The axes to which they broadcast.
    """
    if math.prod(shape[:-2]) == 1:
        return 0
    if math.prod(shape[:-2]) == math.prod(batch):
        return math.prod(shape[-2:])
    return None


def _strides(shape: Sequence[int], axes: int) -> list[int]:
    """Return the elements from one index along each of the first axes to the next."""
    return [0 if shape[a] == 1 else math.prod(shape[a + 1 :]) for a in range(axes)]
