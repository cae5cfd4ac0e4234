"""Arguments that TensorFlow renamed: both names are taken, one at a time."""

from __future__ import annotations

from typing import Any

import numpy as np

from headrace.errors import AttributeValueError, shown


def renamed(name: str, value: Any, old_name: str, old_value: Any) -> Any:
    """Return the value of an argument that was given under its name or its old one.

    Raises:
        AttributeValueError: if it was given under both.
    """
    if old_value is None:
        return value
    if value is not None:
        raise AttributeValueError(
            f"{name} and {old_name} are two names of one argument; give {name} only"
        )
    return old_value


def flag(name: str, value: Any) -> bool:
    """Return an argument that is true or false; None is false.

    Raises:
        AttributeValueError: if it is neither.
    """
    if value is None or isinstance(value, bool | int | np.bool_):
        return bool(value)
    raise AttributeValueError(f"{name} must be true or false, got {shown(value)}")
