"""Attributes of operations by the names that TensorFlow has for them."""

from __future__ import annotations

from typing import Any

from headrace import Operation
from headrace.errors import NoSuchElementError, UnimplementedError, shown
from headrace_io import protos
from headrace_io.dtype_protos import dtype_of, shape_of
from headrace_io.graph_export.node import ExportedNode
from headrace_io.graph_protos import node_def_of

_KINDS = ("s", "i", "f", "b", "type", "shape")


def attribute_of(op: Operation, name: str) -> Any:
    """Return an attribute that TensorFlow's graphs have, and Headrace's need not have.

    Args:
        op: An operation.
        name: What TensorFlow calls the attribute, such as ``"T"``.

    Returns:
        A dtype, shape, number or bytes, or a list of such.

    Raises:
        NoSuchElementError: if neither the node that stands for it in a graph of TensorFlow's ops
            nor its ``node_def`` has such an attribute.
    """
    # Messages hold no halves of surrogate pairs.
    if name.isprintable():
        for node in (_written(op), node_def_of(op)):
            if node is not None and name in node.attr:
                return _plain(node.attr[name])
    raise NoSuchElementError(f"{op.type} has no attribute {shown(name)}, nor has TensorFlow's op")


def _written(op: Operation) -> Any:
    """Return the node of TensorFlow's op that stands for an operation; None where none does."""
    # lazy: programs that ask for no such attribute need no table
    from headrace_io.graph_export.table import RULES

    if op.type not in RULES:
        return None
    made = protos.GraphDef()
    inputs = [tensor.name.removesuffix(":0") for tensor in op.inputs]
    try:
        RULES[op.type](ExportedNode(op, inputs, made, {op.name}))
    except UnimplementedError:
        return None
    return next((node for node in made.node if node.name == op.name), None)


def _plain(value: Any) -> Any:
    kind = value.WhichOneof("value")
    if kind == "list":
        filled = next((key for key in _KINDS if len(getattr(value.list, key))), "s")
        return [_element(filled, item) for item in getattr(value.list, filled)]
    return _element(kind, getattr(value, kind))


def _element(kind: str, value: Any) -> Any:
    if kind == "type":
        return dtype_of(value)
    return shape_of(value) if kind == "shape" else value
