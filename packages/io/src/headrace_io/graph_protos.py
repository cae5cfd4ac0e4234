"""Graphs as messages (``GraphDef``, ``NodeDef``, ``MetaGraphDef``), for tools that read these.

Operations keep their types, names, devices and attributes. Types and attributes that Headrace has
and TensorFlow does not have are written as they are: tools draw and list such graphs, and only
Headrace runs them.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from headrace import GRAPH_DEF_VERSION, DType, Graph, Operation, Shape, Tensor
from headrace.errors import GraphError
from headrace.extend.graphs import (
    MAX_NESTED,
    Function,
    encode_attribute,
    functions_in,
    nested_deeper,
)
from headrace.extend.ops import REQUIRED, TensorSpec
from headrace_io import protos
from headrace_io.dtype_protos import number_of, shape_proto
from headrace_io.tensor_protos import make_tensor_proto

_INT64 = range(-(2**63), 2**63)
# What the ends of edges inside functions are called.
_OUTPUT = "output"


def graph_def_of(graph: Graph, *, shapes: bool = False, from_version: int | None = None) -> Any:
    """Return a graph as a ``GraphDef``, with the functions that its operations hold.

    Args:
        graph: The graph.
        shapes: Whether each node has the shapes of its outputs as the attribute
            ``_output_shapes``.
        from_version: Leaves out the operations that the graph had when ``graph.version`` was this.

    Raises:
        GraphError: if functions are nested deeper than would be read.
    """
    made = protos.GraphDef()
    made.versions.producer = GRAPH_DEF_VERSION
    for op in graph.operations[from_version or 0 :]:
        _fill_node(made.node.add(), op, _name_in_graph, shapes)
    functions = functions_in(graph)
    deep = nested_deeper(functions)
    if deep is not None:
        raise GraphError(
            f"{deep.name!r} nests functions more than {MAX_NESTED} deep, and would not be read "
            "again; repeat with hr.while_loop instead"
        )
    for function in functions:
        _fill_function(made.library.function.add(), function, shapes)
    return made


def node_def_of(op: Operation) -> Any:
    """Return an operation as a ``NodeDef``."""
    made = protos.NodeDef()
    _fill_node(made, op, _name_in_graph, shapes=False)
    return made


def attr_value_of(value: Any) -> Any:
    """Return an attribute's value as an ``AttrValue``.

    What messages have no form for, such as tuples of tuples, is the text that graph documents
    have for it.
    """
    made = protos.AttrValue()
    if isinstance(value, tuple | list):
        if not _fill_list(made.list, value):
            made.s = _text_of(value)
        return made
    field = _field_of(value)
    if field == "tensor":
        made.tensor.CopyFrom(make_tensor_proto(value))
    elif field == "shape":
        made.shape.CopyFrom(shape_proto(value))
    elif field == "func":
        made.func.name = value.name
    elif field:
        setattr(made, field, _plain(value))
    else:
        made.s = _text_of(value)
    return made


def _fill_node(node: Any, op: Operation, named: Any, shapes: bool) -> None:
    node.name, node.op, node.device = op.name, op.type, str(op.device_name)
    node.input.extend(named(tensor) for tensor in op.inputs)
    # What an operation takes it waits for anyway.
    taken = {tensor.op for tensor in op.inputs}
    node.input.extend(f"^{other.name}" for other in op.control_inputs if other not in taken)
    for param in op.schema.attrs:
        name, value = param.name, op.attrs[param.name]
        if isinstance(value, TensorSpec) and value.content is None:
            node.attr[name].CopyFrom(attr_value_of(value.shape))
            node.attr[f"{name}_dtype"].CopyFrom(attr_value_of(value.dtype))
        elif value is not None:
            node.attr[name].CopyFrom(attr_value_of(value))
        elif param.default is not REQUIRED and param.default is not None:
            # Left out, it would be the default.
            node.attr[name].s = _text_of(None)
    dtype = _common_dtype(op)
    if dtype is not None and "T" not in op.attrs:
        node.attr["T"].type = number_of(dtype)
    if op.type == "Cast":
        node.attr["SrcT"].type = number_of(op.inputs[0].dtype)
        node.attr["DstT"].type = number_of(op.outputs[0].dtype)
    if op.type == "Const":
        node.attr["dtype"].type = number_of(op.outputs[0].dtype)
    if op.colocated_with:
        places = [f"loc:@{other.name}".encode() for other in op.colocated_with]
        node.attr["_class"].list.s.extend(places)
    if sum(param.variadic or param.optional for param in op.schema.inputs) > 1:
        node.attr["_arity"].list.i.extend(op.arity)
    if op.gradient_rule:
        node.attr["_gradient_op_type"].s = op.gradient_rule.encode()
    if op.copy_of:
        node.attr["_copy_of"].s = op.copy_of.encode()
    if shapes and op.outputs:
        found = node.attr["_output_shapes"].list.shape
        found.extend(shape_proto(tensor.spec.shape) for tensor in op.outputs)


def _common_dtype(op: Operation) -> DType | None:
    """Return the dtype that inputs have in common by the op's declaration, TensorFlow's ``T``."""
    for param, given in zip(op.schema.inputs, op.grouped_inputs, strict=True):
        tensors = given if isinstance(given, list) else [given]
        if param.kind.unify and tensors and tensors[0] is not None:
            found: DType = tensors[0].dtype
            return found
    return None


def _fill_function(made: Any, function: Function, shapes: bool) -> None:
    arguments = {tensor: f"arg{i}" for i, tensor in enumerate(function.parameters)}
    signature = made.signature
    signature.name = function.name
    signature.is_stateful = function.stateful
    # Arguments have a dtype alone.
    specs = tuple(tensor.op.attrs["spec"] for tensor in function.parameters)
    made.attr["_parameters"].s = _text_of(specs)
    names = [tensor.op.name.encode() for tensor in function.parameters]
    made.attr["_parameter_names"].list.s.extend(names)
    if function.effects:
        made.attr["_effects"].list.s.extend(op.name.encode() for op in function.effects)
    for tensor, name in arguments.items():
        signature.input_arg.add(name=name, type=number_of(tensor.dtype))

    def named(tensor: Tensor) -> str:
        return arguments.get(tensor) or f"{tensor.op.name}:{_OUTPUT}:{tensor.index}"

    for op in function.operations:
        if op.type != "Parameter":
            _fill_node(made.node_def.add(), op, named, shapes)
    for i, tensor in enumerate(function.results):
        signature.output_arg.add(name=f"result{i}", type=number_of(tensor.dtype))
        made.ret[f"result{i}"] = named(tensor)


def _name_in_graph(tensor: Tensor) -> str:
    return tensor.name if tensor.index else tensor.op.name


def _field_of(value: Any) -> str:
    """Return the field of an ``AttrValue`` for a value, empty where there is none."""
    if isinstance(value, bool):
        return "b"
    if isinstance(value, int):
        return "i" if value in _INT64 else ""
    if isinstance(value, float) and not _is_short(value):
        return ""
    kinds: tuple[tuple[Any, str], ...] = (
        (float, "f"),
        ((str, bytes), "s"),
        (DType, "type"),
        (Shape, "shape"),
        (np.ndarray, "tensor"),
        (Function, "func"),
    )
    return next((field for kind, field in kinds if isinstance(value, kind)), "")


def _is_short(value: float) -> bool:
    """Whether a number is found again from its nearest float32, which messages hold."""
    with np.errstate(over="ignore"):
        return value != value or float(str(np.float32(value))) == value


def _fill_list(made: Any, values: Iterable[Any]) -> bool:
    """Fill in a list of values of one kind; whether there is a form for it."""
    given = list(values)
    fields = {_field_of(value) for value in given}
    if fields == {"i", "f"}:
        fields, given = {"f"}, [float(value) for value in given]
    if len(fields) > 1 or "" in fields:
        return False
    made.SetInParent()
    for field in fields:
        found = getattr(made, field)
        if field == "tensor":
            found.extend(make_tensor_proto(value) for value in given)
        elif field == "shape":
            found.extend(shape_proto(value) for value in given)
        elif field == "func":
            found.extend(protos.NameAttrList(name=value.name) for value in given)
        else:
            found.extend(_plain(value) for value in given)
    return True


def _plain(value: Any) -> Any:
    if isinstance(value, DType):
        return number_of(value)
    return _bytes(value) if isinstance(value, str | bytes) else value


def _bytes(value: str | bytes) -> bytes:
    return value.encode() if isinstance(value, str) else value


def _text_of(value: Any) -> bytes:
    # lazy: few attributes need it
    import json

    return json.dumps(encode_attribute(value), separators=(",", ":")).encode()
