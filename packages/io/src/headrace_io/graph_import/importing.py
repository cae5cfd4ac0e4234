"""Adding the nodes of a ``GraphDef`` to the default graph."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import headrace as hr
from headrace import Graph, Operation, Tensor
from headrace.errors import (
    ArgumentTypeError,
    AttributeValueError,
    DataLossError,
    DTypeError,
    GraphError,
    HeadraceError,
    listing,
    shown,
)
from headrace.extend.documents import Grafted, graft
from headrace_io.graph_import.absent import filled
from headrace_io.graph_import.origin import origin_of
from headrace_io.graph_import.reading import GraphDefReader
from headrace_io.graph_versions import brought_up, check_versions
from headrace_io.protos.convert import as_message


def import_graph_def(
    graph_def: Any,
    input_map: Mapping[str, Any] | None = None,
    return_elements: Sequence[str] | None = None,
    name: str | None = None,
    op_dict: Any = None,
    producer_op_list: Any = None,
) -> list[Tensor | Operation] | None:
    """Add a graph that was written as a message to the default graph.

    Graphs that Headrace wrote come back as they were, with the functions of conditions and loops.
    TensorFlow's are read where Headrace has their ops. Nothing is added where a node is wrong.

    Args:
        graph_def: A ``GraphDef``, as ``Graph.as_graph_def`` returns it.
        input_map: Tensors of the default graph, or what can be made one, that take the places of
            tensors of the message, by names such as ``"x:0"`` or ``"x"``; also of such that the
            message takes and does not have. Operations may take the places of ``"^x"``.
        return_elements: Names of operations and tensors of the message to return. Names may be
            bytes here and in ``input_map``.
        name: The scope of the imported operations, ``"import"`` if None; their own names if empty.
        op_dict: Of no effect, as in TensorFlow.
        producer_op_list: Of no effect.

    Returns:
        The operations and tensors named by ``return_elements``, None where it is None.

    Raises:
        ArgumentTypeError: if an argument is of the wrong type.
        NotFoundError: if operations have types that Headrace does not have; all are named.
        GraphError: if nodes or names are missing, or depend on one another.
        AttributeValueError: if a node is not what its op takes, a tensor is mapped to one of
            another dtype, or the message says that it is for other readers.
    """
    definition = as_graph_def(graph_def, "graph_def")
    asked = _checked_names(return_elements)
    if input_map is not None and not isinstance(input_map, Mapping):
        raise ArgumentTypeError(
            f"input_map must be a dict from names to tensors, got {type(input_map).__name__}"
        )
    graph = hr.get_default_graph()
    # In the scope of the operations, as constants are of which tensors are made.
    with hr.name_scope(name, "import") as scope:
        whole = filled(definition, input_map)
        source = read_graph_def(whole.definition)
        mapped, controls = mapped_inputs(source, whole.input_map)
        result = graft(
            source,
            graph,
            prefix=scope.rstrip("/"),
            mapped=mapped,
            mapped_controls=controls,
            unique=True,
            omitted=whole.placeholders(source),
        )
    if asked is None:
        return None
    return [_element(source, result, whole.called(item)) for item in asked]


def read_graph_def(definition: Any) -> Graph:
    """Return a new graph of what a ``GraphDef`` describes.

    Args:
        definition: The message.

    Raises:
        HeadraceError: as ``import_graph_def`` does.
    """
    check_versions(definition)
    definition = brought_up(definition)
    origin = origin_of(definition)
    if origin == "tensorflow":
        return _translated(definition)
    reader = GraphDefReader()
    try:
        reader.read(definition)
    except HeadraceError:
        if origin == "headrace":
            raise
        # The same names mean other things in TensorFlow's graphs.
        try:
            return _translated(definition)
        except HeadraceError:
            pass
        raise
    return reader.graph


def _translated(definition: Any) -> Graph:
    # lazy: graphs that Headrace wrote need no translation
    from headrace_io.translation.reader import TensorFlowReader

    reader = TensorFlowReader()
    reader.read(definition)
    return reader.graph


def as_graph_def(value: Any, what: str) -> Any:
    """Return a ``GraphDef``, also where it is one of TensorFlow or serialized.

    Raises:
        ArgumentTypeError: if it is something else.
    """
    try:
        return as_message("GraphDef", value, what)
    except (DTypeError, DataLossError) as error:
        raise ArgumentTypeError(str(error)) from error


def _checked_names(names: Any) -> list[str] | None:
    if names is None:
        return None
    listed = [] if isinstance(names, str | bytes) else [_as_text(name) for name in names]
    if isinstance(names, str | bytes) or not all(isinstance(name, str) for name in listed):
        raise ArgumentTypeError(f"return_elements must be a list of names, got {shown(names)}")
    return listed


def _as_text(name: Any) -> Any:
    """Return a name, also where it is given as bytes; what is none stays as it is."""
    return name.decode(errors="replace") if isinstance(name, bytes) else name


def mapped_inputs(
    source: Graph, input_map: Mapping[str, Any]
) -> tuple[dict[Tensor, Tensor], dict[Operation, Operation]]:
    """Return what takes the places of tensors and of operations that are waited for."""
    tensors: dict[Tensor, Tensor] = {}
    controls: dict[Operation, Operation] = {}
    missing = []
    for key, value in input_map.items():
        name = _as_text(key)
        if not isinstance(name, str):
            raise ArgumentTypeError(f"the keys of input_map are names, got {shown(name)}")
        try:
            if name.startswith("^"):
                found = source.get_operation_by_name(name[1:])
                given = value.op if isinstance(value, Tensor) else value
                if not isinstance(given, Operation):
                    raise ArgumentTypeError(f"input_map gives {shown(given, 60)} for {name!r}")
                controls[found] = given
                continue
            tensor = source.get_tensor_by_name(name if ":" in name else f"{name}:0")
        except GraphError:
            missing.append(repr(name))
            continue
        other = value if isinstance(value, Tensor) else _converted(value)
        if other.dtype != tensor.dtype:
            raise AttributeValueError(
                f"input_map gives {other.name!r} of {other.dtype} for {name!r} of {tensor.dtype}"
            )
        tensors[tensor] = other
    if missing:
        raise GraphError(f"graph_def has no {listing(missing)}, which input_map names")
    return tensors, controls


def _converted(value: Any) -> Tensor:
    """Return plain data as a tensor, under a name that no node of the message has."""
    with hr.name_scope("inputs"):
        return hr.convert_to_tensor(value)


def _element(source: Graph, grafted: Grafted, name: str) -> Tensor | Operation:
    try:
        element = source.as_graph_element(name)
    except GraphError as error:
        raise GraphError(f"return_elements: {error}") from None
    found: Tensor | Operation = grafted.of(element)
    return found
