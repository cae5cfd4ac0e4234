"""Gradients of roundings: as if nothing was rounded."""

from __future__ import annotations

from headrace import Operation, Tensor
from headrace.extend import GradientTable
from headrace.extend.primitives import fake_quant_gradient

RULES = GradientTable()


@RULES.add("FakeQuant")
def _fake_quant(op: Operation, grad: Tensor) -> tuple[Tensor, ...]:
    return tuple(fake_quant_gradient(grad, *op.inputs, **op.attrs))


@RULES.add("QuantizeAndDequantize")
def _quantize_and_dequantize(op: Operation, grad: Tensor) -> tuple[Tensor, None, None]:
    return grad, None, None
