"""Which operations of a segment are computed by generated loops over windows."""

from __future__ import annotations

from collections.abc import Callable
from importlib.util import find_spec

from headrace.graph.operation import Operation
from headrace.graph.tensor import Tensor
from headrace_cpu.kernels.windows import is_refused
from headrace_cpu.program.claims import Claims
from headrace_cpu.program.instruction import Instruction
from headrace_cpu.program.settings import CompileSettings
from headrace_cpu.windows import blas
from headrace_cpu.windows.convolution import Convolve, ConvolveToFilter, ConvolveToImages
from headrace_cpu.windows.geometry import Geometry, geometry
from headrace_cpu.windows.pooling import Pool
from headrace_cpu.windows.text import CODES

# Kernels count pixels and elements with 32 bits where BLAS does.
_MOST = 2**31 - 1


def claim_windows(claims: Claims, settings: CompileSettings) -> None:
    """Add instructions for convolutions and pools that nobody has claimed.

    They are those of float32 and float64 on images with the channels last; others, and convolutions
    of groups of channels, stay with the plain kernels.
    """
    for op in claims.operations:
        if op.type in _MAKERS and claims.free(op) and not op.control_inputs:
            instruction = by_windows(op, settings.threads)
            if instruction is not None:
                claims.add(instruction)


def by_windows(op: Operation, threads: int) -> Instruction | None:
    """Return what computes a convolution or a pool by loops; None where nothing here does."""
    if find_spec("numba") is None or op.attrs["data_format"] != "NHWC":
        return None
    return _MAKERS[op.type](op, threads)


def _shape(tensor: Tensor) -> tuple[int, ...]:
    return tuple(d or 0 for d in tensor.shape.dims or ())


def _fits(op: Operation, *tensors: Tensor) -> bool:
    """Whether kernels can work on tensors."""
    return all(
        t.dtype.name in CODES and t.dtype is op.outputs[0].dtype and all(_shape(t))
        for t in (*tensors, op.outputs[0])
    )


def _convolution(op: Operation, images: Tensor, taps: Tensor, grad: Tensor) -> Geometry | None:
    """Return the geometry of a convolution; None where it stays with the plain kernels."""
    if not _fits(op, *(t for t in (images, taps, grad) if t is not op.outputs[0])):
        return None
    if blas.gemm(op.outputs[0].dtype.name) is None:
        return None
    *window, takes, gives = _shape(taps)
    if takes != _shape(images)[-1] or len(window) != 2:
        return None
    if is_refused(_shape(images), window, op.attrs):
        return None
    shape = geometry(_shape(images), window, gives, op.attrs)
    return shape if max(shape.rows, shape.depth, gives) <= _MOST else None


def _convolve(op: Operation, threads: int) -> Instruction | None:
    images, taps = op.inputs
    shape = _convolution(op, images, taps, op.outputs[0])
    return None if shape is None else Convolve(op, shape, threads)


def _to_images(op: Operation, threads: int) -> Instruction | None:
    shape = _convolution(op, op.outputs[0], op.inputs[1], op.inputs[2])
    return None if shape is None else ConvolveToImages(op, shape, threads)


def _to_filter(op: Operation, threads: int) -> Instruction | None:
    shape = _convolution(op, op.inputs[0], op.outputs[0], op.inputs[2])
    return None if shape is None else ConvolveToFilter(op, shape, threads)


def _pool(op: Operation, threads: int) -> Instruction | None:
    # The images, or what has their shape: the gradient for them.
    images = op.outputs[0] if op.type.endswith("Grad") else op.inputs[0]
    read = [t for t in op.inputs if t.dtype.is_floating]
    if not _fits(op, *read):
        return None
    # A window may be of any size: the plain kernel refuses those that nobody could compute.
    if is_refused(_shape(images), op.attrs["ksize"], op.attrs):
        return None
    channels = _shape(images)[-1]
    return Pool(op, geometry(_shape(images), op.attrs["ksize"], channels, op.attrs), threads)


_MAKERS: dict[str, Callable[[Operation, int], Instruction | None]] = {
    "Conv2D": _convolve,
    "Conv2DBackpropInput": _to_images,
    "Conv2DBackpropFilter": _to_filter,
    **dict.fromkeys(("MaxPool", "AvgPool", "MaxPoolGrad", "AvgPoolGrad"), _pool),
}
