"""Telling graphs that TensorFlow wrote from those that Headrace wrote."""

from __future__ import annotations

from typing import Any, Literal

from headrace.extend.ops import OPS
from headrace.extend.plugins import host

Origin = Literal["headrace", "tensorflow", "either"]


def origin_of(graph_def: Any) -> Origin:
    """Return whose ops a ``GraphDef`` holds.

    Both have ops of the same names, which may differ in what they take. An op that one of them
    alone has tells whose the graph is.

    Args:
        graph_def: The message.
    """
    functions = graph_def.library.function
    kinds = {node.op for node in graph_def.node}
    kinds |= {node.op for function in functions for node in function.node_def}
    kinds -= {function.signature.name for function in functions}
    ours = {kind for kind in kinds if OPS.get(kind) is not None}
    rows = host().translations
    theirs = {kind for kind in kinds if rows.get(kind) is not None}
    if len(theirs - ours) > len(ours - theirs):
        return "tensorflow"
    if ours - theirs:
        return "headrace"
    return "either" if theirs else "headrace"
