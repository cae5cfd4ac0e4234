"""Graphs as text: one line per operation."""

from __future__ import annotations

from pathlib import PurePath
from typing import Any

import numpy as np

from headrace.errors import HeadraceError
from headrace.graph.attributes import FunctionValue
from headrace.graph.function import functions_in
from headrace.graph.graph import Graph
from headrace.graph.operation import Operation
from headrace.graph.schema import AttrParam

# Arrays of more elements are shown by dtype and shape alone.
_SHOWN_ELEMENTS = 6
_SHOWN_CHARACTERS = 60


def to_text(graph: Graph, *, limit: int | None = None) -> str:
    """Return a graph as readable text.

    A line reads ``name = Type(inputs, attribute=value) after control inputs -> outputs @device
    # file:line``; attributes that have their default, and whatever is empty, are left out.

    Args:
        graph: The graph.
        limit: How many operations to show at most; all if None.
    """
    operations = graph.operations
    shown = operations if limit is None else operations[:limit]
    lines = [_summary(graph, len(operations)), *map(describe, shown)]
    if len(shown) < len(operations):
        lines.append(f"... and {len(operations) - len(shown)} more operations")
    for function in functions_in(graph) if limit is None else ():
        given = ", ".join(t.op.name for t in function.parameters)
        lines += ["", f"function {function.name}({given}):"]
        inner = [op for op in function.operations if op.type != "Parameter"]
        lines += [f"  {describe(op)}" for op in inner]
        lines.append(f"  return {', '.join(t.name for t in function.results)}")
    return "\n".join(lines)


def _summary(graph: Graph, count: int) -> str:
    parts = [f"graph of {count} operation{'' if count == 1 else 's'}"]
    if graph.variables:
        parts.append(f"{len(graph.variables)} variable{'' if len(graph.variables) == 1 else 's'}")
    if graph.seed is not None:
        parts.append(f"seed {graph.seed}")
    return ", ".join(parts)


def describe(op: Operation) -> str:
    """Return an operation's line."""
    arguments = [*_inputs(op), *attributes(op)]
    text = f"{op.name} = {op.type}({', '.join(arguments)})"
    if op.control_inputs:
        text += f" after {', '.join(c.name for c in op.control_inputs)}"
    if op.outputs:
        text += f" -> {', '.join(str(t.spec) for t in op.outputs)}"
    if asked := str(op.device_name):
        text += f" @{asked}"
    if op.site.line:
        text += f"  # {PurePath(op.site.filename).name}:{op.site.line}"
    # A name or an attribute may hold line breaks; an operation is one line all the same.
    return "".join(c if c.isprintable() else repr(c)[1:-1] for c in text)


def _inputs(op: Operation) -> list[str]:
    found = []
    for param, given in zip(op.schema.inputs, op.grouped_inputs, strict=True):
        if param.variadic:
            found.append(f"[{', '.join(t.name for t in given)}]")
        elif given is not None:
            found.append(given.name)
    return found


def attributes(op: Operation) -> list[str]:
    """Return an operation's attributes as ``name=value``, without those that are the default."""
    return [
        f"{param.name}={brief_value(op.attrs[param.name])}"
        for param in op.schema.attrs
        if not _is_default(param, op.attrs[param.name])
    ]


def _is_default(param: AttrParam, value: Any) -> bool:
    try:
        default = param.read(param.default)
    except HeadraceError:
        return False  # it has none
    return type(default) is type(value) and repr(default) == repr(value)


def brief_value(value: Any) -> str:
    """Return an attribute's value in a few characters."""
    if isinstance(value, FunctionValue):
        return value.name
    if isinstance(value, np.ndarray):
        kind = "string" if value.dtype == object else str(value.dtype)
        if value.size > _SHOWN_ELEMENTS:
            return f"{kind}[{', '.join(map(str, value.shape))}]"
        text = np.array2string(value, separator=", ", threshold=_SHOWN_ELEMENTS, precision=6)
        text = " ".join(text.split())
        return text if len(text) <= _SHOWN_CHARACTERS else f"{kind}{list(value.shape)}"
    text = repr(value) if isinstance(value, str | bytes) else str(value)
    if isinstance(value, tuple):
        text = "(" + ", ".join(map(brief_value, value)) + ("," if len(value) == 1 else "") + ")"
    return text if len(text) <= _SHOWN_CHARACTERS else text[: _SHOWN_CHARACTERS - 3] + "..."
