"""Reverse-mode differentiation of Headrace graphs."""

from __future__ import annotations

from headrace.graph.scopes import gradient_override_map as gradient_override_map
from headrace_autodiff.custom import RegisterGradient as RegisterGradient
from headrace_autodiff.custom import custom_gradient as custom_gradient
from headrace_autodiff.gradients import gradients as gradients
from headrace_autodiff.hessians import hessians as hessians
from headrace_autodiff.recompute import recompute_grad as recompute_grad

__all__ = [
    "RegisterGradient",
    "custom_gradient",
    "gradient_override_map",
    "gradients",
    "hessians",
    "recompute_grad",
]
