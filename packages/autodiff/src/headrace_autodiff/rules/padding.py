"""Gradients of borders."""

from __future__ import annotations

from collections.abc import Sequence

from headrace import Operation, Tensor, reduce_sum, shape
from headrace.extend import GradientTable
from headrace.extend.ops import call_op
from headrace.extend.primitives import mirror_pad_grad
from headrace_autodiff.shaping import shaped_as

RULES = GradientTable()


@RULES.add("Pad")
def _pad(op: Operation, grad: Tensor) -> Sequence[Tensor | None]:
    source, paddings, *filler = op.inputs
    inner: Tensor
    if paddings.spec.value is not None:
        # A scalar has no paddings; indexing it with nothing would not be an index.
        parts = [slice(b or None, -a if a else None) for b, a in paddings.spec.value.tolist()]
        inner = grad[tuple(parts)] if parts else grad
    else:
        inner = call_op("Slice", grad, paddings[:, 0], shape(source, out_type=paddings.dtype))
    if not filler:
        return inner, None
    return inner, None, reduce_sum(grad) - reduce_sum(inner)


@RULES.add("MirrorPad")
def _mirror_pad(op: Operation, grad: Tensor) -> tuple[Tensor, None]:
    source, paddings = op.inputs
    return shaped_as(mirror_pad_grad(grad, paddings, op.attrs["mode"]), source), None


@RULES.add("MirrorPadGrad")
def _mirror_pad_grad(op: Operation, grad: Tensor) -> tuple[Tensor, None]:
    padded: Tensor = call_op("MirrorPad", grad, op.inputs[1], op.attrs["mode"])
    return padded, None
