"""What depends on whether a step trains: decided while building where that is known."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import headrace as hr
from headrace.extend import Tensor


def known(training: Any) -> bool | None:
    """Return whether a step trains, None where a tensor tells it when the step runs.

    Args:
        training: A bool, a number, None for no, or a scalar bool tensor.
    """
    if not isinstance(training, Tensor | hr.Variable):
        return bool(training)
    value = hr.get_static_value(training)
    return None if value is None else bool(value)


def choose(training: Any, then: Callable[[], Any], otherwise: Callable[[], Any]) -> Any:
    """Return what one of two functions returns, in a ``cond`` where a tensor decides.

    Args:
        training: A bool, a number, None for no, or a scalar bool tensor.
        then: Called where it is true.
        otherwise: Called where it is false.
    """
    value = known(training)
    if value is None:
        return hr.cond(hr.cast(training, hr.bool), then, otherwise)
    return then() if value else otherwise()
