"""One program, placed over all tasks by several cost models, gives the same bits."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

import headrace as hr

pytestmark = [pytest.mark.ranks(1, 2, 4), pytest.mark.needs("backend-cpu", "autodiff", "train")]

# Seconds of operations: nothing to choose by, towers that are worth a transfer, and any at all.
MODELS = {
    "estimated": {},
    "towers": {f"tower{i}": 1.0 for i in range(4)},
    "any": {f"tower{i}": {"/job:ps": float(i % 2), "": float(i % 3)} for i in range(4)},
}


def program(cluster: Any, model: hr.CostModel | None) -> tuple[list[Any], str, int]:
    """Values after three steps of a net with towers, where its parts were, and of how many."""
    rng = np.random.default_rng(0)
    batch = rng.normal(size=(5, 6)).astype(np.float32)
    with hr.Graph().as_default():
        x = hr.placeholder(hr.float32, [5, 6])
        w = hr.Variable(rng.normal(size=(6, 6)).astype(np.float32), name="w")
        with hr.device("/job:ps"):
            shared = hr.Variable(np.float32(1.5), name="shared")
        towers = [hr.matmul(hr.tanh(x + float(i)), w, name=f"tower{i}") for i in range(4)]
        loss = hr.reduce_sum(hr.square(hr.add_n(towers) * shared), name="loss")
        step = hr.train.GradientDescentOptimizer(1e-3).minimize(loss)
        config = hr.Config(placement_costs=model)
        with hr.Session(cluster.target, config=config) as session:
            session.run(hr.global_variables_initializer())
            for _ in range(3):
                session.run(step, {x: batch})
            values: list[Any] = session.run([w, shared, loss], {x: batch})
            places = str(session.explain(towers, {x: batch}))
            return values, places, len(session.list_devices())


@pytest.mark.parametrize("name", MODELS)
def test_the_same_bits_with_any_model(cluster: Any, name: str) -> None:
    if not cluster.is_chief:
        return
    expected, _, _ = program(cluster, None)
    model = hr.CostModel(seconds=MODELS[name], across_tasks=True)
    found, places, devices = program(cluster, model)
    for ours, theirs in zip(found, expected, strict=True):
        np.testing.assert_array_equal(ours, theirs)
    assert ("by cost: " in places) == (devices > 1)
    if name == "towers" and devices > 1:
        used = set(re.findall(r"on (\S+), by cost: 1 s there, 1 s on", places))
        assert len(used) == min(devices, 4)


def test_without_leave_nothing_goes_to_other_tasks(cluster: Any) -> None:
    if not cluster.is_chief:
        return
    _, places, _ = program(cluster, hr.CostModel(seconds=MODELS["towers"]))
    assert "by cost: " not in places
