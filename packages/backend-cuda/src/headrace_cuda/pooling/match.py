"""Pools of a region."""

from __future__ import annotations

from headrace.extend.ops import channel_axis
from headrace_cpu.for_backends import Candidate, shape_of
from headrace_cpu.kernels.windows import is_refused, lay_windows
from headrace_cuda.pooling.instruction import POOLS, Pool
from headrace_cuda.pooling.kernels import KINDS, PoolShape

# What may be wanted.
POOLED = frozenset(POOLS)


def wants(candidate: Candidate) -> bool:
    """Whether an operation is a pool, or a gradient of one, of floats and not empty."""
    op = candidate.op
    if op.type not in POOLS or op.control_inputs or op.outputs[0].dtype.name not in KINDS:
        return False
    return all(
        all(shape_of(t)) for t in (*op.outputs, *(op.inputs[i] for i in POOLS[op.type].reads))
    )


def make(candidate: Candidate) -> Pool | None:
    """Return a pool; None where the plain kernel refuses its windows, and says why."""
    op = candidate.op
    # The activations, or what has their shape: the gradient for them.
    images = list(shape_of(op.outputs[0] if POOLS[op.type].gradient else op.inputs[0]))
    first = op.attrs["data_format"].startswith("NC")
    channels = images.pop(channel_axis(op.attrs["data_format"]))
    if is_refused([*images, channels], op.attrs["ksize"], op.attrs):
        return None
    attrs = op.attrs
    windows = lay_windows(
        *(images[1:], attrs["ksize"], attrs["strides"], attrs.get("dilations"), attrs["padding"])
    )
    return Pool(op, PoolShape(windows, images[0], channels, first, op.outputs[0].dtype.name))
