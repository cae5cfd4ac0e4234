"""Headrace: a dataflow-graph machine-learning system.

A program builds a graph of operations on tensors once, and a session runs parts of it thousands
of times. ``headrace`` is the minimal core; other packages add gradients, kernels, clusters and
training, under names of this package that are loaded on first use.
"""

from typing import TYPE_CHECKING, Any

from headrace import errors, nn
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
    name_scope,
    reset_default_graph,
)
from headrace.graph.tensor import Tensor
from headrace.ops.array import (
    broadcast_to,
    concat,
    expand_dims,
    gather,
    identity,
    identity_n,
    pad,
    rank,
    reshape,
    shape,
    size,
    split,
    squeeze,
    stack,
    stop_gradient,
    tile,
    transpose,
    unstack,
)
from headrace.ops.constant import (
    constant,
    fill,
    one_hot,
    ones,
    ones_like,
    placeholder,
    range,
    zeros,
    zeros_like,
)
from headrace.ops.control import group, merge, no_op, switch, with_dependencies
from headrace.ops.control import tuple_ as tuple
from headrace.ops.elementwise import (
    absolute as abs,
)
from headrace.ops.elementwise import (
    add,
    cast,
    conj,
    cos,
    divide,
    equal,
    exp,
    floordiv,
    floormod,
    greater,
    greater_equal,
    less,
    less_equal,
    log,
    log1p,
    logical_and,
    logical_not,
    logical_or,
    logical_xor,
    maximum,
    minimum,
    multiply,
    negative,
    not_equal,
    sigmoid,
    sign,
    sin,
    sqrt,
    square,
    subtract,
    tanh,
    truediv,
    where,
)
from headrace.ops.elementwise import (
    floormod as mod,
)
from headrace.ops.elementwise import (
    power as pow,
)
from headrace.ops.indexing import slice_ as slice
from headrace.ops.linalg import matmul
from headrace.ops.random import random_normal, random_uniform, set_random_seed, truncated_normal
from headrace.ops.reduce import (
    argmax,
    argmin,
    reduce_all,
    reduce_any,
    reduce_max,
    reduce_mean,
    reduce_min,
    reduce_prod,
    reduce_sum,
    unsorted_segment_sum,
)
from headrace.ops.variable import (
    Variable,
    assign,
    assign_add,
    assign_sub,
    global_variables,
    global_variables_initializer,
    is_variable_initialized,
    scatter_add,
    scatter_sub,
    scatter_update,
    trainable_variables,
    variables_initializer,
)
from headrace.plugins.host import host as _host
from headrace.runtime.containers import reset_containers
from headrace.session.config import Config
from headrace.session.session import Session
from headrace.shapes import Shape

if TYPE_CHECKING:
    # What official plugins add, for type checkers and editors; see the stub of this module.
    from headrace.plugins.names import dist as dist
    from headrace.plugins.names import gradients as gradients
    from headrace.plugins.names import train as train

__version__ = "0.1.0"

__all__ = [
    "Config",
    "DType",
    "Graph",
    "HeadraceError",
    "IndexedSlices",
    "Operation",
    "Session",
    "Shape",
    "Tensor",
    "Variable",
    "abs",
    "add",
    "argmax",
    "argmin",
    "as_dtype",
    "assign",
    "assign_add",
    "assign_sub",
    "bfloat16",
    "bool",
    "broadcast_to",
    "cast",
    "colocate_with",
    "complex64",
    "complex128",
    "concat",
    "conj",
    "constant",
    "container",
    "control_dependencies",
    "convert_to_tensor",
    "cos",
    "device",
    "divide",
    "equal",
    "errors",
    "exp",
    "expand_dims",
    "fill",
    "float16",
    "float32",
    "float64",
    "floordiv",
    "floormod",
    "gather",
    "get_default_graph",
    "get_default_session",
    "global_variables",
    "global_variables_initializer",
    "greater",
    "greater_equal",
    "group",
    "identity",
    "identity_n",
    "int8",
    "int16",
    "int32",
    "int64",
    "is_variable_initialized",
    "less",
    "less_equal",
    "log",
    "log1p",
    "logical_and",
    "logical_not",
    "logical_or",
    "logical_xor",
    "matmul",
    "maximum",
    "merge",
    "minimum",
    "mod",
    "multiply",
    "name_scope",
    "negative",
    "nn",
    "no_op",
    "not_equal",
    "one_hot",
    "ones",
    "ones_like",
    "pad",
    "placeholder",
    "pow",
    "random_normal",
    "random_uniform",
    "range",
    "rank",
    "reduce_all",
    "reduce_any",
    "reduce_max",
    "reduce_mean",
    "reduce_min",
    "reduce_prod",
    "reduce_sum",
    "reset_containers",
    "reset_default_graph",
    "reshape",
    "resource",
    "scatter_add",
    "scatter_sub",
    "scatter_update",
    "set_random_seed",
    "shape",
    "sigmoid",
    "sign",
    "sin",
    "size",
    "slice",
    "split",
    "sqrt",
    "square",
    "squeeze",
    "stack",
    "stop_gradient",
    "string",
    "subtract",
    "switch",
    "tanh",
    "tile",
    "trainable_variables",
    "transpose",
    "truediv",
    "truncated_normal",
    "tuple",
    "uint8",
    "uint16",
    "uint32",
    "uint64",
    "unsorted_segment_sum",
    "unstack",
    "variables_initializer",
    "where",
    "with_dependencies",
    "zeros",
    "zeros_like",
]


def __getattr__(name: str) -> Any:
    """Return a public name that a plugin adds."""
    if name.startswith("__"):
        raise AttributeError(name)
    value = _host().resolve_name(name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_host().names})
