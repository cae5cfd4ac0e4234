"""Steps across ranks give what one process gives, whatever travels, and cost what they should."""

from __future__ import annotations

import os
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import headrace as hr

pytestmark = [pytest.mark.ranks(1, 2, 4), pytest.mark.needs("backend-cpu")]
# The 100 MB of the large tensors are allocated on several ranks at once.
LARGE = 25_000_000


def last_worker(cluster: Any) -> str:
    return f"/job:worker/task:{cluster.num_workers - 1}"


def test_every_rank_knows_its_task(cluster: Any) -> None:
    size = int(os.environ["OMPI_COMM_WORLD_SIZE"])
    rank = int(os.environ["OMPI_COMM_WORLD_RANK"])
    is_ps = size > 1 and rank == 0
    assert cluster.job_name == ("ps" if is_ps else "worker")
    assert cluster.task_index == max(0, rank - 1)
    assert cluster.is_chief == (rank == min(1, size - 1))
    assert (cluster.num_tasks("ps"), cluster.num_workers) == (1, max(1, size - 1))
    assert cluster.num_tasks("worker") == cluster.num_workers
    assert "/job:ps/task:0/device:cpu:0" in cluster.devices
    assert f"{last_worker(cluster)}/device:cpu:0" in cluster.devices
    assert f"/job:{cluster.job_name}/task:{cluster.task_index}" in repr(cluster)


def test_a_program_gives_the_same_on_any_number_of_ranks(cluster: Any) -> None:
    if not cluster.is_chief:
        return
    rng = np.random.default_rng(0)
    start, batch = rng.normal(size=(6, 4)), rng.normal(size=(5, 6))
    x = hr.placeholder(hr.float64, [None, 6])
    with hr.device("/job:ps/task:0"):
        w = hr.Variable(start, name="w")
    with hr.device(last_worker(cluster)):
        product = hr.matmul(x, w)
        change = hr.matmul(x, product, transpose_a=True)
    update = hr.assign_add(w, change * 0.5)
    expected = start
    with hr.Session(cluster.target) as session:
        session.run(hr.global_variables_initializer())
        for _ in range(3):
            expected = expected + batch.T @ (batch @ expected) * 0.5
            # What is fetched from before the update and from after it does not mix.
            np.testing.assert_allclose(session.run(update, {x: batch}), expected)
        np.testing.assert_allclose(session.run(product, {x: batch}), batch @ expected)
        np.testing.assert_allclose(session.run(w), expected)


VALUES = {
    "scalar": np.array(2.5, np.float32),
    "empty": np.zeros((0, 3), np.int64),
    "half": np.array([1.5, -2], np.float16),
    "bfloat16": np.array([[1.5, -2]], ml_dtypes.bfloat16),
    "bool": np.array([[True], [False]]),
    "uint64": np.array([2**63 + 5], np.uint64),
    "complex": np.array([1 + 2j, -3j], np.complex64),
    "string": np.array([b"", b"caf\xc3\xa9", b"\x00x"], object),
    "string scalar": np.array(b"alone", object),
    "inline": np.arange(8000, dtype=np.float32),
    "apart": np.arange(9000, dtype=np.float32).reshape(90, 100),
    "transposed": np.arange(12000, dtype=np.float64).reshape(100, 120).T,
}


@pytest.mark.parametrize("name", VALUES)
def test_every_kind_of_value_travels_there_and_back(cluster: Any, name: str) -> None:
    if not cluster.is_chief:
        return
    value = VALUES[name]
    x = hr.placeholder(hr.string if value.dtype == object else value.dtype)
    with hr.device("/job:ps/task:0"):
        there = hr.identity(x)
    with hr.device(last_worker(cluster)):
        on = hr.identity(there)
    with hr.Session(cluster.target) as session:
        got = np.asarray(session.run(on, {x: value}), value.dtype)
    assert got.shape == value.shape
    np.testing.assert_array_equal(got, value)


@pytest.mark.timeout(120)
def test_a_large_tensor_travels_there_and_back(cluster: Any) -> None:
    if not cluster.is_chief:
        return
    value = np.arange(LARGE, dtype=np.float32)
    x = hr.placeholder(hr.float32, [LARGE])
    with hr.device("/job:ps/task:0"):
        there = hr.identity(x)
    with hr.Session(cluster.target) as session:
        got = session.run(there, {x: value})
    np.testing.assert_array_equal(got, value)


