"""Convolutions of a segment, with what follows them."""

from __future__ import annotations

from functools import partial

from headrace.graph.operation import Operation
from headrace.ops.windows import channel_axis
from headrace_cpu.onednn.convolution import (
    Convolutions,
    as_channels_last,
    geometry,
)
from headrace_cpu.onednn.instruction import Operand, PrimitiveInstruction
from headrace_cpu.onednn.library import (
    BIAS,
    DIFF_DST,
    DIFF_SRC,
    DIFF_WEIGHTS,
    DST,
    SRC,
    WEIGHTS,
    Library,
)
from headrace_cpu.onednn.primitive import Plus, PostOp, Relu, post_op_argument
from headrace_cpu.program.claims import Claims
from headrace_cpu.program.patterns import (
    all_float32,
    chains,
    shape_of,
)

_FORWARD = ("Conv2D", "Conv3D")
_TO_IMAGES = ("Conv2DBackpropInput", "Conv3DBackpropInput")
_TO_FILTER = ("Conv2DBackpropFilter", "Conv3DBackpropFilter")
CONVOLUTIONS = frozenset((*_FORWARD, *_TO_IMAGES, *_TO_FILTER))


def claim_convolution(
    claims: Claims, op: Operation, library: Library, threads: int
) -> PrimitiveInstruction | None:
    """Return what computes a convolution or one of its gradients; None where oneDNN does not.

    Raises:
        OnednnError: if oneDNN fails.
    """
    if op.type in _FORWARD and all_float32(op.inputs):
        return _forward(claims, op, library, threads)
    if op.type in _TO_IMAGES and all_float32(op.inputs[1:]):
        return _to_images(op, library, threads)
    if op.type in _TO_FILTER and all_float32((op.inputs[0], op.inputs[2])):
        return _to_filter(op, library, threads)
    return None


def _forward(
    claims: Claims, op: Operation, library: Library, threads: int
) -> PrimitiveInstruction | None:
    images, taps = op.inputs
    shape = geometry(shape_of(images), shape_of(taps), shape_of(op.outputs[0]), op.attrs)
    if shape.empty:
        return None
    convolutions = Convolutions(library, shape)
    for chain in chains(claims, op, channel_axis(op.attrs["data_format"])):
        operands = [Operand(SRC, images, shape.images), Operand(WEIGHTS, taps, shape.filter)]
        post_ops: list[PostOp] = []
        if chain.bias is not None:
            operands.append(Operand(BIAS, chain.bias, shape.bias))
        if chain.addend is not None:
            operands.append(Operand(post_op_argument(len(post_ops)), chain.addend, shape.out))
            post_ops.append(Plus(as_channels_last(shape.out)))
        if chain.relu:
            post_ops.append(Relu())
        prepare = partial(
            convolutions.forward, bias=chain.bias is not None, post_ops=tuple(post_ops)
        )
        primitive = prepare(threads)
        if primitive is None:
            continue
        operands.append(Operand(DST, chain.result, shape.out, written=True))
        return PrimitiveInstruction(
            library,
            primitive,
            prepare,
            chain.ops,
            operands,
            name="convolve",
            flops=shape.flops,
            threads=threads,
        )
    return None


def _to_images(op: Operation, library: Library, threads: int) -> PrimitiveInstruction | None:
    _, taps, grad = op.inputs
    shape = geometry(shape_of(op.outputs[0]), shape_of(taps), shape_of(grad), op.attrs)
    prepare = Convolutions(library, shape).backward_data
    primitive = None if shape.empty else prepare(threads)
    if primitive is None:
        return None
    operands = [
        Operand(DIFF_DST, grad, shape.out),
        Operand(WEIGHTS, taps, shape.filter),
        Operand(DIFF_SRC, op.outputs[0], shape.images, written=True),
    ]
    return PrimitiveInstruction(
        library,
        primitive,
        prepare,
        (op,),
        operands,
        name="convolve_to_images",
        flops=shape.flops,
        threads=threads,
    )


def _to_filter(op: Operation, library: Library, threads: int) -> PrimitiveInstruction | None:
    images, _, grad = op.inputs
    shape = geometry(shape_of(images), shape_of(op.outputs[0]), shape_of(grad), op.attrs)
    # The gradient of a bias is left to others: oneDNN sums it up far below the memory's speed.
    prepare = Convolutions(library, shape).backward_weights
    primitive = None if shape.empty else prepare(threads)
    if primitive is None:
        return None
    operands = [
        Operand(SRC, images, shape.images),
        Operand(DIFF_DST, grad, shape.out),
        Operand(DIFF_WEIGHTS, op.outputs[0], shape.filter, written=True),
    ]
    return PrimitiveInstruction(
        library,
        primitive,
        prepare,
        (op,),
        operands,
        name="convolve_to_filter",
        flops=shape.flops,
        threads=threads,
    )
