"""The names of layers: what is given, or that of the class with a number."""

from __future__ import annotations

import re
from typing import Any

import headrace as hr
from headrace.extend.graphs import get_default_graph

# A key that is no name, as those of collections are: how many layers of each class a graph has.
_COUNTS = ("layer_names",)


def names_of(layer: object, name: Any) -> tuple[str, str]:
    """Return a layer's name, and what its variable scope is called where that is free.

    Args:
        layer: The layer.
        name: A name, a variable scope, or None for one that is made.
    """
    own = snake_case(type(layer).__name__)
    if name and not isinstance(name, hr.VariableScope):
        return name, name
    kept = get_default_graph().outermost.get_collection_ref(_COUNTS)
    if not kept:
        kept.append({})
    counts: dict[str, int] = kept[0]
    counts[own] = counts.get(own, 0) + 1
    return f"{own}_{counts[own]}", name.name if name else own


def snake_case(name: str) -> str:
    """Return the name of a class in lower case, with underscores between its words."""
    words = re.sub(r"(.)([A-Z][a-z0-9]+)", r"\1_\2", name)
    words = re.sub(r"([a-z])([A-Z])", r"\1_\2", words).lower()
    return f"private{words}" if words.startswith("_") else words
