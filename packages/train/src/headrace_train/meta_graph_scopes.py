"""Parts of graphs in ``MetaGraphDef`` messages: what a name scope holds, and what it takes."""

from __future__ import annotations

from typing import Any

import headrace as hr
from headrace.errors import AttributeValueError, listing
from headrace_io import protos
from headrace_io.protos.convert import as_message

_SAVERS = hr.GraphKeys.SAVERS
# The collection of the names of what a scope takes from outside, and how these begin.
_UNBOUND = "unbound_inputs"


def keep_scope(message: Any, scope: str) -> None:
    """Leave of a ``MetaGraphDef`` what is in a scope, under names without it.

    Raises:
        AttributeValueError: if nothing is in the scope.
    """
    prefix = f"{scope}/"
    nodes = [node for node in message.graph_def.node if node.name.startswith(prefix)]
    if not nodes:
        raise AttributeValueError(f"the graph has nothing in the scope {scope!r}")
    outside = [
        _without(name, prefix)
        for node in nodes
        for name in node.input
        if not name.startswith(("^", prefix))
    ]
    kept = protos.GraphDef()
    kept.versions.CopyFrom(message.graph_def.versions)
    kept.library.CopyFrom(message.graph_def.library)
    for node in nodes:
        made = kept.node.add()
        made.CopyFrom(node)
        made.name = node.name.removeprefix(prefix)
        del made.input[:]
        made.input.extend(_without(name, prefix) for name in node.input)
        if "_class" in made.attr:
            places = made.attr["_class"].list
            names = [item.decode().removeprefix("loc:@") for item in places.s]
            del places.s[:]
            places.s.extend(
                f"loc:@{n.removeprefix(prefix)}".encode() for n in names if n.startswith(prefix)
            )
    message.graph_def.CopyFrom(kept)
    for key in list(message.collection_def):
        collection = message.collection_def[key]
        kind = collection.WhichOneof("kind")
        if kind == "node_list":
            names = [n for n in collection.node_list.value if n.startswith(prefix)]
            del collection.node_list.value[:]
            collection.node_list.value.extend(n.removeprefix(prefix) for n in names)
        elif key == _SAVERS:
            _keep_savers(collection.bytes_list, scope)
        elif kind == "bytes_list":
            _keep_variables(collection.bytes_list, prefix)
    if outside:
        message.collection_def[_UNBOUND].bytes_list.value.extend(name.encode() for name in outside)


def _keep_savers(values: Any, scope: str) -> None:
    """Leave those of the savers in a collection that are in a scope, without it."""
    # lazy: the saver writes graphs with functions of this module
    from headrace_train.saver.definition import unscoped

    found = [unscoped(as_message("SaverDef", value, "a saver"), scope) for value in values.value]
    del values.value[:]
    values.value.extend(each.SerializeToString() for each in found if each is not None)


def _keep_variables(values: Any, prefix: str) -> None:
    """Leave those of the variables in a collection that are in a scope, without it."""
    kept = []
    for value in values.value:
        try:
            found = protos.VariableDef.FromString(value)
        except Exception:
            kept.append(value)
            continue
        if not found.variable_name.endswith(":0"):
            kept.append(value)
        elif found.variable_name.startswith(prefix):
            for field in (
                "variable_name",
                "initial_value_name",
                "initializer_name",
                "snapshot_name",
            ):
                setattr(found, field, getattr(found, field).removeprefix(prefix))
            kept.append(found.SerializeToString())
    del values.value[:]
    values.value.extend(kept)


def _without(name: str, prefix: str) -> str:
    """Return the name of an input without its scope; of one from outside what calls it unbound."""
    mark = "^" if name.startswith("^") else ""
    plain = name.removeprefix("^")
    if plain.startswith(prefix):
        return mark + plain.removeprefix(prefix)
    return f"{mark}${_UNBOUND}_{plain}"


def check_bound(message: Any, input_map: Any) -> None:
    """Refuse a graph that takes what nothing is given for, and forget what it takes.

    Raises:
        AttributeValueError: if ``input_map`` lacks some of what it takes from outside.
    """
    if _UNBOUND not in message.collection_def:
        return
    names = [value.decode() for value in message.collection_def[_UNBOUND].bytes_list.value]
    given = {n.decode() if isinstance(n, bytes) else n for n in input_map or ()}
    lacking = sorted(set(names) - given)
    if lacking:
        raise AttributeValueError(
            f"the graph takes what is not in it: {listing(map(repr, lacking))}; give tensors for "
            "these in input_map"
        )
    del message.collection_def[_UNBOUND]
