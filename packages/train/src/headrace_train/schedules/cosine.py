"""Cosine decay of learning rates, with restarts and noise."""

from __future__ import annotations

from typing import Any

import headrace as hr
from headrace import Tensor
from headrace_train.schedules.progress import as_count, as_rate, as_step, half_cosine


def cosine_decay(
    learning_rate: Any,
    global_step: Any,
    decay_steps: Any,
    alpha: Any = 0.0,
    name: str | None = None,
) -> Tensor:
    """Return a rate that falls as half a cosine, and then stays.

    With ``done = min(global_step, decay_steps) / decay_steps``::

        learning_rate * ((1 - alpha) * (1 + cos(pi * done)) / 2 + alpha)

    Args:
        learning_rate: The rate at step 0, a number or a floating scalar tensor.
        global_step: The step, an integer scalar variable or tensor.
        decay_steps: In how many steps the rate falls, above 0.
        alpha: What part of the rate is left at the end.
        name: Prefix of the operations.

    Returns:
        [], of the dtype of ``learning_rate``, float32 for a number.

    Raises:
        AttributeValueError: if ``decay_steps`` is not above 0, or ``global_step`` is None.

    References:
        I. Loshchilov and F. Hutter, "SGDR: Stochastic Gradient Descent with Warm Restarts", ICLR
        2017, https://arxiv.org/abs/1608.03983
    """
    with hr.name_scope(name, "CosineDecay"):
        rate = as_rate(learning_rate)
        step = as_step("cosine_decay", global_step, rate.dtype)
        count = as_count("cosine_decay", "decay_steps", decay_steps, rate.dtype)
        least: Tensor = hr.cast(alpha, rate.dtype)
        done = hr.minimum(step, count) / count
        falling: Tensor = hr.multiply(rate, (1.0 - least) * half_cosine(done) + least)
        return falling


def cosine_decay_restarts(
    learning_rate: Any,
    global_step: Any,
    first_decay_steps: Any,
    t_mul: Any = 2.0,
    m_mul: Any = 1.0,
    alpha: Any = 0.0,
    name: str | None = None,
) -> Tensor:
    """Return a rate that falls as half a cosine, again and again.

    Each period is ``t_mul`` times as long as the one before, and starts from a rate ``m_mul`` times
    as high; within a period it falls as with ``cosine_decay``.

    Args:
        learning_rate: The rate at step 0, a number or a floating scalar tensor.
        global_step: The step, an integer scalar variable or tensor.
        first_decay_steps: The length of the first period, above 0.
        t_mul: By what the lengths of periods are multiplied, at least 1.
        m_mul: By what the rates at their beginnings are multiplied.
        alpha: What part of the rate is left at the end of a period.
        name: Prefix of the operations.

    Returns:
        [], of the dtype of ``learning_rate``, float32 for a number.

    Raises:
        AttributeValueError: if ``first_decay_steps`` is not above 0, or ``global_step`` is None.

    References:
        I. Loshchilov and F. Hutter, "SGDR: Stochastic Gradient Descent with Warm Restarts", ICLR
        2017, https://arxiv.org/abs/1608.03983
    """
    with hr.name_scope(name, "SGDRDecay") as scope:
        rate = as_rate(learning_rate)
        dtype = rate.dtype
        step = as_step("cosine_decay_restarts", global_step, dtype)
        count = as_count("cosine_decay_restarts", "first_decay_steps", first_decay_steps, dtype)
        restarts, done = _period(step / count, hr.cast(t_mul, dtype))
        least: Tensor = hr.cast(alpha, dtype)
        height: Tensor = hr.cast(m_mul, dtype) ** restarts
        share = (1.0 - least) * height * half_cosine(done) + least
        falling: Tensor = hr.multiply(rate, share, name=scope)
        return falling


def _period(passed: Tensor, growth: Tensor) -> tuple[Tensor, Tensor]:
    """Return how many periods are over, and the part of the present one that is.

    Args:
        passed: The time so far, in first periods.
        growth: By what the lengths of periods are multiplied.
    """
    even = hr.equal(growth, 1.0)
    # The sum of n periods is (1 - growth**n) / (1 - growth), which has no value at 1.
    ratio = hr.where(even, hr.ones_like(growth) * 2.0, growth)
    over = hr.floor(hr.log(1.0 - passed * (1.0 - ratio)) / hr.log(ratio))
    length = ratio**over
    done = (passed - (1.0 - length) / (1.0 - ratio)) / length
    whole = hr.floor(passed)
    return hr.where(even, whole, over), hr.where(even, passed - whole, done)


