"""Conversions to tensors that programs add for types of their own."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from headrace.errors import ArgumentTypeError, DTypeError, shown

# By priority, and in order of registration within one; empty in most programs.
CONVERSIONS: list[tuple[int, Any, Callable[..., Any]]] = []


def register_tensor_conversion_function(
    base_type: Any, conversion_func: Callable[..., Any], priority: int = 100
) -> None:
    """Let values of a type stand for tensors wherever a tensor is expected.

    Args:
        base_type: The type, or a tuple of types.
        conversion_func: A function ``f(value, dtype=None, name=None, as_ref=False)`` that returns
            a tensor, or NotImplemented where another function shall convert the value.
        priority: Functions of lower numbers are asked first.

    Raises:
        ArgumentTypeError: if these are no types and no function, or a type is one of Python's or
            NumPy's numbers, which convert in one way only.
    """
    types = base_type if isinstance(base_type, tuple) else (base_type,)
    if not types or not all(isinstance(one, type) for one in types):
        raise ArgumentTypeError(
            f"base_type must be a type or a tuple of types, got {shown(base_type)}"
        )
    if not callable(conversion_func):
        raise ArgumentTypeError(f"conversion_func must be a function, got {shown(conversion_func)}")
    if any(issubclass(one, int | float | complex | np.generic | np.ndarray) for one in types):
        raise ArgumentTypeError("numbers and arrays of Python and NumPy convert in one way only")
    CONVERSIONS.append((priority, types, conversion_func))
    CONVERSIONS.sort(key=lambda entry: entry[0])


def converts(value: Any) -> bool:
    """Return whether a program added a conversion for the type of a value."""
    return any(isinstance(value, types) for _, types, _ in CONVERSIONS)


def converted(value: Any, is_tensor: Callable[[Any], bool]) -> Any:
    """Return the tensor that a program's function makes of a value, None where none does.

    Raises:
        DTypeError: if a function returns something else.
    """
    for _, types, function in CONVERSIONS:
        if not isinstance(value, types):
            continue
        made = function(value, dtype=None, name=None, as_ref=False)
        if made is NotImplemented:
            continue
        if not is_tensor(made):
            raise DTypeError(
                f"the conversion function {getattr(function, '__name__', function)!r} must return "
                f"a tensor or NotImplemented, got {shown(made)}"
            )
        return made
    return None
