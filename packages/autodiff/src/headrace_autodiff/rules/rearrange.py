"""Gradients of reversing and rolling."""

from __future__ import annotations

from headrace import Operation, Tensor, reverse, reverse_sequence, roll
from headrace.extend import GradientTable

RULES = GradientTable()


@RULES.add("Reverse")
def _reverse(op: Operation, grad: Tensor) -> tuple[Tensor, None]:
    return reverse(grad, op.inputs[1]), None


@RULES.add("ReverseSequence")
def _reverse_sequence(op: Operation, grad: Tensor) -> tuple[Tensor, None]:
    lengths = op.inputs[1]
    seq, batch = op.attrs["seq_axis"], op.attrs["batch_axis"]
    return reverse_sequence(grad, lengths, seq, batch), None


@RULES.add("Roll")
def _roll(op: Operation, grad: Tensor) -> tuple[Tensor, None, None]:
    _, shift, axis = op.inputs
    return roll(grad, -shift, axis), None, None
