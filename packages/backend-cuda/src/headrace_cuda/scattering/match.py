"""Sums of rows by index in a region."""

from __future__ import annotations

from math import prod

from headrace_cpu.for_backends import Candidate, shape_of
from headrace_cuda.scattering.instruction import INDICES, NUMBERS, AddRows, ScatterShape

_SEGMENTS = "UnsortedSegmentSum"
# By the sign with which rows are added to a variable.
_VARIABLES = {"ScatterAddVariable": 1, "ScatterSubVariable": -1}
# What may be wanted.
SCATTERED = frozenset({_SEGMENTS, *_VARIABLES})


def wants(candidate: Candidate) -> bool:
    """Whether an operation adds rows of known shapes up, in any order."""
    op = candidate.op
    if op.type not in SCATTERED or op.control_inputs or candidate.settings.deterministic:
        return False
    if op.type == _SEGMENTS:
        rows, indices, total = op.inputs[0], op.inputs[1], op.outputs[0].spec
    else:
        indices, rows, content = op.inputs[1], op.inputs[2], op.inputs[0].spec.content
        if content is None or not content.shape.is_fully_defined():
            return False
        # The new value as a whole would be a copy of it.
        if candidate.matches.needed_outside(op.outputs[0], (op,)):
            return False
        total = content
    known = all(shape_of(indices)) and all(shape_of(rows)) and all(total.shape.known)
    return known and rows.dtype.name in NUMBERS and indices.dtype.name in INDICES


def make(candidate: Candidate) -> AddRows | None:
    """Return the sums; None where the plain kernel refuses the shapes, and says why."""
    op = candidate.op
    if op.type == _SEGMENTS:
        rows, indices, total = op.inputs[0], op.inputs[1], op.outputs[0]
        lead = shape_of(indices)
        if shape_of(rows)[: len(lead)] != lead:
            return None
        size, *rest = shape_of(total)
        what = f"{size} segments"
    else:
        total, indices, rows = op.inputs
        content = total.spec.content
        assert content is not None
        size, *rest = content.shape.known
        if shape_of(rows) not in ((), (*shape_of(indices), *rest)):
            return None
        name = total.op.attrs.get("name") or total.op.name
        what = f"the rows of variable {name!r}"
    shape = ScatterShape(
        rows=prod(shape_of(indices)),
        width=prod(rest),
        size=size,
        dtype=rows.dtype.name,
        index=indices.dtype.name,
        sign=_VARIABLES.get(op.type, 1),
        drops=op.type == _SEGMENTS,
        clears=op.type == _SEGMENTS,
        spread=op.type != _SEGMENTS and shape_of(rows) == (),
    )
    return AddRows(op, shape, indices, rows, total, what)
