"""The door for plugin packages: everything that they import from core besides ``headrace`` itself.

The names of this module are those that most plugins need. The modules beside it have the rest:

* ``ops``: declaring ops;
* ``kernels``: tables of kernels, and what kernels get;
* ``gradients``, ``primitives``: gradient rules, and ops without a public name to write them with;
* ``arguments``: reading what Python values must be;
* ``state``: containers, resources, random streams, cancellation;
* ``devices``: kinds of devices, and what a device that compiles gets and returns;
* ``graphs``: tensors, operations, functions, scopes;
* ``documents``: graphs written down, read again, and copied into others;
* ``scalars``: what elementwise ops compute of each element, for devices that compile;
* ``passes``: rewriting steps, and rules of the simplifier;
* ``runtime``: runtimes behind session targets;
* ``records``: frozen dataclasses with slots, which are made quickly;
* ``files``: files that nobody else may have written, such as compiled code;
* ``settings``, ``plugins``: settings, hooks and registries;
* ``translations``: reading ops of TensorFlow's graphs;
* ``functions``: what programs can call, and what of it are ops;
* ``deprecation``: names that go away;
* ``regex``: the syntax that ops on strings share.

The packages of Headrace import nothing else from core either, which a contract test holds.
"""

from headrace.device_name import DeviceName
from headrace.dtypes import DType
from headrace.errors import HeadraceError
from headrace.graph.indexed_slices import IndexedSlices
from headrace.graph.operation import Operation
from headrace.graph.schema import OPS
from headrace.graph.spec import TensorSpec, as_shape
from headrace.graph.tensor import Tensor
from headrace.ops.declare import Spec, op, require
from headrace.ops.kinds import (
    Anything,
    Bool,
    Floating,
    Index,
    Inexact,
    Integer,
    Numeric,
    Real,
    Resource,
    Same,
    String,
    TensorList,
    Value,
)
from headrace.plugins.contract import API_VERSION
from headrace.plugins.hookspecs import hookimpl
from headrace.plugins.registries.commands import CommandRegistry
from headrace.plugins.registries.devices import DeviceRegistry
from headrace.plugins.registries.gradients import GradientRegistry
from headrace.plugins.registries.kernels import KernelRegistry
from headrace.plugins.registries.names import NameRegistry
from headrace.plugins.registries.settings import SettingRegistry
from headrace.plugins.registries.targets import TargetRegistry
from headrace.plugins.tables import GradientTable, KernelTable
from headrace.runtime.devices.device import Device
from headrace.runtime.state.session_state import KernelContext
from headrace.runtime.state.tensor_list import ListValue
from headrace.shapes import Shape

__all__ = [
    "API_VERSION",
    "OPS",
    "Anything",
    "Bool",
    "CommandRegistry",
    "DType",
    "Device",
    "DeviceName",
    "DeviceRegistry",
    "Floating",
    "GradientRegistry",
    "GradientTable",
    "HeadraceError",
    "Index",
    "IndexedSlices",
    "Inexact",
    "Integer",
    "KernelContext",
    "KernelRegistry",
    "KernelTable",
    "ListValue",
    "NameRegistry",
    "Numeric",
    "Operation",
    "Real",
    "Resource",
    "Same",
    "SettingRegistry",
    "Shape",
    "Spec",
    "String",
    "TargetRegistry",
    "Tensor",
    "TensorList",
    "TensorSpec",
    "Value",
    "as_shape",
    "hookimpl",
    "op",
    "require",
]
