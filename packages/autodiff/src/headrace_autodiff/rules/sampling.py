"""Gradients of random samples, by implicit reparameterization.

References:
    M. Figurnov, S. Mohamed, A. Mnih, Implicit reparameterization gradients, 2018,
    https://arxiv.org/abs/1805.08498
"""

from __future__ import annotations

from headrace import Operation, Tensor
from headrace.extend import GradientTable
from headrace.extend.primitives import random_gamma_grad
from headrace_autodiff.shaping import unbroadcast

RULES = GradientTable()


@RULES.add("RandomGamma")
def _random_gamma(op: Operation, grad: Tensor) -> tuple[None, Tensor]:
    alpha, sample = op.inputs[1], op.outputs[0]
    partial = random_gamma_grad(alpha, sample)
    return None, unbroadcast(grad * partial, alpha, sample.spec.shape)
