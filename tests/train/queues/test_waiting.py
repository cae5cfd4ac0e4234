"""Steps that wait for a queue: what they say after a while, and that they can be ended."""

from __future__ import annotations

import threading
import time
import warnings
from typing import Any

import numpy as np
import pytest

import headrace as hr
from headrace.errors import (
    CancelledError,
    ConfigError,
    DeadlineExceededError,
    FailedPreconditionError,
)
from tests.children import run_program

pytestmark = [pytest.mark.needs("backend-cpu"), pytest.mark.usefixtures("graph")]

SOON = hr.Config(wait_report=0.2)


def alone(body: str) -> str:
    """Return what a program prints in which only the main thread runs."""
    program = "import headrace as hr\nconfig = hr.Config(wait_report=0.2)\n" + body
    done = run_program(program, flags=("-W", "error"))
    return done.stdout + done.stderr


def test_nobody_can_fill_the_queue() -> None:
    printed = alone("""
q = hr.FIFOQueue(10, hr.int32, [[]], name="batches")
with hr.Session(config=config) as session:
    try:
        session.run(q.dequeue())
    except hr.errors.FailedPreconditionError as error:
        print(error, error.op.name, sep="\\n")
""")
    first, how, op, site, name = printed.splitlines()
    assert first == (
        "a step has waited for 0.2 seconds for queue 'batches', which holds 0 of at most 10 "
        "elements, and no other thread runs that could end this"
    )
    assert how == "  no operation of the graph fills it: enqueue something, or close it"
    assert op == "  in QueueDequeue 'batches_Dequeue'"
    assert site.startswith("  at <string>:7")
    assert name == "batches_Dequeue"


def test_runners_that_were_never_started() -> None:
    printed = alone("""
q = hr.RandomShuffleQueue(10, 2, hr.int32, [[]], name="batches")
hr.train.add_queue_runner(hr.train.QueueRunner(q, [q.enqueue(1)]))
with hr.Session(config=config) as session:
    try:
        session.run(q.dequeue_many(3))
    except hr.errors.FailedPreconditionError as error:
        print(error)
""")
    assert "which holds 0 of at most 10 elements and keeps 2 until it is closed, and" in printed
    assert (
        "its queue runner was never started in this session: call "
        "hr.train.start_queue_runners(session) before this step\n"
    ) in printed


def test_a_full_queue_that_nobody_empties() -> None:
    printed = alone("""
q = hr.FIFOQueue(1, hr.int32, [[]], name="batches")
with hr.Session(config=config) as session:
    try:
        session.run(q.enqueue_many([[1, 2]]))
    except hr.errors.FailedPreconditionError as error:
        print(error)
""")
    assert "for queue 'batches', which holds 1 of at most 1 elements, and no other" in printed
    assert "nothing takes elements out meanwhile" in printed


@pytest.fixture
def other_thread() -> Any:
    """Another thread, which might fill a queue."""
    over = threading.Event()
    thread = threading.Thread(target=over.wait, daemon=True)
    thread.start()
    yield
    over.set()
    thread.join()


@pytest.mark.usefixtures("other_thread")
def test_while_other_threads_run_it_is_reported_once() -> None:
    queue = hr.FIFOQueue(10, hr.int32, [[]], name="batches")
    put, take = queue.enqueue(7, name="put"), queue.dequeue()
    hr.train.add_queue_runner(hr.train.QueueRunner(queue, [put]))
    with hr.Session(config=SOON) as session, warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        late = threading.Timer(0.7, session.run, [put])
        late.start()
        assert session.run(take) == 7
        late.join()
    (warning,) = seen
    text = str(warning.message)
    assert "for queue 'batches', which holds 0 of at most 10 elements\n" in text
    assert "never started in this session: call hr.train.start_queue_runners" in text
    assert warning.category is RuntimeWarning
    assert warning.filename == __file__


@pytest.mark.usefixtures("other_thread")
def test_a_slow_producer_is_named() -> None:
    queue = hr.FIFOQueue(10, hr.int32, [[]], name="batches")

    def slow() -> Any:
        time.sleep(0.6)
        return hr.int32.numpy.type(3)

    put = queue.enqueue(hr.py_func(slow, [], hr.int32), name="put")
    runner = hr.train.QueueRunner(queue, [put])
    hr.train.add_queue_runner(runner)
    with hr.Session(config=SOON) as session:
        coord = hr.train.Coordinator()
        threads = hr.train.start_queue_runners(session, coord)
        with pytest.warns(RuntimeWarning, match=r"runner's threads, .* run 'put' \(line \d+\)"):
            assert session.run(queue.dequeue()) == 3
        coord.request_stop()
        coord.join(threads)


