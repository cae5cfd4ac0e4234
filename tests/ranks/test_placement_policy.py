"""One program, with the policies that put it on one task or several, gives the same bits."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import headrace as hr
from headrace.errors import NoDeviceError

pytestmark = [pytest.mark.ranks(1, 2, 4), pytest.mark.needs("backend-cpu", "autodiff", "train")]

POLICIES = {
    "as the model asks": [],
    "all with the worker": [("*", "/job:worker/task:0")],
    "variables on the ps": [(["w1*", "w2*"], "/job:ps/task:0")],
    "halves": [(["w2*", "logits*", "scale"], "/job:ps/task:0")],
}


def trained(cluster: Any, rules: list[tuple[Any, str]]) -> list[Any]:
    """Values after three steps of a small net with a loop in it, from the same start."""
    rng = np.random.default_rng(0)
    start = [rng.normal(size=shape).astype(np.float32) for shape in ((6, 4), (4, 3))]
    batch = rng.normal(size=(5, 6)).astype(np.float32)
    with hr.Graph().as_default():
        x = hr.placeholder(hr.float32, [5, 6])
        w1, w2 = hr.Variable(start[0], name="w1"), hr.Variable(start[1], name="w2")
        scale = hr.Variable(np.float32(1.5), name="scale")
        logits = hr.matmul(hr.tanh(hr.matmul(x, w1)), w2, name="logits")
        _, scaled = hr.while_loop(lambda i, _: i < 2, lambda i, y: (i + 1, y * scale), (0, logits))
        loss = hr.reduce_sum(hr.square(scaled), name="loss")
        step = hr.train.MomentumOptimizer(0.01, 0.5).minimize(loss)
        config = hr.Config(placement=hr.PlacementPolicy(rules) if rules else None)
        with hr.Session(cluster.target, config=config) as session:
            session.run(hr.global_variables_initializer())
            for _ in range(3):
                session.run(step, {x: batch})
            found: list[Any] = session.run([w1, w2, scale, loss], {x: batch})
    return found


def test_the_same_bits_with_any_policy(cluster: Any) -> None:
    if not cluster.is_chief:
        return
    results = {}
    for name, rules in POLICIES.items():
        results[name] = trained(cluster, rules)
    expected = results.pop("as the model asks")
    for name, found in results.items():
        for ours, theirs in zip(found, expected, strict=True):
            np.testing.assert_array_equal(ours, theirs, err_msg=name)


def test_a_task_that_is_not_there_is_named(cluster: Any) -> None:
    if not cluster.is_chief:
        return
    with pytest.raises(NoDeviceError, match=r"(?s)'/job:ps/task:7' .*which is not there.*job:ps/t"):
        trained(cluster, [("w1", "/job:ps/task:7")])
