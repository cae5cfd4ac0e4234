# Names that the official plugins add under headrace, as type checkers see them. This stub is the
# only place in core that names its plugins, and nothing reads it at run time.
import headrace_data as data
import headrace_io as io
import headrace_mpi as dist
import headrace_serve as serve
import headrace_tensorflow as tensorflow
import headrace_testing as testing
import headrace_train as train
from headrace_autodiff import AggregationMethod as AggregationMethod
from headrace_autodiff import NoGradient as NoGradient
from headrace_autodiff import NotDifferentiable as NotDifferentiable
from headrace_autodiff import RegisterGradient as RegisterGradient
from headrace_autodiff import UnconnectedGradients as UnconnectedGradients
from headrace_autodiff import custom_gradient as custom_gradient
from headrace_autodiff import gradient_override_map as gradient_override_map
from headrace_autodiff import gradients as gradients
from headrace_autodiff import hessians as hessians
from headrace_autodiff import no_gradient as no_gradient
from headrace_autodiff import recompute_grad as recompute_grad
from headrace_io import graph_util as graph_util
from headrace_io import import_graph_def as import_graph_def
from headrace_train import layers as layers
from headrace_train import metrics as metrics
from headrace_train import summary as summary
from headrace_train import test as test

__all__ = [
    "AggregationMethod",
    "NoGradient",
    "NotDifferentiable",
    "RegisterGradient",
    "UnconnectedGradients",
    "custom_gradient",
    "data",
    "dist",
    "gradient_override_map",
    "gradients",
    "graph_util",
    "hessians",
    "import_graph_def",
    "io",
    "layers",
    "metrics",
    "no_gradient",
    "recompute_grad",
    "serve",
    "summary",
    "tensorflow",
    "test",
    "testing",
    "train",
]
