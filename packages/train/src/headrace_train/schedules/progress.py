"""What all schedules compute with: a rate, and how far training is."""

from __future__ import annotations

import math
from typing import Any

import headrace as hr
from headrace import DType, Tensor
from headrace.errors import AttributeValueError, told


def as_rate(learning_rate: Any) -> Tensor:
    """Return the rate that a schedule starts with, float32 where it is a number."""
    return hr.convert_to_tensor(learning_rate, preferred_dtype=hr.float32)


def as_step(schedule: str, global_step: Any, dtype: DType) -> Tensor:
    """Return the number of steps so far as ``dtype``.

    Raises:
        AttributeValueError: if it is None.
    """
    if global_step is None:
        raise AttributeValueError(
            f"{schedule} needs a global_step; make one with hr.train.get_or_create_global_step()"
        )
    step: Tensor = hr.cast(global_step, dtype)
    return step


def as_count(schedule: str, name: str, value: Any, dtype: DType) -> Tensor:
    """Return a number of steps, which must be above 0, as ``dtype``.

    Raises:
        AttributeValueError: if it is a number that is not above 0.
    """
    if isinstance(value, int | float) and value <= 0:
        raise AttributeValueError(f"{schedule}: {name} must be above 0, got {told(value)}")
    count: Tensor = hr.cast(value, dtype)
    return count


def periods(
    schedule: str, global_step: Any, decay_steps: Any, dtype: DType, staircase: bool
) -> Tensor:
    """Return ``global_step / decay_steps``, rounded down with ``staircase``."""
    step = as_step(schedule, global_step, dtype)
    passed = step / as_count(schedule, "decay_steps", decay_steps, dtype)
    if not staircase:
        return passed
    whole: Tensor = hr.floor(passed)
    return whole


def half_cosine(part: Tensor) -> Tensor:
    """Return ``(1 + cos(pi * part)) / 2``, which falls from 1 at 0 to 0 at 1."""
    cosine: Tensor = hr.cos(math.pi * part)
    return 0.5 * (1.0 + cosine)
