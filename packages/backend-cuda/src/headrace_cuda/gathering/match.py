"""Picks of slices in a region."""

from __future__ import annotations

from math import prod

from headrace_cpu.for_backends import Candidate, shape_of
from headrace_cuda.gathering.instruction import INDICES, WORDS, Gather, GatherShape

# What may be wanted.
GATHERED = frozenset({"Gather"})


def wants(candidate: Candidate) -> bool:
    """Whether an operation picks slices of known shapes that are not empty."""
    op = candidate.op
    if op.type not in GATHERED or op.control_inputs:
        return False
    params, indices = op.inputs[:2]
    moved = params.dtype.numpy.itemsize in WORDS and indices.dtype.name in INDICES
    return moved and all(all(shape_of(t)) for t in (params, indices, *op.outputs))


def make(candidate: Candidate) -> Gather | None:
    """Return the picks; None where the plain kernel refuses the shapes, and says why."""
    op = candidate.op
    params, indices = map(shape_of, op.inputs[:2])
    shared, axis = op.attrs["batch_dims"], op.attrs["axis"]
    at = axis + len(params) if axis < 0 else axis
    if not 0 <= shared <= at < len(params) or params[:shared] != indices[:shared]:
        return None
    shape = GatherShape(
        batches=prod(params[:shared]),
        outer=prod(params[shared:at]),
        size=params[at],
        inner=prod(params[at + 1 :]),
        picked=prod(indices[shared:]),
        item=op.inputs[0].dtype.numpy.itemsize,
        index=op.inputs[1].dtype.name,
    )
    return Gather(op, shape, f"axis {at} of shape {list(params)}")
