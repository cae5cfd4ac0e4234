"""Synchronous replicas on ranks in deterministic mode, whatever is fetched beside them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import headrace as hr

pytestmark = pytest.mark.needs("backend-cpu", "autodiff", "train")

PS = "/job:ps/task:0"
STEPS = 8


@pytest.mark.ranks(1, 2, 4)
def test_replicas_run_in_deterministic_mode_with_what_they_fetch(cluster: Any) -> None:
    if cluster.job_name == "ps":
        return
    with hr.device(PS):
        step = hr.train.get_or_create_global_step()
        w = hr.get_variable("w", [8, 3], initializer=hr.zeros_initializer())
    # As kept by whoever goes on after a loss: the data of a step follow from its number.
    x = hr.random.stateless_normal([16, 8], seed=[cluster.task_index, step.value()])
    loss = hr.reduce_mean(hr.square(hr.matmul(x, w - 0.5)))
    optimizer = hr.train.SyncReplicasOptimizer(
        hr.train.MomentumOptimizer(0.05, 0.9), cluster.num_workers, timeout_secs=30
    )
    train = optimizer.minimize(loss, step)
    before = hr.identity(step)
    hooks = [
        optimizer.make_session_run_hook(cluster.is_chief, num_tokens=0),
        hr.train.StopAtStepHook(last_step=STEPS),
    ]
    seen = []
    with hr.train.MonitoredTrainingSession(
        cluster.target,
        cluster.is_chief,
        hooks=hooks,
        config=hr.Config(deterministic=True),
        save_checkpoint_steps=None,
    ) as session:
        while not session.should_stop():
            at, value, _ = session.run([before, loss, train])
            seen.append((int(at), float(value)))
    assert [at for at, _ in seen] == list(range(STEPS))
    assert all(np.isfinite(value) for _, value in seen)
    assert seen[-1][1] < seen[0][1]
