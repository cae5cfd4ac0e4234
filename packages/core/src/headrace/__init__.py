"""Headrace: a dataflow-graph machine-learning system.

A program builds a graph of operations on tensors once, and a session runs parts of it thousands
of times. ``headrace`` is the minimal core; other packages add gradients, kernels, clusters and
training, under names of this package that are loaded on first use.
"""

from typing import TYPE_CHECKING, Any

from headrace import errors, functions
from headrace.dimension import Dimension, dimension_value
from headrace.dtypes import (
    QUANTIZED_DTYPES,
    DType,
    as_dtype,
    bfloat16,
    complex64,
    complex128,
    float16,
    float32,
    float64,
    int8,
    int16,
    int32,
    int64,
    qint8,
    qint16,
    qint32,
    quint8,
    quint16,
    resource,
    string,
    uint8,
    uint16,
    uint32,
    uint64,
)
from headrace.dtypes import (
    bool_ as bool,
)
from headrace.errors import HeadraceError, OpError
from headrace.functions import *
from headrace.graph.conversion_registry import register_tensor_conversion_function
from headrace.graph.convert import convert_to_tensor, is_tensor
from headrace.graph.default_session import get_default_session
from headrace.graph.graph import Graph
from headrace.graph.indexed_slices import IndexedSlices
from headrace.graph.operation import Operation
from headrace.graph.rendering import set_renderer as _set_renderer
from headrace.graph.schema import OPERATORS as _OPERATORS
from headrace.graph.schema import OPS as _OPS
from headrace.graph.scopes import (
    colocate_with,
    container,
    control_dependencies,
    device,
    get_default_graph,
    init_scope,
    name_scope,
    reset_default_graph,
)
from headrace.graph.sparse_tensor import SparseTensor, SparseTensorValue
from headrace.graph.tensor import Tensor
from headrace.graph.tensor_shape import TensorShape, dimension_at_index
from headrace.plugins.namespace_imports import install as _install_namespaces
from headrace.rendering import Rendering as _Rendering
from headrace.shapes import Shape
from headrace.tracebacks import install as _fold_tracebacks
from headrace.version import (
    COMPILER_VERSION,
    CXX11_ABI_FLAG,
    GIT_VERSION,
    GRAPH_DEF_VERSION,
    GRAPH_DEF_VERSION_MIN_CONSUMER,
    GRAPH_DEF_VERSION_MIN_PRODUCER,
    MONOLITHIC_BUILD,
    VERSION,
)
from headrace.version import __version__ as __version__

