"""Training with a memory budget takes the same steps."""

from __future__ import annotations

import numpy as np
import pytest

import headrace as hr

pytestmark = pytest.mark.needs("backend-cpu")

OPTIMIZERS = {
    "momentum": lambda: hr.train.MomentumOptimizer(0.05, 0.9),
    "adam": lambda: hr.train.AdamOptimizer(0.01),
    "adamw": lambda: hr.train.AdamWOptimizer(weight_decay=0.01, learning_rate=0.01),
    "averaged": lambda: hr.train.MovingAverageOptimizer(hr.train.AdamOptimizer(0.01)),
}


def trained(make, budget):
    with hr.Graph().as_default() as graph:
        rng = np.random.default_rng(0)
        x = hr.placeholder(hr.float64, [None, 6])
        h = x
        for _ in range(8):
            h = hr.tanh(hr.matmul(h, hr.Variable(rng.normal(size=[6, 6]) / 2)))
        step = make().minimize(hr.reduce_sum(h * h), memory_budget=budget)
        again = [op for op in graph.operations if "again" in op.origin]
        with hr.Session() as session:
            session.run(hr.global_variables_initializer())
            for i in range(5):
                session.run(step, {x: np.full([4, 6], 0.1 * i + 0.1)})
            return session.run([v for v in graph.variables if v.trainable]), again


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_a_budget_changes_no_step(name):
    expected, none = trained(OPTIMIZERS[name], None)
    found, again = trained(OPTIMIZERS[name], "memory")
    assert again
    assert not none
    for a, b in zip(found, expected, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-10)


def test_subclasses_written_for_tensorflow_work_on():
    class Halved(hr.train.GradientDescentOptimizer):
        def compute_gradients(
            self,
            loss,
            var_list=None,
            gate_gradients=1,
            aggregation_method=None,
            colocate_gradients_with_ops=False,
            grad_loss=None,
        ):
            pairs = super().compute_gradients(loss, var_list)
            return [(g / 2, v) for g, v in pairs]

    expected, _ = trained(lambda: hr.train.GradientDescentOptimizer(0.05), None)
    found, _ = trained(lambda: Halved(0.1), None)
    for a, b in zip(found, expected, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-10)
