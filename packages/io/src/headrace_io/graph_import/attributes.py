"""Attributes from messages, by what the declarations of ops say that they are."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import numpy as np

from headrace import Shape
from headrace.errors import DocumentError, shown
from headrace.extend.graphs import Function, attribute_fits, decode_attribute
from headrace.extend.ops import REQUIRED, AttrParam, OpSchema, TensorSpec
from headrace_io.dtype_protos import dtype_of, shape_of
from headrace_io.tensor_protos import make_ndarray

# Of nodes, besides what ops declare: what follows from inputs, or from the value of a constant.
_IMPLIED = frozenset(("T", "dtype", "N", "SrcT", "DstT"))


def unknown_attributes(node: Any, schema: OpSchema) -> list[str]:
    """Return the attributes of a node that its op does not have."""
    known = {param.name for param in schema.attrs}
    known |= {f"{name}_dtype" for name in known} | _IMPLIED
    return sorted(name for name in node.attr if name not in known and not name.startswith("_"))


def read_attributes(
    node: Any, schema: OpSchema, functions: Mapping[str, Function]
) -> dict[str, Any]:
    """Return the attributes of a node as the rule of its op takes them.

    Raises:
        DocumentError: if one is missing or of another type.
    """
    return {param.name: _attribute(node, param, functions) for param in schema.attrs}


def _attribute(node: Any, param: AttrParam, functions: Mapping[str, Function]) -> Any:
    if param.name not in node.attr:
        # None has no form, and stands nowhere.
        if param.default is not REQUIRED:
            return param.read(param.default)
        if attribute_fits(None, param.hint):
            return None
        raise DocumentError(f"the attribute {param.name!r} is missing")
    given = node.attr[param.name]
    other = f"{param.name}_dtype"
    if given.WhichOneof("value") == "shape" and other in node.attr:
        found: Any = TensorSpec(dtype_of(node.attr[other].type), shape_of(given.shape))
    else:
        found = attribute_value(given, param.hint, functions)
    if not attribute_fits(found, param.hint):
        raise DocumentError(f"the attribute {param.name!r} cannot be {shown(found, 60)}")
    return found


def attribute_value(
    given: Any, hint: Any = Any, functions: Mapping[str, Function] | None = None
) -> Any:
    """Return the value that an ``AttrValue`` holds.

    Args:
        given: The message.
        hint: The type that is expected, which tells texts, bytes and other things apart.
        functions: The functions that are known by name.

    Raises:
        DocumentError: if there is no such value.
    """
    kind = given.WhichOneof("value")
    known = functions or {}
    if kind == "list":
        return _list_value(given.list, hint, known)
    if kind is None or kind == "placeholder":
        raise DocumentError("an attribute has no value")
    return _single(kind, getattr(given, kind), hint, known)


def _list_value(given: Any, hint: Any, functions: Mapping[str, Function]) -> tuple[Any, ...]:
    for field, items in given.ListFields():
        values = tuple(_single(field.name, item, None, functions) for item in items)
        if field.name == "s" and not attribute_fits(values, hint):
            return tuple(value.decode("utf-8", "surrogateescape") for value in values)
        return values
    return ()


def _single(kind: str, value: Any, hint: Any, functions: Mapping[str, Function]) -> Any:
    if kind == "s":
        return _text(value, hint) if hint is not None else value
    if kind == "f":
        # The shortest decimal that has the same float32: what a program wrote.
        return float(str(np.float32(value)))
    if kind == "type":
        return dtype_of(value)
    if kind == "shape":
        shape: Shape = shape_of(value)
        return shape
    if kind == "tensor":
        array = make_ndarray(value)
        array.flags.writeable = False
        return array
    if kind == "func":
        if value.name not in functions:
            raise DocumentError(f"no function {shown(value.name, 60)} comes before it")
        return functions[value.name]
    return value


def _text(value: bytes, hint: Any) -> Any:
    """Return a text, bytes, or what documents write as JSON."""
    try:
        text = value.decode("utf-8")
    except UnicodeDecodeError:
        return value
    if attribute_fits(text, hint):
        return _pairs(text, hint) or text
    return value if attribute_fits(value, hint) else document_value(text)


def _pairs(text: str, hint: Any) -> Any:
    """Return the tuple that a text is where an attribute may be either, such as a padding."""
    if hint is Any or not text.startswith("["):
        return None
    try:
        found = document_value(text)
    except DocumentError:
        return None
    return found if isinstance(found, tuple) and attribute_fits(found, hint) else None


def document_value(text: str, functions: Mapping[str, Function] | None = None) -> Any:
    """Return the value of which a text is the form in graph documents.

    Raises:
        DocumentError: if it is none.
    """
    try:
        data = json.loads(text)
    except (ValueError, RecursionError):
        raise DocumentError(f"{text[:60]!r} is no value of an attribute") from None
    return decode_attribute(data, functions=functions or {})
