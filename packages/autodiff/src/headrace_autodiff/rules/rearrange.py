"""Gradients of reversing and rolling."""

from __future__ import annotations

from headrace.extend import GradientTable, Operation, Tensor
from headrace.ops.rearrange import reverse, reverse_sequence, roll

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