if TYPE_CHECKING:
    from headrace import bitwise as bitwise
    from headrace import compat as compat
    from headrace import config as config
    from headrace import debugging as debugging
    from headrace import distributions as distributions
    from headrace import image as image
    from headrace import initializers as initializers
    from headrace import linalg as linalg
    from headrace import logging as logging
    from headrace import lookup as lookup
    from headrace import losses as losses
    from headrace import manip as manip
    from headrace import math as math
    from headrace import nest as nest
    from headrace import nn as nn
    from headrace import quantization as quantization
    from headrace import ragged as ragged
    from headrace import random as random
    from headrace import rnn_cell as rnn_cell
    from headrace import saved_model as saved_model
    from headrace import sets as sets
    from headrace import signal as signal
    from headrace import sparse as sparse
    from headrace import spectral as spectral
    from headrace import strings as strings
    from headrace.device_spec import DeviceSpec as DeviceSpec
    from headrace.graph.composite_conversions import (
        convert_to_tensor_or_indexed_slices as convert_to_tensor_or_indexed_slices,
    )
    from headrace.graph.composite_conversions import (
        convert_to_tensor_or_sparse_tensor as convert_to_tensor_or_sparse_tensor,
    )
    from headrace.logging import get_logger as get_logger
    from headrace.modes import control_flow_v2_enabled as control_flow_v2_enabled
    from headrace.modes import disable_control_flow_v2 as disable_control_flow_v2
    from headrace.modes import disable_eager_execution as disable_eager_execution
    from headrace.modes import disable_resource_variables as disable_resource_variables
    from headrace.modes import disable_tensor_equality as disable_tensor_equality
    from headrace.modes import disable_v2_behavior as disable_v2_behavior
    from headrace.modes import disable_v2_tensorshape as disable_v2_tensorshape
    from headrace.modes import enable_control_flow_v2 as enable_control_flow_v2
    from headrace.modes import enable_eager_execution as enable_eager_execution
    from headrace.modes import enable_resource_variables as enable_resource_variables
    from headrace.modes import enable_tensor_equality as enable_tensor_equality
    from headrace.modes import enable_v2_behavior as enable_v2_behavior
    from headrace.modes import enable_v2_tensorshape as enable_v2_tensorshape
    from headrace.modes import executing_eagerly as executing_eagerly
    from headrace.modes import resource_variables_enabled as resource_variables_enabled
    from headrace.module import Module as Module
    from headrace.ops.old_scopes import op_scope as op_scope
    from headrace.ops.old_scopes import variable_op_scope as variable_op_scope
    from headrace.ops.sharing import VariableAggregation as VariableAggregation
    from headrace.ops.sharing import VariableSynchronization as VariableSynchronization
    from headrace.placement.costs import CostModel as CostModel
    from headrace.placement.costs import DeviceSpeed as DeviceSpeed
    from headrace.placement.costs import LinkSpeed as LinkSpeed
    from headrace.placement.policy import PlacementPolicy as PlacementPolicy
    from headrace.placement.policy import PlacementRule as PlacementRule
    from headrace.plugins.host import PluginHost

    # What official plugins add, for type checkers and editors; see the stub of this module.
    from headrace.plugins.names import dist as dist
    from headrace.plugins.names import gradients as gradients
    from headrace.plugins.names import graph_util as graph_util
    from headrace.plugins.names import import_graph_def as import_graph_def
    from headrace.plugins.names import io as io
    from headrace.plugins.names import layers as layers
    from headrace.plugins.names import metrics as metrics
    from headrace.plugins.names import test as test
    from headrace.plugins.names import testing as testing
    from headrace.plugins.names import train as train
    from headrace.ragged.tensor import RaggedTensor as RaggedTensor
    from headrace.runtime.state.containers import reset_containers as reset_containers
    from headrace.session.config import Config as Config
    from headrace.session.config_proto import ConfigProto as ConfigProto
    from headrace.session.config_proto import GPUOptions as GPUOptions
    from headrace.session.config_proto import GraphOptions as GraphOptions
    from headrace.session.config_proto import OptimizerOptions as OptimizerOptions
    from headrace.session.fetches import IndexedSlicesValue as IndexedSlicesValue
    from headrace.session.interactive import InteractiveSession as InteractiveSession
    from headrace.session.run_options import RunMetadata as RunMetadata
    from headrace.session.run_options import RunOptions as RunOptions
    from headrace.session.session import Session as Session
    from headrace.specs.composites import IndexedSlicesSpec as IndexedSlicesSpec
    from headrace.specs.composites import RaggedTensorSpec as RaggedTensorSpec
    from headrace.specs.composites import SparseTensorSpec as SparseTensorSpec
    from headrace.specs.composites import TensorArraySpec as TensorArraySpec
    from headrace.specs.tensor_spec import TensorSpec as TensorSpec
    from headrace.specs.type_spec import TypeSpec as TypeSpec

_set_renderer(_Rendering())


def _later(name: str) -> Any:
    """Return a function that stands for one of ragged tensors until they are imported."""

    def call(*args: Any) -> Any:
        from importlib import import_module

        import_module("headrace.ragged")
        return _OPERATORS[name](*args)

    return call


_OPERATORS.update({name: _later(name) for name in ("pieces_of_rows", "pieces_of_strings")})
_fold_tracebacks()

# Imported when a program first names them: they hold compositions that few programs use all of.
_FAMILIES = (
    "config",
    "nest",
    "manip",
    "logging",
    "compat",
    "bitwise",
    "debugging",
    "distributions",
    "image",
    "initializers",
    "linalg",
    "lookup",
    "losses",
    "math",
    "nn",
    "quantization",
    "ragged",
    "random",
    "rnn_cell",
    "saved_model",
    "sets",
    "signal",
    "sparse",
    "spectral",
    "strings",
)

# Likewise, from where: what runs graphs, which building one does not need, and what few name.
_RUNNING = {
    "DeviceSpec": "device_spec",
    "executing_eagerly": "modes",
    "enable_eager_execution": "modes",
    "enable_v2_behavior": "modes",
    "disable_eager_execution": "modes",
    "disable_v2_behavior": "modes",
    "disable_v2_tensorshape": "modes",
    "disable_tensor_equality": "modes",
    "enable_resource_variables": "modes",
    "resource_variables_enabled": "modes",
    "enable_control_flow_v2": "modes",
    "control_flow_v2_enabled": "modes",
    "Config": "session.config",
    "ConfigProto": "session.config_proto",
    "GPUOptions": "session.config_proto",
    "GraphOptions": "session.config_proto",
    "OptimizerOptions": "session.config_proto",
    "InteractiveSession": "session.interactive",
    "RunMetadata": "session.run_options",
    "RunOptions": "session.run_options",
    "CostModel": "placement.costs",
    "DeviceSpeed": "placement.costs",
    "LinkSpeed": "placement.costs",
    "PlacementPolicy": "placement.policy",
    "PlacementRule": "placement.policy",
    "IndexedSlicesValue": "session.fetches",
    "Session": "session.session",
    "reset_containers": "runtime.state.containers",
    "TensorSpec": "specs.tensor_spec",
    "TypeSpec": "specs.type_spec",
    "Module": "module",
    "SparseTensorSpec": "specs.composites",
    "IndexedSlicesSpec": "specs.composites",
    "RaggedTensorSpec": "specs.composites",
    "TensorArraySpec": "specs.composites",
    "convert_to_tensor_or_sparse_tensor": "graph.composite_conversions",
    "convert_to_tensor_or_indexed_slices": "graph.composite_conversions",
    "op_scope": "ops.old_scopes",
    "variable_op_scope": "ops.old_scopes",
    "get_logger": "logging",
    "disable_control_flow_v2": "modes",
    "disable_resource_variables": "modes",
    "enable_tensor_equality": "modes",
    "enable_v2_tensorshape": "modes",
    "VariableAggregation": "ops.sharing",
    "VariableSynchronization": "ops.sharing",
    "RaggedTensor": "ragged.tensor",
}

