"""Which convolutions of a segment are computed by Winograd's algorithm."""

from __future__ import annotations

from contextlib import suppress
from math import sqrt

from headrace.graph.operation import Operation
from headrace.ops.windows import channel_axis, padding_of, window_padding
from headrace_cpu.native.assembly import vector_bytes
from headrace_cpu.native.threads import open_mp
from headrace_cpu.onednn.claim_convolution import claim_convolution
from headrace_cpu.onednn.library import Library, OnednnError, load
from headrace_cpu.program.claims import Claims
from headrace_cpu.program.instruction import Instruction
from headrace_cpu.program.kernel import KernelInstruction
from headrace_cpu.program.patterns import all_float32, chains, shape_of
from headrace_cpu.program.settings import CompileSettings
from headrace_cpu.windows.claim import by_windows
from headrace_cpu.winograd.forward import Forward
from headrace_cpu.winograd.gradient import Gradient
from headrace_cpu.winograd.tiling import PANEL, Images, Tiling
from headrace_cpu.winograd.transforms import SCHEMES

# For each type of operation, which of its tensors are images, filter and result; the result of the
# operation is None.
_PARTS = {
    "Conv2D": (0, 1, None),
    "Conv2DBackpropInput": (None, 1, 2),
    "Conv2DBackpropFilter": (0, None, 2),
}
# Below so many operations the direct way is as quick, and no kernel need be compiled.
_FEWEST_FLOPS = 20_000_000


def claim_winograd(claims: Claims, settings: CompileSettings) -> None:
    """Claim the convolutions that Winograd's algorithm computes quicker than the direct one.

    They are those of many channels with 3x3 or 5x5 filters and stride 1, channels last, in float32.
    To be called before oneDNN's claims.
    """
    if vector_bytes() < 32 or open_mp() is None:
        return
    found = {}
    for op in claims.operations:
        tiling = _tiling(claims, op, settings.threads)
        if tiling is not None:
            found[op] = tiling
    library = load() if found and settings.onednn else None
    for op, tiling in found.items():
        instead = _direct(claims, op, library, settings.threads) if claims.free(op) else None
        if instead is not None:
            claims.add(_instruction(claims, op, tiling, settings.threads, instead))


def pays(tiling: Tiling, threads: int, *, to_filter: bool) -> bool:
    """Whether Winograd's algorithm is quicker than the direct one, on so many threads.

    The transformed filter has 16 numbers for 9, and each thread reads all of it; for the gradient
    of the filter each has sums of that size. With many channels and few tiles for a thread, that
    costs more than the operations saved. On two cores with AVX-512, eight images of 56x56x64 or
    28x28x128 took 0.6 of oneDNN's time and of 14x14x256 0.65; four of 14x14x512 took 0.8 (the
    gradient of the filter: all of it), and eight of 7x7x512 as long as the direct way.
    """
    width = sqrt(tiling.images.channels * tiling.out.channels)
    fewest = width * (0.25 if to_filter else 0.18) * max(2, threads)
    return tiling.flops >= _FEWEST_FLOPS and tiling.tiles >= fewest


def tiling_of(op: Operation) -> Tiling | None:
    """Return a convolution cut into tiles, None where Winograd's algorithm is not made for it."""
    if op.type not in _PARTS or op.attrs["data_format"] != "NHWC":
        return None
    images, taps, out = (
        shape_of(op.outputs[0] if place is None else op.inputs[place]) for place in _PARTS[op.type]
    )
    scheme = SCHEMES.get(taps[0])
    if scheme is None or taps[1] != taps[0] or taps[2] != images[3]:
        return None
    if any(step != 1 for name in ("strides", "dilations") for step in op.attrs[name]):
        return None
    before = [
        window_padding(size, scheme.taps, 1, 1, padding_of(op.attrs["padding"], axis))[1]
        for axis, size in enumerate(images[1:3])
    ]
    if max(before) >= scheme.taps or images[3] % PANEL or out[3] % PANEL:
        return None
    return Tiling(scheme, Images(*images), Images(*out), *before)


def _tiling(claims: Claims, op: Operation, threads: int) -> Tiling | None:
    if not claims.free(op) or op.control_inputs or op.type not in _PARTS:
        return None
    tensors = [op.outputs[0], *(op.inputs[i] for i in _PARTS[op.type] if i is not None)]
    tiling = tiling_of(op) if all_float32(tensors) else None
    if tiling is None or not pays(tiling, threads, to_filter=op.type == "Conv2DBackpropFilter"):
        return None
    return tiling


def _instruction(
    claims: Claims, op: Operation, tiling: Tiling, threads: int, instead: Instruction
) -> KernelInstruction:
    if op.type == "Conv2DBackpropFilter":
        images, _, gradient = op.inputs
        return KernelInstruction(
            Gradient(tiling),
            {"images": images, "gradient": gradient, "filter": op.outputs[0]},
            "filter",
            name="convolve_to_filter",
            threads=threads,
            instead=instead,
        )
    if op.type == "Conv2DBackpropInput":
        _, taps, gradient = op.inputs
        return KernelInstruction(
            Forward(tiling.back, turned=True),
            {"images": gradient, "filter": taps, "out": op.outputs[0]},
            "out",
            name="convolve_to_images",
            threads=threads,
            instead=instead,
        )
    return _forward(claims, op, tiling, threads, instead)


def _forward(
    claims: Claims, op: Operation, tiling: Tiling, threads: int, instead: Instruction
) -> KernelInstruction:
    """Return a convolution with what follows it: as much as the direct way takes along."""
    possible = chains(claims, op, channel_axis(op.attrs["data_format"]))
    chain = next(c for c in possible if c.ops == instead.ops)
    images, taps = op.inputs
    operands = {"images": images, "filter": taps, "out": chain.result}
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


def _direct(
    claims: Claims, op: Operation, library: Library | None, threads: int
) -> Instruction | None:
    """Return what computes it until the kernel is compiled, or where it cannot be."""
    found: Instruction | None = None
    if library is not None:
        with suppress(OnednnError):
            found = claim_convolution(claims, op, library, threads)
    return found or by_windows(op, threads)
