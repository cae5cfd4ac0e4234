"""Leaving the ops of other savers out of a graph that is written."""

from __future__ import annotations

from typing import Any

_TYPES = frozenset(("SaveV2", "RestoreV2"))


def leave_out_other_savers(message: Any) -> None:
    """Leave of the savers of a ``MetaGraphDef`` the one that it names, if it names one.

    The ops of a saver are all that is in its name scope, as in TensorFlow.

    Args:
        message: The message, which is changed: nodes go, and so do savers in collections.
    """
    kept = set()
    if message.HasField("saver_def"):
        saver = message.saver_def
        kept = {_scope(saver.save_tensor_name), _scope(saver.restore_op_name)}
    nodes = list(message.graph_def.node)
    saving = {_scope(node.name) for node in nodes if node.op in _TYPES}
    others = tuple(f"{scope}/" for scope in saving - kept if scope)
    del message.graph_def.node[:]
    message.graph_def.node.extend(node for node in nodes if not node.name.startswith(others))
    if "savers" in message.collection_def:
        values = message.collection_def["savers"].bytes_list
        del values.value[:]
        if kept:
            values.value.append(message.saver_def.SerializeToString())
    for key in list(message.collection_def):
        collection = message.collection_def[key]
        if collection.WhichOneof("kind") == "node_list":
            names = [n for n in collection.node_list.value if not n.startswith(others)]
            del collection.node_list.value[:]
            collection.node_list.value.extend(names)


def _scope(name: str) -> str:
    return name.partition(":")[0].rpartition("/")[0]