half = float16
double = float64

# In an index, as in NumPy: an axis of size 1.
newaxis = None

__all__ = [
    "COMPILER_VERSION",
    "CXX11_ABI_FLAG",
    "GIT_VERSION",
    "GRAPH_DEF_VERSION",
    "GRAPH_DEF_VERSION_MIN_CONSUMER",
    "GRAPH_DEF_VERSION_MIN_PRODUCER",
    "MONOLITHIC_BUILD",
    "QUANTIZED_DTYPES",
    "VERSION",
    "Config",
    "ConfigProto",
    "CostModel",
    "DType",
    "DeviceSpec",
    "DeviceSpeed",
    "Dimension",
    "GPUOptions",
    "Graph",
    "GraphOptions",
    "HeadraceError",
    "IndexedSlices",
    "IndexedSlicesSpec",
    "IndexedSlicesValue",
    "InteractiveSession",
    "LinkSpeed",
    "Module",
    "OpError",
    "Operation",
    "OptimizerOptions",
    "PlacementPolicy",
    "PlacementRule",
    "RaggedTensor",
    "RaggedTensorSpec",
    "RunMetadata",
    "RunOptions",
    "Session",
    "Shape",
    "SparseTensor",
    "SparseTensorSpec",
    "SparseTensorValue",
    "Tensor",
    "TensorArraySpec",
    "TensorShape",
    "TensorSpec",
    "TypeSpec",
    "VariableAggregation",
    "VariableSynchronization",
    "as_dtype",
    "bfloat16",
    "bitwise",
    "bool",
    "colocate_with",
    "compat",
    "complex64",
    "complex128",
    "config",
    "container",
    "control_dependencies",
    "control_flow_v2_enabled",
    "convert_to_tensor",
    "convert_to_tensor_or_indexed_slices",
    "convert_to_tensor_or_sparse_tensor",
    "debugging",
    "device",
    "dimension_at_index",
    "dimension_value",
    "disable_control_flow_v2",
    "disable_eager_execution",
    "disable_resource_variables",
    "disable_tensor_equality",
    "disable_v2_behavior",
    "disable_v2_tensorshape",
    "distributions",
    "double",
    "enable_control_flow_v2",
    "enable_eager_execution",
    "enable_resource_variables",
    "enable_tensor_equality",
    "enable_v2_behavior",
    "enable_v2_tensorshape",
    "errors",
    "executing_eagerly",
    "float16",
    "float32",
    "float64",
    "get_default_graph",
    "get_default_session",
    "get_logger",
    "half",
    "image",
    "init_scope",
    "initializers",
    "int8",
    "int16",
    "int32",
    "int64",
    "is_tensor",
    "linalg",
    "logging",
    "lookup",
    "losses",
    "manip",
    "math",
    "name_scope",
    "nest",
    "newaxis",
    "nn",
    "op_scope",
    "qint8",
    "qint16",
    "qint32",
    "quantization",
    "quint8",
    "quint16",
    "ragged",
    "random",
    "register_tensor_conversion_function",
    "reset_containers",
    "reset_default_graph",
    "resource",
    "resource_variables_enabled",
    "saved_model",
    "sets",
    "signal",
    "sparse",
    "spectral",
    "string",
    "strings",
    "uint8",
    "uint16",
    "uint32",
    "uint64",
    "variable_op_scope",
]
__all__ += [name for name in vars(functions) if not name.startswith("_")]


def _host() -> "PluginHost":
    # lazy: plugins are looked for when a program names something that core does not have
    from headrace.plugins.host import host

    return host()


_install_namespaces(lambda name: _host().resolve_name(name))

# A graph that is read may hold ops that plugins declare.
_OPS.declare_more = lambda: _host().declare_ops()


def __getattr__(name: str) -> Any:
    """Return what is imported when it is first named, or a public name that a plugin adds."""
    if name.startswith("__"):
        raise AttributeError(name)
    if name in _FAMILIES:
        from importlib import import_module

        return import_module(f"headrace.{name}")
    if name in _RUNNING:
        from importlib import import_module

        value = getattr(import_module(f"headrace.{_RUNNING[name]}"), name)
    else:
        value = _host().resolve_name(name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_FAMILIES, *_RUNNING, *_host().names.within("")})