def test_feeds_may_be_overwritten_after_the_step(cluster: Any) -> None:
    if not cluster.is_chief:
        return
    value = np.empty(100_000, np.float32)
    x = hr.placeholder(hr.float32, [100_000])
    with hr.device("/job:ps/task:0"):
        v = hr.Variable(np.zeros(100_000, np.float32), name="v")
        keep = hr.assign(v, x)
        total = hr.reduce_sum(hr.identity(x))
    with hr.Session(cluster.target) as session:
        for i in range(20):
            value[:] = i
            _, got = session.run([keep.op, total], {x: value})
            value[:] = -1
            assert got == i * 100_000
            np.testing.assert_array_equal(session.run(v), np.full(100_000, i, np.float32))


@pytest.mark.parametrize("taken", [False, True])
def test_dead_values_travel(cluster: Any, *, taken: bool) -> None:
    if not cluster.is_chief:
        return
    pred = hr.placeholder(hr.bool, [])
    x = hr.placeholder(hr.float32, [])
    with hr.device("/job:ps/task:0"):
        off, on = hr.switch(x, pred)
    with hr.device(last_worker(cluster)):
        doubled = on + on
        joined, index = hr.merge([off, doubled])
    with hr.Session(cluster.target) as session:
        feeds = {pred: taken, x: 4.0}
        assert session.run([joined, index], feeds) == [8.0 if taken else 4.0, int(taken)]
        alive, dead = (doubled, off) if taken else (off, doubled)
        session.run(alive, feeds)
        with pytest.raises(hr.errors.FetchError, match="is dead in this step"):
            session.run(dead, feeds)
        assert session.run([joined, index], feeds) == [8.0 if taken else 4.0, int(taken)]


def test_control_edges_cross_ranks(cluster: Any) -> None:
    if not cluster.is_chief:
        return
    with hr.device("/job:ps/task:0"):
        v = hr.Variable(0.0, name="v")
        add = hr.assign_add(v, 1.0)
    with hr.device(last_worker(cluster)):
        w = hr.Variable(0.0, name="w")
        with hr.control_dependencies([add]):
            then = hr.assign_add(w, 10.0)
    with hr.control_dependencies([then]):
        after = v.read_value()
    with hr.Session(cluster.target) as session:
        session.run(hr.global_variables_initializer())
        for i in range(1, 20):
            assert session.run(after) == i
        assert session.run(w) == 190


def test_a_step_is_registered_once_and_costs_one_message_per_task(cluster: Any) -> None:
    if not cluster.is_chief or cluster.num_workers + cluster.num_tasks("ps") <= 2:
        return
    with hr.device("/job:ps/task:0"):
        a = hr.identity(hr.constant(np.ones(3, np.float32)))
    with hr.device(last_worker(cluster)):
        # Used twice there, and moved once.
        b = a + a
    nothing = hr.group(b)
    transport = cluster.node.transport
    with hr.Session(cluster.target, config=hr.Config(optimize=False)) as session:
        session.run(nothing)
        sent, received = transport.frames_sent, transport.frames_received
        for _ in range(10):
            session.run(nothing)
        # Ten RUN for each of two tasks; ten DONE from each. The tensor goes straight.
        assert transport.frames_sent - sent <= 20
        assert transport.frames_received - received <= 30


def test_nothing_is_kept_of_steps_and_closed_sessions(cluster: Any) -> None:
    if not cluster.is_chief or not hasattr(cluster.node, "exchange"):
        return
    x = hr.placeholder(hr.float32, None)
    y = hr.placeholder(hr.float32, None)
    with hr.device("/job:ps/task:0"):
        product = hr.matmul(x, y)
    with hr.Session(cluster.target) as session:
        for i in range(20):
            wrong = np.ones((3, 2 if i % 2 else 3), np.float32)
            try:
                session.run(product, {x: np.ones((2, 3), np.float32), y: wrong})
            except hr.errors.ExecutionError:
                continue
    node = cluster.node
    assert node.exchange.kept == 0
    assert not node.client._running
    assert not node.client._registering
    assert not node.client.runtimes
