"""Convolutions that are products of matrices as they lie in memory.

With the channels last, these are convolutions of single pixels, and those of which the window is
the whole image. No filter has to be transposed for them, and what follows is part of the product.
"""

from __future__ import annotations

import math
from dataclasses import replace

from headrace import Tensor
from headrace_cpu.for_backends import Candidate, chains, shape_of
from headrace_cuda.convolution.library import ConvolutionShape, Direction
from headrace_cuda.convolution.match import CONVOLUTIONS, convolution_shape, operands_of
from headrace_cuda.matmul.instruction import Multiply
from headrace_cuda.matmul.library import MatmulShape
from headrace_cuda.program.settings import CudaSettings


def wants(candidate: Candidate) -> bool:
    """Whether an operation is a convolution, or a gradient of one, with the channels last."""
    op = candidate.op
    if op.type not in CONVOLUTIONS or op.control_inputs or op.attrs["data_format"] != "NHWC":
        return False
    operands = operands_of(op)
    tensors = (operands.activations, operands.filter, operands.out)
    return all(all(shape_of(t)) for t in tensors)


def make(candidate: Candidate) -> Multiply | None:
    """Return the product, with the longest chain after it that the library computes at once."""
    settings, op = candidate.settings, candidate.op
    assert isinstance(settings, CudaSettings)
    shape = convolution_shape(op, settings)
    if shape is None or not is_product(shape):
        return None
    product, left, right = _product(shape, candidate)
    for chain in chains(candidate.matches, op, len(shape_of(op.outputs[0])) - 1):
        # A bias is one for each column of the product.
        if chain.bias is not None and shape.direction is not Direction.FORWARD:
            continue
        fused = replace(
            product,
            bias=chain.bias is not None,
            addend=chain.addend is not None,
            relu=chain.relu,
            deterministic=settings.deterministic,
        )
        matmul = settings.platform.matmuls.plan(fused)
        if matmul is not None:
            return Multiply(
                *(chain.ops, fused, matmul, left, right, chain.result, chain.bias, chain.addend)
            )
    return None


def is_product(shape: ConvolutionShape) -> bool:
    """Whether the activations are already the matrix of their windows."""
    if shape.groups != 1 or any((*shape.before, *shape.after)):
        return False
    pixels = shape.window == (1, 1) and shape.strides == (1, 1)
    return pixels or (shape.window == shape.image and shape.dilations == (1, 1))


def _product(shape: ConvolutionShape, candidate: Candidate) -> tuple[MatmulShape, Tensor, Tensor]:
    """Return the product that a convolution is, and its operands."""
    operands, settings = operands_of(candidate.op), candidate.settings
    assert isinstance(settings, CudaSettings)
    windows = shape.images * math.prod(shape.out)
    taps = math.prod(shape.window) * shape.channels
    product = MatmulShape(
        rows=windows,
        columns=shape.filters,
        depth=taps,
        dtype=candidate.op.outputs[0].dtype.name,
        precision=settings.precision,
    )
    if shape.direction is Direction.FORWARD:
        return product, operands.activations, operands.filter
    if shape.direction is Direction.TO_ACTIVATIONS:
        turned = replace(product, columns=taps, depth=shape.filters, transpose_right=True)
        return turned, operands.out, operands.filter
    turned = replace(product, rows=taps, depth=windows, transpose_left=True)
    return turned, operands.activations, operands.out
