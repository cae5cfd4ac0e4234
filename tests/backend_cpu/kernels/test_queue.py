"""Queues: order, waiting, closing and cancelling, without threads that wait."""

from __future__ import annotations

import threading
import time

import numpy as np
import pytest

import headrace as hr
from headrace.errors import (
    CancelledError,
    DTypeError,
    ExecutionError,
    OutOfRangeError,
    ResourceError,
    SessionClosedError,
    ShapeError,
)
from headrace.ops.queue import (
    fifo_queue,
    queue_close,
    queue_dequeue,
    queue_dequeue_many,
    queue_enqueue,
    queue_enqueue_many,
    queue_is_closed,
    queue_size,
)
from headrace.runtime.concurrency.cancellation import Cancellation
from headrace.shapes import Shape
from headrace_cpu.queues import FIFOQueue


class Log(list):
    """Collects what callbacks are called with, each under a label."""

    def under(self, label):
        return lambda result: self.append((label, result))

    @property
    def labels(self):
        return [label for label, _ in self]

    def of(self, label):
        (result,) = [r for name, r in self if name == label]
        return result


@pytest.fixture
def queue():
    return FIFOQueue("q", 2, [hr.int32], [Shape([])])


@pytest.fixture
def log():
    return Log()


def put(queue, log, label, *values, cancellation=None):
    queue.put([(v,) for v in values], log.under(label), cancellation)


def values(elements):
    return [v for (v,) in elements]


def test_first_in_first_out(queue, log):
    put(queue, log, "a", 1)
    put(queue, log, "b", 2)
    assert log == [("a", None), ("b", None)]
    assert queue.size == 2
    queue.take(1, log.under("c"))
    queue.take(1, log.under("d"))
    assert [values(r) for _, r in log[2:]] == [[1], [2]]


def test_enqueues_wait_for_room_in_order(queue, log):
    for label, value in zip("abcd", range(4), strict=True):
        put(queue, log, label, value)
    assert log.labels == ["a", "b"]
    queue.take(1, log.under("t"))
    assert sorted(log.labels) == ["a", "b", "c", "t"]
    queue.take(3, log.under("u"))
    assert values(log.of("u")) == [1, 2, 3]
    assert "d" in log.labels


def test_dequeues_wait_for_elements_in_order(queue, log):
    for label in "abc":
        queue.take(1, log.under(label))
    put(queue, log, "p", 1, 2)
    assert values(log.of("a")) == [1]
    assert values(log.of("b")) == [2]
    assert "c" not in log.labels


def test_one_that_wants_many_is_not_overtaken(queue, log):
    queue.take(2, log.under("many"))
    queue.take(1, log.under("one"))
    put(queue, log, "p", 1)
    assert log.labels == ["p"]
    put(queue, log, "q", 2, 3)
    assert values(log.of("many")) == [1, 2]
    assert values(log.of("one")) == [3]


def test_more_than_the_capacity_passes_in_pieces(queue, log):
    put(queue, log, "p", *range(7))
    assert log == []
    assert queue.size == 2
    queue.take(5, log.under("t"))
    assert values(log.of("t")) == [0, 1, 2, 3, 4]
    assert log.of("p") is None
    assert queue.size == 2


def test_many_of_none(queue, log):
    put(queue, log, "p")
    queue.take(0, log.under("t"))
    assert log == [("p", None), ("t", [])]


def test_closing_lets_the_rest_out(queue, log):
    put(queue, log, "a", 1, 2, 3)
    queue.finish()
    put(queue, log, "late", 4)
    assert isinstance(log.of("late"), CancelledError)
    assert "a" not in log.labels
    queue.take(2, log.under("t"))
    queue.take(1, log.under("u"))
    assert values(log.of("t")) + values(log.of("u")) == [1, 2, 3]
    assert log.of("a") is None
    queue.take(1, log.under("v"))
    assert isinstance(log.of("v"), OutOfRangeError)
    assert "closed and has too few elements: expected 1, got 0" in str(log.of("v"))
    assert queue.is_closed


def test_closing_ends_pending_dequeues_and_gives_back_what_they_had(queue, log):
    queue.take(3, log.under("many"))
    put(queue, log, "p", 1, 2)
    queue.take(1, log.under("one"))
    queue.finish()
    assert "expected 3, got 2" in str(log.of("many"))
    assert values(log.of("one")) == [1]
    assert queue.size == 1


def test_closing_may_cancel_pending_enqueues(queue, log):
    put(queue, log, "a", 1, 2, 3)
    queue.finish(cancel_pending_enqueues=True)
    assert isinstance(log.of("a"), CancelledError)
    queue.take(2, log.under("t"))
    assert values(log.of("t")) == [1, 2]


