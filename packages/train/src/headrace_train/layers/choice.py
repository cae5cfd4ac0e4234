"""What depends on whether a step trains: decided while building where that is known."""

from __future__ import annotations

from collections.abc import Callable
from numbers import Number
from typing import Any

import numpy as np

import headrace as hr
from headrace.errors import DTypeError, shown
from headrace.extend import Tensor


def known(training: Any) -> bool | None:
    """Return whether a step trains, None where a tensor tells it when the step runs.

    Args:
        training: A bool, 0 or 1, None for no, or a scalar bool tensor.

    Raises:
        DTypeError: if it is none of these.
    """
    if not isinstance(training, Tensor | hr.Variable):
        number = np.asarray(training) if isinstance(training, Number | np.generic) else None
        if training is not None and (number is None or number not in (0, 1)):
            raise DTypeError(
                f"training must be True, False or a scalar bool tensor, got {shown(training)}"
            )
        return bool(training)
    value = hr.get_static_value(training)
    return None if value is None else bool(value)


def choose(training: Any, then: Callable[[], Any], otherwise: Callable[[], Any]) -> Any:
    """Return what one of two functions returns, in a ``cond`` where a tensor decides.

    Args:
        training: A bool, 0 or 1, None for no, or a scalar bool tensor.
        then: Called where it is true.
        otherwise: Called where it is false.
    """
    value = known(training)
    if value is None:
        return hr.cond(hr.cast(training, hr.bool), then, otherwise)
    return then() if value else otherwise()
