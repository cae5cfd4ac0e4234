"""Written graphs as graphs that TensorFlow runs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from headrace import Graph
from headrace_io.graph_export.writing import written
from headrace_io.graph_import.importing import as_graph_def, read_graph_def
from headrace_io.graph_util.freezing import convert_variables_to_constants
from headrace_io.graph_util.nodes import extract_sub_graph

if TYPE_CHECKING:
    from headrace import Session


def convert_to_tensorflow(
    sess: Session | None, input_graph_def: Any, output_node_names: Sequence[str]
) -> Any:
    """Return what computes some operations as a graph that TensorFlow runs.

    Variables become constants of their values in a session, as for inference. Operations keep
    their names; where TensorFlow needs several for one, the further ones stand in its scope.
    TensorFlow 1.15 and later import the result (``tf.import_graph_def``), and so do converters of
    other systems that read frozen graphs.

    Args:
        sess: A session in which the variables have values; None for a graph without variables.
        input_graph_def: The graph as a ``Graph``, or as a ``GraphDef`` that Headrace wrote.
        output_node_names: The names of the operations.

    Returns:
        A ``GraphDef`` of TensorFlow's ops.

    Raises:
        UnimplementedError: if TensorFlow has no such operation, or this knows none; all of them
            are named. Conditions, loops and calls are among them.
        MissingNodeError: if the graph has no such operations.
        FailedPreconditionError: if a variable has no value.
    """
    message = (
        input_graph_def.as_graph_def()
        if isinstance(input_graph_def, Graph)
        else as_graph_def(input_graph_def, "input_graph_def")
    )
    if sess is None:
        needed = extract_sub_graph(message, output_node_names)
    else:
        needed = convert_variables_to_constants(sess, message, output_node_names)
    return written(read_graph_def(needed))
