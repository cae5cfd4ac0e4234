"""Reverse-mode differentiation of Headrace graphs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from headrace.extend.plugins import added_names

if TYPE_CHECKING:
    from headrace_autodiff.custom import NoGradient as NoGradient
    from headrace_autodiff.custom import NotDifferentiable as NotDifferentiable
    from headrace_autodiff.custom import RegisterGradient as RegisterGradient
    from headrace_autodiff.custom import custom_gradient as custom_gradient
    from headrace_autodiff.custom import grad_pass_through as grad_pass_through
    from headrace_autodiff.custom import gradient_override_map as gradient_override_map
    from headrace_autodiff.custom import no_gradient as no_gradient
    from headrace_autodiff.options import AggregationMethod as AggregationMethod
    from headrace_autodiff.options import UnconnectedGradients as UnconnectedGradients
    from headrace_autodiff.recompute import recompute_grad as recompute_grad
    from headrace_autodiff.reverse_mode import gradients as gradients
    from headrace_autodiff.second_derivatives import hessians as hessians
    from headrace_autodiff.tape import GradientTape as GradientTape

# Module -> its public names. Modules are imported when a program first names one of these.
_FOUND_IN = {
    "custom": """
        NoGradient NotDifferentiable RegisterGradient custom_gradient grad_pass_through
        gradient_override_map no_gradient
    """,
    "options": "AggregationMethod UnconnectedGradients",
    "recompute": "recompute_grad",
    "reverse_mode": "gradients",
    "second_derivatives": "hessians",
    "tape": "GradientTape",
}

__all__: list[str] = []
__all__ += [name for names in _FOUND_IN.values() for name in names.split()]

if not TYPE_CHECKING:
    __getattr__, __dir__ = added_names("autodiff", __name__, _FOUND_IN)
