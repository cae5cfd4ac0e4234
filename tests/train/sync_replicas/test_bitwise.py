"""K replicas with batches of B train as one process with K batches of B: the same bits."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import headrace as hr
from tests.train.sync_replicas.replica_threads import Sharing
from tests.train.sync_replicas.sync_programs import OPTIMIZERS, Replica

pytestmark = [pytest.mark.needs("autodiff", "backend-cpu")]

STEPS, ROWS, SIZE = 6, 5, 7
DATA = np.random.default_rng(5).standard_normal((STEPS, 4, ROWS, SIZE + 1)).astype("f")


def model(replica: Any, optimizer: str) -> None:
    start = np.random.default_rng(1).standard_normal((SIZE, 3)).astype("f")
    hidden = hr.Variable(start, name="hidden")
    last = hr.Variable(np.ones((3, 1), "f"), name="last")
    replica.rows = hr.placeholder(hr.float32, [ROWS, SIZE + 1])
    found = hr.matmul(hr.tanh(hr.matmul(replica.rows[:, :SIZE], hidden)), last)
    replica.loss = hr.reduce_mean(hr.square(found - replica.rows[:, SIZE:]))
    replica.variables = [hidden, last]
    replica.inner = OPTIMIZERS[optimizer](hr)
    replica.pairs = replica.inner.compute_gradients(replica.loss, replica.variables)


def alone(count: int, optimizer: str) -> list[bytes]:
    """Train in one process: gradients of the parts, added up in order, and divided by K."""

    class Only:
        pass

    only: Any = Only()
    with hr.Graph().as_default(), hr.Session(config=hr.Config(deterministic=True)) as session:
        model(only, optimizer)
        given = [hr.placeholder(hr.float32, v.shape) for v in only.variables]
        apply = only.inner.apply_gradients(zip(given, only.variables, strict=True))
        session.run(hr.global_variables_initializer())
        for step in range(STEPS):
            parts = [
                session.run([g for g, _ in only.pairs], {only.rows: DATA[step, part]})
                for part in range(count)
            ]
            means = []
            for gradients in zip(*parts, strict=True):
                total = gradients[0]
                for gradient in gradients[1:]:
                    total = total + gradient
                means.append(total / np.float32(count))
            session.run(apply, dict(zip(given, means, strict=True)))
        return [v.tobytes() for v in session.run(only.variables)]


@pytest.fixture
def cluster() -> Iterator[Sharing]:
    made = Sharing(deterministic=True)
    yield made
    made.close()


# The first two sums are the same in any order.
@pytest.mark.parametrize(
    ("count", "optimizer"),
    [
        pytest.param(count, optimizer, marks=() if count > 2 else pytest.mark.slow)
        for count in (1, 2, 3, 4)
        for optimizer in sorted(OPTIMIZERS)
    ],
)
def test_replicas_equal_one_process_bit_for_bit(
    count: int, optimizer: str, cluster: Sharing
) -> None:
    def make(tf: Any, replica: Any, cluster: Any) -> None:
        model(replica, optimizer)

    replicas = [Replica(hr, cluster, i, count, count, make, 0) for i in range(count)]
    wrong: list[BaseException] = []

    def work(replica: Any) -> None:
        # In no order with the other replicas: nothing but training itself holds them together.
        try:
            for step in range(STEPS):
                replica.run(replica.train, {replica.rows: DATA[step, replica.index]})
        except BaseException as error:
            wrong.append(error)

    threads = [threading.Thread(target=work, args=(replica,)) for replica in reversed(replicas)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert not wrong
    assert replicas[0].run(replicas[0].step) == STEPS
    found = [v.tobytes() for v in replicas[0].run(replicas[0].variables)]
    assert found == alone(count, optimizer)


def test_a_replica_with_several_batches_equals_several_replicas(cluster: Sharing) -> None:
    def make(tf: Any, replica: Any, cluster: Any) -> None:
        model(replica, "adam")

    only = Replica(hr, cluster, 0, 3, 1, make, 2)
    for step in range(STEPS):
        for part in range(3):
            only.run(only.train, {only.rows: DATA[step, part]})
    assert only.run(only.step) == STEPS
    found = [v.tobytes() for v in only.run(only.variables)]
    assert found == alone(3, "adam")
