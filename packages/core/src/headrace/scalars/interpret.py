"""Computing an expression function by function, with the kernels that a device has for its ops."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from headrace.dtypes import DType
from headrace.scalars.expression import Expression
from headrace.scalars.functions import SCALAR_FUNCTIONS
from headrace.scalars.scalar import CONSTANT, INPUT, Scalar

# The plain kernel of an op, ``f(xp, *arrays, **attrs)``, for inputs of a dtype; None if there is
# none.
Find = Callable[[str, DType], Callable[..., Any] | None]


def computable(expression: Expression, find: Find) -> bool:
    """Whether there is a kernel for every function of an expression."""
    return all(
        step.function in (INPUT, CONSTANT)
        or not SCALAR_FUNCTIONS[step.function].op
        or find(SCALAR_FUNCTIONS[step.function].op, step.args[0].dtype) is not None
        for step in expression.steps
    )


def interpreter(expression: Expression, xp: Any, find: Find) -> Callable[..., Any]:
    """Return a function of arrays that computes an expression, one array for each of its steps.

    Args:
        expression: The expression, for which there are kernels.
        xp: The array module.
        find: Returns the kernels.
    """
    constants = {
        step: xp.asarray(step.value, step.dtype.numpy)
        for step in expression.steps
        if step.function == CONSTANT
    }
    calls = [
        (step, _call(step, xp, find))
        for step in expression.steps
        if step.function not in (INPUT, CONSTANT)
    ]
    inputs = [step for step in expression.steps if step.function == INPUT]
    result = expression.result

    def compute(*arrays: Any) -> Any:
        values = {**constants, **{step: arrays[step.value] for step in inputs}}
        for step, call in calls:
            values[step] = call(*[values[arg] for arg in step.args])
        return _whole(xp, values[result], arrays)

    return compute


def _call(step: Scalar, xp: Any, find: Find) -> Callable[..., Any]:
    op = SCALAR_FUNCTIONS[step.function].op
    if not op:
        return getattr(xp, step.function)  # type: ignore[no-any-return]
    kernel = find(op, step.args[0].dtype)
    assert kernel is not None
    attrs = {"dtype": step.dtype} if step.function == "cast" else {}
    return lambda *values: kernel(xp, *values, **attrs)


def _whole(xp: Any, value: Any, arrays: Sequence[Any]) -> Any:
    """Return a value as an array of its own, of the shape to which the inputs broadcast."""
    shape = np.broadcast_shapes(*[array.shape for array in arrays])
    if value.shape != shape or any(value is array for array in arrays):
        return xp.array(xp.broadcast_to(value, shape))
    return value