def test_cancelling_a_dequeue_loses_nothing(queue, log):
    first, second = Cancellation(), Cancellation()
    queue.take(3, log.under("many"), first)
    queue.take(1, log.under("one"), second)
    put(queue, log, "p", 1, 2)
    first.cancel(CancelledError("stop"))
    assert str(log.of("many")) == "stop"
    assert values(log.of("one")) == [1]
    queue.take(1, log.under("rest"))
    assert values(log.of("rest")) == [2]
    second.cancel(CancelledError("too late"))
    assert len(log) == 4


def test_cancelling_an_enqueue_leaves_the_others(queue, log):
    cancellation = Cancellation()
    put(queue, log, "full", 1, 2)
    put(queue, log, "a", 3, cancellation=cancellation)
    put(queue, log, "b", 4)
    cancellation.cancel(CancelledError("stop"))
    queue.take(2, log.under("t"))
    queue.take(1, log.under("u"))
    assert values(log.of("u")) == [4]
    assert isinstance(log.of("a"), CancelledError)


def test_what_was_cancelled_before_does_not_wait(queue, log):
    cancellation = Cancellation()
    cancellation.cancel(CancelledError("stop"))
    queue.take(1, log.under("t"), cancellation)
    put(queue, log, "p", 1)
    assert str(log.of("t")) == "stop"
    assert queue.size == 1


def test_finished_waiters_leave_their_cancellation(queue, log):
    cancellation = Cancellation()
    for _ in range(3):
        queue.take(1, log.under("t"), cancellation)
        put(queue, log, "p", 1, cancellation=cancellation)
    assert not cancellation._callbacks


def test_reset(queue, log):
    put(queue, log, "a", 1, 2, 3)
    queue.finish()
    queue.reset()
    assert isinstance(log.of("a"), CancelledError)
    assert queue.size == 0
    assert not queue.is_closed
    queue.take(1, log.under("t"))
    queue.reset()
    assert "was reset" in str(log.of("t"))
    put(queue, log, "b", 1)
    assert queue.size == 1


def test_a_thousand_waiters_hold_no_thread(queue, log):
    before = threading.active_count()
    for i in range(1000):
        queue.take(1, log.under(i))
    assert threading.active_count() == before
    put(queue, log, "p", *range(1000))
    assert [values(log.of(i)) for i in range(1000)] == [[i] for i in range(1000)]


def test_every_element_arrives_once_between_many_threads():
    queue = FIFOQueue("q", 3, [hr.int32], [Shape([])])
    got, lock = [], threading.Lock()
    producers = 4

    def call(method, *arguments):
        done = threading.Event()
        results = []
        method(*arguments, lambda r: (results.append(r), done.set()), Cancellation())
        assert done.wait(20)
        return results[0]

    def produce(start):
        for value in range(start, start + 100):
            assert call(queue.put, [(value,)]) is None

    def consume(count):
        while True:
            result = call(queue.take, count)
            if isinstance(result, BaseException):
                return
            with lock:
                got.extend(values(result))

    threads = [threading.Thread(target=produce, args=(i * 100,)) for i in range(producers)]
    takers = [threading.Thread(target=consume, args=(c,)) for c in (1, 2, 1)]
    for thread in [*threads, *takers]:
        thread.start()
    for thread in threads:
        thread.join()
    queue.finish()
    for thread in takers:
        thread.join()
    assert sorted(got) == list(range(400))


# -- through graphs


def make(capacity=10, dtypes=(hr.float32, hr.string), shapes=([2], []), **names):
    names = {"container": "", "shared_name": "q"} | names
    return fifo_queue(capacity, tuple(dtypes), tuple(map(Shape, shapes)), **names)


TYPES, SHAPES = (hr.float32, hr.string), (Shape([2]), Shape([]))


def test_elements_pass_through_sessions():
    q = make()
    x = hr.placeholder(hr.float32, [2])
    with hr.Session() as session:
        source = np.array([1, 2], np.float32)
        session.run(queue_enqueue(q, [x, b"one"]), {x: source})
        source[0] = 9
        session.run(queue_enqueue_many(q, [[[3.0, 4.0], [5.0, 6.0]], [b"two", b"three"]]))
        assert session.run(queue_size(q)) == 3
        numbers, word = session.run(queue_dequeue(q, TYPES, SHAPES))
        assert numbers.tolist() == [1, 2]
        assert word == b"one"
        numbers, words = session.run(queue_dequeue_many(q, 2, TYPES, SHAPES))
        assert numbers.tolist() == [[3, 4], [5, 6]]
        assert words.tolist() == [b"two", b"three"]
        numbers, words = session.run(queue_dequeue_many(q, 0, TYPES, SHAPES))
        assert numbers.shape == (0, 2)
        assert words.dtype == object
        assert not session.run(queue_is_closed(q))
        session.run(queue_close(q))
        assert session.run(queue_is_closed(q))
        with pytest.raises(OutOfRangeError, match=r"'q' is closed(.|\n)*QueueDequeue"):
            session.run(queue_dequeue(q, TYPES, SHAPES))
        with pytest.raises(CancelledError, match="'q' is closed"):
            session.run(queue_enqueue(q, [[1.0, 2.0], b""]))


