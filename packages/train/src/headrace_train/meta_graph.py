"""Graphs with their collections in files, as programs exchange them: ``MetaGraphDef``."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import headrace as hr
from headrace import Graph
from headrace.errors import (
    ArgumentTypeError,
    HeadraceError,
    InvalidArgumentError,
    UnimplementedError,
    listing,
    shown,
)
from headrace.extend.arguments import items
from headrace_io import protos
from headrace_io.graph_import.importing import as_graph_def
from headrace_io.meta_graph import (
    Form,
    add_collections,
    import_meta_graph_def,
    read_meta_graph_def,
)
from headrace_io.protos.convert import as_message
from headrace_io.streams import error_of_system
from headrace_train.checkpoint.files import replaced
from headrace_train.meta_graph_scopes import check_bound, keep_scope
from headrace_train.runners.definition import check_runner, read_arguments, write_runner
from headrace_train.runners.queue_runner import QueueRunner

if TYPE_CHECKING:
    from headrace_train.saver import Saver

_QUEUE_RUNNERS = hr.GraphKeys.QUEUE_RUNNERS
_SAVERS = hr.GraphKeys.SAVERS
# What import_meta_graph takes by name only.
_ARGUMENTS = {"graph", "input_map", "restore_collections_predicate", "return_elements"}


def _write_runner(runner: Any) -> Any:
    return write_runner(runner) if isinstance(runner, QueueRunner) else None


def _read_runner(stored: bytes, graph: Graph, scope: str = "") -> QueueRunner:
    return QueueRunner(**read_arguments(stored, graph, scope))


def _write_saver(saver: Any) -> Any:
    # lazy: the saver writes graphs with functions of this module
    from headrace_train.saver import Saver

    return saver.to_proto() if isinstance(saver, Saver) else None


def _read_saver(stored: bytes, graph: Graph, scope: str = "") -> Any:
    """Return the saver that a collection holds; what describes none stays as it is."""
    # lazy: the saver writes graphs with functions of this module
    from headrace_train.saver import Saver

    try:
        with graph.as_default():
            return Saver.from_proto(as_message("SaverDef", stored, "a saver"), scope or None)
    except HeadraceError:
        return stored


_FORMS = {
    _QUEUE_RUNNERS: Form(_write_runner, _read_runner),
    _SAVERS: Form(_write_saver, _read_saver),
}


def export_meta_graph(
    filename: str | os.PathLike[str] | None = None,
    meta_info_def: Any = None,
    graph_def: Any = None,
    saver_def: Any = None,
    collection_list: Sequence[str] | None = None,
    as_text: bool = False,
    graph: Graph | None = None,
    export_scope: str | None = None,
    clear_devices: bool = False,
    clear_extraneous_savers: bool = False,
    strip_default_attrs: bool = False,
    save_debug_info: bool = False,
    **kwargs: Any,
) -> Any:
    """Return a graph with its collections as a ``MetaGraphDef``, and write it to a file.

    Args:
        filename: The file; none is written if None. Its folder is made where it is missing.
        meta_info_def: What the message says of itself, a ``MetaGraphDef.MetaInfoDef``.
        graph_def: The graph as a ``GraphDef``, in place of what ``graph`` holds.
        saver_def: What belongs to the graph to save and restore it, a ``SaverDef``.
        collection_list: The names of the collections to write; all if None.
        as_text: Whether the file is text.
        graph: The graph; the default graph if None.
        export_scope: Write only what is in this name scope, under names without it. What it takes
            from outside is called ``$unbound_inputs_<name>``, which ``input_map`` binds when the
            graph is imported; the collection ``unbound_inputs`` lists these names.
        clear_devices: Whether operations are written without devices.
        clear_extraneous_savers: Whether to leave out the ops of all savers but that of
            ``saver_def``.
        strip_default_attrs: Of no effect: attributes that are not there have their defaults.
        save_debug_info: Refused; ``Graph.to_document(sites=True)`` keeps lines of the program.
        **kwargs: Refused.

    Returns:
        The message.

    Raises:
        ArgumentTypeError: if an argument is unknown or of the wrong type.
        AttributeValueError: if nothing is in ``export_scope``.
        OSError: if the file cannot be written; then nothing has changed.
    """
    if kwargs:
        raise ArgumentTypeError(
            f"export_meta_graph has no argument {listing(map(repr, sorted(kwargs)))}"
        )
    if save_debug_info:
        raise UnimplementedError(
            "save_debug_info is not supported; graph.to_document(sites=True) keeps the lines"
        )
    if graph is not None and not isinstance(graph, Graph):
        raise ArgumentTypeError(f"graph must be a Graph, got {type(graph).__name__}")
    source = hr.get_default_graph() if graph is None else graph
    made = protos.MetaGraphDef()
    if meta_info_def is not None:
        made.meta_info_def.MergeFromString(meta_info_def.SerializeToString())
    made.meta_info_def.tensorflow_version = made.meta_info_def.tensorflow_version or ""
    definition = source.as_graph_def(add_shapes=True) if graph_def is None else graph_def
    made.graph_def.CopyFrom(as_graph_def(definition, "graph_def"))
    if saver_def is not None:
        made.saver_def.CopyFrom(as_message("SaverDef", saver_def, "saver_def"))
    listed = None if collection_list is None else items(collection_list, "collection_list")
    add_collections(made, source, listed, _FORMS)
    if clear_extraneous_savers:
        # lazy: the saver writes graphs with functions of this module
        from headrace_train.saver.extraneous import leave_out_other_savers

        leave_out_other_savers(made)
    if export_scope:
        keep_scope(made, export_scope.rstrip("/"))
    if clear_devices:
        for node in made.graph_def.node:
            node.device = ""
    if filename is not None:
        _write(Path(filename), _bytes_of(made, as_text))
    return made


def import_meta_graph(
    meta_graph_or_file: Any,
    clear_devices: bool = False,
    import_scope: str | None = None,
    **kwargs: Any,
) -> Saver | None:
    """Add a graph that ``export_meta_graph`` or a saver wrote to the default graph.

    Graphs that Headrace wrote come back as they were; those of TensorFlow where Headrace has all of
    their operations. Nothing is added where the file is damaged.

    Args:
        meta_graph_or_file: A ``MetaGraphDef``, or the path of a file that holds one.
        clear_devices: Whether operations ask for no devices.
        import_scope: The scope of the operations, within the name scope in force; none if None.
        **kwargs: ``graph``, the graph to add it to in place of the default one; ``input_map``, as
            for ``hr.import_graph_def``; and ``restore_collections_predicate``, a function of the
            name of a collection that says whether it comes along.

    Returns:
        A saver of the variables of the imported graph, None where it has none.

    Raises:
        GraphFileNotFoundError: if the file is not there.
        GraphFileFormatError: if it holds something else; an ``OSError``.
        AttributeValueError: if it takes what ``input_map`` does not give.
        NotFoundError: if operations have types that Headrace does not have; all are named.
        GraphError: if nodes or names are missing.
    """
    unknown = kwargs.keys() - _ARGUMENTS
    if unknown:
        raise ArgumentTypeError(
            f"import_meta_graph has no argument {listing(map(shown, sorted(unknown)))}"
        )
    target = kwargs.pop("graph", None)
    if target is not None:
        if not isinstance(target, Graph):
            raise ArgumentTypeError(f"graph must be an hr.Graph, got {shown(target)}")
        with target.as_default():
            return import_meta_graph(meta_graph_or_file, clear_devices, import_scope, **kwargs)
    message = read_meta_graph_def(meta_graph_or_file)
    comes_along = kwargs.get("restore_collections_predicate")
    if comes_along is not None:
        for key in list(message.collection_def):
            if not comes_along(key):
                del message.collection_def[key]
    check_bound(message, kwargs.get("input_map"))
    graph = hr.get_default_graph()
    # They are made of what is imported, below.
    runners = list(message.collection_def[_QUEUE_RUNNERS].bytes_list.value)
    savers = list(message.collection_def[_SAVERS].bytes_list.value)
    for key in (_QUEUE_RUNNERS, _SAVERS):
        del message.collection_def[key]
    names = {node.name for node in message.graph_def.node}
    for stored in runners:
        check_runner(stored, names)
    scope = graph.get_name_scope()
    if import_scope:
        scope = graph.unique_name(import_scope.rstrip("/"))
    grafted = import_meta_graph_def(
        message,
        clear_devices=clear_devices,
        import_scope=scope,
        input_map=kwargs.get("input_map"),
    )
    for stored in runners:
        graph.add_to_collection(_QUEUE_RUNNERS, _read_runner(stored, graph, scope))
    for stored in savers:
        graph.add_to_collection(_SAVERS, _read_saver(stored, graph, scope))
    return _saver(message, list(grafted.variables.values()), scope, import_scope)


def write_graph(
    graph_or_graph_def: Any, logdir: str | os.PathLike[str], name: str, as_text: bool = True
) -> str:
    """Write a graph to a file, as a ``GraphDef``.

    Args:
        graph_or_graph_def: A graph, or its message; another message is written as it is.
        logdir: The folder, made where it is missing.
        name: The name of the file.
        as_text: Whether it is text.

    Returns:
        The path of the file.

    Raises:
        ArgumentTypeError: if it is no graph.
        OSError: if the file cannot be written; then nothing has changed.
    """
    if isinstance(graph_or_graph_def, Graph):
        definition = graph_or_graph_def.as_graph_def()
    elif getattr(getattr(graph_or_graph_def, "DESCRIPTOR", None), "name", "GraphDef") != "GraphDef":
        definition = graph_or_graph_def
    else:
        definition = as_graph_def(graph_or_graph_def, "graph_or_graph_def")
    path = Path(logdir) / name
    _write(path, _bytes_of(definition, as_text))
    return str(path)


def _saver(message: Any, variables: list[Any], scope: str, given: str | None) -> Saver | None:
    """Return the saver of an imported graph.

    Args:
        message: The graph.
        variables: Those that came with it.
        scope: The scope that it stands in.
        given: The scope that was asked for. Variables that were there before count, too.
    """
    # lazy: the saver writes graphs with functions of this module
    from headrace_train.saver import Saver

    if message.HasField("saver_def"):
        return Saver(saver_def=message.saver_def, name=scope or None)
    others = hr.get_collection(hr.GraphKeys.SAVEABLE_OBJECTS)
    known = set(hr.get_collection(hr.GraphKeys.GLOBAL_VARIABLES))
    kept = [v for v in variables if v in known]
    if not kept and not others:
        before = hr.get_collection(hr.GraphKeys.GLOBAL_VARIABLES, given or None)
        return Saver() if before else None
    prefix = f"{scope}/" if scope else ""
    # In the checkpoint they have the names that they had when the graph was written.
    named = {v.op_name.removeprefix(prefix): v for v in kept}
    return Saver(named if prefix else [*kept, *others])


def _bytes_of(message: Any, as_text: bool) -> bytes:
    if as_text:
        # lazy: binary files need none of it
        from google.protobuf import text_format

        text: str = text_format.MessageToString(message)
        return text.encode()
    found: bytes = message.SerializeToString(deterministic=True)
    return found


def _write(path: Path, content: bytes) -> None:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with replaced(path) as temporary:
            temporary.write_bytes(content)
    except OSError as error:
        raise error_of_system(error, f"cannot write {str(path)!r}") from error
    except ValueError as error:
        if isinstance(error, HeadraceError):
            raise
        # Empty, NUL, or half of a surrogate pair.
        raise InvalidArgumentError(f"{shown(str(path))} is no name of a file: {error}") from error
