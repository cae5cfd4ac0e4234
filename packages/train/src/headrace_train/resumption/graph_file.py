"""The graph of a training program as text beside its checkpoints."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from headrace_io.streams import error_of_system
from headrace_train.checkpoint.files import replaced

if TYPE_CHECKING:
    from headrace import Graph

NAME = "graph.pbtxt"


def write_graph_file(graph: Graph, folder: Path) -> None:
    """Write a graph as a ``GraphDef`` in text form.

    Args:
        graph: The graph.
        folder: The folder, made where it is not there.

    Raises:
        OpError: if the file cannot be written.
    """
    # lazy: protobuf is imported when a chief writes
    from headrace_io.graph_protos import graph_def_of
    from headrace_io.protos.convert import as_text

    text = as_text(graph_def_of(graph, shapes=True))
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with replaced(folder / NAME) as temporary:
            temporary.write_text(text)
    except OSError as error:
        raise error_of_system(error, f"cannot write {str(folder / NAME)!r}") from error