def test_one_component_is_one_value():
    q = make(dtypes=[hr.int32], shapes=[[]])
    with hr.Session() as session:
        session.run(queue_enqueue(q, [5]))
        (value,) = queue_dequeue(q, (hr.int32,), (Shape([]),))
        assert session.run(value) == 5


def test_a_thousand_dequeues_of_one_step_wait_in_one_thread():
    q = make(capacity=1, dtypes=[hr.int32], shapes=[[]])
    taken = [queue_dequeue(q, (hr.int32,), (Shape([]),))[0] for _ in range(1000)]
    total = hr.add_n(taken) if hasattr(hr, "add_n") else hr.reduce_sum(hr.stack(taken))
    fill = queue_enqueue_many(q, [np.ones(1000, np.int32)])
    with hr.Session() as session:
        got = []
        before = threading.active_count()
        thread = threading.Thread(target=lambda: got.append(session.run(total)))
        thread.start()
        time.sleep(0.2)
        assert threading.active_count() <= before + 1
        session.run(fill)
        thread.join(20)
        assert got == [1000]


def test_closing_the_session_wakes_who_waits():
    q = make(dtypes=[hr.int32], shapes=[[]])
    (value,) = queue_dequeue(q, (hr.int32,), (Shape([]),))
    session = hr.Session()
    failures = []

    def wait():
        try:
            session.run(value)
        except SessionClosedError as error:
            failures.append(error)

    thread = threading.Thread(target=wait)
    thread.start()
    time.sleep(0.1)
    session.close()
    thread.join(10)
    assert len(failures) == 1


def placed(values):
    arrays = [np.asarray(v) for v in values]
    holders = [hr.placeholder(a.dtype) for a in arrays]
    return holders, dict(zip(holders, arrays, strict=True))


@pytest.mark.parametrize(
    ("build", "given", "error", "match"),
    [
        (queue_enqueue, [np.float32([1])], ShapeError, r"must have shape \[2\], got \[1\]"),
        (
            queue_enqueue,
            [np.int32([1, 2])],
            DTypeError,
            "component 0 of queue 'q' is float32, got int32",
        ),
        (queue_enqueue, [np.ones(2, "f")] * 2, ShapeError, "elements of 1 components, got 2"),
        (queue_enqueue_many, [np.float32(1)], ShapeError, r"must have shape \[\?, 2\], got \[\]"),
        (queue_enqueue_many, [np.ones((3, 1), "f")], ShapeError, r"shape \[\?, 2\], got \[3, 1\]"),
    ],
)
def test_components_that_do_not_fit(build, given, error, match):
    q = make(dtypes=[hr.float32], shapes=[[2]])
    holders, feeds = placed(given)
    with hr.Session() as session, pytest.raises(error, match=match):
        session.run(build(q, holders), feeds)


def test_rows_of_different_numbers():
    q = make(dtypes=[hr.float32] * 2, shapes=[[], []])
    holders, feeds = placed([np.ones(2, "f"), np.ones(3, "f")])
    with (
        hr.Session() as session,
        pytest.raises(ShapeError, match=r"one leading size, got \[2, 3\]"),
    ):
        session.run(queue_enqueue_many(q, holders), feeds)


def test_joining_elements_needs_fixed_shapes_and_a_number():
    loose = make(dtypes=[hr.float32], shapes=[None], shared_name="loose")
    fixed = make(dtypes=[hr.float32], shapes=[[2]])
    n = hr.placeholder(hr.int32, [])
    with hr.Session() as session:
        with pytest.raises(ShapeError, match="only where all dimensions are fixed"):
            session.run(queue_dequeue_many(loose, n, (hr.float32,), (Shape([2]),)), {n: 1})
        with pytest.raises(ExecutionError, match="n must be >= 0, got -1"):
            session.run(queue_dequeue_many(fixed, n, (hr.float32,), (Shape([2]),)), {n: -1})
        with pytest.raises(DTypeError, match="holds components of float32, expected int32"):
            session.run(queue_dequeue(fixed, (hr.int32,), (Shape([2]),)))


def test_queues_of_one_name_are_alike():
    first, second = make(capacity=3), make(capacity=4)
    with hr.Session() as session:
        session.run(queue_size(first))
        with pytest.raises(ResourceError, match=r"declared in two ways: capacity 3 and 4\n"):
            session.run(queue_size(second))
