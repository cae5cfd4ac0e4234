"""Calls of functions of tensors with ragged tensors among their arguments."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

from headrace.graph.dispatch import KINDS, Callee
from headrace.ragged.functions import FUNCTIONS
from headrace.ragged.operands import flat_operands
from headrace.ragged.tensor import RaggedTensor, is_ragged
from headrace.ragged.value import RaggedTensorValue


def call_with_ragged(callee: Callee, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Return what a function of tensors yields for ragged ones.

    Returns:
        NotImplemented where the function takes none.
    """
    special: Callable[..., Any] | None = FUNCTIONS.get(callee.name)
    if special is not None:
        return special(*args, **kwargs)
    if not callee.operands:
        return NotImplemented
    bound = inspect.signature(callee.function).bind(*args, **kwargs)
    places: list[tuple[str, int | None]] = []
    for name in callee.operands:
        value = bound.arguments.get(name)
        if isinstance(value, list | tuple) and any(map(is_ragged, value)):
            bound.arguments[name] = list(value)
            places.extend((name, i) for i in range(len(value)))
        elif value is not None:
            places.append((name, None))
    values = [
        bound.arguments[name] if i is None else bound.arguments[name][i] for name, i in places
    ]
    if not any(map(is_ragged, values)):
        return NotImplemented
    flat, rows = flat_operands(values)
    for (name, i), part in zip(places, flat, strict=True):
        if i is None:
            bound.arguments[name] = part
        else:
            bound.arguments[name][i] = part
    result = callee.function(*bound.args, **bound.kwargs)
    return rows.with_flat_values(result)


KINDS[RaggedTensor] = call_with_ragged
KINDS[RaggedTensorValue] = call_with_ragged
