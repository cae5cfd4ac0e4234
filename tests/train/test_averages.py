"""Averages of variables follow their equation, and come back from checkpoints."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import headrace as hr
from headrace.errors import DTypeError, ShapeError

pytestmark = [pytest.mark.needs("backend-cpu"), pytest.mark.usefixtures("graph")]


def test_averages_follow_the_variables() -> None:
    v = hr.Variable([1.0, 2.0], name="v")
    fixed = hr.Variable(3.0, name="fixed", trainable=False)
    ema = hr.train.ExponentialMovingAverage(0.9)
    grow = v.assign_add([1.0, 1.0])
    with hr.control_dependencies([grow]):
        update = ema.apply()
    average = ema.average(v)
    assert average is not None
    assert average.op.name == ema.average_name(v) == "v/ExponentialMovingAverage"
    assert ema.average(fixed) is None
    assert ema.average_name(fixed) == "fixed/ExponentialMovingAverage"
    assert hr.moving_average_variables() == [v]
    assert not average.trainable
    expected, value = np.array([1.0, 2.0]), np.array([1.0, 2.0])
    with hr.Session() as session:
        session.run(hr.global_variables_initializer())
        np.testing.assert_allclose(session.run(average), expected)
        for _ in range(3):
            session.run(update)
            value = value + 1.0
            expected = expected - 0.1 * (expected - value)
            np.testing.assert_allclose(session.run(average), expected, rtol=1e-6)


def test_early_steps_follow_faster() -> None:
    v = hr.Variable(0.0, name="v")
    ema = hr.train.ExponentialMovingAverage(0.999, num_updates=5)
    update = ema.apply([v])
    with hr.Session() as session:
        session.run(hr.global_variables_initializer())
        session.run(v.assign(15.0))
        session.run(update)
        assert session.run(ema.average(v)) == pytest.approx(15.0 * (1 - 6 / 15))


@pytest.mark.parametrize("zero_debias", [False, True])
def test_averages_of_tensors_start_at_zero(zero_debias: bool) -> None:
    x = hr.placeholder(hr.float64, [2], name="x")
    ema = hr.train.ExponentialMovingAverage(0.5, zero_debias=zero_debias)
    update = ema.apply([x])
    average = ema.average(x)
    with hr.Session() as session:
        session.run(hr.global_variables_initializer())
        session.run(update, {x: [1.0, 4.0]})
        session.run(update, {x: [3.0, 4.0]})
        found = session.run(average)
    biased = np.array([1.75, 3.0])
    np.testing.assert_allclose(found, biased / 0.75 if zero_debias else biased)


def test_variables_get_their_averages_from_a_checkpoint(tmp_path: Path) -> None:
    v = hr.Variable(1.0, name="v")
    other = hr.Variable(7.0, name="other", trainable=False)
    ema = hr.train.ExponentialMovingAverage(0.5)
    update = ema.apply([v])
    names = ema.variables_to_restore()
    assert names == {"v/ExponentialMovingAverage": v, "other": other}
    with hr.Session() as session:
        session.run(hr.global_variables_initializer())
        session.run(v.assign(3.0))
        session.run(update)
        path = hr.train.Saver().save(session, str(tmp_path / "model"))
        hr.train.Saver(names).restore(session, path)
        assert session.run([v, other]) == [2.0, 7.0]


def test_errors() -> None:
    ema = hr.train.ExponentialMovingAverage(0.5)
    with pytest.raises(DTypeError, match="floating"):
        ema.apply([hr.Variable(1)])
    with pytest.raises(TypeError, match="must be a number, got 'x'"):
        hr.train.ExponentialMovingAverage("x").apply([hr.Variable(1.0)])


@pytest.mark.parametrize(("decay", "value"), [(2.0, 0.0), (-1.0, 3.0), (1, 1.0)])
def test_decays_outside_of_0_to_1_follow_the_equation(decay: float, value: float) -> None:
    v = hr.Variable(1.0)
    ema = hr.train.ExponentialMovingAverage(decay)
    update = ema.apply([v])
    with hr.Session() as session:
        session.run(hr.global_variables_initializer())
        session.run(v.assign(2.0))
        session.run(update)
        assert session.run(ema.average(v)) == value


@pytest.mark.parametrize("shape", [None, [None]])
@pytest.mark.parametrize("zero_debias", [False, True])
def test_averages_of_tensors_of_unknown_shape(zero_debias: bool, shape: Any) -> None:
    x = hr.placeholder(hr.float32, shape)
    y = x * 2.0
    ema = hr.train.ExponentialMovingAverage(0.5, zero_debias=zero_debias)
    update = ema.apply([y])
    average = ema.average(y)
    with hr.Session() as session:
        session.run(hr.global_variables_initializer(), {x: [1.0, 2.0]})
        assert session.run(average).tolist() == [0.0, 0.0]
        session.run(update, {x: [1.0, 2.0]})
        assert session.run(average).tolist() == ([2.0, 4.0] if zero_debias else [1.0, 2.0])
        with pytest.raises(ShapeError, match="shape"):
            session.run(update, {x: [1.0, 2.0, 3.0]})
        assert session.run(average).tolist() == ([2.0, 4.0] if zero_debias else [1.0, 2.0])
