"""Warmup: learning rates that rise at the beginning of training."""

from __future__ import annotations

from typing import Any

import headrace as hr
from headrace import Tensor
from headrace_train.schedules.progress import as_count, as_rate, as_step


def linear_warmup(
    learning_rate: Any,
    global_step: Any,
    warmup_steps: Any,
    start_learning_rate: Any = 0.0,
    name: str | None = None,
) -> Tensor:
    """Return a rate that rises along a line to ``learning_rate``, and is that from then on.

    With ``done = min(global_step, warmup_steps) / warmup_steps``::

        start_learning_rate + (learning_rate - start_learning_rate) * done

    ``learning_rate`` may be a schedule, which then falls from the first step on, or from
    ``warmup_steps`` on if it counts ``global_step - warmup_steps``.

    Args:
        learning_rate: The rate afterwards: a number, or a floating scalar tensor such as that of
            another schedule.
        global_step: The step, an integer scalar variable or tensor.
        warmup_steps: In how many steps the rate rises, above 0.
        start_learning_rate: The rate at step 0.
        name: Prefix of the operations.

    Returns:
        [], of the dtype of ``learning_rate``, float32 for a number.

    Raises:
        AttributeValueError: if ``warmup_steps`` is not above 0, or ``global_step`` is None.

    References:
        P. Goyal et al., "Accurate, Large Minibatch SGD: Training ImageNet in 1 Hour", 2017,
        https://arxiv.org/abs/1706.02677
    """
    with hr.name_scope(name, "LinearWarmup"):
        rate = as_rate(learning_rate)
        step = as_step("linear_warmup", global_step, rate.dtype)
        count = as_count("linear_warmup", "warmup_steps", warmup_steps, rate.dtype)
        first: Tensor = hr.cast(start_learning_rate, rate.dtype)
        rising = first + (rate - first) * (hr.minimum(step, count) / count)
        # The sum may miss the rate by its last bit.
        chosen: Tensor = hr.where(step < count, rising, rate)
        return chosen
