"""Which convolutions of a region are computed by Winograd's algorithm."""

from __future__ import annotations

from math import sqrt

from headrace import Operation
from headrace.extend.ops import channel_axis, padding_of, window_padding
from headrace_cpu.program.instruction import Instruction
from headrace_cpu.program.kernel import KernelInstruction
from headrace_cpu.program.matches import Matches
from headrace_cpu.program.matching import Candidate
from headrace_cpu.program.patterns import all_float32, chains, shape_of
from headrace_cpu.winograd.forward import Forward
from headrace_cpu.winograd.gradient import Gradient
from headrace_cpu.winograd.tiling import PANEL, Activations, Tiling
from headrace_cpu.winograd.transforms import SCHEMES

# For each type of operation, which of its tensors are activations, filter and result; the result of
# the operation is None.
_PARTS = {
    "Conv2D": (0, 1, None),
    "Conv2DBackpropInput": (None, 1, 2),
    "Conv2DBackpropFilter": (0, None, 2),
}
# What may be wanted.
CONVOLUTIONS = frozenset(_PARTS)
# Below so many operations the direct way is as quick, and no kernel need be compiled.
_FEWEST_FLOPS = 20_000_000


def wants(candidate: Candidate) -> bool:
    """Whether Winograd's algorithm computes a convolution quicker than the direct one.

    They are those of many channels with 3x3 or 5x5 filters and stride 1, channels last, in float32.
    """
    return _tiling(candidate) is not None


def make(candidate: Candidate) -> Instruction | None:
    """Return the convolution with what its fallback takes along."""
    tiling, fallback = _tiling(candidate), candidate.fallback
    assert tiling is not None
    assert isinstance(fallback, Instruction)
    matches, op, threads = candidate.matches, candidate.op, candidate.settings.threads
    return _instruction(matches, op, tiling, threads, fallback)


def pays(tiling: Tiling, threads: int, *, to_filter: bool) -> bool:
    """Whether Winograd's algorithm is quicker than the direct one, on so many threads.

    The transformed filter has 16 numbers for 9, and each thread reads all of it; for the gradient
    of the filter each has sums of that size. With many channels and few tiles for a thread, that
    costs more than the operations saved. On two cores with AVX-512, eight images of 56x56x64 or
    28x28x128 took 0.6 of oneDNN's time and of 14x14x256 0.65; four of 14x14x512 took 0.8 (the
    gradient of the filter: all of it), and eight of 7x7x512 as long as the direct way.
    """
    width = sqrt(tiling.activations.channels * tiling.out.channels)
    fewest = width * (0.25 if to_filter else 0.18) * max(2, threads)
    return tiling.flops >= _FEWEST_FLOPS and tiling.tiles >= fewest


def tiling_of(op: Operation) -> Tiling | None:
    """Return a convolution cut into tiles, None where Winograd's algorithm is not made for it."""
    if op.type not in _PARTS or op.attrs["data_format"] != "NHWC":
        return None
    activations, filter_, out = (
        shape_of(op.outputs[0] if place is None else op.inputs[place]) for place in _PARTS[op.type]
    )
    scheme = SCHEMES.get(filter_[0])
    if scheme is None or filter_[1] != filter_[0] or filter_[2] != activations[3]:
        return None
    if any(step != 1 for name in ("strides", "dilations") for step in op.attrs[name]):
        return None
    before = [
        window_padding(size, scheme.filter_size, 1, 1, padding_of(op.attrs["padding"], axis))[1]
        for axis, size in enumerate(activations[1:3])
    ]
    if max(before) >= scheme.filter_size or activations[3] % PANEL or out[3] % PANEL:
        return None
    return Tiling(scheme, Activations(*activations), Activations(*out), *before)


def _tiling(candidate: Candidate) -> Tiling | None:
    op = candidate.op
    if op.control_inputs or op.type not in _PARTS:
        return None
    tensors = [op.outputs[0], *(op.inputs[i] for i in _PARTS[op.type] if i is not None)]
    tiling = tiling_of(op) if all_float32(tensors) else None
    to_filter = op.type == "Conv2DBackpropFilter"
    if tiling is None or not pays(tiling, candidate.settings.threads, to_filter=to_filter):
        return None
    return tiling


def _instruction(
    matches: Matches, op: Operation, tiling: Tiling, threads: int, instead: Instruction
) -> KernelInstruction:
    if op.type == "Conv2DBackpropFilter":
        activations, _, gradient = op.inputs
        return KernelInstruction(
            Gradient(tiling),
            {"activations": activations, "gradient": gradient, "filter": op.outputs[0]},
            "filter",
            name="convolve_to_filter",
            threads=threads,
            instead=instead,
        )
    if op.type == "Conv2DBackpropInput":
        _, filter_, gradient = op.inputs
        return KernelInstruction(
            Forward(tiling.back, transposed=True),
            {"activations": gradient, "filter": filter_, "out": op.outputs[0]},
            "out",
            name="convolve_to_activations",
            threads=threads,
            instead=instead,
        )
    return _forward(matches, op, tiling, threads, instead)


def _forward(
    matches: Matches, op: Operation, tiling: Tiling, threads: int, instead: Instruction
) -> KernelInstruction:
    """Return a convolution with what follows it: as much as the direct way takes along."""
    possible = chains(matches, op, channel_axis(op.attrs["data_format"]))
    chain = next(c for c in possible if c.ops == instead.ops)
    activations, filter_ = op.inputs
    operands = {"activations": activations, "filter": filter_, "out": chain.result}
    operands |= {} if chain.bias is None else {"bias": chain.bias}
    operands |= {} if chain.addend is None else {"addend": chain.addend}
    bias, addend = chain.bias is not None, chain.addend is not None
    return KernelInstruction(
        Forward(tiling, bias=bias, addend=addend, relu=chain.relu),
        operands,
        "out",
        name="convolve",
        threads=threads,
        instead=instead,
    )
