"""What goes wrong on another rank is told here once, with its task and the user's line."""

from __future__ import annotations

import threading
import time
from typing import Any

import numpy as np
import pytest

import headrace as hr
from headrace.errors import (
    CancelledError,
    ClusterError,
    ExecutionError,
    InvalidArgumentError,
    NoDeviceError,
    UninitializedError,
)

pytestmark = [pytest.mark.ranks(1, 2, 4), pytest.mark.needs("backend-cpu")]


def far(cluster: Any) -> str:
    """A task other than the chief's, where there is one."""
    return "/job:ps/task:0"


def failing_product(cluster: Any) -> tuple[Any, Any, Any]:
    x = hr.placeholder(hr.float32, None)
    y = hr.placeholder(hr.float32, None)
    with hr.device(far(cluster)):
        product = hr.matmul(x, y, name="product")
    return x, y, product


GOOD = np.ones((2, 2), np.float32)
BAD = np.ones((3, 3), np.float32)


def test_a_kernel_error_names_task_and_line_and_the_session_stays_usable(cluster: Any) -> None:
    if not cluster.is_chief:
        return
    x, y, product = failing_product(cluster)
    with hr.Session(cluster.target) as session:
        for _ in range(5):
            with pytest.raises(ExecutionError, match="MatMul failed") as caught:
                session.run(product, {x: GOOD, y: BAD})
            text = str(caught.value)
            assert "in MatMul 'product'; inputs: float32[2, 2], float32[3, 3]" in text
            assert 'product = hr.matmul(x, y, name="product")' in text
            if hasattr(cluster.node, "transport"):
                assert "  on /job:ps/task:0 (rank 0)" in text
            assert len(text.splitlines()) <= 12
            # The operation of this program, whichever task ran it.
            assert caught.value.op is product.op
            assert isinstance(caught.value, InvalidArgumentError)
            np.testing.assert_array_equal(session.run(product, {x: GOOD, y: GOOD}), GOOD * 2)


def test_the_cause_is_not_hidden_by_its_consequences(cluster: Any) -> None:
    if not cluster.is_chief:
        return
    x, y, product = failing_product(cluster)
    # Every worker waits for what never comes.
    sums = []
    for i in range(cluster.num_workers):
        with hr.device(f"/job:worker/task:{i}"):
            sums.append(hr.reduce_sum(product))
    with hr.Session(cluster.target) as session:
        for _ in range(20):
            with pytest.raises(ExecutionError, match="MatMul failed"):
                session.run(sums, {x: GOOD, y: BAD})
            assert session.run(sums, {x: GOOD, y: GOOD}) == [8.0] * len(sums)


def test_an_error_of_the_clients_own_part_ends_the_others(cluster: Any) -> None:
    if not cluster.is_chief:
        return
    x = hr.placeholder(hr.float32, None)
    y = hr.placeholder(hr.float32, None)
    product = hr.matmul(x, y)
    with hr.device(far(cluster)):
        total = hr.reduce_sum(product)
    with hr.Session(cluster.target) as session:
        with pytest.raises(ExecutionError, match="MatMul failed"):
            session.run(total, {x: GOOD, y: BAD})
        assert session.run(total, {x: GOOD, y: GOOD}) == 8.0


def test_an_uninitialized_variable_is_named(cluster: Any) -> None:
    if not cluster.is_chief:
        return
    with hr.device(far(cluster)):
        v = hr.Variable(1.0, name="weights")
    with hr.Session(cluster.target) as session:
        with pytest.raises(UninitializedError, match="not initialized: weights; run"):
            session.run(v + 1.0)
        session.run(hr.global_variables_initializer())
        assert session.run(v + 1.0) == 2.0


def test_an_unknown_task_is_refused_with_those_that_are_there(cluster: Any) -> None:
    if not cluster.is_chief:
        return
    with hr.device("/job:ps/task:7"):
        c = hr.identity(hr.constant(1.0))
    with (
        hr.Session(cluster.target) as session,
        pytest.raises(NoDeviceError, match=r"(?s)'/job:ps/task:7'.*devices: .*/job:ps/task:0/dev"),
    ):
        session.run(c)


@pytest.mark.needs("train")
def test_closing_a_session_ends_steps_that_wait(cluster: Any) -> None:
    if not cluster.is_chief:
        return
    with hr.device(far(cluster)):
        queue = hr.train.FIFOQueue(2, [hr.float32], shapes=[[]])
        taken = queue.dequeue()
    caught: list[BaseException] = []

    def wait() -> None:
        try:
            session.run(taken)
        except BaseException as error:
            caught.append(error)

    session = hr.Session(cluster.target)
    threads = [threading.Thread(target=wait) for _ in range(3)]
    for thread in threads:
        thread.start()
    time.sleep(0.3)
    begin = time.monotonic()
    session.close()
    for thread in threads:
        thread.join(10)
    assert time.monotonic() - begin < 5
    assert [type(error).__name__ for error in caught] == ["SessionClosedError"] * 3
    with hr.Session(cluster.target) as other:
        other.run(queue.enqueue([3.0]))
        assert other.run(taken) == 3.0


@pytest.mark.needs("train")
def test_a_queue_closed_elsewhere_is_an_error_of_its_own_kind(cluster: Any) -> None:
    if not cluster.is_chief:
        return
    with hr.device(far(cluster)):
        queue = hr.train.FIFOQueue(2, [hr.float32], shapes=[[]])
    with hr.Session(cluster.target) as session:
        session.run(queue.close())
        with pytest.raises(hr.errors.OutOfRangeError, match="closed"):
            session.run(queue.dequeue())


def test_a_rank_that_serves_opens_no_session(cluster: Any) -> None:
    cluster.serve()
    if hasattr(cluster.node, "transport"):
        with pytest.raises(ClusterError, match="this rank only serves the others"):
            hr.Session(cluster.target)


def test_a_closed_cluster_has_no_sessions(cluster: Any) -> None:
    cluster.close()
    with pytest.raises(ClusterError, match="no open cluster with the target"):
        hr.Session(cluster.target)
    with pytest.raises(ClusterError, match="the cluster was closed"):
        cluster.serve()


def test_a_session_left_open_is_closed_with_the_cluster(cluster: Any) -> None:
    session = hr.Session(cluster.target)
    c = hr.identity(hr.constant(1.0))
    assert session.run(c) == 1.0
    cluster.close()
    if hasattr(cluster.node, "transport"):
        with pytest.raises(CancelledError, match="the cluster was closed"):
            session.run(c)
    session.close()