def linear_cosine_decay(
    learning_rate: Any,
    global_step: Any,
    decay_steps: Any,
    num_periods: Any = 0.5,
    alpha: Any = 0.0,
    beta: Any = 0.001,
    name: str | None = None,
) -> Tensor:
    """Return a rate that falls as a cosine times a line.

    With ``done = min(global_step, decay_steps) / decay_steps``::

        learning_rate * ((alpha + 1 - done) * (1 + cos(2 * pi * num_periods * done)) / 2 + beta)

    Args:
        learning_rate: The rate at step 0, a number or a floating scalar tensor.
        global_step: The step, an integer scalar variable or tensor.
        decay_steps: In how many steps the rate falls, above 0.
        num_periods: How many periods of the cosine that is.
        alpha: See the formula.
        beta: See the formula.
        name: Prefix of the operations.

    Returns:
        [], of the dtype of ``learning_rate``, float32 for a number.

    Raises:
        AttributeValueError: if ``decay_steps`` is not above 0, or ``global_step`` is None.

    References:
        I. Bello et al., "Neural Optimizer Search with Reinforcement Learning", ICML 2017,
        https://arxiv.org/abs/1709.07417
    """
    with hr.name_scope(name, "LinearCosineDecay") as scope:
        rate = as_rate(learning_rate)
        step = as_step("linear_cosine_decay", global_step, rate.dtype)
        count = as_count("linear_cosine_decay", "decay_steps", decay_steps, rate.dtype)
        done = hr.minimum(step, count) / count
        share = _waved(1.0 - done, done, num_periods, alpha, beta)
        falling: Tensor = hr.multiply(rate, share, name=scope)
        return falling


def noisy_linear_cosine_decay(
    learning_rate: Any,
    global_step: Any,
    decay_steps: Any,
    initial_variance: Any = 1.0,
    variance_decay: Any = 0.55,
    num_periods: Any = 0.5,
    alpha: Any = 0.0,
    beta: Any = 0.001,
    name: str | None = None,
) -> Tensor:
    """Return a rate that falls as a cosine times a line with noise.

    With ``done = min(global_step, decay_steps) / decay_steps``, and ``noise`` drawn anew in each
    step from a normal distribution of the variance
    ``initial_variance / (1 + min(global_step, decay_steps)) ** variance_decay``::

        line = alpha + 1 - done + noise
        learning_rate * (line * (1 + cos(2 * pi * num_periods * done)) / 2 + beta)

    Args:
        learning_rate: The rate at step 0, a number or a floating scalar tensor.
        global_step: The step, an integer scalar variable or tensor.
        decay_steps: In how many steps the rate falls, above 0.
        initial_variance: The variance of the noise at step 0.
        variance_decay: How fast the variance falls.
        num_periods: How many periods of the cosine that is.
        alpha: See the formula.
        beta: See the formula.
        name: Prefix of the operations.

    Returns:
        [], of the dtype of ``learning_rate``, float32 for a number.

    Raises:
        AttributeValueError: if ``decay_steps`` is not above 0, or ``global_step`` is None.

    References:
        I. Bello et al., "Neural Optimizer Search with Reinforcement Learning", ICML 2017,
        https://arxiv.org/abs/1709.07417
    """
    with hr.name_scope(name, "NoisyLinearCosineDecay") as scope:
        rate = as_rate(learning_rate)
        dtype = rate.dtype
        count = as_count("noisy_linear_cosine_decay", "decay_steps", decay_steps, dtype)
        step = hr.minimum(as_step("noisy_linear_cosine_decay", global_step, dtype), count)
        fall = (1.0 + step) ** hr.cast(variance_decay, dtype)
        deviation = hr.sqrt(hr.cast(initial_variance, dtype) / fall)
        noise = hr.random_normal([], dtype=dtype) * deviation
        done = step / count
        share = _waved(1.0 - done + noise, done, num_periods, alpha, beta)
        falling: Tensor = hr.multiply(rate, share, name=scope)
        return falling


def _waved(line: Tensor, done: Tensor, num_periods: Any, alpha: Any, beta: Any) -> Tensor:
    part = 2.0 * hr.cast(num_periods, line.dtype) * done
    wave: Tensor = (hr.cast(alpha, line.dtype) + line) * half_cosine(part)
    least: Tensor = hr.cast(beta, line.dtype)
    return wave + least
