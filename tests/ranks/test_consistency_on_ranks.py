"""``Config(consistency=...)`` over ranks: the chosen bound holds, and fences stop all of them."""

from __future__ import annotations

import threading
import time
from typing import Any

import numpy as np
import pytest

import headrace as hr
from headrace.errors import ConfigError, DeadlineExceededError, HeadraceError
from tests.waiting import wait_until

pytestmark = pytest.mark.needs("backend-cpu", "autodiff", "train")

PS = "/job:ps/task:0"
EACH = 20


def pausing(tensor: Any, seconds: float) -> Any:
    """A tensor, a while after it was computed, on the worker."""
    late = hr.py_func(lambda value: time.sleep(seconds) or value, [tensor], tensor.dtype)
    return hr.ensure_shape(late, tensor.shape)


def finished(cluster: Any) -> tuple[Any, Any]:
    """What counts the workers that are done, and what tells how many are."""
    with hr.device(PS):
        done = hr.Variable(np.int64(0), name="done")
    return done.assign_add(1).op, done


def start(cluster: Any, session: Any) -> None:
    ready = hr.report_uninitialized_variables()
    if cluster.is_chief:
        session.run(hr.global_variables_initializer())
    wait_until(lambda: not len(session.run(ready)))


@pytest.mark.ranks(1, 2, 4)
@pytest.mark.parametrize(
    ("consistency", "bound"), [("sequential", 0), ("bounded:0", 0), ("bounded:2", 2)]
)
def test_no_update_is_staler_than_the_bound(cluster: Any, consistency: str, bound: int) -> None:
    if cluster.job_name == "ps":
        return
    with hr.device(PS):
        staleness = hr.train.StalenessRecorder(50)
        w = hr.Variable(np.float32(4.0), name="w")
    # The gradient is there a while after the variable was read.
    held = pausing(w.value(), 0.002 * (1 + cluster.task_index))
    loss = hr.square(w) * (1.0 + 0.0 * held)
    step = staleness.record(hr.train.GradientDescentOptimizer(0.001).minimize(loss))
    finish, done = finished(cluster)
    with hr.Session(cluster.target, config=hr.Config(consistency=consistency)) as session:
        start(cluster, session)
        # Two threads on each worker: steps of one session count, too.
        threads = [
            threading.Thread(target=lambda: [session.run(step) for _ in range(EACH)])
            for _ in range(2)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(50)
        session.run(finish)
        if cluster.is_chief:
            wait_until(lambda: session.run(done) == cluster.num_workers)
            summary = staleness.summary(session)
            assert summary.updates == 2 * EACH * cluster.num_workers
            assert summary.most <= bound
            assert bound == 0 or summary.most > 0


@pytest.mark.ranks(1, 2, 4)
def test_a_fence_stops_the_updates_of_all_workers(cluster: Any) -> None:
    if cluster.job_name == "ps":
        return
    with hr.device(PS):
        a, b = (hr.Variable(np.int64(0), name=name) for name in "ab")
        first = a.assign_add(1)
    with hr.control_dependencies([pausing(first, 0.001)]), hr.device(PS):
        change = b.assign_add(1).op
    finish, done = finished(cluster)
    with hr.Session(cluster.target) as session:
        start(cluster, session)
        over = threading.Event()

        def write() -> None:
            while not over.is_set():
                session.run(change)

        writer = threading.Thread(target=write)
        writer.start()
        if cluster.is_chief:
            for _ in range(8):
                with session.fence():
                    before = session.run(a)
                    time.sleep(0.004)
                    assert session.run(b) == before
                    session.run(change)
                    assert session.run([a, b]) == [before + 1, before + 1]
                time.sleep(0.004)
                # And they go on.
                wait_until(lambda before=before: session.run(a) > before + 1)
            session.run(finish)
        wait_until(lambda: session.run(done) == 1)
        over.set()
        writer.join(20)


@pytest.mark.ranks(2, 4)
def test_a_fence_gives_up_and_names_who_holds_it_up(cluster: Any) -> None:
    if not cluster.is_chief:
        return
    with hr.device(PS):
        v = hr.Variable(np.float32(0), name="v")
    change = v.assign(pausing(hr.constant(1.0), 0.4)).op
    with hr.Session(cluster.target) as session:
        session.run(v.initializer)
        thread = threading.Thread(target=lambda: session.run(change))
        thread.start()
        time.sleep(0.1)
        own = r"after 0.05 s: /job:worker/task:0 \(rank 1\); a step"
        with pytest.raises(DeadlineExceededError, match=own), session.fence(0.05):
            raise AssertionError("a step is under way")
        thread.join(10)
        with session.fence():
            assert session.run(v) == 1.0


@pytest.mark.ranks(2, 4)
def test_a_step_waits_for_its_turn_no_longer_than_it_may_take(cluster: Any) -> None:
    if not cluster.is_chief:
        return
    with hr.device(PS):
        v = hr.Variable(np.float32(0), name="v")
    change = v.assign(pausing(hr.constant(1.0), 0.4)).op
    add = v.assign_add(1.0)
    with hr.Session(cluster.target, config=hr.Config(consistency="sequential")) as session:
        session.run(v.initializer)
        session.run(add)
        thread = threading.Thread(target=lambda: session.run(change))
        thread.start()
        time.sleep(0.1)
        with pytest.raises(DeadlineExceededError, match=r"not done within 0\.05 s"):
            session.run(add, options=hr.RunOptions(timeout_in_ms=50))
        # A turn that was not taken stands in nobody's way.
        assert session.run(add) == 2.0
        thread.join(10)


@pytest.mark.ranks(1, 2, 4)
def test_sessions_that_do_not_agree_are_refused(cluster: Any) -> None:
    if cluster.job_name == "ps":
        return
    with hr.device(PS):
        v = hr.Variable(np.float32(0), name="v")
        refused = hr.Variable(np.int64(0), name="refused")
    add = v.assign_add(1.0)
    others = cluster.num_workers - 1
    with hr.Session(cluster.target, config=hr.Config(consistency="bounded:1")) as session:
        if cluster.is_chief:
            session.run([v.initializer, refused.initializer])
            session.run(add)
            with (
                hr.Session(cluster.target) as other,
                pytest.raises(ConfigError, match="do not agree on Config"),
            ):
                other.run(add)
            wait_until(lambda: session.run(refused) == others)
        else:
            wait_until(lambda: session.run(hr.is_variable_initialized(refused)))
    if not cluster.is_chief:
        with hr.Session(cluster.target) as other:
            # Whoever only reads may do so in any case.
            wait_until(lambda: other.run(v) >= 1.0)
            with pytest.raises(HeadraceError, match=r"(?s)do not agree.*'bounded:1': one of rank"):
                other.run(add)
        with hr.Session(cluster.target, config=hr.Config(consistency="bounded:1")) as session:
            session.run(refused.assign_add(1))


@pytest.mark.ranks(1, 2)
def test_collectives_and_synchronous_replicas_are_refused(cluster: Any) -> None:
    if cluster.job_name == "ps":
        return
    with hr.device(PS):
        w = hr.Variable(np.float32(4.0), name="w")
        steps = hr.train.get_or_create_global_step()
    optimizer = hr.train.SyncReplicasOptimizer(hr.train.GradientDescentOptimizer(0.1), 1)
    train = optimizer.minimize(hr.square(w), steps)
    with hr.Session(cluster.target, config=hr.Config(consistency="sequential")) as session:
        session.run(hr.global_variables_initializer())
        with pytest.raises(ConfigError, match=r"cannot order this step: .*SyncReplicasToken"):
            session.run(train)
        reduced = hr.dist.all_reduce(w.value())
        with pytest.raises(ConfigError, match=r"cannot order this step: .*AllReduce"):
            session.run(reduced)
