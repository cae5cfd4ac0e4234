"""The global step: the variable that counts steps of training, and rates that depend on it."""

from __future__ import annotations

from typing import Any

import headrace as hr
from headrace import Graph, Tensor, Variable
from headrace.errors import AttributeValueError, DTypeError, GraphError

_NAME = "global_step"


def get_global_step(graph: Graph | None = None) -> Variable | None:
    """Return the variable ``global_step`` of a graph, None where there is none.

    Args:
        graph: The graph; the default graph if None.

    Raises:
        DTypeError: if the variable of that name is no integer scalar.
    """
    owner = graph if graph is not None else hr.get_default_graph()
    found = next((v for v in owner.variables if v.op_name == _NAME), None)
    if found is not None and not (found.dtype.is_integer and found.shape == ()):
        raise DTypeError(
            f"the global step must be an integer scalar, got the variable {found!r}; give one of "
            "them another name"
        )
    return found


def create_global_step(graph: Graph | None = None) -> Variable:
    """Make the variable ``global_step``, int64, which optimizers increment when it is passed.

    Args:
        graph: The graph; the default graph if None.

    Raises:
        GraphError: if the graph has one already.
    """
    owner = graph if graph is not None else hr.get_default_graph()
    if get_global_step(owner) is not None:
        raise GraphError("the graph has a global step already: use get_or_create_global_step()")
    with owner.as_default(), hr.name_scope(""):
        return Variable(0, trainable=False, name=_NAME, dtype=hr.int64)


def get_or_create_global_step(graph: Graph | None = None) -> Variable:
    """Return the variable ``global_step`` of a graph, made when there is none.

    Args:
        graph: The graph; the default graph if None.
    """
    owner = graph if graph is not None else hr.get_default_graph()
    found = get_global_step(owner)
    return create_global_step(owner) if found is None else found


def exponential_decay(
    learning_rate: Any,
    global_step: Any,
    decay_steps: Any,
    decay_rate: Any,
    staircase: bool = False,
    name: str | None = None,
) -> Tensor:
    """Return ``learning_rate * decay_rate ** (global_step / decay_steps)``.

    Args:
        learning_rate: The rate at step 0, a number or a floating scalar tensor.
        global_step: The step, an integer scalar variable or tensor.
        decay_steps: In how many steps the rate is multiplied by ``decay_rate`` once, above 0.
        decay_rate: By what it is multiplied.
        staircase: Whether the rate changes every ``decay_steps`` steps only.
        name: Prefix of the operations.

    Returns:
        [], of the dtype of ``learning_rate``, float32 for a number.

    Raises:
        AttributeValueError: if ``decay_steps`` is not above 0.
    """
    if isinstance(decay_steps, int | float) and decay_steps <= 0:
        raise AttributeValueError(f"decay_steps must be above 0, got {decay_steps}")
    with hr.name_scope(name, "exponential_decay"):
        rate = hr.convert_to_tensor(learning_rate, preferred_dtype=hr.float32)
        step = hr.cast(global_step, rate.dtype)
        periods = hr.truediv(step, hr.cast(decay_steps, rate.dtype))
        if staircase:
            periods = hr.floordiv(periods, 1.0)
        base: Tensor = hr.cast(decay_rate, rate.dtype)
        return rate * base**periods
