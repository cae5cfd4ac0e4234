"""Gradients of indexing."""

from __future__ import annotations

from collections.abc import Sequence

from headrace import Operation, Tensor, convert_to_tensor, pad, shape, stack
from headrace.extend import GradientTable
from headrace.extend.gradients import shape_of
from headrace.extend.ops import call_op
from headrace.extend.primitives import strided_slice_grad
from headrace_autodiff.shaping import shaped_as

RULES = GradientTable()


@RULES.add("StridedSlice")
def _strided_slice(op: Operation, grad: Tensor) -> Sequence[Tensor | None]:
    source, *bounds = op.inputs
    return strided_slice_grad(shape_of(source), *bounds, grad, **op.attrs), None, None, None


@RULES.add("StridedSliceGrad")
def _strided_slice_grad(op: Operation, grad: Tensor) -> Sequence[Tensor | None]:
    _, begin, end, strides, _ = op.inputs
    part: Tensor = call_op("StridedSlice", grad, begin, end, strides, **op.attrs)
    return None, None, None, None, part


@RULES.add("Slice")
def _slice(op: Operation, grad: Tensor) -> Sequence[Tensor | None]:
    source, begin, size = op.inputs
    starts, known = begin.spec.value, grad.spec.shape
    if starts is not None and known.is_fully_defined() and source.shape.is_fully_defined():
        pairs = [
            [int(start), whole - int(start) - part]
            for start, whole, part in zip(starts, source.shape.known, known.known, strict=True)
        ]
        return pad(grad, pairs), None, None
    first = begin if begin.dtype == size.dtype else call_op("Cast", begin, size.dtype)
    whole = convert_to_tensor(shape(source, out_type=first.dtype))
    rest = whole - first - shape(grad, out_type=first.dtype)
    return shaped_as(pad(grad, stack([first, rest], 1)), source), None, None
