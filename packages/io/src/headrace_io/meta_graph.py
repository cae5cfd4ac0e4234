"""Graphs with what programs have to know of them (``MetaGraphDef``), written and read.

A collection of tensors or operations is written by their names, one of variables as ``VariableDef``
messages, as in TensorFlow; numbers and texts are written as they are. What else programs put into
collections is left out, unless the caller says how it is written.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias, final

import headrace as hr
from headrace import Graph, Operation, Tensor, Variable
from headrace.errors import (
    DataLossError,
    GraphError,
    GraphFileFormatError,
    GraphFileNotFoundError,
    HeadraceError,
    listing,
)
from headrace.extend.arguments import items as listed
from headrace.extend.documents import Grafted, graft
from headrace.extend.files import open_regular
from headrace_io import protos
from headrace_io.graph_import.absent import filled
from headrace_io.graph_import.importing import mapped_inputs, read_graph_def
from headrace_io.graph_protos import graph_def_of
from headrace_io.protos.convert import as_message
from headrace_io.protos.pool import parsed

_INT64 = range(-(2**63), 2**63)


@final
@dataclass(frozen=True, slots=True)
class Form:
    """How what is in a collection is written.

    Attributes:
        write: From an item to its message, None where it has none.
        read: From the bytes of a message and the graph to the item.
    """

    write: Callable[[Any], Any]
    read: Callable[[bytes, Graph], Any]


Forms: TypeAlias = Mapping[str, Form]


def meta_graph_def_of(
    graph: Any, *, collections: Sequence[str] | None = None, forms: Forms | None = None
) -> Any:
    """Return a graph as a ``MetaGraphDef``, with what is in its collections by name.

    Args:
        graph: A graph, or a ``GraphDef``, which has no collections.
        collections: The collections to write; all if None.
        forms: How items of some collections are written, by the names of the collections.
    """
    made = protos.MetaGraphDef()
    # What TensorFlow writes there of itself.
    made.meta_info_def.tensorflow_version = ""
    if not isinstance(graph, Graph):
        made.graph_def.CopyFrom(as_message("GraphDef", graph, "the graph: a Graph or"))
        return made
    made.graph_def.CopyFrom(graph_def_of(graph, shapes=True))
    add_collections(made, graph, collections, forms)
    return made


def add_collections(
    meta_graph_def: Any,
    graph: Graph,
    names: Sequence[str] | None = None,
    forms: Forms | None = None,
) -> None:
    """Write what is in the collections of a graph into a ``MetaGraphDef``.

    Args:
        meta_graph_def: The message.
        graph: The graph.
        names: The collections to write; all if None.
        forms: How items of some collections are written.
    """
    keys = graph.get_all_collection_keys() if names is None else listed(names, "collections")
    for key in keys:
        form = (forms or {}).get(key)
        collection = collection_def_of(graph.get_collection(key), form)
        if collection is not None:
            meta_graph_def.collection_def[key].CopyFrom(collection)


def collection_def_of(items: Sequence[Any], form: Form | None = None) -> Any:
    """Return what a collection holds as a ``CollectionDef``; None where there is no form for it."""
    made = protos.CollectionDef()
    if form is not None:
        messages = [form.write(item) for item in items]
        made.bytes_list.value.extend(m.SerializeToString() for m in messages if m is not None)
        return made if made.bytes_list.value else None
    named = [item.name for item in items if isinstance(item, Tensor | Operation)]
    if items and all(isinstance(item, Variable) for item in items):
        made.bytes_list.value.extend(variable_def_of(v).SerializeToString() for v in items)
    elif items and len(named) == len(items):
        made.node_list.value.extend(named)
    elif items and all(isinstance(item, str | bytes) for item in items):
        made.bytes_list.value.extend(v.encode() if isinstance(v, str) else v for v in items)
    elif items and all(isinstance(item, int) and item in _INT64 for item in items):
        made.int64_list.value.extend(map(int, items))
    elif items and all(type(item) is float for item in items):
        made.float_list.value.extend(items)
    else:
        return None
    return made


def variable_def_of(variable: Variable, export_scope: str | None = None) -> Any:
    """Return the operations that make up a variable as a ``VariableDef``.

    Args:
        variable: The variable.
        export_scope: The scope, which names are written without.

    Returns:
        The message; None where the variable is not in the scope.
    """
    prefix = f"{export_scope.rstrip('/')}/" if export_scope else ""
    if not variable.name.startswith(prefix):
        return None
    return protos.VariableDef(
        variable_name=variable.name.removeprefix(prefix),
        initial_value_name=variable.initial_value.name.removeprefix(prefix),
        initializer_name=variable.initializer.name.removeprefix(prefix),
        snapshot_name=variable.snapshot.name.removeprefix(prefix),
        is_resource=True,
        trainable=variable.trainable,
    )


def variable_of(variable_def: Any, import_scope: str | None = None) -> Variable:
    """Return the variable of the default graph that a ``VariableDef`` describes.

    It is the one that the graph lists, or one that is made of operations of the graph.

    Args:
        variable_def: The message, or a serialized one.
        import_scope: The scope under which its operations stand.

    Raises:
        DTypeError: if it is no such message.
        DataLossError: if the graph does not have what it names.
    """
    message = as_message("VariableDef", variable_def, "variable_def")
    if import_scope:
        prefix = f"{import_scope.rstrip('/')}/"
        for field in ("variable", "initial_value", "initializer", "snapshot"):
            name = getattr(message, f"{field}_name")
            setattr(message, f"{field}_name", f"{prefix}{name}")
    key = hr.GraphKeys.GLOBAL_VARIABLES
    graph = hr.get_default_graph().outermost
    if graph.find_operation(message.initializer_name) is None:
        raise DataLossError(
            f"the default graph does not have the variable {message.variable_name!r}: there is no "
            f"operation {message.initializer_name!r}"
        )
    try:
        found = _variable(graph, key, message.SerializeToString())
    except GraphError as error:
        raise DataLossError(str(error)) from error
    assert found is not None
    return found


def import_meta_graph_def(
    meta_graph_def: Any,
    *,
    clear_devices: bool = False,
    import_scope: str = "",
    input_map: Mapping[str, Any] | None = None,
    forms: Forms | None = None,
) -> Grafted:
    """Add the graph of a ``MetaGraphDef``, with its collections, to the default graph.

    Args:
        meta_graph_def: The message.
        clear_devices: Whether operations ask for no devices.
        import_scope: The scope of the operations; their own names if empty.
        input_map: Tensors that take the places of tensors of the message, by name.
        forms: How items of some collections are read.

    Returns:
        What became of the operations, tensors and variables.

    Raises:
        HeadraceError: as ``import_graph_def`` does. Nothing is added then.
        DataLossError: if a collection is damaged.
    """
    message = as_message("MetaGraphDef", meta_graph_def, "meta_graph_def")
    whole = filled(message.graph_def, input_map)
    source = read_graph_def(whole.definition)
    for key in sorted(message.collection_def):
        _read_collection(source, key, message.collection_def[key], (forms or {}).get(key))
    graph = hr.get_default_graph()
    mapped, controls = mapped_inputs(source, whole.input_map)
    return graft(
        source,
        graph,
        prefix=import_scope.strip("/"),
        mapped=mapped,
        mapped_controls=controls,
        clear_devices=clear_devices,
        unique=True,
        omitted=whole.placeholders(source),
    )


def _read_collection(graph: Graph, key: str, collection: Any, form: Form | None) -> None:
    kind = collection.WhichOneof("kind")
    if kind is None or kind == "any_list":
        return
    values = getattr(collection, kind).value
    if kind == "node_list":
        items = [_element(graph, key, name) for name in values]
    elif kind == "bytes_list":
        items = [_from_bytes(graph, key, value, form) for value in values]
    else:
        items = list(values)
    for item in items:
        graph.add_to_collection(key, item)


def _element(graph: Graph, key: str, name: str) -> Any:
    try:
        return graph.as_graph_element(name)
    except HeadraceError as error:
        raise GraphError(f"the collection {key!r}: {error}") from None


def _from_bytes(graph: Graph, key: str, value: bytes, form: Form | None) -> Any:
    if form is not None:
        return form.read(value, graph)
    variable = _variable(graph, key, value)
    return value if variable is None else variable


def _variable(graph: Graph, key: str, value: bytes) -> Variable | None:
    """Return the variable that bytes describe, the same each time; None for other bytes."""
    try:
        message = parsed("VariableDef", value, f"an item of the collection {key!r}")
        is_one = graph.find_operation(message.initializer_name) is not None
    except DataLossError:
        is_one = False
    if not is_one:
        if key.endswith("variables"):
            raise DataLossError(
                f"the collection {key!r} holds {value[:60]!r}, which is no variable"
            )
        return None
    for known in graph.variables:
        if known.name == message.variable_name:
            return known
    parts = [
        message.variable_name,
        message.initial_value_name,
        message.initializer_name,
        message.snapshot_name,
    ]
    handle, start, initializer, snapshot = (_element(graph, key, name) for name in parts)
    fits = isinstance(initializer, Operation) and handle.spec.content is not None
    if not fits or start.dtype != handle.spec.content.dtype:
        raise DataLossError(f"the collection {key!r}: {listing(map(repr, parts))} is no variable")
    return Variable.from_parts(handle, start, initializer, snapshot, message.trainable, ())


def read_meta_graph_def(source: Any) -> Any:
    """Return a ``MetaGraphDef`` from a message, or from a file that holds one.

    Args:
        source: The message, or the path of a file, in binary or text form.

    Raises:
        GraphFileFormatError: if the file holds something else.
        GraphFileNotFoundError: if the file is not there.
    """
    if not isinstance(source, str | os.PathLike):
        return as_message("MetaGraphDef", source, "meta_graph_or_file")
    path = Path(source)
    try:
        with open_regular(path) as file:
            content = file.read()
    except FileNotFoundError as error:
        raise GraphFileNotFoundError(f"there is no file {path}") from error
    except (OSError, ValueError) as error:
        raise GraphFileNotFoundError(f"the file {path} cannot be read: {error}") from error
    try:
        return parsed("MetaGraphDef", content, str(path))
    except DataLossError:
        return _from_text(content, path)


def _from_text(content: bytes, path: Path) -> Any:
    # lazy: binary files need none of it
    from google.protobuf import text_format

    try:
        return text_format.Parse(content.decode("utf-8"), protos.MetaGraphDef())
    except (text_format.ParseError, UnicodeDecodeError) as error:
        raise GraphFileFormatError(f"{path} holds no MetaGraphDef: {str(error)[:200]}") from error
