"""Exponential decay of learning rates: by the same factor in equal times."""

from __future__ import annotations

from typing import Any

import headrace as hr
from headrace import Tensor
from headrace_train.schedules.progress import as_rate, periods


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
        AttributeValueError: if ``decay_steps`` is not above 0, or ``global_step`` is None.
    """
    with hr.name_scope(name, "ExponentialDecay") as scope:
        rate = as_rate(learning_rate)
        passed = periods("exponential_decay", global_step, decay_steps, rate.dtype, staircase)
        base: Tensor = hr.cast(decay_rate, rate.dtype)
        falling: Tensor = hr.multiply(rate, base**passed, name=scope)
        return falling


def natural_exp_decay(
    learning_rate: Any,
    global_step: Any,
    decay_steps: Any,
    decay_rate: Any,
    staircase: bool = False,
    name: str | None = None,
) -> Tensor:
    """Return ``learning_rate * exp(-decay_rate * global_step / decay_steps)``.

    Args:
        learning_rate: The rate at step 0, a number or a floating scalar tensor.
        global_step: The step, an integer scalar variable or tensor.
        decay_steps: In how many steps the exponent falls by ``decay_rate``, above 0.
        decay_rate: How fast the rate falls.
        staircase: Whether the rate changes every ``decay_steps`` steps only.
        name: Prefix of the operations.

    Returns:
        [], of the dtype of ``learning_rate``, float32 for a number.

    Raises:
        AttributeValueError: if ``decay_steps`` is not above 0, or ``global_step`` is None.
    """
    with hr.name_scope(name, "ExponentialDecay") as scope:
        rate = as_rate(learning_rate)
        passed = periods("natural_exp_decay", global_step, decay_steps, rate.dtype, staircase)
        share = hr.exp(-hr.cast(decay_rate, rate.dtype) * passed)
        falling: Tensor = hr.multiply(rate, share, name=scope)
        return falling
