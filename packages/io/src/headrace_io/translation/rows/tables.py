"""Translations of lookup tables and of queues."""

from __future__ import annotations

from typing import Any

from headrace import Shape
from headrace.errors import DocumentError
from headrace.extend.ops import call_op
from headrace.extend.translations import TranslationTable
from headrace_io.translation.values import QueueHandle

ROWS = TranslationTable()

_MUTABLE = (
    *("MutableHashTable", "MutableHashTableV2"),
    *("MutableHashTableOfTensors", "MutableHashTableOfTensorsV2"),
)


@ROWS.add("HashTable", "HashTableV2", *_MUTABLE, ignored="use_node_name_sharing")
def _table(node: Any) -> Any:
    return call_op(
        "LookupTable",
        key_dtype=node.attr("key_dtype"),
        value_dtype=node.attr("value_dtype"),
        value_shape=node.attr("value_shape", Shape(())),
        kind="mutable" if node.op in _MUTABLE else "static",
        reserved=(),
        container=node.text("container"),
        shared_name=node.text("shared_name") or node.name,
    )


@ROWS.add("InitializeTable", "InitializeTableV2", "LookupTableImport", "LookupTableImportV2")
def _initialize(node: Any) -> Any:
    table = node.handle(0)
    changes = table.op.attrs.get("kind") == "mutable"
    name = "LookupTableInsert" if changes else "LookupTableInitialize"
    return call_op(name, table, *node.tensors[1:])


@ROWS.add("InitializeTableFromTextFile", "InitializeTableFromTextFileV2")
def _initialize_from_file(node: Any) -> Any:
    return call_op(
        "LookupTableInitializeFromFile",
        node.handle(0),
        node.tensor(1),
        key_index=node.attr("key_index"),
        value_index=node.attr("value_index"),
        vocab_size=node.attr("vocab_size", -1),
        delimiter=node.text("delimiter", "\t"),
    )


@ROWS.add(
    "LookupTableFind",
    "LookupTableFindV2",
    "LookupTableInsert",
    "LookupTableInsertV2",
    "LookupTableSize",
    "LookupTableSizeV2",
    "LookupTableRemoveV2",
)
def _of_table(node: Any) -> Any:
    return call_op(node.op.removesuffix("V2"), node.handle(0), *node.tensors[1:])


@ROWS.add("LookupTableExport", "LookupTableExportV2", outputs="keys values")
def _export(node: Any) -> Any:
    table = node.handle(0)
    return list(
        call_op(
            "LookupTableExport",
            table,
            key_dtype=node.attr("Tkeys"),
            value_dtype=node.attr("Tvalues"),
            value_shape=table.op.attrs.get("value_shape", Shape(None)),
        )
    )


_QUEUES = ("FIFOQueue", "PaddingFIFOQueue", "PriorityQueue", "RandomShuffleQueue")


@ROWS.add(*(name + last for name in _QUEUES for last in ("", "V2")))
def _queue(node: Any) -> Any:
    kind = node.op.removesuffix("V2")
    types = tuple(node.attr("component_types", ()))
    shapes = tuple(node.attr("shapes", ()))
    extra: dict[str, Any] = {}
    if kind == "RandomShuffleQueue":
        seeds = (node.attr("seed", 0), node.attr("seed2", 0))
        extra["seeds"] = seeds if any(seeds) else None
        extra["min_after_dequeue"] = node.attr("min_after_dequeue", 0)
    handle = call_op(
        kind,
        capacity=node.attr("capacity", -1),
        component_types=types,
        shapes=shapes or tuple(Shape(None) for _ in types),
        container=node.text("container"),
        shared_name=node.text("shared_name") or node.name,
        **extra,
    )
    if kind == "PriorityQueue":
        # The priority is a component of what comes out.
        return QueueHandle(handle, (Shape(()), *shapes))
    return QueueHandle(handle, shapes)


@ROWS.add("QueueEnqueue", "QueueEnqueueV2", "QueueEnqueueMany", "QueueEnqueueManyV2")
def _enqueue(node: Any) -> Any:
    _without_limit(node)
    return call_op(node.op.removesuffix("V2"), node.handle(0), node.tensors[1:])


@ROWS.add(
    *("QueueDequeue", "QueueDequeueV2", "QueueDequeueMany", "QueueDequeueManyV2"),
    *("QueueDequeueUpTo", "QueueDequeueUpToV2"),
)
def _dequeue(node: Any) -> Any:
    _without_limit(node)
    types = tuple(node.attr("component_types"))
    queue = node.value(0)
    known = queue.shapes if isinstance(queue, QueueHandle) else ()
    found = call_op(
        node.op.removesuffix("V2"),
        node.handle(0),
        *node.tensors[1:],
        component_types=types,
        shapes=known or tuple(Shape(None) for _ in types),
    )
    return list(found)


def _without_limit(node: Any) -> None:
    if node.attr("timeout_ms", -1) != -1:
        raise DocumentError(
            "a limit of time (timeout_ms) is not supported; TensorFlow 1.15 has none"
        )


@ROWS.add("QueueSize", "QueueSizeV2", "QueueIsClosed", "QueueIsClosedV2")
def _of_queue(node: Any) -> Any:
    return call_op(node.op.removesuffix("V2"), node.handle(0))


@ROWS.add("QueueClose", "QueueCloseV2")
def _close(node: Any) -> Any:
    cancel = bool(node.attr("cancel_pending_enqueues", False))
    return call_op("QueueClose", node.handle(0), cancel_pending_enqueues=cancel)
