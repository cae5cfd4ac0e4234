"""Values of tensors that are known while a program builds its graph."""

from __future__ import annotations

from typing import Any

import numpy as np

from headrace.graph.convert import is_tensor
from headrace.graph.tensor import Tensor
from headrace.ops.arguments import static_value
from headrace.ops.constant import COMPARISONS

# Operations one behind the other; what is deeper is data, which a step computes.
_DEPTH = 64


def get_static_value(tensor: Any, partial: bool = False) -> Any:
    """Return the value of a tensor where it is known while the graph is built, else None.

    Args:
        tensor: A tensor; constants have a value, integers computed of them and of known shapes, and
            casts, comparisons, ranges, fills, stacks and concatenations of what has one. What is
            no tensor is returned as it is.
        partial: Whether to return an array of objects, with None in the places of what is not
            known, for a stack along the first axis.

    Returns:
        An array, or None.
    """
    if not is_tensor(tensor):
        return tensor
    return _value(tensor, partial, _DEPTH) if isinstance(tensor, Tensor) else None


def _value(tensor: Tensor, partial: bool, depth: int) -> Any:
    found: Any = static_value(tensor)
    compute = _COMPUTED.get(tensor.op.type)
    if found is not None or compute is None or not depth:
        return found
    op = tensor.op
    in_part = partial and op.type == "Stack" and op.attrs["axis"] == 0
    given = [_value(t, in_part, depth - 1) for t in op.inputs]
    if in_part:
        return np.array(given, None if _whole(given) else object)
    if not all(map(_known, given)):
        return None
    return np.asarray(compute(*given, **op.attrs)).astype(tensor.dtype.numpy)


def _known(value: Any) -> bool:
    """Whether all of a value is known."""
    return value is not None and (value.dtype != object or None not in value.ravel().tolist())


def _whole(values: list[Any]) -> bool:
    return all(map(_known, values))


_COMPUTED: dict[str, Any] = {
    **COMPARISONS,
    "Cast": lambda x, dtype: x,
    "Concat": lambda *parts, axis: np.concatenate(parts, axis),
    "Fill": lambda dims, value: np.full(dims, value),
    "Range": np.arange,
    "Stack": lambda *parts, axis: np.stack(parts, axis),
}
