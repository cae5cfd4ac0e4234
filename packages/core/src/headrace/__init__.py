"""Headrace: a dataflow-graph machine-learning system.

A program builds a graph of operations on tensors once, and a session runs parts of it thousands
of times. ``headrace`` is the minimal core; other packages add gradients, kernels, clusters and
training, under names of this package that are loaded on first use.
"""

from typing import TYPE_CHECKING, Any

from headrace import errors as errors
from headrace import nn as nn
from headrace.dtypes import DType as DType
from headrace.dtypes import as_dtype as as_dtype
from headrace.dtypes import bfloat16 as bfloat16
from headrace.dtypes import bool_ as bool
from headrace.dtypes import complex64 as complex64
from headrace.dtypes import complex128 as complex128
from headrace.dtypes import float16 as float16
from headrace.dtypes import float32 as float32
from headrace.dtypes import float64 as float64
from headrace.dtypes import int8 as int8
from headrace.dtypes import int16 as int16
from headrace.dtypes import int32 as int32
from headrace.dtypes import int64 as int64
from headrace.dtypes import resource as resource
from headrace.dtypes import string as string
from headrace.dtypes import uint8 as uint8
from headrace.dtypes import uint16 as uint16
from headrace.dtypes import uint32 as uint32
from headrace.dtypes import uint64 as uint64
from headrace.errors import HeadraceError as HeadraceError
from headrace.graph.convert import convert_to_tensor as convert_to_tensor
from headrace.graph.default_session import get_default_session as get_default_session
from headrace.graph.graph import Graph as Graph
from headrace.graph.indexed_slices import IndexedSlices as IndexedSlices
from headrace.graph.operation import Operation as Operation
from headrace.graph.scopes import colocate_with as colocate_with
from headrace.graph.scopes import container as container
from headrace.graph.scopes import control_dependencies as control_dependencies
from headrace.graph.scopes import device as device
from headrace.graph.scopes import get_default_graph as get_default_graph
from headrace.graph.scopes import name_scope as name_scope
from headrace.graph.scopes import reset_default_graph as reset_default_graph
from headrace.graph.tensor import Tensor as Tensor
from headrace.ops.array import broadcast_to as broadcast_to
from headrace.ops.array import concat as concat
from headrace.ops.array import expand_dims as expand_dims
from headrace.ops.array import gather as gather
from headrace.ops.array import identity as identity
from headrace.ops.array import pad as pad
from headrace.ops.array import rank as rank
from headrace.ops.array import reshape as reshape
from headrace.ops.array import shape as shape
from headrace.ops.array import size as size
from headrace.ops.array import split as split
from headrace.ops.array import squeeze as squeeze
from headrace.ops.array import stack as stack
from headrace.ops.array import stop_gradient as stop_gradient
from headrace.ops.array import tile as tile
from headrace.ops.array import transpose as transpose
from headrace.ops.array import unstack as unstack
from headrace.ops.constant import constant as constant
from headrace.ops.constant import fill as fill
from headrace.ops.constant import one_hot as one_hot
from headrace.ops.constant import ones as ones
from headrace.ops.constant import ones_like as ones_like
from headrace.ops.constant import placeholder as placeholder
from headrace.ops.constant import range as range
from headrace.ops.constant import zeros as zeros
from headrace.ops.constant import zeros_like as zeros_like
from headrace.ops.control import group as group
from headrace.ops.control import merge as merge
from headrace.ops.control import no_op as no_op
from headrace.ops.control import switch as switch
from headrace.ops.control import tuple_ as tuple
from headrace.ops.control import with_dependencies as with_dependencies
from headrace.ops.elementwise import absolute as abs
from headrace.ops.elementwise import add as add
from headrace.ops.elementwise import cast as cast
from headrace.ops.elementwise import cos as cos
from headrace.ops.elementwise import divide as divide
from headrace.ops.elementwise import equal as equal
from headrace.ops.elementwise import exp as exp
from headrace.ops.elementwise import floordiv as floordiv
from headrace.ops.elementwise import floormod as floormod
from headrace.ops.elementwise import floormod as mod
from headrace.ops.elementwise import greater as greater
from headrace.ops.elementwise import greater_equal as greater_equal
from headrace.ops.elementwise import less as less
from headrace.ops.elementwise import less_equal as less_equal
from headrace.ops.elementwise import log as log
from headrace.ops.elementwise import log1p as log1p
from headrace.ops.elementwise import logical_and as logical_and
from headrace.ops.elementwise import logical_not as logical_not
from headrace.ops.elementwise import logical_or as logical_or
from headrace.ops.elementwise import logical_xor as logical_xor
from headrace.ops.elementwise import maximum as maximum
from headrace.ops.elementwise import minimum as minimum
from headrace.ops.elementwise import multiply as multiply
from headrace.ops.elementwise import negative as negative
from headrace.ops.elementwise import not_equal as not_equal
from headrace.ops.elementwise import power as pow
from headrace.ops.elementwise import sigmoid as sigmoid
from headrace.ops.elementwise import sign as sign
from headrace.ops.elementwise import sin as sin
from headrace.ops.elementwise import sqrt as sqrt
from headrace.ops.elementwise import square as square
from headrace.ops.elementwise import subtract as subtract
from headrace.ops.elementwise import tanh as tanh
from headrace.ops.elementwise import truediv as truediv
from headrace.ops.elementwise import where as where
from headrace.ops.indexing import slice_ as slice
from headrace.ops.linalg import matmul as matmul
from headrace.ops.random import random_normal as random_normal
from headrace.ops.random import random_uniform as random_uniform
from headrace.ops.random import set_random_seed as set_random_seed
from headrace.ops.random import truncated_normal as truncated_normal
from headrace.ops.reduce import argmax as argmax
from headrace.ops.reduce import argmin as argmin
from headrace.ops.reduce import reduce_all as reduce_all
from headrace.ops.reduce import reduce_any as reduce_any
from headrace.ops.reduce import reduce_max as reduce_max
from headrace.ops.reduce import reduce_mean as reduce_mean
from headrace.ops.reduce import reduce_min as reduce_min
from headrace.ops.reduce import reduce_prod as reduce_prod
from headrace.ops.reduce import reduce_sum as reduce_sum
from headrace.ops.reduce import unsorted_segment_sum as unsorted_segment_sum
from headrace.ops.variable import Variable as Variable
from headrace.ops.variable import assign as assign
from headrace.ops.variable import assign_add as assign_add
from headrace.ops.variable import assign_sub as assign_sub
from headrace.ops.variable import global_variables as global_variables
from headrace.ops.variable import global_variables_initializer as global_variables_initializer
from headrace.ops.variable import is_variable_initialized as is_variable_initialized
from headrace.ops.variable import scatter_add as scatter_add
from headrace.ops.variable import scatter_sub as scatter_sub
from headrace.ops.variable import scatter_update as scatter_update
from headrace.ops.variable import trainable_variables as trainable_variables
from headrace.ops.variable import variables_initializer as variables_initializer
from headrace.plugins.host import host as _host
from headrace.runtime.containers import reset_containers as reset_containers
from headrace.session.config import Config as Config
from headrace.session.session import Session as Session
from headrace.shapes import Shape as Shape

if TYPE_CHECKING:
    # What official plugins add, for type checkers and editors; see the stub of this module.
    from headrace.plugins.names import *

__version__ = "0.1.0"


def __getattr__(name: str) -> Any:
    """Return a public name that a plugin adds."""
    if name.startswith("__"):
        raise AttributeError(name)
    value = _host().resolve_name(name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_host().names})
