"""Attributes of raw ops, from what a program gives."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import headrace as hr
from headrace.errors import ArgumentTypeError, UnimplementedError, shown
from headrace_io import protos
from headrace_io.graph_protos import attr_value_of
from headrace_io.raw_ops.table import Attribute
from headrace_io.tensor_protos import make_tensor_proto


def attribute(op: str, attr: Attribute, value: Any) -> Any:
    """Return the message of an attribute, with what a program gives for it.

    Args:
        op: The type of the op.
        attr: The attribute.
        value: What is given; None for the default.

    Raises:
        ArgumentTypeError: if it is of another kind, or None where there is no default.
        UnimplementedError: if it is a function.
    """
    if value is None and not attr.required:
        value = attr.default
    kind = attr.kind
    if kind in ("func", "list(func)"):
        raise UnimplementedError(f"raw_ops.{op} takes functions of a graph, which it has not here")
    try:
        if not kind.startswith("list("):
            return _message(kind, _KINDS[kind](value))
        if not isinstance(value, list | tuple):
            raise TypeError
        inner = kind[5:-1]
        return _message(kind, [_KINDS[inner](item) for item in value])
    except (TypeError, ValueError, OverflowError) as error:
        raise ArgumentTypeError(
            f"raw_ops.{op}: the argument {attr.name} must be of the type {kind}, got {shown(value)}"
        ) from error


def _message(kind: str, value: Any) -> Any:
    made = protos.AttrValue()
    if kind == "tensor":
        made.tensor.CopyFrom(make_tensor_proto(value))
    elif kind == "string":
        made.s = value
    elif kind == "float":
        made.f = value
    elif kind == "list(float)" and value:
        made.list.f.extend(value)
    elif isinstance(value, list) and not value:
        made.list.SetInParent()
    else:
        made.CopyFrom(attr_value_of(value))
    return made


def _int(value: Any) -> int:
    if isinstance(value, str | bytes):
        raise TypeError
    return int(value)


def _float(value: Any) -> float:
    if isinstance(value, str | bytes):
        raise TypeError
    return float(value)


def _bool(value: Any) -> bool:
    if not isinstance(value, bool | np.bool_):
        raise TypeError
    return bool(value)


def _string(value: Any) -> bytes:
    if not isinstance(value, str | bytes):
        raise TypeError
    return value.encode("utf-8") if isinstance(value, str) else value


def _same(value: Any) -> Any:
    if value is None:
        raise TypeError
    return value


_KINDS: dict[str, Callable[[Any], Any]] = {
    "int": _int,
    "float": _float,
    "bool": _bool,
    "string": _string,
    "type": lambda value: hr.as_dtype(_same(value)),
    "shape": hr.Shape,
    "tensor": _same,
}
