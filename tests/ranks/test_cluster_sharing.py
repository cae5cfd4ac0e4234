"""State on a task is shared by all sessions of all ranks, and concurrent steps lose nothing."""

from __future__ import annotations

import threading
from typing import Any

import numpy as np
import pytest

import headrace as hr
from headrace.errors import ResourceError
from tests.waiting import wait_until

pytestmark = [pytest.mark.ranks(1, 2, 4), pytest.mark.needs("backend-cpu")]


def shared_counter() -> Any:
    with hr.device("/job:ps/task:0"):
        return hr.Variable(np.zeros(3, np.int64), name="counter")


def test_concurrent_steps_of_threads_are_all_counted(cluster: Any) -> None:
    if not cluster.is_chief:
        return
    v = shared_counter()
    add = hr.assign_add(v, np.ones(3, np.int64))
    wrong: list[BaseException] = []
    with hr.Session(cluster.target) as session:
        session.run(hr.global_variables_initializer())

        def work() -> None:
            try:
                for _ in range(100):
                    session.run(add)
            except BaseException as error:
                wrong.append(error)

        threads = [threading.Thread(target=work) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(50)
        assert not wrong
        np.testing.assert_array_equal(session.run(v), [800] * 3)


def test_concurrent_steps_of_all_workers_are_all_counted(cluster: Any) -> None:
    if cluster.job_name == "ps":
        return
    v = shared_counter()
    with hr.device("/job:ps/task:0"):
        finished = hr.Variable(np.int64(0), name="finished")
    add = hr.assign_add(v, np.ones(3, np.int64))
    finish = hr.assign_add(finished, 1)
    ready = hr.group(hr.is_variable_initialized(v), name="ready")
    ready = hr.is_variable_initialized(finished)
    with hr.Session(cluster.target) as session:
        if cluster.is_chief:
            session.run(hr.global_variables_initializer())
        wait_until(lambda: session.run(ready))
        for _ in range(200):
            session.run(add.op)
        session.run(finish.op)
        wait_until(lambda: session.run(finished) == cluster.num_workers)
        np.testing.assert_array_equal(session.run(v), [200 * cluster.num_workers] * 3)


def test_values_of_concurrent_steps_do_not_mix(cluster: Any) -> None:
    if not cluster.is_chief:
        return
    x = hr.placeholder(hr.float32, [None])
    with hr.device("/job:ps/task:0"):
        there = x * 2.0
    with hr.device(f"/job:worker/task:{cluster.num_workers - 1}"):
        back = there + 1.0
    wrong: list[Any] = []
    with hr.Session(cluster.target) as session:

        def work(me: int) -> None:
            # Small ones travel with their header, large ones apart.
            value = np.full(10 if me % 2 else 20_000, me, np.float32)
            for _ in range(60):
                got = session.run(back, {x: value})
                if not (got.shape == value.shape and np.all(got == 2 * me + 1)):
                    wrong.append((me, got))

        threads = [threading.Thread(target=work, args=(i,)) for i in range(6)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(50)
    assert not wrong


def test_variables_outlive_sessions(cluster: Any) -> None:
    if not cluster.is_chief:
        return
    v = shared_counter()
    with hr.Session(cluster.target) as session:
        session.run(hr.global_variables_initializer())
        session.run(hr.assign_add(v, np.array([1, 2, 3])))
    with hr.Graph().as_default(), hr.Session(cluster.target) as session:
        again = shared_counter()
        np.testing.assert_array_equal(session.run(again), [1, 2, 3])


def test_two_clusters_live_side_by_side(cluster: Any) -> None:
    with hr.dist.Cluster(ps=0) as other:
        assert other.target != cluster.target
        assert other.job_name == "worker"
        with hr.device("/job:worker/task:0"):
            total = hr.constant(1.0) + float(other.task_index)
        if cluster.job_name == "worker":
            with hr.Session(cluster.target) as first:
                assert first.run(total) == 1.0 + other.task_index
        with hr.Session(other.target) as second:
            assert second.run(total) == 1.0 + other.task_index


def test_a_variable_that_a_second_program_declares_otherwise_is_refused(cluster: Any) -> None:
    if not cluster.is_chief:
        return
    first = shared_counter()
    with hr.Graph() as graph, hr.device("/job:ps/task:0"):
        other = hr.Variable(np.zeros(4, np.float32), name="counter")
    with hr.Session(cluster.target) as session:
        session.run(first.initializer)
        with (
            hr.Session(cluster.target, graph=graph) as second,
            pytest.raises(ResourceError, match=r"dtype int64 and float32, shape \[3\] and \[4\]"),
        ):
            second.run(other.initializer)
        np.testing.assert_array_equal(session.run(first), [0] * 3)


DECLARED = {
    "another dtype": (np.zeros(3, np.float32), r"dtype int64 and float32$"),
    "narrower integers": (np.zeros(3, np.int32), r"dtype int64 and int32$"),
    "text": (np.array([b"a", b"b", b"c"]), r"dtype int64 and string$"),
    "another length": (np.zeros(2, np.int64), r"shape \[3\] and \[2\]$"),
    "another rank": (np.zeros((3, 1), np.int64), r"shape \[3\] and \[3, 1\]$"),
    "a number": (np.int64(0), r"shape \[3\] and \[\]$"),
}


@pytest.mark.parametrize("name", DECLARED)
def test_whoever_binds_a_variable_of_a_task_compares(cluster: Any, name: str) -> None:
    if not cluster.is_chief:
        return
    value, difference = DECLARED[name]
    first = shared_counter()
    with hr.Graph() as graph, hr.device("/job:ps/task:0"):
        other = hr.Variable(value, name="counter")
        uses = [other.value(), other.initializer, hr.is_variable_initialized(other)]
    with hr.Session(cluster.target) as session:
        session.run(first.initializer)
        for use in uses:
            with (
                hr.Session(cluster.target, graph=graph) as second,
                pytest.raises(ResourceError, match=f"(?m){difference}") as refused,
            ):
                second.run(use)
            assert str(refused.value).count("test_cluster_sharing.py:") >= 2
        np.testing.assert_array_equal(session.run(first), [0] * 3)
