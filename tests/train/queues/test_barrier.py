"""Barriers: values that come component by component."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import headrace as hr
from headrace.errors import (
    AttributeValueError,
    CancelledError,
    DTypeError,
    InvalidArgumentError,
    OutOfRangeError,
    ShapeError,
    UnimplementedError,
)

pytestmark = [pytest.mark.needs("backend-cpu"), pytest.mark.usefixtures("graph")]


def test_values_leave_when_they_are_complete() -> None:
    barrier = hr.Barrier([hr.int32, hr.float32], [[], [2]])
    assert hr.queue.Barrier is hr.Barrier
    keys = hr.placeholder(hr.string, [None])
    numbers, pairs = hr.placeholder(hr.int32, [None]), hr.placeholder(hr.float32, [None, 2])
    puts = [barrier.insert_many(0, keys, numbers), barrier.insert_many(1, keys, pairs)]
    taken = barrier.take_many(10)
    names = [b"k%d" % i for i in range(100)]
    with hr.Session() as session, ThreadPoolExecutor(4) as pool:

        def fill(component: int) -> None:
            order = np.random.default_rng(component).permutation(100)
            for part in np.split(order, 20):
                chosen = [names[i] for i in part]
                values = part if component == 0 else np.stack([part, -part], 1)
                session.run(puts[component], {keys: chosen, [numbers, pairs][component]: values})

        futures = [pool.submit(fill, component) for component in range(2)]
        batches = [session.run(taken) for _ in range(10)]
        for future in futures:
            future.result(30)
        assert session.run([barrier.ready_size(), barrier.incomplete_size()]) == [0, 0]
    seen = {}
    for batch in batches:
        for key, number, pair in zip(batch.keys, *batch.values, strict=True):
            assert pair.tolist() == [number, -number]
            seen[key] = number
    assert seen == {name: i for i, name in enumerate(names)}


def test_what_has_a_key_twice_is_refused_whole() -> None:
    barrier = hr.Barrier(hr.int32, [], name="b")
    pair = hr.Barrier([hr.int32, hr.int32], [[], []], name="pair")
    with hr.Session() as session:
        with pytest.raises(InvalidArgumentError, match="key b'a' has component 0 already in bar"):
            session.run(barrier.insert_many(0, ["x", "a", "a"], [1, 2, 3]))
        assert session.run(barrier.ready_size()) == 0
        session.run(pair.insert_many(1, ["a"], [1]))
        with pytest.raises(InvalidArgumentError, match="key b'a' has component 1 already"):
            session.run(pair.insert_many(1, ["new", "a"], [2, 3]))
        assert session.run(pair.incomplete_size()) == 1


def test_a_closed_barrier() -> None:
    barrier = hr.Barrier([hr.int32, hr.int32], [[], []], name="b")
    first, second = barrier.insert_many(0, ["a"], [1]), barrier.insert_many(1, ["a"], [2])
    small, two = barrier.take_many(2, allow_small_batch=True), barrier.take_many(2)
    with hr.Session() as session:
        session.run(first)
        session.run(barrier.close())
        with pytest.raises(CancelledError, match="closed and takes no new key, got b'z'"):
            session.run(barrier.insert_many(0, ["z"], [1]))
        with pytest.raises(CancelledError, match="barrier 'b' is closed already"):
            session.run(barrier.close())
        session.run(second)
        with pytest.raises(OutOfRangeError, match="expected 2, got 1"):
            session.run(two)
        assert session.run(small).keys.tolist() == [b"a"]
        with pytest.raises(OutOfRangeError, match="expected 2, got 0"):
            session.run(small)


def test_cancelling_drops_what_is_incomplete_and_ends_waits() -> None:
    barrier = hr.Barrier([hr.int32, hr.int32], [[], []])
    insert, taken = barrier.insert_many(0, ["a"], [1]), barrier.take_many(1)
    caught = []
    with hr.Session() as session:

        def wait() -> None:
            try:
                session.run(taken)
            except OutOfRangeError as error:
                caught.append(error)

        session.run(insert)
        thread = threading.Thread(target=wait)
        thread.start()
        session.run(barrier.close(cancel_pending_enqueues=True))
        thread.join(10)
        assert session.run(barrier.incomplete_size()) == 0
    assert len(caught) == 1


def test_what_barriers_refuse() -> None:
    barrier = hr.Barrier([hr.int32, hr.float32], [[], [2]], name="b")
    with pytest.raises(AttributeValueError, match="component_index of 'b' must be from 0 to 1"):
        barrier.insert_many(2, ["a"], [1])
    with pytest.raises(DTypeError, match="component 1 of 'b' is int32"):
        barrier.insert_many(0, ["a"], [1.5])
    with pytest.raises(ShapeError, match=r"component 1 of 'b' must have shape \[1, 2\]"):
        barrier.insert_many(1, ["a"], [[1.0, 2.0, 3.0]])
    with pytest.raises(ShapeError, match=r"component 1 of 'b' must have shape \[2\]"):
        barrier.insert_many(0, ["a", "b"], [1])
    with pytest.raises(UnimplementedError, match=r"limit the run with hr\.RunOptions"):
        barrier.take_many(1, timeout=5)
    with pytest.raises(ShapeError, match="take_many of 'free' needs components of fixed shapes"):
        hr.Barrier(hr.int32, name="free").take_many(1)
    with pytest.raises(ShapeError, match="component 0 of a barrier has no elements"):
        hr.Barrier(hr.int32, [[0]])
    values = hr.placeholder(hr.int32)
    insert = barrier.insert_many(0, hr.placeholder_with_default(["a"], [None]), values)
    with hr.Session() as session:
        with pytest.raises(InvalidArgumentError, match="there are 1 keys and 2 values"):
            session.run(insert, {values: [1, 2]})
        with pytest.raises(InvalidArgumentError, match="num_elements must be at least 1, got 0"):
            session.run(barrier.take_many(0))


def test_a_closed_barrier_gives_what_is_complete() -> None:
    barrier = hr.Barrier([hr.float32, hr.float32], [[], []])
    keys = ["a", "b", "c", "d"]
    first = barrier.insert_many(0, keys, [1.0, 2.0, 3.0, 4.0])
    second = [barrier.insert_many(1, [key], [10.0]) for key in keys]
    small, three = barrier.take_many(3, allow_small_batch=True), barrier.take_many(3)
    with hr.Session() as session:
        session.run(first)
        session.run(second[:2])
        session.run(barrier.close())
        assert session.run(small[1]).tolist() == [b"a", b"b"]
        with pytest.raises(OutOfRangeError, match="closed and has too few values: expected 3, got"):
            session.run(small[1])
        with pytest.raises(OutOfRangeError, match="too few values: expected 3, got 2"):
            session.run(three[1])
        session.run(second[2])
        assert session.run(small[1]).tolist() == [b"c"]
        session.run(second[3])
        assert session.run(small[1]).tolist() == [b"d"]
        with pytest.raises(OutOfRangeError, match="closed and has too few"):
            session.run(small[1])


def test_a_closed_barrier_waits_for_what_can_be_completed() -> None:
    barrier = hr.Barrier([hr.float32, hr.float32], [[], []])
    first = barrier.insert_many(0, ["a", "b"], [1.0, 2.0])
    second = [barrier.insert_many(1, [key], [10.0]) for key in ("a", "b")]
    two = barrier.take_many(2)
    with hr.Session() as session, ThreadPoolExecutor(1) as pool:
        session.run([first, second[0]])
        session.run(barrier.close())
        taken = pool.submit(session.run, two[1])
        session.run(second[1])
        assert taken.result(30).tolist() == [b"a", b"b"]
