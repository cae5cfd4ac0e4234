"""Gradients of connectionist temporal classification."""

from __future__ import annotations

from typing import NoReturn

from headrace import Operation, Tensor, reshape
from headrace.errors import NoGradientError
from headrace.extend import GradientTable
from headrace.extend.ops import call_op
from headrace_autodiff.accumulate import total

RULES = GradientTable()


@RULES.add("CTCLoss")
def _ctc_loss(
    op: Operation, of_loss: Tensor | None, of_slope: Tensor | None
) -> tuple[Tensor | None, None, None, None]:
    """The op's second output is the slope of the first; that of the slope is an op of its own."""
    parts = []
    if of_loss is not None:
        parts.append(reshape(of_loss, [1, -1, 1]) * op.outputs[1])
    if of_slope is not None:
        log_probs, *labels = op.inputs
        attrs = (op.attrs["blank_index"], op.attrs["merge_repeated"])
        parts.append(call_op("CTCLossCurvature", log_probs, of_slope, *labels, *attrs))
    return total(parts), None, None, None


@RULES.add("CTCLossCurvature")
def _ctc_loss_curvature(op: Operation, grad: Tensor) -> NoReturn:
    # No rule would stop the gradient in silence.
    raise NoGradientError("third derivatives of the CTC loss are not there")
