"""What headrace-autodiff adds to Headrace: ``gradients`` with its companions, and the rules."""

from __future__ import annotations

from typing import TYPE_CHECKING

from headrace.extend import hookimpl

if TYPE_CHECKING:
    from headrace.extend import GradientRegistry, NameRegistry

NAMES = (
    "gradients",
    "hessians",
    "custom_gradient",
    "recompute_grad",
    "gradient_override_map",
    "RegisterGradient",
    "no_gradient",
    "NoGradient",
    "NotDifferentiable",
    "AggregationMethod",
    "UnconnectedGradients",
    "GradientTape",
    "grad_pass_through",
)

# The version of the plugin interface that this is written for.
headrace_api = 1


@hookimpl
def headrace_register_names(registry: NameRegistry) -> None:
    """Add ``headrace.gradients`` and the names for gradients of one's own."""
    for name in NAMES:
        registry.add(name, f"headrace_autodiff:{name}")


@hookimpl
def headrace_register_gradients(registry: GradientRegistry) -> None:
    """Add the rules of core's ops."""
    # lazy: rules are needed when gradients are first asked for
    from headrace_autodiff.rules import TABLES

    for table in TABLES:
        registry.add(table)
