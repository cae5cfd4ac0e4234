"""Steps that run again and again: who goes on with them, in which order, and what ends them."""

from __future__ import annotations

import os
import threading
from typing import Any

import numpy as np
import pytest

import headrace as hr
from headrace import errors
from headrace.errors import CancelledError, OutOfRangeError, SessionClosedError
from headrace.runtime.execution import repeated_runs
from tests.waiting import wait_until

pytestmark = [pytest.mark.needs("backend-cpu", "train"), pytest.mark.usefixtures("graph")]


class Loop:
    """A thread that runs an operation until it is told to stop.

    Attributes:
        callers: The threads that asked whether there is to be another run.
        going: Whether there is.
        raised: What ended it.
    """

    def __init__(self, session: hr.Session, op: hr.Operation) -> None:
        self.callers: list[int] = []
        self.going = True
        self.raised: BaseException | None = None
        self.thread = threading.Thread(target=self._run, args=(session, op), daemon=True)
        self.thread.start()

    def asked(self) -> bool:
        """Return whether there is to be another run."""
        self.callers.append(threading.get_ident())
        return self.going

    def _run(self, session: hr.Session, op: hr.Operation) -> None:
        try:
            session.run_while(op, self.asked)
        except BaseException as error:
            self.raised = error

    def end(self, session: hr.Session, queue: Any) -> None:
        """Stop it where it waits to put into a queue."""
        self.going = False
        session.run(queue.close(cancel_pending_enqueues=True))
        self.thread.join(20)
        assert not self.thread.is_alive()


@pytest.fixture
def made(monkeypatch):
    """Return those that have been made, in a list."""
    found, kind = [], repeated_runs.RepeatedRuns

    def make(*args):
        found.append(kind(*args))
        return found[-1]

    monkeypatch.setattr(repeated_runs, "RepeatedRuns", make)
    return found


@pytest.fixture(params=[-1.0, 60.0], ids=["by its thread", "by who makes room"])
def short_s(request, monkeypatch):
    """Say from when on runs are long: at once, or never."""
    monkeypatch.setattr(repeated_runs, "SHORT_S", request.param)
    monkeypatch.setattr(repeated_runs, "_LONGEST_S", 60.0)
    return request.param


def take_when_it_waits(session, take, loops, many):
    """Return what steps took, each of which began when the one loop waited for room."""
    found = []
    for _ in range(many):
        wait_until(lambda: loops and loops[0].waits())
        found.append(session.run(take))
    return found


def counted(session, queue, count=1000):
    """Return what puts the numbers from 1 on into a queue, one in each run, and counts the runs."""
    work = hr.FIFOQueue(count, hr.string, [[]])
    session.run(work.enqueue_many([[b"%d" % n for n in range(1, count + 1)]]))
    session.run(work.close())
    reader = hr.IdentityReader()
    value = hr.strings.to_number(reader.read(work)[1], hr.int64)
    return queue.enqueue(value), reader.num_records_produced()


def test_a_step_runs_while_the_condition_holds(made):
    counter = hr.Variable(0)
    count = hr.assign_add(counter, 1)
    left = iter([True] * 7 + [False])
    with hr.Session() as session:
        session.run(hr.global_variables_initializer())
        assert session.run_while(count, left.__next__) is None
        assert session.run(counter) == 7
        session.run_while(count, lambda: False)
        assert session.run(counter) == 7
    # Around what changes variables, there are fences.
    assert not made


def test_who_makes_room_goes_on(short_s, made):
    queue = hr.FIFOQueue(3, hr.int64, [[]])
    take = queue.dequeue()
    with hr.Session() as session:
        put, counter = counted(session, queue)
        loop = Loop(session, put)
        found = take_when_it_waits(session, take, made, 40)
        # Three are in, and one waits.
        wait_until(lambda: session.run(counter) == 44)
        loop.end(session, queue)
    assert found == list(range(1, 41))
    (only,) = made
    by_us = loop.callers.count(threading.get_ident())
    assert only.runs == 44
    if short_s > 0:
        # The thread itself begins the first ones only: it waits when room is made.
        assert only.gone_on == by_us == 40
    else:
        assert only.gone_on == by_us == 0
    assert isinstance(loop.raised, CancelledError)


def test_nobody_is_kept_for_long(monkeypatch, made):
    monkeypatch.setattr(repeated_runs, "SHORT_S", 60.0)
    monkeypatch.setattr(repeated_runs, "_LONGEST_S", 60.0)
    monkeypatch.setattr(repeated_runs, "BORROWED_S", -1.0)
    queue = hr.FIFOQueue(3, hr.int64, [[]])
    take = queue.dequeue()
    with hr.Session() as session:
        put, _ = counted(session, queue)
        loop = Loop(session, put)
        assert [session.run(take) for _ in range(100)] == list(range(1, 101))
        loop.end(session, queue)
    assert made[0].gone_on == 0


