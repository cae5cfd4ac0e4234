"""Tensors as records and back, as ``hr.saved_model.utils``."""

from __future__ import annotations

from typing import Any

from headrace.errors import GraphError
from headrace.errors import shown as _shown
from headrace.graph.graph import Graph
from headrace.graph.scopes import get_default_graph
from headrace.graph.sparse_tensor import SparseTensor
from headrace.graph.tensor import Tensor
from headrace.saved_model.messages import CooSparse, TensorInfo, TensorShape
from headrace.saved_model.messages import tensor_info as _as_info


def build_tensor_info(tensor: Any) -> TensorInfo:
    """Return the record of a tensor: name, dtype and shape.

    Args:
        tensor: A tensor, a variable, which counts as its value, or a sparse tensor, of which the
            names of the three parts are taken.

    Raises:
        GraphError: if it is none.
    """
    if isinstance(tensor, SparseTensor):
        parts = (tensor.values.name, tensor.indices.name, tensor.dense_shape.name)
        shape = TensorShape.of(tensor.shape.plain)
        return TensorInfo("", tensor.dtype.as_datatype_enum, shape, CooSparse(*parts))
    convert = getattr(tensor, "_as_graph_element", None)
    found = convert() if convert is not None else tensor
    if not isinstance(found, Tensor):
        raise GraphError(
            f"expected a tensor or sparse tensor, got {_shown(tensor)}; inputs and outputs are "
            "dictionaries of tensors, and hr.constant makes one of a value"
        )
    shape = TensorShape.of(found.spec.shape)
    return TensorInfo(found.name, found.dtype.as_datatype_enum, shape)


def get_tensor_from_tensor_info(
    tensor_info: Any, graph: Graph | None = None, import_scope: str | None = None
) -> Tensor | SparseTensor:
    """Return the tensor that a record names.

    Args:
        tensor_info: What ``build_tensor_info`` returned.
        graph: The graph in which to look; the default graph if None.
        import_scope: The scope under which the record's graph was imported.

    Raises:
        GraphError: if the graph has no such tensor, or the record names none.
    """
    info = _as_info(tensor_info)
    where = get_default_graph() if graph is None else graph
    prefix = f"{import_scope}/" if import_scope else ""
    found = [where.get_tensor_by_name(prefix + name) for name in info.names]
    if not found:
        raise GraphError("the record names neither a tensor nor the parts of a sparse one")
    if info.coo_sparse is None:
        return found[0]
    with where.as_default():
        return SparseTensor(*found)
