"""Checkpoints of one moment that the tasks of a cluster write, each its part, while all train."""

from __future__ import annotations

import threading
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import headrace as hr
from tests.waiting import wait_until

pytestmark = pytest.mark.needs("backend-cpu", "autodiff", "train")

PS = "/job:ps/task:0"


def pausing(tensor: Any, seconds: float) -> Any:
    late = hr.py_func(lambda value: time.sleep(seconds) or value, [tensor], tensor.dtype)
    return hr.ensure_shape(late, tensor.shape)


@pytest.mark.ranks(1, 2, 4)
def test_parts_of_several_tasks_are_of_one_moment(cluster: Any, tmp_path: Path) -> None:
    if cluster.job_name == "ps":
        return
    with hr.device(PS):
        step = hr.train.get_or_create_global_step()
        a = hr.Variable(np.int64(0), name="a")
        over = hr.Variable(np.int64(0), name="over")
        left = hr.Variable(np.int64(0), name="left")
        first = a.assign_add(1)
    # On another task, and a while later.
    with hr.control_dependencies([pausing(first, 0.001)]), hr.device("/job:worker/task:0"):
        b = hr.Variable(np.int64(0), name="b")
        second = b.assign_add(1)
    with hr.control_dependencies([second]), hr.device(PS):
        change = step.assign_add(1).op
    saver = hr.train.Saver([a, b, step], sharded=True, max_to_keep=None)
    ready = hr.report_uninitialized_variables()
    with hr.Session(cluster.target) as session:
        if cluster.is_chief:
            session.run(hr.global_variables_initializer())
        wait_until(lambda: not len(session.run(ready)))
        ended = threading.Event()

        def train() -> None:
            while not ended.is_set():
                session.run(change)

        thread = threading.Thread(target=train)
        thread.start()
        if cluster.is_chief:
            paths = []
            for _ in range(5):
                paths.append(saver.save(session, tmp_path / "m", step, consistent=True))
                time.sleep(0.01)
            session.run(over.assign(1))
        wait_until(lambda: session.run(over))
        ended.set()
        thread.join(20)
        session.run(left.assign_add(1))
        if cluster.is_chief:
            # Steps of others that are under way would change what is restored.
            wait_until(lambda: session.run(left) == cluster.num_workers)
            from headrace_train.checkpoint import CheckpointReader

            for path in paths:
                with CheckpointReader(path) as reader:
                    reader.verify()
                    found = reader.read(["a", "b", "global_step"])
                    assert found["a"] == found["b"] == found["global_step"] == reader.step
                    assert reader.metadata["consistency"] == "one moment"
                    assert len(reader.files) == 3
                saver.restore(session, path)
                assert session.run([a, b, step]) == [reader.step] * 3


@pytest.mark.ranks(4)
def test_synchronous_steps_stop_while_their_checkpoint_is_written(
    cluster: Any, tmp_path: Path
) -> None:
    if cluster.job_name == "ps":
        return
    with hr.device(PS):
        step = hr.train.get_or_create_global_step()
        # One is changed a good while before the other in each step.
        a, b = (hr.Variable(np.zeros(n, np.float32), name=n_) for n, n_ in ((3, "a"), (4, "b")))
    inner = hr.train.GradientDescentOptimizer(1.0)
    # Two gradients make a step, so that it needs nobody in particular: not the chief, either.
    optimizer = hr.train.SyncReplicasOptimizer(inner, 2, cluster.num_workers, timeout_secs=30)
    train = optimizer.apply_gradients([(-hr.ones([3]), a), (-hr.ones([4]), b)], step)
    hooks = [optimizer.make_session_run_hook(cluster.is_chief, num_tokens=0)]
    hooks.append(hr.train.StopAtStepHook(last_step=60))
    with hr.train.MonitoredTrainingSession(
        cluster.target,
        cluster.is_chief,
        checkpoint_dir=tmp_path if cluster.is_chief else None,
        save_checkpoint_steps=5,
        save_summaries_steps=None,
        log_step_count_steps=None,
        hooks=hooks,
    ) as session:
        while not session.should_stop():
            session.run(train)
    if cluster.is_chief:
        from headrace_train.checkpoint import CheckpointReader

        found = hr.train.get_checkpoint_state(tmp_path).all_model_checkpoint_paths
        assert len(found) == 5
        for path in found:
            with CheckpointReader(path) as reader:
                values = reader.read(["a", "b", "global_step"])
                assert set(values["a"]) | set(values["b"]) == {float(values["global_step"])}
                assert values["global_step"] == reader.step
                assert reader.metadata["consistency"] == "one moment"