@pytest.mark.usefixtures("other_thread")
def test_full_queues_of_a_paused_program_are_not_reported() -> None:
    queue = hr.FIFOQueue(1, hr.int32, [[]])
    hr.train.add_queue_runner(hr.train.QueueRunner(queue, [queue.enqueue(1)] * 2))
    with hr.Session(config=SOON) as session, warnings.catch_warnings():
        warnings.simplefilter("error")
        coord = hr.train.Coordinator()
        threads = hr.train.start_queue_runners(session, coord)
        time.sleep(0.7)
        assert not coord.should_stop()
        coord.request_stop()
        coord.join(threads)


def test_the_time_is_a_setting(monkeypatch: pytest.MonkeyPatch) -> None:
    assert hr.Config().wait_report == 60
    monkeypatch.setenv("HEADRACE_WAIT_REPORT", "2.5")
    assert hr.Config().wait_report == 2.5
    for wrong in (0, -1, "soon", True, float("nan")):
        with pytest.raises(ConfigError, match="wait_report must be a number of seconds above 0"):
            hr.Config(wait_report=wrong)  # type: ignore[arg-type]


@pytest.mark.parametrize("method", ["dequeue", "enqueue"])
def test_closing_the_session_cancels_what_waits(method: str) -> None:
    queue = hr.FIFOQueue(1, hr.int32, [[]])
    step = queue.dequeue() if method == "dequeue" else queue.enqueue_many([[1, 2, 3]])
    session, caught = hr.Session(), []

    def run() -> None:
        try:
            session.run(step)
        except CancelledError as error:
            caught.append(error)

    threads = [threading.Thread(target=run) for _ in range(4)]
    for thread in threads:
        thread.start()
    time.sleep(0.2)
    begin = time.monotonic()
    session.close()
    for thread in threads:
        thread.join(10)
    assert time.monotonic() - begin < 1
    assert len(caught) == 4


def test_an_error_names_the_operation_of_the_program() -> None:
    queue = hr.FIFOQueue(3, hr.int32, [[]])
    put, take = queue.enqueue(1), queue.dequeue()
    with hr.Session() as session:
        session.run(queue.close())
        with pytest.raises(CancelledError, match="is closed") as refused:
            session.run(put)
        with pytest.raises(hr.errors.OutOfRangeError, match="is closed") as ended:
            session.run(take)
    assert refused.value.op is put
    assert ended.value.op is take.op
    assert not isinstance(ended.value, FailedPreconditionError)


def test_a_deadline_says_what_the_step_waited_for() -> None:
    queue = hr.FIFOQueue(10, hr.int32, [[]], name="batches")
    taken = queue.dequeue()
    hr.train.add_queue_runner(hr.train.QueueRunner(queue, [queue.enqueue(1)]))
    options = hr.RunOptions(timeout_in_ms=50)
    with hr.Session() as session:
        with pytest.raises(DeadlineExceededError, match=r"it waits for queue 'batches'") as caught:
            session.run(taken, options=options)
        first, how, op, site = str(caught.value).splitlines()[:4]
        assert first == (
            "the step was not done within 0.05 s; it waits for queue 'batches', which holds 0 of "
            "at most 10 elements"
        )
        assert how.startswith("  its queue runner was never started in this session: call ")
        assert op == "  in QueueDequeue 'batches_Dequeue'"
        assert "test_waiting.py" in site
        # What no queue is told of is not known.
        works = hr.py_func(lambda: np.float32(time.sleep(0.3) is None), [], hr.float32)
        both = [works, hr.py_func(lambda: np.float32(time.sleep(0.3) is None), [], hr.float32)]
        with pytest.raises(DeadlineExceededError, match=r"s; expected it to be: a step that waits"):
            session.run(both, options=options)


def test_a_deadline_that_waits_for_room_says_so() -> None:
    queue = hr.FIFOQueue(1, hr.int32, [[]], name="small")
    put = queue.enqueue(1)
    with hr.Session() as session:
        session.run(put)
        with pytest.raises(
            DeadlineExceededError,
            match=r"queue 'small', which holds 1 of at most 1 elements\n  nothing takes elements",
        ):
            session.run(put, options=hr.RunOptions(timeout_in_ms=50))
