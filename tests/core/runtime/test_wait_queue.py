"""Lines of blocking kernels: order of arrival, one answer each, the end of steps."""

from __future__ import annotations

import threading

import pytest

from headrace.errors import CancelledError
from headrace.runtime.concurrency.cancellation import Cancellation
from headrace.runtime.concurrency.wait_queue import WaitingLine
from headrace.runtime.state.session_state import KernelContext, SessionState


def waiting(line, name, answers, cancellation=None):
    with line.lock:
        return line.add(lambda result: answers.append((name, result)), cancellation, name)


def served(line):
    with line.lock:
        return line.pop()


@pytest.fixture
def line():
    return WaitingLine(threading.Lock())


def test_they_are_served_in_order_of_arrival(line):
    answers = []
    for name in "abc":
        waiting(line, name, answers).watch()
    assert len(line) == 3
    assert line.first().wanted == "a"
    for i in range(3):
        served(line).answer(i)
    assert answers == [("a", 0), ("b", 1), ("c", 2)]
    assert served(line) is None
    assert line.first() is None


def test_the_end_of_a_step_takes_its_kernel_out_of_the_line(line):
    answers, over = [], Cancellation()
    waiting(line, "a", answers, over).watch()
    waiting(line, "b", answers).watch()
    over.cancel(CancelledError("over"))
    assert [name for name, _ in answers] == ["a"]
    assert isinstance(answers[0][1], CancelledError)
    assert served(line).wanted == "b"


def test_who_was_served_is_not_ended_by_its_step(line):
    answers, over = [], Cancellation()
    waiting(line, "a", answers, over).watch()
    served(line).answer(1)
    over.cancel(CancelledError("over"))
    assert answers == [("a", 1)]


def test_who_is_served_before_it_watches_leaves_nothing_behind(line):
    answers, over = [], Cancellation()
    waiter = waiting(line, "a", answers, over)
    served(line).answer(1)
    waiter.watch()
    over.cancel(CancelledError("over"))
    assert answers == [("a", 1)]


def test_a_step_that_is_over_waits_no_more(line):
    answers, over = [], Cancellation()
    over.cancel(CancelledError("over"))
    waiting(line, "a", answers, over).watch()
    assert [name for name, _ in answers] == ["a"]
    assert not len(line)


def test_clearing_hands_out_all_of_them(line):
    answers, over = [], Cancellation()
    for name in "ab":
        waiting(line, name, answers, over).watch()
    with line.lock:
        waiters = line.clear()
    over.cancel(CancelledError("over"))
    for waiter in waiters:
        waiter.answer("reset")
    assert answers == [("a", "reset"), ("b", "reset")]


def test_each_is_answered_once_whatever_threads_do(line):
    answers = []
    steps = [Cancellation() for _ in range(400)]
    waiters = [waiting(line, i, answers, step) for i, step in enumerate(steps)]

    def watch():
        for waiter in waiters:
            waiter.watch()

    def end():
        for step in steps[::2]:
            step.cancel(CancelledError("over"))

    def serve():
        for _ in range(300):
            waiter = served(line)
            if waiter is not None:
                waiter.answer("served")

    threads = [threading.Thread(target=work) for work in (watch, end, serve)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(20)
    while (waiter := served(line)) is not None:
        waiter.answer("served")
    assert sorted(name for name, _ in answers) == list(range(400))


class Host:
    xp = None


def draws(seeds, runs, op="dice"):
    context = KernelContext(Host(), SessionState(), op, {"seeds": seeds})
    return [context.generator(seeds).integers(1 << 60) for _ in range(runs)]


def test_a_generator_repeats_with_its_seeds_and_differs_from_run_to_run():
    assert draws((1, 2), 5) == draws((1, 2), 5)
    assert len({*draws((1, 2), 5), *draws((1, 3), 5), *draws((2, 2), 5), *draws(None, 5)}) == 20
    assert draws((-1, 2**70), 1) == draws((-1, 2**70), 1)
