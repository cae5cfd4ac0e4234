"""Scaling of losses: float16, checkpoints, and scales of one's own.

What it comes to beside TensorFlow 1.15 is in ``tests/train/programs/scaling.txt``.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import headrace as hr
from headrace.errors import ArgumentTypeError, AttributeValueError, UnimplementedError

pytestmark = [pytest.mark.needs("backend-cpu", "autodiff"), pytest.mark.usefixtures("graph")]
scaling = hr.train.experimental


def small_loss(dtype: Any = hr.float16) -> tuple[Any, Any]:
    """A variable, and a loss through ``dtype`` whose gradient is zero in float16."""
    v = hr.Variable(np.array([1.0, 2.0], np.float32), name="v")
    return v, hr.reduce_sum(hr.cast(hr.cast(v, dtype) * 3.0, hr.float32)) * 1e-8


@pytest.mark.parametrize("executor", ["plan", "plain"])
@pytest.mark.parametrize("scale", [2.0**15, "dynamic"])
def test_gradients_below_float16_survive(executor: str, scale: Any) -> None:
    v, loss = small_loss()
    sgd = hr.train.GradientDescentOptimizer(1e8)
    lost = sgd.compute_gradients(loss)[0][0]
    step = scaling.MixedPrecisionLossScaleOptimizer(sgd, scale).minimize(loss)
    with hr.Session(config=hr.Config(executor=executor)) as session:
        session.run(hr.global_variables_initializer())
        assert session.run(lost).tolist() == [0, 0]
        session.run(step)
        np.testing.assert_allclose(session.run(v), [-2, -1], rtol=5e-3)


def test_variables_in_float16_have_gradients_in_float16() -> None:
    v = hr.Variable(np.ones(2, np.float16))
    opt = scaling.MixedPrecisionLossScaleOptimizer(hr.train.GradientDescentOptimizer(0.5), 8)
    step = opt.minimize(hr.reduce_sum(v))
    with hr.Session() as session:
        session.run(hr.global_variables_initializer())
        session.run(step)
        assert session.run(v).tolist() == [0.5, 0.5]


def test_a_scale_too_large_is_found(caplog: Any) -> None:
    """From a scale at which all gradients overflow, training gets going by itself."""
    v, loss = small_loss()
    scale = scaling.DynamicLossScale(2.0**60, increment_period=5)
    counter = hr.train.get_or_create_global_step()
    opt = scaling.enable_mixed_precision_graph_rewrite(
        hr.train.GradientDescentOptimizer(1e7), scale
    )
    step = opt.minimize(loss, global_step=counter)
    assert "the loss is scaled, but graphs keep their dtypes" in caplog.text
    with hr.Session() as session:
        session.run(hr.global_variables_initializer())
        for _ in range(60):
            session.run(step)
        values, scale_now, steps = session.run([v, scale(), counter])
    assert 2.0**30 < scale_now < 2.0**45
    assert 10 < steps < 60
    np.testing.assert_allclose(values, np.array([1, 2]) - 0.3 * steps, rtol=1e-2)


def test_slots_are_those_of_the_optimizer_inside() -> None:
    v, loss = small_loss(hr.float32)
    inner = hr.train.MomentumOptimizer(0.1, 0.9)
    opt = scaling.MixedPrecisionLossScaleOptimizer(inner, "dynamic")
    opt.minimize(loss)
    assert opt.get_slot_names() == inner.get_slot_names() == ["momentum"]
    assert opt.get_slot(v, "momentum") is inner.get_slot(v, "momentum")
    assert opt.variables() == inner.variables()


def test_checkpoints_of_objects_hold_the_scale(tmp_path: Path) -> None:
    def program() -> tuple[Any, ...]:
        v, loss = small_loss()
        opt = scaling.MixedPrecisionLossScaleOptimizer(
            hr.train.MomentumOptimizer(1e6, 0.9), scaling.DynamicLossScale(2.0, 2)
        )
        step = opt.minimize(loss)
        return step, hr.train.Checkpoint(v=v, optimizer=opt), hr.global_variables()

    with hr.Graph().as_default(), hr.Session() as session:
        step, checkpoint, variables = program()
        session.run(hr.global_variables_initializer())
        for _ in range(5):
            session.run(step)
        path = checkpoint.write(tmp_path / "model", session=session)
        expected = session.run(variables)
    with hr.Graph().as_default(), hr.Session() as session:
        _, checkpoint, variables = program()
        checkpoint.restore(path).initialize_or_restore(session)
        for ours, theirs in zip(session.run(variables), expected, strict=True):
            np.testing.assert_array_equal(ours, theirs)
    names = [name for name, _ in hr.train.list_variables(str(path))]
    assert "optimizer/loss_scale/current_loss_scale/.ATTRIBUTES/VARIABLE_VALUE" in names
    assert "v/.OPTIMIZER_SLOT/optimizer/base_optimizer/momentum/.ATTRIBUTES/VARIABLE_VALUE" in names


def test_a_scale_of_ones_own() -> None:
    class Halving(scaling.LossScale):
        def __init__(self) -> None:
            super().__init__()
            self.scale = self._add_weight("halving", 64.0)

        def __call__(self) -> Any:
            return self.scale.value()

        def update(self, grads: Any) -> Any:
            return self.scale.assign(self.scale * 0.5).op, True

    v, loss = small_loss()
    own = Halving()
    opt = scaling.MixedPrecisionLossScaleOptimizer(hr.train.GradientDescentOptimizer(1e8), own)
    pairs = opt.compute_gradients(loss)
    step = opt.apply_gradients(pairs)
    update, _ = own.update(pairs)
    with hr.Session() as session:
        session.run(hr.global_variables_initializer())
        session.run(step)
        session.run(update)
        np.testing.assert_allclose(session.run(v), [-2, -1], rtol=0.1)
        assert session.run(own()) == 32


@pytest.mark.parametrize(
    ("make", "error", "match"),
    [
        (lambda: scaling.DynamicLossScale(0), AttributeValueError, "initial_loss_scale must be ab"),
        (lambda: scaling.DynamicLossScale("8"), ArgumentTypeError, "must be a number, got '8'"),
        (lambda: scaling.DynamicLossScale(8, 0), AttributeValueError, "increment_period must be a"),
        (lambda: scaling.DynamicLossScale(8, 1, -2), AttributeValueError, "multiplier must be ab"),
        (lambda: scaling.FixedLossScale(0.5), AttributeValueError, "must be at least 1, got 0.5"),
        (
            lambda: scaling.FixedLossScale(None),
            AttributeValueError,
            "int or float, got None",
        ),
        (lambda: scaling.LossScale()(), UnimplementedError, "LossScale has no __call__"),
        (lambda: scaling.LossScale().update([]), UnimplementedError, "LossScale has no update"),
        (lambda: scaling.LossScale().get_config(), UnimplementedError, "has no get_config"),
        (
            lambda: scaling.MixedPrecisionLossScaleOptimizer(3, 8),
            AttributeValueError,
            "opt must be an hr.train.Optimizer, got 3",
        ),
        (
            lambda: scaling.MixedPrecisionLossScaleOptimizer(
                hr.train.GradientDescentOptimizer(1), None
            ),
            AttributeValueError,
            "loss_scale must be a number, 'dynamic', or an hr.train.experimental.LossScale, got N",
        ),
        (
            lambda: scaling.DynamicLossScale()._add_weight("good_steps", 1),
            AttributeValueError,
            "the loss scale has a variable 'good_steps' already",
        ),
    ],
)
def test_what_is_refused(make: Any, error: type[Exception], match: str) -> None:
    with pytest.raises(error, match=match):
        make()
