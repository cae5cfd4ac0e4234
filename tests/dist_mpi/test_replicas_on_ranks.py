"""Synchronous replicas on ranks: gradients that are refused do not travel."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.dist_mpi.conftest import RunProgram

pytestmark = pytest.mark.needs("mpi", "autodiff", "backend-cpu", "train")

OPENING = """
import json, time
import numpy as np
import headrace as hr

SIZE = 250_000
STEPS = 12

def replica(cluster, wanted):
    with hr.device(hr.train.replica_device_setter(1, worker_device=f"/job:worker/task:{cluster.task_index}")):
        steps = hr.train.get_or_create_global_step()
        weights = hr.Variable(np.zeros(SIZE, np.float32), name="weights")
        gradient = hr.fill([SIZE], float(cluster.task_index + 1))
        optimizer = hr.train.SyncReplicasOptimizer(
            hr.train.GradientDescentOptimizer(1.0), wanted, cluster.num_workers, timeout_secs=30
        )
        train = optimizer.apply_gradients([(gradient, weights)], steps)
        hooks = [optimizer.make_session_run_hook(cluster.is_chief, num_tokens=0)]
    return steps, weights, train, optimizer, hooks

def tell(cluster, **facts):
    print("FACTS", json.dumps({"worker": cluster.task_index, **facts}), flush=True)
"""  # noqa: E501 - one line of a program

BACKUP = """
with hr.dist.Cluster(ps=1) as cluster:
    if cluster.job_name == "ps":
        cluster.serve()
    else:
        steps, weights, train, optimizer, hooks = replica(cluster, 2)
        counters = optimizer.counters()
        config = dict(hooks=hooks, save_checkpoint_steps=None)
        with hr.train.MonitoredTrainingSession(cluster.target, cluster.is_chief, **config) as s:
            sent = cluster.node.transport
            if cluster.task_index == 2:
                # It computes for a step that is over; the first time its plan travels, too.
                for step in (1, 9):
                    while s.run(steps) < step:
                        time.sleep(0.01)
                    before = sent.bytes_sent
                    s.run(train)
                tell(cluster, bytes=sent.bytes_sent - before)
            else:
                for step in range(STEPS):
                    time.sleep(0.05)
                    before = sent.bytes_sent
                    s.run(train)
                tell(cluster, bytes=sent.bytes_sent - before)
                if cluster.is_chief:
                    applied, value = s.run([counters.applied, weights])
                    assert np.all(value == value[0])
                    tell(cluster, applied=int(applied), value=float(value[0]))
"""


def facts(out: str) -> list[dict[str, float]]:
    lines = [line.split("FACTS ", 1)[1] for line in out.splitlines() if "FACTS " in line]
    return [json.loads(line) for line in lines]


@pytest.mark.slow
def test_a_refused_gradient_does_not_travel(run_program: RunProgram) -> None:
    done = run_program(4, BACKUP, opening=OPENING)
    assert done.code == 0, done.err
    found = facts(done.out)
    sent = {fact["worker"]: fact["bytes"] for fact in found if "bytes" in fact}
    # Only that it asks, and waits for the next step.
    assert sent[2] < 1_000
    assert sent[0] > 1_000_000
    assert sent[1] > 1_000_000
    (chief,) = [fact for fact in found if "applied" in fact]
    assert chief["applied"] == 24
    # The mean of the gradients 1 and 2, twelve times; never that of the third worker.
    assert chief["value"] == -18.0


FEWER = """
with hr.dist.Cluster(ps=1) as cluster:
    if cluster.job_name == "ps":
        cluster.serve()
    else:
        steps, weights, train, optimizer, hooks = replica(cluster, 3)
        config = dict(hooks=hooks, save_checkpoint_steps=None)
        with hr.train.MonitoredTrainingSession(cluster.target, cluster.is_chief, **config) as s:
            # The data of the last worker end after 2 steps, those of the chief after 4.
            for step in range(2 if cluster.task_index == 2 else 4 + 2 * cluster.task_index):
                s.run(train)
            if cluster.task_index == 1:
                tell(cluster, steps=int(s.run(steps)), value=float(s.run(weights)[0]))
"""


@pytest.mark.slow
def test_workers_whose_data_end_leave_the_others_to_go_on(run_program: RunProgram) -> None:
    done = run_program(4, FEWER, opening=OPENING)
    assert done.code == 0, done.err
    (fact,) = facts(done.out)
    # Two steps of three workers, two of two, and two of one, the chief's updates among them.
    assert fact["steps"] == 6
    assert fact["value"] == -(2 * 2.0 + 2 * 1.5 + 2 * 2.0)