def test_the_condition_is_asked_once_for_each_run(short_s, made):
    queue = hr.FIFOQueue(2, hr.int64, [[]])
    take = queue.dequeue()
    left = iter([True] * 60 + [False])
    with hr.Session() as session:
        put, counter = counted(session, queue)
        thread = threading.Thread(target=session.run_while, args=(put, left.__next__), daemon=True)
        thread.start()
        assert [session.run(take) for _ in range(60)] == list(range(1, 61))
        thread.join(20)
        assert not thread.is_alive()
        assert session.run(counter) == 60
    assert next(left, None) is None
    assert made[0].runs == 60


def test_the_first_runs_do_not_count_as_short(made):
    queue = hr.FIFOQueue(1, hr.int64, [[]])
    take = queue.dequeue()
    with hr.Session() as session:
        put, _ = counted(session, queue)
        loop = Loop(session, put)
        for _ in range(3):
            session.run(take)
        loop.end(session, queue)
    assert made[0].gone_on == 0


def test_paces_are_means_of_the_last_runs():
    pace = repeated_runs.Pace()
    assert not pace.short
    for _ in range(100):
        pace.note(0.0001)
    assert pace.short
    assert pace.seconds == pytest.approx(0.0001, rel=0.01)
    # One that takes long by chance is none of many.
    pace.note(60.0)
    assert pace.short
    for _ in range(8):
        pace.note(60.0)
    assert not pace.short


def test_an_error_reaches_the_thread_that_runs_them(short_s, made):
    queue = hr.FIFOQueue(2, hr.int64, [[]])
    take = queue.dequeue()
    with hr.Session() as session:
        put, _ = counted(session, queue, 50)
        loop = Loop(session, put)
        assert [session.run(take) for _ in range(50)] == list(range(1, 51))
        loop.thread.join(20)
    assert not loop.thread.is_alive()
    assert isinstance(loop.raised, OutOfRangeError)
    assert "is closed" in str(loop.raised)
    assert loop.raised.op is not None
    assert loop.raised.op.graph is session.graph
    assert made[0].runs == 51


def test_a_condition_that_fails_ends_the_runs_and_nobody_else(short_s):
    queue = hr.FIFOQueue(2, hr.int64, [[]])
    take = queue.dequeue()
    calls: list[int] = []
    raised: list[BaseException] = []

    def condition() -> bool:
        calls.append(1)
        if len(calls) > 60:
            raise LookupError("no more")
        return True

    def run(session: hr.Session, put: hr.Operation) -> None:
        try:
            session.run_while(put, condition)
        except LookupError as error:
            raised.append(error)

    with hr.Session() as session:
        put, _ = counted(session, queue)
        thread = threading.Thread(target=run, args=(session, put), daemon=True)
        thread.start()
        assert [session.run(take) for _ in range(60)] == list(range(1, 61))
        thread.join(20)
    assert [str(error) for error in raised] == ["no more"]


def test_an_interrupt_is_the_interrupted_threads(monkeypatch):
    monkeypatch.setattr(repeated_runs, "SHORT_S", 60.0)
    queue = hr.FIFOQueue(2, hr.int64, [[]])
    take = queue.dequeue()
    raised: list[BaseException] = []
    main = threading.get_ident()
    armed = threading.Event()

    def condition() -> bool:
        if armed.is_set() and threading.get_ident() == main:
            raise KeyboardInterrupt
        return True

    def run(session: hr.Session, put: hr.Operation) -> None:
        try:
            session.run_while(put, condition)
        except BaseException as error:
            raised.append(error)

    def take_many(session: hr.Session) -> None:
        for _ in range(100):
            session.run(take)

    with hr.Session() as session:
        put, _ = counted(session, queue)
        thread = threading.Thread(target=run, args=(session, put), daemon=True)
        thread.start()
        take_many(session)
        armed.set()
        with pytest.raises(KeyboardInterrupt):
            take_many(session)
        thread.join(20)
    assert not thread.is_alive()
    assert isinstance(raised[0], CancelledError)
    assert "the step was interrupted" in str(raised[0])


@pytest.mark.parametrize("cause", ["session", "queue"])
def test_what_is_closed_ends_the_runs(short_s, cause):
    queue = hr.FIFOQueue(2, hr.int64, [[]])
    take = queue.dequeue()
    session = hr.Session()
    put, counter = counted(session, queue)
    loop = Loop(session, put)
    for _ in range(40):
        session.run(take)
    wait_until(lambda: session.run(counter) == 43)
    if cause == "queue":
        loop.end(session, queue)
    session.close()
    loop.thread.join(20)
    assert not loop.thread.is_alive()
    expected = {"session": SessionClosedError, "queue": CancelledError}[cause]
    assert isinstance(loop.raised, expected)
    with pytest.raises(SessionClosedError, match="the session was closed"):
        session.run_while(put, lambda: True)


