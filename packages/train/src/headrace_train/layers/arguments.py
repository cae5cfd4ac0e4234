"""The arguments that layers share, checked and brought into one form."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import headrace as hr
from headrace.errors import AttributeValueError, DTypeError, shown
from headrace.extend import Tensor
from headrace.extend.arguments import items

# The layouts of ``headrace.nn`` by number of spatial axes.
_LAST = {1: "NWC", 2: "NHWC", 3: "NDHWC"}
_FIRST = {1: "NCW", 2: "NCHW", 3: "NCDHW"}

# Functions of ``headrace.nn`` and ``headrace`` that activations may be named by.
_ACTIVATIONS = (
    "elu",
    "relu",
    "selu",
    "sigmoid",
    "softmax",
    "softplus",
    "softsign",
    "tanh",
)

Activation = Callable[[Tensor], Any]


# More axes than arrays have.
_MOST = 1000


def sizes(value: Any, count: int, name: str) -> tuple[int, ...]:
    """Return one integer for each spatial axis.

    Args:
        value: An integer, which stands for all axes, or ``count`` of them.
        count: The number of spatial axes.
        name: What the argument is called.

    Raises:
        AttributeValueError: if it is neither.
    """
    wanted = f"{name} must be an integer or {count} of them, got {shown(value)}"
    if isinstance(value, str | bytes):
        raise AttributeValueError(wanted)
    try:
        return (value.__index__(),) * count
    except (AttributeError, TypeError):
        pass
    try:
        found = tuple(int(item) for item in items(value, name, _MOST))
    except (TypeError, ValueError, ArithmeticError, np.ma.MaskError):
        raise AttributeValueError(wanted) from None
    if len(found) != count:
        raise AttributeValueError(wanted)
    return found


def padding_mode(value: Any, causal: bool = False) -> str:
    """Return "valid", "same", or where layers take it "causal".

    Args:
        value: One of them, in letters of either case.
        causal: Whether "causal" is taken.

    Raises:
        AttributeValueError: if it is none of them.
    """
    known = ("valid", "same", "causal") if causal else ("valid", "same")
    found = value.lower() if isinstance(value, str) else value
    if found not in known:
        raise AttributeValueError(f"padding must be one of {', '.join(known)}, got {shown(value)}")
    return str(found)


def channels_place(value: Any) -> str:
    """Return "channels_last" or "channels_first"; None is the former.

    Raises:
        AttributeValueError: if it is neither.
    """
    found = "channels_last" if value is None else value
    found = found.lower() if isinstance(found, str) else found
    if found not in ("channels_last", "channels_first"):
        raise AttributeValueError(
            f"data_format must be 'channels_last' or 'channels_first', got {shown(value)}"
        )
    return str(found)


def layout(data_format: str, count: int) -> str:
    """Return the name that ``headrace.nn`` has for a layout of ``count`` spatial axes."""
    return (_FIRST if data_format == "channels_first" else _LAST)[count]


def activation_function(value: Any) -> Activation | None:
    """Return an activation: a function, or None.

    Args:
        value: A function of a tensor, its name in ``headrace.nn``, or None or "linear" for none.

    Raises:
        AttributeValueError: if there is no such name.
        DTypeError: if it is neither.
    """
    if value is None or value == "linear":
        return None
    if isinstance(value, str):
        if value not in _ACTIVATIONS:
            raise AttributeValueError(
                f"there is no activation {shown(value)}: give a function, such as hr.nn.relu, or "
                "one "
                f"of {', '.join(_ACTIVATIONS)}"
            )
        named: Activation = getattr(hr.nn, value)
        return named
    if not callable(value):
        raise DTypeError(f"activation must be a function of a tensor, got {shown(value)}")
    chosen: Activation = value
    return chosen


def initializer(value: Any) -> Any:
    """Return an initializer as ``get_variable`` takes it.

    Args:
        value: A function or class of one, its name in ``headrace.initializers``, or None.

    Raises:
        AttributeValueError: if there is no such name.
    """
    if not isinstance(value, str):
        return value
    found = None if value.startswith("_") else getattr(hr.initializers, value, None)
    if found is None:
        raise AttributeValueError(
            f"there is no initializer {shown(value)}: give one of hr.initializers, such as "
            "hr.initializers.he_normal()"
        )
    return found()


def checked_function(value: Any, name: str) -> Any:
    """Return a regularizer or constraint: a function, or None.

    Raises:
        AttributeValueError: if it is neither.
    """
    if value is not None and not callable(value):
        raise AttributeValueError(f"{name} must be a function, got {shown(value)}")
    return value
