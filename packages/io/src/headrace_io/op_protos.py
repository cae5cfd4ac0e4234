"""Declarations of ops as messages (``OpDef``), for tools that read these."""

from __future__ import annotations

from typing import Any

import numpy as np

from headrace import DType, Operation, Shape
from headrace.extend.graphs import Function
from headrace.extend.ops import ALL_DTYPES, REQUIRED, Kind
from headrace_io import protos
from headrace_io.dtype_protos import number_of
from headrace_io.graph_protos import attr_value_of

# What the type of an attribute is called; what is none of these is written as a text.
_TYPES: dict[Any, str] = {
    bool: "bool",
    int: "int",
    float: "float",
    str: "string",
    DType: "type",
    Shape: "shape",
    np.ndarray: "tensor",
    Function: "func",
}
# The attribute that is the number of tensors where an op takes any number.
_COUNT = "N"


def op_def_of(op: Operation) -> Any:
    """Return what is declared of an operation's op as an ``OpDef``.

    Inputs have their names, and a dtype, or the attribute that is it: ``T`` for all whose dtypes
    have to agree. Outputs are called ``output``, ``output_1``, and so on, with the dtypes that the
    outputs of this operation have: Headrace's ops compute these by a rule.
    """
    schema = op.schema
    made = protos.OpDef(name=op.type)
    made.is_stateful = bool(schema.effects)
    made.is_commutative = schema.commutative
    types: dict[str, list[DType]] = {}
    for param in schema.inputs:
        argument = made.input_arg.add(name=param.name)
        accepted = _accepted(param.kind)
        if len(accepted) == 1:
            argument.type = number_of(accepted[0])
        else:
            name = "T" if param.kind.unify else f"T{param.name}"
            argument.type_attr = name
            types.setdefault(name, accepted)
        if param.variadic:
            argument.number_attr = _COUNT
    for i, tensor in enumerate(op.outputs):
        name = f"output_{i}" if i else "output"
        made.output_arg.add(name=name, type=number_of(tensor.dtype))
    for name, accepted in types.items():
        attr = made.attr.add(name=name, type="type")
        attr.allowed_values.list.type.extend(number_of(dtype) for dtype in accepted)
    if any(param.variadic for param in schema.inputs):
        made.attr.add(name=_COUNT, type="int", has_minimum=True, minimum=1)
    for attribute in schema.attrs:
        attr = made.attr.add(name=attribute.name, type=_TYPES.get(attribute.hint, "string"))
        if attribute.default is not REQUIRED and attribute.default is not None:
            attr.default_value.CopyFrom(attr_value_of(attribute.default))
    return made


def _accepted(kind: Kind) -> list[DType]:
    return [dtype for dtype in ALL_DTYPES if kind.accepts(dtype)]
