"""The operands of functions of each element, some of them ragged."""

from __future__ import annotations

from typing import Any

from headrace.errors import ShapeError, shown
from headrace.graph.convert import convert_to_tensor
from headrace.graph.tensor import Tensor
from headrace.ragged.broadcasting import broadcast_together
from headrace.ragged.tensor import RaggedTensor, as_ragged, is_ragged


def flat_operands(values: list[Any]) -> tuple[list[Any], RaggedTensor]:
    """Return operands of a function of each element with their rows left out.

    Args:
        values: Tensors, plain data, and ragged tensors, one of these at least.

    Returns:
        The flat values of each, scalars as they are; and a ragged tensor with their common rows.
    """
    ragged = [as_ragged(v) for v in values if is_ragged(v)]
    found = [as_ragged(v) if is_ragged(v) else _operand(v, ragged[0]) for v in values]
    wide = [v for v in found if isinstance(v, RaggedTensor) or _has_axes(v)]
    if len(wide) == 1:
        flat: dict[int, Any] = {id(wide[0]): wide[0].flat_values}
        rows = wide[0]
    else:
        parts, rows = broadcast_together(wide)
        flat = {id(v): part for v, part in zip(wide, parts, strict=True)}
    return [flat.get(id(v), v) for v in found], rows


def _operand(value: Any, like: RaggedTensor) -> Any:
    """Return an operand that is not ragged; scalars that are plain data stay so."""
    if isinstance(value, bool | int | float | complex | str | bytes):
        return value
    found = convert_to_tensor(value, preferred_dtype=like.dtype)
    if found.shape.rank is None:
        raise ShapeError(
            f"a tensor beside a ragged one needs a known rank, got {shown(found)}; use set_shape"
        )
    return found


def _has_axes(value: Any) -> bool:
    return isinstance(value, Tensor) and bool(value.shape.rank)
