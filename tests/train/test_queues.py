"""Queues: what goes in comes out, waiting and waking, closing, and what they refuse."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest

import headrace as hr
from headrace.errors import (
    AttributeValueError,
    CancelledError,
    DTypeError,
    GraphError,
    HeadraceError,
    OutOfRangeError,
    SessionClosedError,
    ShapeError,
)

pytestmark = pytest.mark.usefixtures("graph")

needs_kernels = pytest.mark.needs("backend-cpu")


@pytest.fixture
def pool() -> Any:
    with ThreadPoolExecutor(8) as executor:
        yield executor


def still_waits(future: Future[Any]) -> bool:
    time.sleep(0.1)
    return not future.done()


class TestConstruction:
    def test_of_the_forms_of_dtypes_and_shapes(self) -> None:
        cases: list[tuple[Any, Any, list[str], list[str]]] = [
            (hr.float32, None, ["float32"], ["<unknown>"]),
            ("float32", [], ["float32"], ["()"]),
            ([hr.float32], [[]], ["float32"], ["()"]),
            ([hr.float32], [2, 3], ["float32"], ["(2, 3)"]),
            ([hr.float32], hr.Shape([2]), ["float32"], ["(2,)"]),
            ([hr.float32, np.int64], [[2], []], ["float32", "int64"], ["(2,)", "()"]),
            ([hr.float32, "string"], None, ["float32", "string"], ["<unknown>", "<unknown>"]),
        ]
        for dtypes, shapes, expected_dtypes, expected_shapes in cases:
            queue = hr.train.FIFOQueue(3, dtypes, shapes)
            assert [d.name for d in queue.dtypes] == expected_dtypes
            assert [str(s) for s in queue.shapes] == expected_shapes

    def test_names(self) -> None:
        with hr.name_scope("input"):
            first = hr.train.FIFOQueue(3, hr.float32)
            second = hr.train.FIFOQueue(3, hr.float32, name="images")
            third = hr.train.FIFOQueue(3, hr.float32, shared_name="all", name="images")
        assert [q.name for q in (first, second, third)] == [
            "input/fifo_queue",
            "input/images",
            "input/images_1",
        ]
        assert second.handle.op.attrs["shared_name"] == "input/images"
        assert third.queue_ref.op.attrs["shared_name"] == "all"
        assert repr(first) == "<FIFOQueue 'input/fifo_queue' of float32[...]>"

    def test_results_have_the_queues_specs(self) -> None:
        queue = hr.train.FIFOQueue(9, [hr.float32, hr.int64], [[2], []])
        x, y = queue.dequeue()
        assert (x.dtype, x.shape, y.dtype, y.shape) == (hr.float32, [2], hr.int64, [])
        x, y = queue.dequeue_many(4)
        assert (x.shape, y.shape) == ([4, 2], [4])
        x, y = queue.dequeue_many(hr.placeholder(hr.int32, []))
        assert (x.shape, y.shape) == ([None, 2], [None])
        assert isinstance(hr.train.FIFOQueue(1, hr.float32).dequeue(), hr.Tensor)
        named = hr.train.FIFOQueue(1, [hr.float32, hr.int64], names=["x", "y"])
        assert {n: t.dtype for n, t in named.dequeue().items()} == {"x": hr.float32, "y": hr.int64}
        assert (queue.size().dtype, queue.is_closed().dtype) == (hr.int32, hr.bool)

    def test_of_different_lengths(self) -> None:
        with pytest.raises(AttributeValueError, match="queue of 2 components needs as many shapes"):
            hr.train.FIFOQueue(3, [hr.float32, hr.int32], [[]])
        with pytest.raises(AttributeValueError, match="needs as many different names, got"):
            hr.train.FIFOQueue(3, [hr.float32, hr.int32], names=["x"])
        with pytest.raises(AttributeValueError, match="needs as many different names, got"):
            hr.train.FIFOQueue(3, [hr.float32, hr.int32], names=["x", "x"])

    def test_of_no_capacity(self) -> None:
        with pytest.raises(AttributeValueError, match="must be at least 1, or -1 for any number"):
            hr.train.FIFOQueue(0, hr.float32)
        with pytest.raises(AttributeValueError, match=r"capacity must be a whole number, got 2\.5"):
            hr.train.FIFOQueue(2.5, hr.float32)  # type: ignore[arg-type]

    def test_components_of_another_dtype(self) -> None:
        queue = hr.train.FIFOQueue(3, [hr.float32, hr.int32], name="q")
        with pytest.raises(DTypeError, match=r"component 1 of 'q' is int32: .*float"):
            queue.enqueue([1.0, 2.5])
        with pytest.raises(DTypeError, match=r"component 0 of 'q' is float32: .*float64"):
            queue.enqueue([hr.constant(1.0, hr.float64), 2])
        named = hr.train.FIFOQueue(3, hr.int32, names="count", name="n")
        with pytest.raises(DTypeError, match="count of 'n' is int32"):
            named.enqueue({"count": "many"})

    def test_components_of_another_shape(self) -> None:
        queue = hr.train.FIFOQueue(3, [hr.float32, hr.int32], [[2], []], name="q")
        with pytest.raises(
            ShapeError, match=r"component 0 of 'q' must have shape \[2\], got <Tens"
        ):
            queue.enqueue([np.zeros(3, np.float32), 1])
        with pytest.raises(ShapeError, match=r"component 0 of 'q' must have shape \[\?, 2\], got"):
            queue.enqueue_many([np.zeros(2, np.float32), [1]])
        with pytest.raises(
            ShapeError, match=r"component 1 of 'q' must have shape \[3\], got <Tens"
        ):
            queue.enqueue_many([np.zeros((3, 2), np.float32), [1, 2]])
        free = hr.train.FIFOQueue(3, hr.float32, name="free")
        with pytest.raises(ShapeError, match="component 0 of 'free' must have shape"):
            free.enqueue_many(1.0)

    def test_too_few_components_or_too_many(self) -> None:
        queue = hr.train.FIFOQueue(3, [hr.float32, hr.int32], name="q")
        with pytest.raises(AttributeValueError, match="'q' is a list of 2 components, got a list"):
            queue.enqueue([1.0])
        single = hr.train.FIFOQueue(3, hr.float32, name="single")
        with pytest.raises(AttributeValueError, match="goes into another list"):
            single.enqueue([1.0, 2.0])

    def test_dicts(self) -> None:
        queue = hr.train.FIFOQueue(3, [hr.float32, hr.int32], names=["x", "y"], name="q")
        with pytest.raises(AttributeValueError, match="dicts with the keys 'x', 'y', got the keys"):
            queue.enqueue({"x": 1.0, "z": 2})
        with pytest.raises(AttributeValueError, match="dicts with the keys 'x', 'y', got list"):
            queue.enqueue([1.0, 2])
        plain = hr.train.FIFOQueue(3, hr.float32, name="plain")
        with pytest.raises(AttributeValueError, match="'plain' was made without names= and takes"):
            plain.enqueue({"x": 1.0})

    @pytest.mark.parametrize(
        "make",
        [
            lambda: hr.train.FIFOQueue(3, [hr.float32], [[None]]),
            lambda: hr.RandomShuffleQueue(3, 1, [hr.float32], [None]),
            lambda: hr.PriorityQueue(3, [hr.float32], [[2, None]]),
        ],
        ids=["fifo", "shuffle", "priority"],
    )
    def test_shapes_that_are_known_in_part(self, make: Any) -> None:
        with pytest.raises(ShapeError, match=r"must be fully known, got .*PaddingFIFOQueue"):
            make()

    def test_dequeue_many_of_free_shapes(self) -> None:
        queue = hr.train.FIFOQueue(3, [hr.float32, hr.int32], name="q")
        with pytest.raises(ShapeError, match=r"'q' needs .* fixed shapes .* 0: \[\.\.\.\],"):
            queue.dequeue_many(2)

    def test_from_another_graph(self) -> None:
        queue = hr.train.FIFOQueue(3, hr.float32, name="q")
        with (
            hr.Graph().as_default(),
            pytest.raises(GraphError, match="the queue 'q' belongs to another graph"),
        ):
            queue.dequeue()


@needs_kernels
class TestOrder:
    def test_first_in_first_out(self) -> None:
        queue = hr.train.FIFOQueue(10, [hr.int32, hr.string], [[], []])
        x = hr.placeholder(hr.int32, [])
        put, take, size = queue.enqueue([x, "word"]), queue.dequeue(), queue.size()
        with hr.Session() as session:
            for i in range(5):
                session.run(put, {x: i})
            assert session.run(size) == 5
            assert [session.run(take) for _ in range(5)] == [[i, b"word"] for i in range(5)]
            assert session.run(size) == 0

    def test_many(self) -> None:
        queue = hr.train.FIFOQueue(10, [hr.int32, hr.float32], [[], [2]])
        rows = np.arange(12, dtype=np.float32).reshape(6, 2)
        put = queue.enqueue_many([np.arange(6), rows])
        n = hr.placeholder(hr.int32, [])
        many, one = queue.dequeue_many(n), queue.dequeue()
        with hr.Session() as session:
            session.run(put)
            i, row = session.run(one)
            assert (i, row.tolist()) == (0, [0, 1])
            numbers, part = session.run(many, {n: 3})
            np.testing.assert_array_equal(numbers, [1, 2, 3])
            np.testing.assert_array_equal(part, rows[1:4])
            numbers, part = session.run(many, {n: 0})
            assert (numbers.shape, part.shape) == ((0,), (0, 2))
            assert session.run(queue.size()) == 2

    def test_dicts(self) -> None:
        queue = hr.train.FIFOQueue(10, [hr.int32, hr.float32], [[], []], names=["n", "x"])
        put = queue.enqueue_many({"x": [0.5, 1.5], "n": [1, 2]})
        with hr.Session() as session:
            session.run(put)
            assert session.run(queue.dequeue()) == {"n": 1, "x": 0.5}
            many = session.run(queue.dequeue_many(1))
            assert (many["n"].tolist(), many["x"].tolist()) == ([2], [1.5])

    def test_one_queue_under_a_shared_name(self) -> None:
        with hr.container("queues"):
            ends = [hr.train.FIFOQueue(2, hr.int32, [], shared_name="one") for _ in range(2)]
        try:
            with hr.Session() as session:
                session.run(ends[0].enqueue(7))
            with hr.Session() as session:
                assert session.run(ends[1].dequeue()) == 7
        finally:
            hr.reset_containers("queues")

    def test_many_producers_and_consumers(self, pool: ThreadPoolExecutor) -> None:
        queue = hr.train.FIFOQueue(3, hr.int32, [])
        x = hr.placeholder(hr.int32, [])
        put, take = queue.enqueue(x), queue.dequeue()
        with hr.Session() as session:
            producers = [
                pool.submit(lambda k=k: [session.run(put, {x: 100 * k + i}) for i in range(50)])
                for k in range(4)
            ]
            consumers = [
                pool.submit(lambda: [int(session.run(take)) for _ in range(50)]) for _ in range(4)
            ]
            for producer in producers:
                producer.result(30)
            found = [consumer.result(30) for consumer in consumers]
        assert sorted(n for part in found for n in part) == sorted(
            100 * k + i for k in range(4) for i in range(50)
        )
        # Each consumer sees the elements of one producer in order.
        for part in found:
            for k in range(4):
                own = [n for n in part if n // 100 == k]
                assert own == sorted(own)


@needs_kernels
class TestWaiting:
    def test_dequeue_waits_for_an_element(self, pool: ThreadPoolExecutor) -> None:
        queue = hr.train.FIFOQueue(3, hr.int32, [])
        put, take = queue.enqueue(7), queue.dequeue()
        with hr.Session() as session:
            taken = pool.submit(session.run, take)
            assert still_waits(taken)
            session.run(put)
            assert taken.result(10) == 7

    def test_enqueue_waits_for_room(self, pool: ThreadPoolExecutor) -> None:
        queue = hr.train.FIFOQueue(1, hr.int32, [])
        put, take = queue.enqueue(7), queue.dequeue()
        with hr.Session() as session:
            session.run(put)
            waiting = pool.submit(session.run, put)
            assert still_waits(waiting)
            session.run(take)
            waiting.result(10)
            assert session.run(queue.size()) == 1

    def test_dequeue_many_waits_for_all(self, pool: ThreadPoolExecutor) -> None:
        queue = hr.train.FIFOQueue(5, hr.int32, [])
        put, take = queue.enqueue(7), queue.dequeue_many(3)
        with hr.Session() as session:
            taken = pool.submit(session.run, take)
            session.run(put)
            session.run(put)
            assert still_waits(taken)
            session.run(put)
            assert taken.result(10).tolist() == [7, 7, 7]

    def test_enqueue_many_of_more_than_there_is_room(self, pool: ThreadPoolExecutor) -> None:
        queue = hr.train.FIFOQueue(2, hr.int32, [])
        put, take = queue.enqueue_many([np.arange(5)]), queue.dequeue()
        with hr.Session() as session:
            waiting = pool.submit(session.run, put)
            assert still_waits(waiting)
            assert [session.run(take) for _ in range(5)] == [0, 1, 2, 3, 4]
            waiting.result(10)

    def test_does_not_hold_up_other_steps(self, pool: ThreadPoolExecutor) -> None:
        queue = hr.train.FIFOQueue(3, hr.int32, [])
        take, put = queue.dequeue(), queue.enqueue(1)
        x = hr.Variable(0)
        count = x.assign_add(1)
        with hr.Session() as session:
            session.run(x.initializer)
            waiting = [pool.submit(session.run, take) for _ in range(7)]
            for _ in range(20):
                session.run(count)
            assert session.run(x) == 20
            assert not any(future.done() for future in waiting)
            for _ in waiting:
                session.run(put)
            assert [future.result(10) for future in waiting] == [1] * 7

    def test_a_thousand_steps_that_wait_cost_no_thread_each(self) -> None:
        queue = hr.train.FIFOQueue(1000, hr.int32, [])
        # One step that waits in many places.
        takes = [queue.dequeue() for _ in range(300)]
        total = hr.reduce_sum(hr.stack(takes))
        put = queue.enqueue_many([np.arange(300)])
        with hr.Session() as session, ThreadPoolExecutor(1) as one:
            before = threading.active_count()
            waiting = one.submit(session.run, total)
            assert still_waits(waiting)
            assert threading.active_count() <= before + 20
            session.run(put)
            assert waiting.result(10) == 299 * 150


@needs_kernels
class TestEnd:
    def test_what_is_in_a_closed_queue_can_be_taken(self) -> None:
        queue = hr.train.FIFOQueue(5, hr.int32, [], name="q")
        take, many = queue.dequeue(), queue.dequeue_many(2)
        with hr.Session() as session:
            session.run(queue.enqueue_many([[1, 2, 3]]))
            assert not session.run(queue.is_closed())
            session.run(queue.close())
            assert session.run(queue.is_closed())
            assert session.run(many).tolist() == [1, 2]
            with pytest.raises(OutOfRangeError, match="'q'"):
                session.run(many)
            assert session.run(take) == 3
            with pytest.raises(OutOfRangeError, match="'q'"):
                session.run(take)

    def test_enqueue_to_a_closed_queue(self) -> None:
        queue = hr.train.FIFOQueue(5, hr.int32, [], name="q")
        with hr.Session() as session:
            session.run(queue.close())
            with pytest.raises(CancelledError, match="'q'"):
                session.run(queue.enqueue(1))
            with pytest.raises(CancelledError, match="'q'"):
                session.run(queue.enqueue_many([[1, 2]]))

    def test_closing_wakes_those_who_wait_for_elements(self, pool: ThreadPoolExecutor) -> None:
        queue = hr.train.FIFOQueue(5, hr.int32, [], name="q")
        take, many, close = queue.dequeue(), queue.dequeue_many(3), queue.close()
        with hr.Session() as session:
            waiting = [pool.submit(session.run, fetch) for fetch in (many, take, take)]
            assert still_waits(waiting[0])
            session.run(close)
            for future in waiting:
                with pytest.raises(OutOfRangeError, match="'q'"):
                    future.result(10)

    def test_enqueues_that_wait_go_on_after_closing(self, pool: ThreadPoolExecutor) -> None:
        queue = hr.train.FIFOQueue(1, hr.int32, [])
        put, take, close = queue.enqueue(1), queue.dequeue(), queue.close()
        with hr.Session() as session:
            session.run(put)
            waiting = pool.submit(session.run, put)
            assert still_waits(waiting)
            session.run(close)
            assert still_waits(waiting)
            assert session.run(take) == 1
            waiting.result(10)
            assert session.run(take) == 1
            with pytest.raises(OutOfRangeError, match="closed"):
                session.run(take)

    def test_enqueues_that_wait_can_be_cancelled(self, pool: ThreadPoolExecutor) -> None:
        queue = hr.train.FIFOQueue(1, hr.int32, [], name="q")
        put, close = queue.enqueue(1), queue.close(cancel_pending_enqueues=True)
        with hr.Session() as session:
            session.run(put)
            waiting = pool.submit(session.run, put)
            assert still_waits(waiting)
            session.run(close)
            with pytest.raises(CancelledError, match="'q'"):
                waiting.result(10)
            assert session.run(queue.size()) == 1

    @pytest.mark.parametrize("end", ["dequeue", "enqueue"])
    def test_closing_the_session_wakes_those_who_wait(
        self, end: str, pool: ThreadPoolExecutor
    ) -> None:
        queue = hr.train.FIFOQueue(1, hr.int32, [])
        step: Any = queue.dequeue() if end == "dequeue" else queue.enqueue_many([[1, 2]])
        session = hr.Session()
        waiting = pool.submit(session.run, step)
        assert still_waits(waiting)
        session.close()
        with pytest.raises(SessionClosedError, match="the session was closed"):
            waiting.result(10)

    @pytest.mark.skipif(os.name != "posix", reason="needs signals")
    @pytest.mark.usefixtures("interrupts")
    def test_an_interrupted_step_waits_no_longer(self) -> None:
        queue = hr.train.FIFOQueue(1, hr.int32, [])
        take, put = queue.dequeue(), queue.enqueue(5)
        with hr.Session() as session:
            for step, expected in ((take, 0), (put, 1)):
                timer = threading.Timer(0.2, os.kill, (os.getpid(), signal.SIGINT))
                timer.start()
                with pytest.raises(KeyboardInterrupt):
                    session.run(step)
                timer.join()
                assert session.run(queue.size()) == expected
                # The interrupted dequeue takes nothing, and the interrupted enqueue adds nothing.
                session.run(put if expected == 0 else take)
            assert session.run(queue.size()) == 0

    def test_a_failure_elsewhere_in_the_step_wakes_it(self, pool: ThreadPoolExecutor) -> None:
        queue = hr.train.FIFOQueue(1, hr.int32, [])
        take = queue.dequeue()
        wrong = hr.reshape(hr.placeholder(hr.int32, [None]), [2])
        value = wrong.op.inputs[0]
        with hr.Session() as session:
            failing = pool.submit(session.run, [take, wrong], {value: np.zeros(3, np.int32)})
            with pytest.raises(HeadraceError, match="Reshape"):
                failing.result(10)
            # What the step waited for is not lost.
            session.run(queue.enqueue(5))
            assert session.run(take) == 5


@needs_kernels
def test_a_queue_feeds_training(pool: ThreadPoolExecutor) -> None:
    queue = hr.train.FIFOQueue(4, [hr.float32, hr.float32], [[2], []])
    put: Callable[..., Any]
    x, y = queue.dequeue_many(8)
    features, labels = hr.placeholder(hr.float32, [None, 2]), hr.placeholder(hr.float32, [None])
    put_rows = queue.enqueue_many([features, labels])
    w = hr.Variable(np.zeros((2, 1), np.float32))
    loss = hr.reduce_mean(hr.square(hr.squeeze(hr.matmul(x, w), 1) - y))
    step = hr.train.GradientDescentOptimizer(0.2).minimize(loss)
    random = np.random.default_rng(0)

    def produce() -> None:
        for _ in range(100):
            rows = random.normal(size=(8, 2)).astype(np.float32)
            put(rows, rows @ np.float32([2, -1]))

    with hr.Session() as session:
        session.run(hr.global_variables_initializer())
        put = session.make_callable(put_rows, [features, labels])
        producer = pool.submit(produce)
        for _ in range(100):
            session.run(step)
        producer.result(10)
        np.testing.assert_allclose(session.run(w)[:, 0], [2, -1], atol=1e-3)
