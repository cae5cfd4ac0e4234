"""Convolutions of a region, with what follows them."""

from __future__ import annotations

from functools import partial

from headrace import Operation
from headrace.extend.ops import channel_axis
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
from headrace_cpu.onednn.match import with_library
from headrace_cpu.onednn.primitive import Plus, PostOp, Relu, post_op_argument
from headrace_cpu.program.instruction import Instruction
from headrace_cpu.program.matches import Matches
from headrace_cpu.program.matching import Candidate
from headrace_cpu.program.patterns import (
    all_float32,
    chains,
    shape_of,
)

_FORWARD = ("Conv2D", "Conv3D")
_TO_ACTIVATIONS = ("Conv2DBackpropInput", "Conv3DBackpropInput")
_TO_FILTER = ("Conv2DBackpropFilter", "Conv3DBackpropFilter")
CONVOLUTIONS = frozenset((*_FORWARD, *_TO_ACTIVATIONS, *_TO_FILTER))


def wants_convolution(candidate: Candidate) -> bool:
    """Whether an operation is a convolution, or a gradient of one, of float32."""
    op = candidate.op
    if op.type not in CONVOLUTIONS or op.control_inputs:
        return False
    read = {_TO_ACTIVATIONS: op.inputs[1:], _TO_FILTER: op.inputs[::2]}
    return all_float32(next((t for types, t in read.items() if op.type in types), op.inputs))


@with_library
def make_convolution(candidate: Candidate, library: Library) -> Instruction | None:
    """Return oneDNN's primitive of a convolution or of a gradient; None where it has none."""
    op, threads = candidate.op, candidate.settings.threads
    if op.type in _TO_ACTIVATIONS:
        return _to_activations(op, library, threads)
    if op.type in _TO_FILTER:
        return _to_filter(op, library, threads)
    return _forward(candidate.matches, op, library, threads)


def _forward(
    matches: Matches, op: Operation, library: Library, threads: int
) -> PrimitiveInstruction | None:
    activations, filter_ = op.inputs
    shape = geometry(shape_of(activations), shape_of(filter_), shape_of(op.outputs[0]), op.attrs)
    if shape.empty:
        return None
    convolutions = Convolutions(library, shape)
    for chain in chains(matches, op, channel_axis(op.attrs["data_format"])):
        operands = [
            Operand(SRC, activations, shape.activations),
            Operand(WEIGHTS, filter_, shape.filter),
        ]
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


def _to_activations(op: Operation, library: Library, threads: int) -> PrimitiveInstruction | None:
    _, filter_, grad = op.inputs
    shape = geometry(shape_of(op.outputs[0]), shape_of(filter_), shape_of(grad), op.attrs)
    prepare = Convolutions(library, shape).backward_data
    primitive = None if shape.empty else prepare(threads)
    if primitive is None:
        return None
    operands = [
        Operand(DIFF_DST, grad, shape.out),
        Operand(WEIGHTS, filter_, shape.filter),
        Operand(DIFF_SRC, op.outputs[0], shape.activations, written=True),
    ]
    return PrimitiveInstruction(
        library,
        primitive,
        prepare,
        (op,),
        operands,
        name="convolve_to_activations",
        flops=shape.flops,
        threads=threads,
    )


def _to_filter(op: Operation, library: Library, threads: int) -> PrimitiveInstruction | None:
    activations, _, grad = op.inputs
    shape = geometry(shape_of(activations), shape_of(op.outputs[0]), shape_of(grad), op.attrs)
    # The gradient of a bias is left to others: oneDNN sums it up far below the memory's speed.
    prepare = Convolutions(library, shape).backward_weights
    primitive = None if shape.empty else prepare(threads)
    if primitive is None:
        return None
    operands = [
        Operand(SRC, activations, shape.activations),
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
