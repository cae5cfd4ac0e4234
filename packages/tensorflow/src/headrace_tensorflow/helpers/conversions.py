"""``framework.ops``: what counts as a tensor."""

from __future__ import annotations

from typing import Any

import headrace as hr

_DENSE = (hr.Tensor, hr.Variable)
# Classes, for ``isinstance``.
_TensorLike = (*_DENSE, hr.SparseTensor, hr.IndexedSlices, hr.RaggedTensor)
EagerTensor = ()


def is_dense_tensor_like(t: Any) -> bool:
    """Tell whether something is a tensor, or a variable, that is neither sparse nor ragged."""
    return isinstance(t, _DENSE)


def _get_graph_from_inputs(op_input_list: Any, graph: hr.Graph | None = None) -> hr.Graph:
    """Return the graph of the first of some values that has one, else the default graph."""
    if graph is not None:
        return graph
    graphs = (getattr(value, "graph", None) for value in op_input_list)
    return next((found for found in graphs if found is not None), hr.get_default_graph())


def get_name_scope() -> str:
    """Return the name scope in force, as ``a/b``, empty outside of all."""
    return hr.get_default_graph().get_name_scope()


def register_dense_tensor_like_type(tensor_type: type) -> None:
    """Take note of a class of tensors: what can be converted counts as one here."""
    del tensor_type
