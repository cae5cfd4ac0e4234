"""Gradients of indexing."""

from __future__ import annotations

from collections.abc import Sequence

from headrace.extend import GradientTable, Operation, Tensor
from headrace.graph.schema import call_op
from headrace.ops.constant import shape_of
from headrace.ops.indexing import strided_slice_grad

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
