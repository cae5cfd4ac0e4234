"""Polynomial decay of learning rates, to a last one."""

from __future__ import annotations

from typing import Any

import headrace as hr
from headrace import Tensor
from headrace_train.schedules.progress import as_count, as_rate, as_step


def polynomial_decay(
    learning_rate: Any,
    global_step: Any,
    decay_steps: Any,
    end_learning_rate: Any = 0.0001,
    power: Any = 1.0,
    cycle: bool = False,
    name: str | None = None,
) -> Tensor:
    """Return a rate that falls from ``learning_rate`` to ``end_learning_rate``.

    With ``done = min(global_step, decay_steps) / decay_steps``::

        end_learning_rate + (learning_rate - end_learning_rate) * (1 - done) ** power

    With ``cycle`` it starts again whenever it has come to its end, with ``decay_steps`` replaced by
    its first multiple that is not below ``global_step``: from lower and lower rates.

    Args:
        learning_rate: The rate at step 0, a number or a floating scalar tensor.
        global_step: The step, an integer scalar variable or tensor.
        decay_steps: In how many steps the rate falls, above 0.
        end_learning_rate: The last rate.
        power: 1 for a line.
        cycle: Whether to start again.
        name: Prefix of the operations.

    Returns:
        [], of the dtype of ``learning_rate``, float32 for a number.

    Raises:
        AttributeValueError: if ``decay_steps`` is not above 0, or ``global_step`` is None.
    """
    with hr.name_scope(name, "PolynomialDecay") as scope:
        rate = as_rate(learning_rate)
        step = as_step("polynomial_decay", global_step, rate.dtype)
        count = as_count("polynomial_decay", "decay_steps", decay_steps, rate.dtype)
        last: Tensor = hr.cast(end_learning_rate, rate.dtype)
        if cycle:
            done = step / (count * hr.maximum(hr.ceil(step / count), 1.0))
        else:
            done = hr.minimum(step, count) / count
        left: Tensor = hr.pow(1.0 - done, hr.cast(power, rate.dtype))
        falling: Tensor = hr.add((rate - last) * left, last, name=scope)
        return falling
