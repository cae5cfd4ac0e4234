"""Functions that change graphs written as messages, as ``hr.graph_util``.

Each takes a ``GraphDef`` and returns one, or takes a ``Graph`` and returns a ``Graph``.
"""

from __future__ import annotations

from headrace_io.graph_import.importing import import_graph_def
from headrace_io.graph_util.exporting import convert_to_tensorflow
from headrace_io.graph_util.folding import fold_batch_norms
from headrace_io.graph_util.freezing import convert_variables_to_constants
from headrace_io.graph_util.nodes import (
    extract_sub_graph,
    must_run_on_cpu,
    tensor_shape_from_node_def_name,
)
from headrace_io.graph_util.training import remove_training_nodes

__all__ = [
    "convert_to_tensorflow",
    "convert_variables_to_constants",
    "extract_sub_graph",
    "fold_batch_norms",
    "import_graph_def",
    "must_run_on_cpu",
    "remove_training_nodes",
    "tensor_shape_from_node_def_name",
]
