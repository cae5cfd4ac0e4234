"""Headrace: a dataflow-graph machine-learning system.

A program builds a graph of operations on tensors once, and a session runs parts of it thousands
of times. ``headrace`` is the minimal core; other packages add gradients, kernels, clusters and
training, under names of this package that are loaded on first use.
"""

from typing import TYPE_CHECKING, Any

from headrace import errors, functions
from headrace.dtypes import (
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
from headrace.errors import HeadraceError
from headrace.functions import *
from headrace.graph.convert import convert_to_tensor
from headrace.graph.default_session import get_default_session
from headrace.graph.graph import Graph
from headrace.graph.indexed_slices import IndexedSlices
from headrace.graph.operation import Operation
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
from headrace.plugins.host import host as _host
from headrace.runtime.containers import reset_containers
from headrace.session.config import Config
from headrace.session.fetches import IndexedSlicesValue
from headrace.session.session import Session
from headrace.shapes import Shape
from headrace.shapes import Shape as TensorShape

if TYPE_CHECKING:
    from headrace import bitwise as bitwise
    from headrace import debugging as debugging
    from headrace import image as image
    from headrace import initializers as initializers
    from headrace import linalg as linalg
    from headrace import lookup as lookup
    from headrace import losses as losses
    from headrace import math as math
    from headrace import nn as nn
    from headrace import random as random
    from headrace import rnn_cell as rnn_cell
    from headrace import sparse as sparse
    from headrace import strings as strings

    # What official plugins add, for type checkers and editors; see the stub of this module.
    from headrace.plugins.names import dist as dist
    from headrace.plugins.names import gradients as gradients
    from headrace.plugins.names import train as train

__version__ = "0.1.0"

# Imported when a program first names them: they hold compositions that few programs use all of.
_FAMILIES = (
    "bitwise",
    "debugging",
    "image",
    "initializers",
    "linalg",
    "lookup",
    "losses",
    "math",
    "nn",
    "random",
    "rnn_cell",
    "sparse",
    "strings",
)

# In an index, as in NumPy: an axis of size 1.
newaxis = None

__all__ = [
    "Config",
    "DType",
    "Graph",
    "HeadraceError",
    "IndexedSlices",
    "IndexedSlicesValue",
    "Operation",
    "Session",
    "Shape",
    "SparseTensor",
    "SparseTensorValue",
    "Tensor",
    "TensorShape",
    "as_dtype",
    "bfloat16",
    "bitwise",
    "bool",
    "colocate_with",
    "complex64",
    "complex128",
    "container",
    "control_dependencies",
    "convert_to_tensor",
    "debugging",
    "device",
    "errors",
    "float16",
    "float32",
    "float64",
    "get_default_graph",
    "get_default_session",
    "image",
    "init_scope",
    "initializers",
    "int8",
    "int16",
    "int32",
    "int64",
    "linalg",
    "lookup",
    "losses",
    "math",
    "name_scope",
    "newaxis",
    "nn",
    "random",
    "reset_containers",
    "reset_default_graph",
    "resource",
    "sparse",
    "string",
    "strings",
    "uint8",
    "uint16",
    "uint32",
    "uint64",
]
__all__ += [name for name in vars(functions) if not name.startswith("_")]


def __getattr__(name: str) -> Any:
    """Return a family of functions, or a public name that a plugin adds."""
    if name.startswith("__"):
        raise AttributeError(name)
    if name in _FAMILIES:
        from importlib import import_module

        return import_module(f"headrace.{name}")
    value = _host().resolve_name(name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_FAMILIES, *_host().names})
