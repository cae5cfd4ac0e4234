"""Comparisons of ragged tensors with one another, and with nested lists of their rows."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import headrace as hr

RAGGED = (hr.RaggedTensor, hr.ragged.RaggedTensorValue)

Evaluate = Callable[[Any], Any]


def difference_in_rows(
    a: Any, b: Any, evaluate: Evaluate, tolerances: tuple[float, float] | None = None
) -> str | None:
    """Return where two nested lists of rows are not equal, None where they are.

    Two values that are no lists must have ragged rows along as many axes, too: a list of equally
    long rows may be a ragged tensor of any.

    Args:
        a: A ragged tensor, a value of one, a tensor, an array or nested lists.
        b: Likewise.
        evaluate: Returns the values of tensors.
        tolerances: The relative and the absolute one of numbers, which are NaN where both are; None
            if they must be equal, as Python's objects are.
    """
    found = _apart(_rows(a, evaluate), _rows(b, evaluate), tolerances, "")
    if found is None and not isinstance(a, list | tuple) and not isinstance(b, list | tuple):
        one, two = (x.ragged_rank if isinstance(x, RAGGED) else 0 for x in (a, b))
        if one != two:
            return f"ragged ranks {one} and {two} differ"
    return found


def _rows(value: Any, evaluate: Evaluate) -> Any:
    """Return the value as nested lists."""
    if isinstance(value, hr.Tensor | hr.Variable | hr.RaggedTensor):
        value = evaluate(value)
    if isinstance(value, hr.ragged.RaggedTensorValue):
        return value.to_list()
    if isinstance(value, list | tuple):
        return [_rows(item, evaluate) for item in value]
    # NumPy makes arrays of strings that lose zero bytes at their ends.
    return value.tolist() if isinstance(value, np.ndarray | np.generic) else value


def _apart(a: Any, b: Any, tolerances: tuple[float, float] | None, path: str) -> str | None:
    if isinstance(a, list) != isinstance(b, list):
        return f"a{path} is {a!r}, b{path} is {b!r}"
    if isinstance(a, list):
        if len(a) != len(b):
            return f"a{path} has {len(a)} items, b{path} has {len(b)}"
        pairs = enumerate(zip(a, b, strict=True))
        found = (_apart(x, y, tolerances, f"{path}[{i}]") for i, (x, y) in pairs)
        return next((text for text in found if text is not None), None)
    if tolerances is None:
        same = bool(a == b)
    else:
        relative, absolute = tolerances
        same = bool(np.isclose(a, b, rtol=relative, atol=absolute, equal_nan=True))
    return None if same else f"a{path} is {a!r}, b{path} is {b!r}"
