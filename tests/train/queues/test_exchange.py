"""Many threads at one queue: each element arrives once, and closing ends all of them."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest

import headrace as hr
from headrace.errors import CancelledError, OutOfRangeError

pytestmark = [pytest.mark.needs("backend-cpu"), pytest.mark.usefixtures("graph")]

PRODUCERS = CONSUMERS = 4
BATCH = 50

KINDS: dict[str, Callable[[], Any]] = {
    "fifo": lambda: hr.FIFOQueue(64, [hr.int64, hr.int64], [[], [2]]),
    "unbounded": lambda: hr.FIFOQueue(-1, [hr.int64, hr.int64], [[], [2]]),
    "shuffle": lambda: hr.RandomShuffleQueue(128, 32, [hr.int64, hr.int64], [[], [2]]),
    "padding": lambda: hr.PaddingFIFOQueue(64, [hr.int64, hr.int64], [[], [None]]),
    "priority": lambda: hr.PriorityQueue(64, [hr.int64], [[2]]),
}


def exchange(kind: str, count: int) -> None:
    """Send ``count`` numbers through a queue, from 4 threads to 4, in batches and one by one."""
    queue = KINDS[kind]()
    numbers = hr.placeholder(hr.int64, [None])
    pairs = hr.stack([numbers, -numbers], 1)
    many = queue.enqueue_many([numbers, pairs])
    one = queue.enqueue([numbers[0], pairs[0]])
    takes = [queue.dequeue(), queue.dequeue_many(7), queue.dequeue_up_to(30)]
    close = queue.close()
    with hr.Session() as session, ThreadPoolExecutor(PRODUCERS + CONSUMERS) as pool:

        def produce(producer: int) -> None:
            mine = np.arange(producer, count, PRODUCERS)
            for batch in range(0, len(mine), BATCH):
                part = mine[batch : batch + BATCH]
                if batch % (4 * BATCH):
                    session.run(many, {numbers: part})
                else:
                    for number in part:
                        session.run(one, {numbers: [number]})

        def consume(consumer: int) -> list[int]:
            seen: list[int] = []
            while True:
                try:
                    found, pair = session.run(takes[consumer % 3])
                except OutOfRangeError:
                    return seen
                rows = np.reshape(found, -1)
                np.testing.assert_array_equal(np.reshape(pair, (-1, 2)), np.stack([rows, -rows], 1))
                seen += rows.tolist()

        producers = [pool.submit(produce, i) for i in range(PRODUCERS)]
        consumers = [pool.submit(consume, i) for i in range(CONSUMERS)]
        for producer in producers:
            producer.result(300)
        session.run(close)
        seen = [n for consumer in consumers for n in consumer.result(60)]
        # What batches gave back when the others had ended already.
        if session.run(queue.size()):
            seen += session.run(queue.dequeue_up_to(1000))[0].tolist()
    assert sorted(seen) == list(range(count))


@pytest.mark.parametrize("kind", KINDS)
def test_every_element_arrives_once(kind: str) -> None:
    exchange(kind, 3000)


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_every_one_of_many_elements_arrives_once(kind: str) -> None:
    exchange(kind, 10**5)


@pytest.mark.parametrize("kind", KINDS)
def test_closing_under_load_ends_all_threads(kind: str) -> None:
    queue = KINDS[kind]()
    put = queue.enqueue([hr.constant(1, hr.int64), hr.constant([1, 1], hr.int64)])
    take = queue.dequeue_up_to(3)
    close = queue.close(cancel_pending_enqueues=True)
    ended: list[type[BaseException]] = []
    with hr.Session() as session:

        def run(step: Any) -> None:
            try:
                while True:
                    session.run(step)
            except (CancelledError, OutOfRangeError) as error:
                ended.append(type(error))

        threads = [threading.Thread(target=run, args=(s,)) for s in (put, take) for _ in range(4)]
        for thread in threads:
            thread.start()
        time.sleep(0.3)
        begin = time.monotonic()
        session.run(close)
        for thread in threads:
            thread.join(10)
        took = time.monotonic() - begin
        assert not any(thread.is_alive() for thread in threads)
        assert took < 1
        assert session.run(queue.size()) == 0
    assert (
        sorted(kind.__name__ for kind in ended) == ["CancelledError"] * 4 + ["OutOfRangeError"] * 4
    )


def test_a_batch_of_another_shape_loses_nothing() -> None:
    queue = hr.FIFOQueue(10, [hr.int32, hr.float32], [[], [2]], name="q")
    rows, pairs = hr.placeholder(hr.int32), hr.placeholder(hr.float32)
    put = queue.enqueue_many([rows, pairs])
    with hr.Session() as session:
        session.run(put, {rows: [1, 2], pairs: [[1, 2], [3, 4]]})
        for bad, message in (
            ({rows: [1], pairs: [[1, 2, 3]]}, r"component 1 of queue 'q' must have shape"),
            ({rows: [[1]], pairs: [[1, 2]]}, r"component 0 of queue 'q' must have shape"),
            ({rows: [1, 2], pairs: [[1, 2]]}, r"must have one leading size, got \[1, 2\]"),
            ({rows: 1, pairs: [[1, 2]]}, r"component 0 of queue 'q' must have shape"),
        ):
            with pytest.raises(hr.errors.InvalidArgumentError, match=message):
                session.run(put, bad)
        assert session.run(queue.size()) == 2
        assert session.run(queue.dequeue_many(2))[0].tolist() == [1, 2]
