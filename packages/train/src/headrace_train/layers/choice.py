"""What depends on whether a step trains: decided while building where that is known."""

from __future__ import annotations

from collections.abc import Callable
from numbers import Number
from typing import Any

import numpy as np

import headrace as hr
from headrace.errors import ArgumentTypeError, DTypeError, shown
from headrace.extend import Tensor
from headrace.extend.arguments import real


def known(training: Any) -> bool | None:
    """Return whether a step trains, None where a tensor tells it when the step runs.

    Args:
        training: A bool, 0 or 1, None for no, or a scalar bool tensor.

    Raises:
        DTypeError: if it is none of these.
    """
    if not isinstance(training, Tensor | hr.Variable):
        if training is not None and not _is_truth(training):
            raise DTypeError(
                f"training must be True, False or a scalar bool tensor, got {shown(training)}"
            )
        return bool(training)
    value = hr.get_static_value(training)
    return None if value is None else bool(value)


def _is_truth(value: Any) -> bool:
    """Whether a number is 0 or 1."""
    try:
        return isinstance(value, Number | np.generic) and real(value, "training") in (0, 1)
    except ArgumentTypeError:
        return False


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
