"""Runners of queues: the end of an epoch, errors, stops, and what is printed."""

from __future__ import annotations

import threading
import time
from typing import Any

import numpy as np
import pytest

import headrace as hr
from headrace.errors import (
    ArgumentTypeError,
    AttributeValueError,
    GraphError,
    InvalidArgumentError,
    OutOfRangeError,
)
from tests.children import run_program

pytestmark = [pytest.mark.needs("backend-cpu"), pytest.mark.usefixtures("graph")]

WAIT = 10


def numbers(count: int, runs_out: bool = True) -> hr.Tensor:
    """Return a tensor that is the next number in each step, and has an end."""
    counter = hr.Variable(np.int64(0), trainable=False, name="counter")
    if runs_out:
        return counter.count_up_to(count)
    return hr.assign_add(counter, 1)


def test_an_epoch_ends_by_itself() -> None:
    queue = hr.FIFOQueue(8, hr.int64, [[]])
    runner = hr.train.QueueRunner(queue, [queue.enqueue(numbers(100))] * 4)
    hr.train.add_queue_runner(runner)
    batch = queue.dequeue_up_to(7)
    seen: list[int] = []
    with hr.Session() as session:
        session.run(hr.global_variables_initializer())
        coord = hr.train.Coordinator()
        assert not runner.started(session)
        threads = hr.train.start_queue_runners(session, coord)
        assert runner.started(session)
        try:
            while True:
                seen += session.run(batch).tolist()
        except OutOfRangeError as error:
            assert "is closed and has too few elements" in error.message  # noqa: PT017
        begin = time.monotonic()
        coord.request_stop()
        coord.join(threads)
        assert time.monotonic() - begin < 1
        assert not any(thread.is_alive() for thread in threads)
    assert sorted(seen) == list(range(100))
    assert runner.exceptions_raised == []


def test_a_stop_ends_threads_that_wait() -> None:
    queue = hr.FIFOQueue(2, hr.int64, [[]])
    runner = hr.train.QueueRunner(queue, [queue.enqueue(numbers(0, runs_out=False))] * 3)
    with hr.Session() as session:
        session.run(hr.global_variables_initializer())
        coord = hr.train.Coordinator()
        threads = runner.create_threads(session, coord, daemon=True, start=True)
        assert len(threads) == 4
        while session.run(queue.size()) < 2:
            time.sleep(0.01)
        begin = time.monotonic()
        coord.request_stop()
        coord.join(threads)
        assert time.monotonic() - begin < 1
        assert session.run(queue.is_closed())


def test_an_error_stops_all_runners_and_reaches_the_program() -> None:
    good, bad = hr.FIFOQueue(2, hr.int64, [[]]), hr.FIFOQueue(2, hr.float32, [[]])
    wrong = hr.gather([1.0], hr.placeholder_with_default(3, []), name="wrong")
    hr.train.add_queue_runner(
        hr.train.QueueRunner(good, [good.enqueue(numbers(0, runs_out=False))])
    )
    hr.train.add_queue_runner(hr.train.QueueRunner(bad, [bad.enqueue(wrong)]))
    with hr.Session() as session:
        session.run(hr.global_variables_initializer())
        coord = hr.train.Coordinator()
        threads = hr.train.start_queue_runners(session, coord)
        assert coord.wait_for_stop(WAIT)
        with pytest.raises(InvalidArgumentError, match="'wrong'") as caught:
            coord.join(threads)
        assert caught.value.op is wrong.op
        assert not any(thread.is_alive() for thread in threads)


def test_an_error_without_a_coordinator_is_kept(caplog: pytest.LogCaptureFixture) -> None:
    queue = hr.FIFOQueue(2, hr.float32, [[]], name="q")
    wrong = hr.gather([1.0], hr.placeholder_with_default(3, []))
    runner = hr.train.QueueRunner(queue, [queue.enqueue(wrong)])
    with hr.Session() as session:
        (thread,) = runner.create_threads(session, start=True)
        thread.join(WAIT)
    (error,) = runner.exceptions_raised
    assert isinstance(error, InvalidArgumentError)
    assert "a thread that fills the queue 'q' ended" in caplog.text


def test_threads_are_made_once_at_a_time() -> None:
    queue = hr.FIFOQueue(2, hr.int64, [[]])
    runner = hr.train.QueueRunner(queue, [queue.enqueue(numbers(3))] * 2)
    with hr.Session() as first, hr.Session() as second:
        for session in (first, second):
            session.run(hr.global_variables_initializer())
        threads = runner.create_threads(first)
        assert [thread.is_alive() for thread in threads] == [False, False]
        assert not any(thread.daemon for thread in threads)
        assert runner.create_threads(first) == []
        assert len(runner.create_threads(second, start=True)) == 2
        for thread in threads:
            thread.start()
        # Each of the two threads counts, and then waits for room: nothing orders them.
        assert sorted(first.run(queue.dequeue_up_to(9)).tolist()) == [0, 1, 2]
        for thread in threads:
            thread.join(WAIT)
        # They have ended: new ones may be made.
        assert len(runner.create_threads(first)) == 2


