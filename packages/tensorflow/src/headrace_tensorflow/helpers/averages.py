"""``training.moving_averages``: averages that are updated by hand."""

from __future__ import annotations

from typing import Any

import headrace as hr


def assign_moving_average(
    variable: hr.Variable,
    value: Any,
    decay: Any,
    zero_debias: bool = True,
    name: str | None = None,
) -> Any:
    """Move a variable towards a value: ``variable -= (1 - decay) * (variable - value)``.

    Args:
        variable: The average.
        value: The shape and dtype of the average.
        decay: [], between 0 and 1.
        zero_debias: Whether to take out what the average has of the zeros that it began with
            (D. P. Kingma, J. Ba: Adam, ICLR 2015, section 3); for averages that begin with 0.
        name: The name of the operations.

    Returns:
        The new average.
    """
    kind = variable.dtype.base_dtype
    with hr.name_scope(name, "AssignMovingAvg", [variable, value, decay]):
        step = hr.cast(1.0 - hr.convert_to_tensor(decay), kind)
        if not zero_debias:
            return variable.assign_sub((variable - value) * step)
        with hr.variable_scope(variable.op.name, values=[variable, value]), hr.init_scope():
            biased = hr.get_variable("biased", initializer=hr.zeros_like(variable), trainable=False)
            count = hr.get_variable("local_step", initializer=hr.zeros([], kind), trainable=False)
        moved = biased.assign_sub((biased - value) * step)
        counted = count.assign_add(1)
        return variable.assign(moved / (1 - hr.pow(1 - step, counted)))
