"""Schedules beyond TensorFlow's tables: warm-up, noise, the global step, and what is refused."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import headrace as hr
from headrace.errors import AttributeValueError, DTypeError

pytestmark = [pytest.mark.needs("backend-cpu"), pytest.mark.usefixtures("graph")]


def at(rate: hr.Tensor, step: hr.Tensor, steps: Any) -> list[float]:
    with hr.Session() as session:
        return [float(session.run(rate, {step: s})) for s in steps]


def test_warm_up_rises_and_stays() -> None:
    step = hr.placeholder(hr.int64, [])
    rate = hr.train.linear_warmup(0.8, step, 4, 0.4)
    found = at(rate, step, [0, 1, 2, 4, 5, 100])
    np.testing.assert_allclose(found, [0.4, 0.5, 0.6, 0.8, 0.8, 0.8], rtol=1e-6)


def test_warm_up_to_another_schedule() -> None:
    step = hr.placeholder(hr.int64, [])
    falling = hr.train.exponential_decay(hr.constant(1.0, hr.float64), step - 2, 1, 0.5)
    rate = hr.train.linear_warmup(falling, step, 2)
    assert rate.dtype == hr.float64
    assert at(rate, step, [2, 3, 5]) == [1.0, 0.5, 0.125]


def test_noise_has_the_variance_of_its_step() -> None:
    step = hr.placeholder(hr.int64, [])
    hr.set_random_seed(3)
    rate = hr.train.noisy_linear_cosine_decay(1.0, step, 100, 4.0, 1.0, num_periods=0.0, beta=0.0)
    for now, variance in ((0, 4.0), (15, 0.25)):
        found = np.array(at(rate, step, [now] * 400))
        assert abs(found.mean() - (1 - now / 100)) < 4 * np.sqrt(variance / 400)
        assert abs(found.var() / variance - 1) < 0.4


def test_a_schedule_of_float64_is_exact() -> None:
    step = hr.placeholder(hr.int64, [])
    rate = hr.train.cosine_decay(hr.constant(1.0, hr.float64), step, 30)
    expected = [(1 + np.cos(np.pi * s / 30)) / 2 for s in range(31)]
    np.testing.assert_allclose(at(rate, step, range(31)), expected, rtol=0, atol=1e-15)


def test_arguments_may_be_tensors() -> None:
    step, growth = hr.placeholder(hr.int64, []), hr.placeholder(hr.float32, [])
    rate = hr.train.cosine_decay_restarts(1.0, step, hr.constant(10), growth)
    with hr.Session() as session:
        for given, now, expected in ((1.0, 15, 0.5), (2.0, 20, 0.5), (1.0, 10, 1.0)):
            np.testing.assert_allclose(
                session.run(rate, {step: now, growth: given}), expected, atol=1e-6
            )


SCHEDULES: dict[str, Callable[..., Any]] = {
    "exponential_decay": lambda step, n: hr.train.exponential_decay(0.1, step, n, 0.9),
    "natural_exp_decay": lambda step, n: hr.train.natural_exp_decay(0.1, step, n, 0.9),
    "inverse_time_decay": lambda step, n: hr.train.inverse_time_decay(0.1, step, n, 0.9),
    "polynomial_decay": lambda step, n: hr.train.polynomial_decay(0.1, step, n),
    "cosine_decay": lambda step, n: hr.train.cosine_decay(0.1, step, n),
    "cosine_decay_restarts": lambda step, n: hr.train.cosine_decay_restarts(0.1, step, n),
    "linear_cosine_decay": lambda step, n: hr.train.linear_cosine_decay(0.1, step, n),
    "noisy_linear_cosine_decay": lambda step, n: hr.train.noisy_linear_cosine_decay(0.1, step, n),
    "linear_warmup": lambda step, n: hr.train.linear_warmup(0.1, step, n),
}


@pytest.mark.parametrize("name", SCHEDULES)
def test_refused(name: str) -> None:
    with pytest.raises(AttributeValueError, match=f"{name} needs a global_step; make one with"):
        SCHEDULES[name](None, 10)
    with pytest.raises(AttributeValueError, match=f"{name}: .*steps must be above 0, got 0"):
        SCHEDULES[name](hr.constant(1), 0)


def test_pieces_that_do_not_fit() -> None:
    step = hr.train.create_global_step()
    with pytest.raises(AttributeValueError, match="got 2 boundaries and 2 values"):
        hr.train.piecewise_constant(step, [1, 2], [0.1, 0.2])
    with pytest.raises(AttributeValueError, match="at least one boundary"):
        hr.train.piecewise_constant(step, [], [0.1])
    with pytest.raises(DTypeError, match="boundaries must be int64 as x is, got float32"):
        hr.train.piecewise_constant(step, [1.0], [0.1, 0.2])
    with pytest.raises(DTypeError, match="values must be of one dtype, got float32 and int32"):
        hr.train.piecewise_constant(step, [1], [0.1, 2])


class TestGlobalStep:
    def test_is_fetched(self) -> None:
        step = hr.train.create_global_step()
        with hr.Session() as session:
            session.run(hr.global_variables_initializer())
            session.run(step.assign_add(3).op)
            found = hr.train.global_step(session, step)
            assert (found, type(found)) == (3, int)
            assert hr.train.global_step(session, step.name) == 3

    def test_is_listed(self) -> None:
        step = hr.train.create_global_step()
        assert hr.get_collection(hr.GraphKeys.GLOBAL_STEP) == [step]
        assert step in hr.global_variables()
        hr.add_to_collection(hr.GraphKeys.GLOBAL_STEP, hr.Variable(1))
        assert hr.train.get_global_step() is None

    def test_may_be_one_of_the_programs_own(self) -> None:
        mine = hr.Variable(7, trainable=False, name="my_steps")
        hr.add_to_collection(hr.GraphKeys.GLOBAL_STEP, mine)
        assert hr.train.get_or_create_global_step() is mine

    @pytest.mark.parametrize("wrong", [7, "global_step", None])
    def test_that_is_no_variable(self, wrong: Any) -> None:
        with pytest.raises(DTypeError, match="the global step must be a variable or a tensor, got"):
            hr.train.assert_global_step(wrong)

    def test_of_the_wrong_kind(self) -> None:
        hr.train.assert_global_step(hr.constant(3))
        for wrong in (hr.Variable(1.0), hr.constant([1, 2])):
            with pytest.raises(DTypeError, match="the global step must be an integer scalar, got"):
                hr.train.assert_global_step(wrong)
