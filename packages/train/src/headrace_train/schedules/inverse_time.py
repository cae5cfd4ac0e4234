"""Inverse-time decay of learning rates."""

from __future__ import annotations

from typing import Any

import headrace as hr
from headrace import Tensor
from headrace_train.schedules.progress import as_rate, periods


def inverse_time_decay(
    learning_rate: Any,
    global_step: Any,
    decay_steps: Any,
    decay_rate: Any,
    staircase: bool = False,
    name: str | None = None,
) -> Tensor:
    """Return ``learning_rate / (1 + decay_rate * global_step / decay_steps)``.

    Args:
        learning_rate: The rate at step 0, a number or a floating scalar tensor.
        global_step: The step, an integer scalar variable or tensor.
        decay_steps: In how many steps the denominator grows by ``decay_rate``, above 0.
        decay_rate: How fast the rate falls.
        staircase: Whether the rate changes every ``decay_steps`` steps only.
        name: Prefix of the operations.

    Returns:
        [], of the dtype of ``learning_rate``, float32 for a number.

    Raises:
        AttributeValueError: if ``decay_steps`` is not above 0, or ``global_step`` is None.
    """
    with hr.name_scope(name, "InverseTimeDecay") as scope:
        rate = as_rate(learning_rate)
        passed = periods("inverse_time_decay", global_step, decay_steps, rate.dtype, staircase)
        divisor = 1.0 + hr.cast(decay_rate, rate.dtype) * passed
        falling: Tensor = hr.divide(rate, divisor, name=scope)
        return falling
