"""Convolutions of a region, with what follows them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from headrace import Operation
from headrace.extend.ops import channel_axis, padding_of, window_padding
from headrace_cpu.for_backends import Candidate, all_float32, chains, shape_of
from headrace_cpu.kernels.windows import is_refused
from headrace_cuda.convolution.instruction import ConvolutionOperands, Convolve
from headrace_cuda.convolution.library import ConvolutionShape, Direction, Pair
from headrace_cuda.program.settings import CudaSettings

_DIRECTIONS = {
    "Conv2D": Direction.FORWARD,
    "Conv2DBackpropInput": Direction.TO_ACTIVATIONS,
    "Conv2DBackpropFilter": Direction.TO_FILTER,
}
CONVOLUTIONS = frozenset(_DIRECTIONS)


def operands_of(op: Operation) -> ConvolutionOperands:
    """Return the tensors of a convolution of images or of one of its gradients."""
    direction, made = _DIRECTIONS[op.type], op.outputs[0]
    first, second, *rest = op.inputs
    if direction is Direction.FORWARD:
        return ConvolutionOperands(first, second, made)
    # The sizes of what is computed are known, and not read.
    if direction is Direction.TO_ACTIVATIONS:
        return ConvolutionOperands(made, second, rest[0])
    return ConvolutionOperands(first, made, rest[0])


def wants(candidate: Candidate) -> bool:
    """Whether an operation is a convolution, or a gradient of one, of float32 and not empty."""
    op = candidate.op
    if op.type not in CONVOLUTIONS or op.control_inputs:
        return False
    operands = operands_of(op)
    tensors = (operands.activations, operands.filter, operands.out)
    return all_float32(tensors) and all(all(shape_of(t)) for t in tensors)


def make(candidate: Candidate) -> Convolve | None:
    """Return the convolution with the longest chain after it that the library computes at once."""
    settings, op = candidate.settings, candidate.op
    assert isinstance(settings, CudaSettings)
    library = settings.platform.convolutions
    if library is None:
        return None
    shape = convolution_shape(op, settings)
    if shape is None:
        return None
    operands, first = operands_of(op), op.attrs["data_format"].startswith("NC")
    if shape.direction is not Direction.FORWARD:
        convolution = library.plan(shape)
        return None if convolution is None else Convolve([op], shape, convolution, operands, first)
    for chain in chains(candidate.matches, op, channel_axis(op.attrs["data_format"])):
        if chain.addend is not None:
            continue
        fused = replace(shape, bias=chain.bias is not None, relu=chain.relu)
        convolution = library.plan(fused)
        if convolution is not None:
            changed = replace(operands, out=chain.result, bias=chain.bias)
            return Convolve(chain.ops, fused, convolution, changed, first)
    return None


def convolution_shape(op: Operation, settings: CudaSettings) -> ConvolutionShape | None:
    """Return the convolution of an operation of known shapes; None where it is refused."""
    operands = operands_of(op)
    images, height, width, channels = _channels_last(shape_of(operands.activations), op)
    *window, takes, gives = shape_of(operands.filter)
    if is_refused((images, height, width, channels), window, op.attrs):
        return None
    laid = [
        window_padding(
            *(size, window[axis], op.attrs["strides"][axis], op.attrs["dilations"][axis]),
            padding_of(op.attrs["padding"], axis),
        )
        for axis, size in enumerate((height, width))
    ]
    return ConvolutionShape(
        direction=_DIRECTIONS[op.type],
        images=images,
        image=(height, width),
        channels=channels,
        window=_pair(window),
        out=_pair([out for out, _, _ in laid]),
        filters=gives,
        strides=_pair(op.attrs["strides"]),
        dilations=_pair(op.attrs["dilations"]),
        before=_pair([front for _, front, _ in laid]),
        after=_pair([back for _, _, back in laid]),
        groups=channels // takes,
        precision=settings.precision,
        deterministic=settings.deterministic,
    )


def _channels_last(shape: Sequence[int], op: Operation) -> Sequence[int]:
    sizes = list(shape)
    sizes.append(sizes.pop(channel_axis(op.attrs["data_format"])))
    return sizes


def _pair(numbers: Sequence[int]) -> Pair:
    first, second = numbers
    return first, second
