"""Versions of graphs in messages: who may read one, and how older ones are read."""

from __future__ import annotations

from typing import Any

from headrace import GRAPH_DEF_VERSION
from headrace.errors import AttributeValueError

# Until here an empty shape of a placeholder said that nothing is known of it.
_SHAPELESS = 21


def check_versions(definition: Any) -> None:
    """Refuse a ``GraphDef`` that says that readers of this version do not understand it.

    Raises:
        AttributeValueError: if it does.
    """
    versions = definition.versions
    if versions.min_consumer > GRAPH_DEF_VERSION:
        raise AttributeValueError(
            f"the graph is for readers of version {versions.min_consumer} or later, and this one "
            f"is of version {GRAPH_DEF_VERSION}"
        )
    if versions.producer < 0:
        raise AttributeValueError(
            f"the graph was written in version {versions.producer}, and versions are >= 0"
        )
    if GRAPH_DEF_VERSION in versions.bad_consumers:
        raise AttributeValueError(f"the graph is not for readers of version {GRAPH_DEF_VERSION}")


def brought_up(definition: Any) -> Any:
    """Return a ``GraphDef`` in which what an old version left open is open as in this one."""
    if definition.versions.producer > _SHAPELESS or not any(map(_says_nothing, definition.node)):
        return definition
    made = type(definition)()
    made.CopyFrom(definition)
    for node in filter(_says_nothing, made.node):
        node.attr["shape"].shape.unknown_rank = True
    return made


def _says_nothing(node: Any) -> bool:
    """Whether a node is a placeholder of an empty shape."""
    return node.op == "Placeholder" and "shape" in node.attr and not node.attr["shape"].shape.dim