def test_other_errors_may_mean_the_end() -> None:
    queue = hr.FIFOQueue(2, hr.float32, [[]])
    wrong = hr.gather([1.0], hr.placeholder_with_default(3, []))
    ends = (OutOfRangeError, InvalidArgumentError)
    runner = hr.train.QueueRunner(queue, [queue.enqueue(wrong)], queue_closed_exception_types=ends)
    assert runner.queue_closed_exception_types == ends
    with hr.Session() as session:
        coord = hr.train.Coordinator()
        runner.create_threads(session, coord, start=True)
        with pytest.raises(OutOfRangeError, match="is closed"):
            session.run(queue.dequeue())
        coord.request_stop()
        coord.join()


def test_closing_the_session_ends_threads_quietly(
    caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    queue = hr.FIFOQueue(2, hr.int64, [[]])
    runner = hr.train.QueueRunner(queue, [queue.enqueue(numbers(0, runs_out=False))] * 3)
    with hr.Session() as session:
        session.run(hr.global_variables_initializer())
        threads = runner.create_threads(session, daemon=True, start=True)
        while session.run(queue.size()) < 2:
            time.sleep(0.01)
    begin = time.monotonic()
    for thread in threads:
        thread.join(WAIT)
    assert time.monotonic() - begin < 1
    assert runner.exceptions_raised == []
    assert caplog.text == ""
    assert capfd.readouterr() == ("", "")


def test_runners_of_the_default_session(caplog: pytest.LogCaptureFixture) -> None:
    with hr.Session() as session:
        assert hr.train.queue_runner.start_queue_runners() == []
    assert "found no queue runners in the collection 'queue_runners'" in caplog.text
    queue = hr.FIFOQueue(2, hr.int64, [[]])
    runner = hr.train.queue_runner.QueueRunner(queue, [queue.enqueue(hr.constant(1, hr.int64))])
    hr.train.queue_runner.add_queue_runner(runner, collection="mine")
    with hr.Session() as session:
        (thread,) = hr.train.start_queue_runners(start=False, collection="mine")
        assert not thread.is_alive()
        assert runner.started(session)


def test_what_runners_refuse() -> None:
    queue = hr.FIFOQueue(2, hr.int64, [[]])
    put = queue.enqueue(hr.constant(1, hr.int64))
    with pytest.raises(AttributeValueError, match="needs a queue and at least one operation"):
        hr.train.QueueRunner(queue, [])
    with pytest.raises(AttributeValueError, match="expected a QueueRunnerDef"):
        hr.train.QueueRunner(queue_runner_def=b"")
    with pytest.raises(AttributeValueError, match="mutually exclusive"):
        hr.train.QueueRunner(queue, queue_runner_def=hr.train.QueueRunner(queue, [put]).to_proto())
    kinds: Any = [OutOfRangeError]
    with pytest.raises(ArgumentTypeError, match=r"must be a tuple of classes of hr\.errors"):
        hr.train.QueueRunner(queue, [put], queue_closed_exception_types=kinds)
    with pytest.raises(GraphError, match="there is no default session in which to start"):
        hr.train.start_queue_runners()
    with pytest.raises(ArgumentTypeError, match=r"sess must be an hr\.Session, got 3"):
        hr.train.start_queue_runners(3)  # type: ignore[arg-type]


EPOCH = """
import headrace as hr, numpy as np
queue = hr.FIFOQueue(8, hr.int64, [[]])
counter = hr.Variable(np.int64(0), trainable=False)
hr.train.add_queue_runner(hr.train.QueueRunner(queue, [queue.enqueue(counter.count_up_to(50))] * 4))
batch = queue.dequeue_many(10)
with hr.Session() as session:
    session.run(hr.global_variables_initializer())
    coord = hr.train.Coordinator()
    threads = hr.train.start_queue_runners(session, coord)
    steps = 0
    try:
        while not coord.should_stop():
            session.run(batch)
            steps += 1
    except hr.errors.OutOfRangeError:
        pass
    finally:
        coord.request_stop()
    coord.join(threads)
assert steps == 5
"""

# Without any of what ends well: threads that run while the program ends.
CARELESS = """
import headrace as hr
queue = hr.FIFOQueue(8, hr.int64, [[]])
put = queue.enqueue(hr.constant(1, hr.int64))
hr.train.add_queue_runner(hr.train.QueueRunner(queue, [put] * 4))
session = hr.Session()
hr.train.start_queue_runners(session)
assert session.run(queue.dequeue_many(10)).tolist() == [1] * 10
"""


@pytest.mark.parametrize("program", [EPOCH, CARELESS], ids=["epoch", "careless"])
def test_a_normal_end_prints_nothing(program: str) -> None:
    done = run_program(program, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_runners_leave_no_threads() -> None:
    before = threading.active_count()
    for _ in range(5):
        with hr.Graph().as_default(), hr.Session() as session:
            queue = hr.FIFOQueue(2, hr.int64, [[]])
            one = hr.constant(1, hr.int64)
            runner = hr.train.QueueRunner(queue, [queue.enqueue(one)] * 2)
            coord = hr.train.Coordinator()
            runner.create_threads(session, coord, start=True)
            session.run(queue.dequeue_many(5))
            coord.request_stop()
            coord.join()
    assert threading.active_count() <= before