def test_what_it_waits_for_is_told_where_it_has_not_gone_on(made):
    queue = hr.FIFOQueue(1, hr.int64, [[]], name="full")
    take = queue.dequeue()
    with hr.Session() as session:
        put, counter = counted(session, queue)
        loop = Loop(session, put)
        wait_until(lambda: session.run(counter) == 2)
        (only,) = made
        wait_until(only.waits)
        (wait,) = only.waits()
        assert wait.op.type == "QueueEnqueue"
        assert wait.resource.name == "full"
        session.run(take)
        wait_until(lambda: session.run(counter) == 3)
        assert only.waits() == []
        loop.end(session, queue)


def test_other_steps_run_one_by_one(made):
    """What may wait for more, or does something around each run, is run as ever."""
    first, second = hr.FIFOQueue(9, hr.int64, [[]]), hr.FIFOQueue(9, hr.int64, [[]])
    fill = first.enqueue_many([np.arange(5)])
    move = second.enqueue(first.dequeue())
    seen = hr.py_func(lambda x: x, [second.dequeue()], hr.int64)
    left = iter([True] * 5 + [False])
    with hr.Session() as session:
        session.run(fill)
        session.run_while(move, left.__next__)
        assert [session.run(seen) for _ in range(5)] == list(range(5))
    assert not made
    with hr.Session(config=hr.Config(timeout=60.0)) as session:
        session.run(fill)
        session.run_while(first.dequeue(), iter([True] * 5 + [False]).__next__)
        assert session.run(first.size()) == 0
    assert not made


def lines(folder, name, numbers):
    path = folder / name
    path.write_text("".join(f"{n}\n" for n in numbers))
    return os.fsencode(path)


def read_into(queue, names, many):
    """Return what reads numbers from files into a queue, some lines in each run."""
    work = hr.FIFOQueue(10, hr.string, [[]])
    reader = hr.TextLineReader()
    _, values = reader.read_up_to(work, many)
    put = queue.enqueue_many([hr.strings.to_number(values, hr.int64)])
    return hr.group(work.enqueue_many([names])), work.close(), put, reader


def test_records_are_those_of_separate_runs(short_s, made, tmp_path):
    names = [lines(tmp_path, str(i), range(i * 100, i * 100 + 100)) for i in range(5)]
    queue = hr.FIFOQueue(20, hr.int64, [[]])
    fill, close, put, reader = read_into(queue, names, 7)
    take = queue.dequeue_many(10)
    counts = [reader.num_records_produced(), reader.num_work_units_completed(), queue.size()]
    with hr.Session() as session:
        session.run(fill)
        session.run(close)
        loop = Loop(session, put)
        found = take_when_it_waits(session, take, made, 30)
        # Each file has fourteen runs of seven lines, and one of two. Twenty are in the queue, and
        # one waits.
        wait_until(lambda: session.run(counts) == [321, 3, 20])
        found += [session.run(take) for _ in range(20)]
        assert [n for batch in found for n in batch] == list(range(500))
        loop.thread.join(20)
        assert session.run(counts) == [500, 5, 0]
    assert isinstance(loop.raised, OutOfRangeError)
    assert made[0].runs == 76
    assert made[0].gone_on > 20 if short_s > 0 else made[0].gone_on == 0


def test_nobody_but_its_thread_waits_for_who_fills_a_pipe(monkeypatch, made, tmp_path):
    monkeypatch.setattr(repeated_runs, "SHORT_S", 60.0)
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    names = [lines(tmp_path, "file", range(300)), os.fsencode(pipe)]
    queue = hr.FIFOQueue(20, hr.int64, [[]])
    fill, close, put, _ = read_into(queue, names, 5)
    take = queue.dequeue_many(10)
    with hr.Session() as session:
        session.run(fill)
        session.run(close)
        loop = Loop(session, put)
        # The last of them are taken while it waits for the pipe.
        found = take_when_it_waits(session, take, made, 25)
        found += [session.run(take) for _ in range(5)]
        # This thread is the one that fills it.
        with pipe.open("w") as written:
            for n in range(300, 400):
                written.write(f"{n}\n")
        found += [session.run(take) for _ in range(10)]
        loop.thread.join(20)
    assert [n for batch in found for n in batch] == list(range(400))
    assert made[0].gone_on > 20
    assert isinstance(loop.raised, errors.OutOfRangeError)
