"""Which operations of a region are computed by generated loops over windows."""

from __future__ import annotations

from collections.abc import Callable

from headrace import Operation, Tensor
from headrace_cpu.kernels.windows import is_refused
from headrace_cpu.program.instruction import Instruction
from headrace_cpu.program.matching import Candidate
from headrace_cpu.windows import blas
from headrace_cpu.windows.convolution import Convolve, ConvolveToActivations, ConvolveToFilter
from headrace_cpu.windows.geometry import Geometry, geometry
from headrace_cpu.windows.pooling import Pool
from headrace_cpu.windows.text import CODES

# Kernels count pixels and elements with 32 bits where BLAS does.
_MOST = 2**31 - 1


def wants(candidate: Candidate) -> bool:
    """Whether an operation is a convolution or a pool on activations with the channels last."""
    op = candidate.op
    return op.type in _MAKERS and not op.control_inputs and op.attrs["data_format"] == "NHWC"


def make(candidate: Candidate) -> Instruction | None:
    """Return the loops of a convolution or a pool of float32 or float64.

    Others, and convolutions of groups of channels, stay with the plain kernels.
    """
    return _MAKERS[candidate.op.type](candidate.op, candidate.settings.threads)


def _shape(tensor: Tensor) -> tuple[int, ...]:
    return tuple(d or 0 for d in tensor.spec.shape.dims or ())


def _fits(op: Operation, *tensors: Tensor) -> bool:
    """Whether kernels can work on tensors."""
    return all(
        t.dtype.name in CODES and t.dtype is op.outputs[0].dtype and all(_shape(t))
        for t in (*tensors, op.outputs[0])
    )


def _convolution(
    op: Operation, activations: Tensor, filter_: Tensor, grad: Tensor
) -> Geometry | None:
    """Return the geometry of a convolution; None where it stays with the plain kernels."""
    if not _fits(op, *(t for t in (activations, filter_, grad) if t is not op.outputs[0])):
        return None
    if blas.gemm(op.outputs[0].dtype.name) is None:
        return None
    *window, takes, gives = _shape(filter_)
    if takes != _shape(activations)[-1] or len(window) != 2:
        return None
    if is_refused(_shape(activations), window, op.attrs):
        return None
    shape = geometry(_shape(activations), window, gives, op.attrs)
    return shape if max(shape.rows, shape.depth, gives) <= _MOST else None


def _convolve(op: Operation, threads: int) -> Instruction | None:
    activations, filter_ = op.inputs
    shape = _convolution(op, activations, filter_, op.outputs[0])
    return None if shape is None else Convolve(op, shape, threads)


def _to_activations(op: Operation, threads: int) -> Instruction | None:
    shape = _convolution(op, op.outputs[0], op.inputs[1], op.inputs[2])
    return None if shape is None else ConvolveToActivations(op, shape, threads)


def _to_filter(op: Operation, threads: int) -> Instruction | None:
    shape = _convolution(op, op.inputs[0], op.outputs[0], op.inputs[2])
    return None if shape is None else ConvolveToFilter(op, shape, threads)


def _pool(op: Operation, threads: int) -> Instruction | None:
    # The activations, or what has their shape: the gradient for them.
    activations = op.outputs[0] if op.type.endswith("Grad") else op.inputs[0]
    read = [t for t in op.inputs if t.dtype.is_floating]
    if not _fits(op, *read):
        return None
    # A window may be of any size: the plain kernel refuses those that nobody could compute.
    if is_refused(_shape(activations), op.attrs["ksize"], op.attrs):
        return None
    channels = _shape(activations)[-1]
    return Pool(op, geometry(_shape(activations), op.attrs["ksize"], channels, op.attrs), threads)


_MAKERS: dict[str, Callable[[Operation, int], Instruction | None]] = {
    "Conv2D": _convolve,
    "Conv2DBackpropInput": _to_activations,
    "Conv2DBackpropFilter": _to_filter,
    **dict.fromkeys(("MaxPool", "AvgPool", "MaxPoolGrad", "AvgPoolGrad"), _pool),
}
# What may be wanted.
WINDOWS = frozenset(_MAKERS)
