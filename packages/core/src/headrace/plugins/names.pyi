# Names that the official plugins add under headrace, as type checkers see them. This stub is the
# only place in core that names its plugins, and nothing reads it at run time.
import headrace_mpi as dist
import headrace_train as train
from headrace_autodiff import RegisterGradient as RegisterGradient
from headrace_autodiff import custom_gradient as custom_gradient
from headrace_autodiff import gradient_override_map as gradient_override_map
from headrace_autodiff import gradients as gradients
from headrace_autodiff import hessians as hessians
from headrace_autodiff import recompute_grad as recompute_grad

__all__ = [
    "RegisterGradient",
    "custom_gradient",
    "dist",
    "gradient_override_map",
    "gradients",
    "hessians",
    "recompute_grad",
    "train",
]
