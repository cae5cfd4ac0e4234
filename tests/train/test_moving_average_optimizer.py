"""Averages of what an optimizer trains, and the saver that swaps them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import headrace as hr
from headrace.errors import FailedPreconditionError, GraphError

pytestmark = pytest.mark.needs("backend-cpu")

AVERAGE = "x/ExponentialMovingAverage"


def model() -> tuple[hr.Variable, hr.train.MovingAverageOptimizer, hr.Operation]:
    x = hr.Variable([8.0, 4.0], name="x")
    hr.Variable(1.0, trainable=False, name="other")
    inner = hr.train.MomentumOptimizer(0.25, 0.0)
    optimizer = hr.train.MovingAverageOptimizer(inner, average_decay=0.5)
    return x, optimizer, optimizer.minimize(hr.reduce_sum(x * 4.0))


def test_averages_follow_the_values_after_each_step() -> None:
    with hr.Graph().as_default(), hr.Session() as session:
        x, optimizer, step = model()
        assert step.name == "train_with_avg"
        assert optimizer.get_slot_names() == ["momentum"]
        assert [v.op_name for v in optimizer.variables()] == ["x/Momentum"]
        assert optimizer.get_slot(x, "momentum") is optimizer.variables()[0]
        assert optimizer.get_name() == "Momentum"
        average = next(v for v in hr.global_variables() if v.op_name == AVERAGE)
        session.run(hr.global_variables_initializer())
        for value, mean in ((7.0, 7.5), (6.0, 6.75), (5.0, 5.875)):
            session.run(step)
            np.testing.assert_array_equal(session.run(x)[0], value)
            np.testing.assert_array_equal(session.run(average)[0], mean)


def test_the_saver_swaps_values_and_averages(tmp_path: Path) -> None:
    with hr.Graph().as_default(), hr.Session() as session:
        x, optimizer, step = model()
        saver = optimizer.swapping_saver()
        session.run(hr.global_variables_initializer())
        session.run(step)
        path = saver.save(session, tmp_path / "model")
        session.run(step)
        # Training goes on from where it was.
        saver.restore(session, path)
        np.testing.assert_array_equal(session.run(x), [7.0, 3.0])
        # An evaluation gets the averages.
        hr.train.Saver({"x": x}).restore(session, path)
        np.testing.assert_array_equal(session.run(x), [7.5, 3.5])


def test_the_saver_takes_names() -> None:
    with hr.Graph().as_default():
        x, optimizer, _ = model()
        average = next(v for v in hr.global_variables() if v.op_name == AVERAGE)
        with pytest.raises(GraphError, match=f"'{AVERAGE}' is not among the variables to save"):
            optimizer.swapping_saver([x])
        with pytest.raises(GraphError, match="'x' is not among the variables to save"):
            optimizer.swapping_saver({"mean": average})
        optimizer.swapping_saver({"value": x, "mean": average}, name="swap", max_to_keep=1)


def test_there_are_no_averages_before_there_is_a_step() -> None:
    optimizer = hr.train.MovingAverageOptimizer(hr.train.AdamOptimizer())
    with pytest.raises(FailedPreconditionError, match="call minimize or apply_gradients before"):
        optimizer.swapping_saver()


def test_averages_may_be_updated_at_the_same_time() -> None:
    with hr.Graph().as_default(), hr.Session() as session:
        x = hr.Variable(8.0, name="x")
        inner = hr.train.GradientDescentOptimizer(1.0)
        optimizer = hr.train.MovingAverageOptimizer(inner, 0.5, sequential_update=False)
        step = optimizer.minimize(x * 4.0)
        session.run(hr.global_variables_initializer())
        session.run(step)
        average = next(v for v in hr.global_variables() if v.op_name == AVERAGE)
        assert session.run(average) in (8.0, 6.0)
