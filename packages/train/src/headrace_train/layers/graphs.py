"""What layers ask of the graph: collections, what follows from what, the session in force."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import headrace as hr
from headrace.errors import GraphError
from headrace.extend import Operation, Tensor


def collect(key: str, values: Sequence[Any]) -> None:
    """Add to a collection of the graph what is not in it yet."""
    kept = hr.get_collection_ref(key)
    for value in values:
        if not any(value is item for item in kept):
            kept.append(value)


def depends(op: Operation, tensors: Sequence[Any]) -> bool:
    """Whether an operation depends on one of some tensors."""
    sources = {id(tensor) for tensor in tensors}
    waiting, seen = [op], {id(op)}
    while waiting:
        current = waiting.pop()
        if any(id(tensor) in sources for tensor in current.inputs):
            return True
        for before in (*(tensor.op for tensor in current.inputs), *current.control_inputs):
            if id(before) not in seen:
                seen.add(id(before))
                waiting.append(before)
    return any(id(output) in sources for output in op.outputs)


def as_input(value: Any) -> Any:
    """Return a tensor or ``SparseTensor`` as it is, and data as a tensor."""
    # The handle of a variable, as graphs find it by the variable's name, stands for its value.
    if isinstance(value, Tensor | hr.SparseTensor) and value.dtype is not hr.resource:
        return value
    return hr.convert_to_tensor(value)


def session_for(layer: str) -> Any:
    """Return the default session.

    Args:
        layer: The layer that needs it, for the message.

    Raises:
        GraphError: if there is none.
    """
    session = hr.get_default_session()
    if session is None:
        raise GraphError(
            f"layer {layer!r}: values of variables are in a session; use a 'with session:' block"
        )
    return session
