"""Loops whose iterations overlap: who meets whom, in which order, and what is left of failures."""

from __future__ import annotations

import threading

import numpy as np
import pytest

import headrace as hr
from headrace.errors import (
    DeadlineExceededError,
    ExecutionError,
    InvalidInputError,
)

pytestmark = pytest.mark.needs("backend-cpu")
EXECUTORS = ["plan", "plain"]
WAIT_S = 20.0


class Calls:
    """What the calls of a Python function have done, by the number that each is given."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self.begun: list[int] = []
        self.ended: list[int] = []

    def begin(self, number: int) -> None:
        with self._changed:
            self.begun.append(number)
            self._changed.notify_all()

    def end(self, number: int) -> None:
        with self._changed:
            self.ended.append(number)
            self._changed.notify_all()

    def wait_for_begin(self, number: int) -> None:
        with self._changed:
            assert self._changed.wait_for(lambda: number in self.begun, WAIT_S), self.begun

    def wait_for_end(self, number: int) -> None:
        with self._changed:
            assert self._changed.wait_for(lambda: number in self.ended, WAIT_S), self.ended


def called(function, *inputs, dtype=hr.int32):
    found = hr.py_func(function, list(inputs), dtype)
    found.set_shape([])
    return found


def session(executor, **options):
    return hr.Session(config=hr.Config(executor=executor, verify=True, **options))


@pytest.mark.parametrize("executor", EXECUTORS)
def test_as_many_iterations_as_are_asked_for_are_under_way(executor):
    calls, meeting = Calls(), threading.Barrier(3)

    def meet(i):
        assert i < 3 or int(i) - 3 in calls.ended, (i, calls.ended)
        meeting.wait(WAIT_S)
        calls.end(int(i))
        return i * i

    made = hr.map_fn(lambda i: called(meet, i), hr.range(9), parallel_iterations=3)
    with session(executor) as sess:
        for _ in range(2):
            np.testing.assert_array_equal(sess.run(made), np.arange(9) ** 2)
            assert sorted(calls.ended) == list(range(9))
            calls.ended.clear()


@pytest.mark.parametrize("executor", EXECUTORS)
def test_an_iteration_that_does_not_end_holds_up_those_that_are_too_many(executor):
    calls = Calls()

    def call(i):
        calls.begin(int(i))
        if i == 0:
            for other in (1, 2, 3):
                calls.wait_for_end(other)
            # The fifth one comes only when this one has ended.
            assert sorted(calls.begun) == [0, 1, 2, 3]
        calls.end(int(i))
        return i

    made = hr.map_fn(lambda i: called(call, i), hr.range(7), parallel_iterations=4)
    with session(executor) as sess:
        np.testing.assert_array_equal(sess.run(made), range(7))


@pytest.mark.parametrize("executor", EXECUTORS)
def test_one_iteration_at_a_time_keeps_their_order(executor):
    calls = Calls()

    def call(i):
        assert calls.begun == calls.ended
        calls.begin(int(i))
        calls.end(int(i))
        return i

    made = hr.map_fn(lambda i: called(call, i), hr.range(6), parallel_iterations=1)
    with session(executor) as sess:
        np.testing.assert_array_equal(sess.run(made), range(6))
    assert calls.ended == list(range(6))


@pytest.mark.parametrize("executor", EXECUTORS)
def test_stages_form_a_pipeline(executor):
    first, second = Calls(), Calls()

    def stage(i, x):
        if i > 1:
            # The second stage of the iteration before has begun, and waits for this one.
            second.wait_for_begin(int(i) - 1)
        first.end(int(i))
        return x * 2

    def following(i, x):
        second.begin(int(i))
        if i < 3:
            first.wait_for_end(int(i) + 1)
        return x + 1

    def body(i, x, written):
        x = called(stage, i, x)
        return i + 1, x, written.write(i, called(following, i, x))

    start = (0, 1, hr.TensorArray(hr.int32, 4))
    _, last, written = hr.while_loop(lambda i, *_: i < 4, body, start)
    with session(executor) as sess:
        x, found = sess.run([last, written.stack()])
    assert x == 16
    np.testing.assert_array_equal(found, [3, 5, 9, 17])


@pytest.mark.parametrize("executor", EXECUTORS)
def test_what_is_carried_and_computed_with_does_not_hold_up_what_is_independent(executor):
    meeting = threading.Barrier(4)

    def meet(i):
        meeting.wait(WAIT_S)
        return i

    # What the sum is multiplied by is no reason for the calls to wait for it.
    made = hr.foldl(lambda total, i: total * 10 + called(meet, i), hr.range(1, 9), 0)
    with session(executor) as sess:
        assert sess.run(made) == 12345678


@pytest.mark.parametrize("executor", EXECUTORS)
def test_iterations_overlap_that_the_condition_announces(executor):
    meeting = threading.Barrier(3)

    def meet(i):
        meeting.wait(WAIT_S)
        return i

    def body(i, x, written):
        return i + 1, x * 2, written.write(i, called(meet, x))

    start = (0, hr.placeholder_with_default(1, []), hr.TensorArray(hr.int32, 0, dynamic_size=True))
    rounds, x, written = hr.while_loop(lambda _, x, __: x < 40, body, start)
    with session(executor) as sess:
        found = sess.run([rounds, x, written.stack()])
        none = sess.run([rounds, x], {start[1]: 50})
    assert found[:2] == [6, 64]
    np.testing.assert_array_equal(found[2], [1, 2, 4, 8, 16, 32])
    assert none == [0, 50]


@pytest.mark.parametrize("executor", EXECUTORS)
def test_nested_loops_overlap_in_each_other(executor):
    meeting = threading.Barrier(4)

    def meet(i, j):
        meeting.wait(WAIT_S)
        return i * 10 + j

    def row(i):
        return hr.map_fn(lambda j: called(meet, i, j), hr.range(2), parallel_iterations=2)

    made = hr.map_fn(row, hr.range(4), parallel_iterations=2)
    with session(executor) as sess:
        expected = np.add.outer(np.arange(4) * 10, np.arange(2))
        np.testing.assert_array_equal(sess.run(made), expected)


@pytest.mark.parametrize("executor", EXECUTORS)
def test_a_call_in_a_branch_overlaps(executor):
    meeting = threading.Barrier(2)

    def meet(i):
        meeting.wait(WAIT_S)
        return i

    def part(i):
        return hr.cond(hr.equal(i % 2, 0), lambda: called(meet, i), lambda: -i)

    made = hr.map_fn(part, hr.range(8), parallel_iterations=3)
    with session(executor) as sess:
        np.testing.assert_array_equal(sess.run(made), [0, -1, 2, -3, 4, -5, 6, -7])


@pytest.mark.parametrize("executor", EXECUTORS)
def test_iterations_on_several_devices_of_a_task_overlap(executor):
    meeting = threading.Barrier(3)

    def meet(x):
        meeting.wait(WAIT_S)
        return x

    def part(x):
        with hr.device("/cpu:1"):
            doubled = x * 2
        with hr.device("/cpu:0"):
            found = called(meet, doubled)
        with hr.device("/cpu:1"):
            return found + 1

    made = hr.map_fn(part, hr.range(6), parallel_iterations=3)
    with session(executor, device_count={"cpu": 2}) as sess:
        np.testing.assert_array_equal(sess.run(made), [1, 3, 5, 7, 9, 11])


def test_a_plan_says_which_loops_overlap():
    doubled = hr.map_fn(lambda i: called(lambda i: i, i) * 2, hr.range(6), parallel_iterations=5)
    chained = hr.foldl(lambda a, i: called(lambda a: a, a + i), hr.range(6), 0)
    with session("plan") as sess:
        for made, expected in (
            (doubled, "up to 5 rounds beside each other"),
            (chained, "by round"),
        ):
            (said,) = [part.rounds for part in sess.explain(made).parts if part.rounds]
            assert expected in said


@pytest.mark.parametrize("executor", EXECUTORS)
def test_variables_are_changed_in_the_order_of_the_iterations(executor):
    calls = Calls()
    digits = hr.Variable(0, name="digits")

    def call(i):
        if i < 3:
            calls.wait_for_end(int(i) + 1)
        calls.end(int(i))
        return i

    def part(i):
        found = called(call, i)
        with hr.control_dependencies([digits.assign(digits.read_value() * 10 + found)]):
            return hr.identity(found)

    made = hr.map_fn(part, hr.range(4), parallel_iterations=4)
    with session(executor) as sess:
        sess.run(digits.initializer)
        np.testing.assert_array_equal(sess.run(made), range(4))
        assert calls.ended == [3, 2, 1, 0]
        assert sess.run(digits) == 123


@pytest.mark.parametrize("executor", EXECUTORS)
@pytest.mark.parametrize("first_fails", [True, False])
def test_the_error_is_that_of_the_first_iteration_that_fails(executor, first_fails):
    calls = Calls()
    count = hr.Variable(0, name="count")

    def call(i):
        if i == 1:
            # The third iteration fails while this one is under way.
            calls.wait_for_end(2)
            if first_fails:
                raise ValueError("the second fails")
        if i == 2:
            calls.end(2)
            raise ValueError("the third fails")
        return i

    def part(i):
        found = called(call, i)
        with hr.control_dependencies([found]):
            added = count.assign_add(1)
        with hr.control_dependencies([added]):
            return hr.identity(found)

    made = hr.map_fn(part, hr.range(6), parallel_iterations=4)
    with session(executor) as sess:
        sess.run(count.initializer)
        which = "second" if first_fails else "third"
        with pytest.raises(ExecutionError, match=f"the {which} fails"):
            sess.run(made)
        # What comes before has been done, and nothing that comes after.
        assert sess.run(count) == (1 if first_fails else 2)


@pytest.mark.parametrize("executor", EXECUTORS)
def test_an_error_of_an_inner_loop_waits_for_the_outer_iterations_before(executor):
    calls = Calls()

    def call(i, j):
        if i == 1 and j == 1:
            calls.end(1)
            raise ValueError("the second row fails")
        if i == 0 and j == 0:
            calls.wait_for_end(1)
        if i == 0 and j == 1:
            raise ValueError("the first row fails")
        return i

    made = hr.map_fn(
        lambda i: hr.map_fn(lambda j: called(call, i, j), hr.range(2), parallel_iterations=1),
        hr.range(3),
        parallel_iterations=3,
    )
    with session(executor) as sess, pytest.raises(ExecutionError, match="the first row fails"):
        sess.run(made)


@pytest.mark.parametrize("executor", EXECUTORS)
def test_a_condition_that_fails_lets_the_iterations_before_end(executor):
    count = hr.Variable(0, name="count")

    def answer(i):
        return np.array([True, True]) if i == 2 else np.array(True)

    def cond(i, _):
        return hr.py_func(answer, [i], hr.bool)

    def body(i, written):
        found = called(lambda i: i, i)
        with hr.control_dependencies([found]):
            added = count.assign_add(1)
        with hr.control_dependencies([added]):
            return i + 1, written.write(i, found)

    start = (0, hr.TensorArray(hr.int32, 0, dynamic_size=True))
    rounds, _ = hr.while_loop(cond, body, start)
    with session(executor) as sess:
        sess.run(count.initializer)
        with pytest.raises(InvalidInputError, match="a condition must be a scalar"):
            sess.run(rounds)
        assert sess.run(count) == 2


@pytest.mark.parametrize("executor", EXECUTORS)
def test_a_step_that_takes_too_long_ends_with_iterations_under_way(executor):
    over = threading.Event()
    made = hr.map_fn(
        lambda i: called(lambda i: over.wait(WAIT_S) and i, i), hr.range(4), parallel_iterations=2
    )
    try:
        with (
            session(executor) as sess,
            pytest.raises(DeadlineExceededError, match="was not done within"),
        ):
            sess.run(made, options=hr.RunOptions(timeout_in_ms=50))
    finally:
        over.set()


@pytest.mark.parametrize("executor", EXECUTORS)
def test_traced_functions_keep_the_order_of_their_calls(executor):
    calls = Calls()

    def call(i):
        assert calls.begun == calls.ended
        calls.begin(int(i))
        calls.end(int(i))
        return i

    @hr.function
    def mapped(elems):
        return hr.map_fn(lambda i: called(call, i), elems, parallel_iterations=4)

    made = mapped(hr.range(6))
    with session(executor) as sess:
        np.testing.assert_array_equal(sess.run(made), range(6))
    assert calls.ended == list(range(6))


def independent(p):
    return hr.map_fn(lambda x: called(np.sin, x, dtype=hr.float32) * x, rising(), None, p)


def carried(p):
    return hr.scan(lambda a, x: a * 0.9 + called(np.cos, x, dtype=hr.float32), rising(), 0.5, p)


def serial(p):
    return hr.foldl(lambda a, x: called(np.sin, a + x, dtype=hr.float32), rising(), 0.5, p)


def drawn(p):
    def part(x):
        noise = hr.random_uniform([], seed=3) + hr.random_normal([], seed=4)
        return called(np.tanh, x + noise, dtype=hr.float32)

    return hr.map_fn(part, rising(), None, p)


def folded_backwards(p):
    return hr.foldr(lambda a, x: a / 3 + called(np.exp, -x, dtype=hr.float32), rising(), 0.5, p)


def differentiated(p):
    x = rising()

    def body(i, total):
        factor = hr.stop_gradient(called(np.sin, x[i], dtype=hr.float32))
        return i + 1, total * 0.9 + factor * x[i] * x[i]

    _, total = hr.while_loop(
        lambda i, _: i < 12, body, (0, 0.0), parallel_iterations=p, swap_memory=True
    )
    return hr.gradients(total, x)[0]


def asked(p):
    def body(i, x, written):
        return i + 1, x * 1.5, written.write(i, called(np.log, x, dtype=hr.float32))

    start = (0, hr.reduce_sum(rising()), hr.TensorArray(hr.float32, 0, dynamic_size=True))
    return hr.while_loop(lambda _, x, __: x < 1e5, body, start, parallel_iterations=p)[2].stack()


def queued(p):
    queue = hr.FIFOQueue(20, hr.float32, [])
    with hr.control_dependencies([queue.enqueue_many(rising())]):
        first = hr.constant(0)

    def body(i, written):
        taken = queue.dequeue()
        return i + 1, written.write(i, called(np.sqrt, taken, dtype=hr.float32))

    start = (first, hr.TensorArray(hr.float32, 12))
    return hr.while_loop(lambda i, _: i < 12, body, start, parallel_iterations=p)[1].stack()


def rising():
    return hr.constant(np.linspace(0.1, 2.0, 12, dtype=np.float32))


BODIES = [
    *(independent, carried, serial, drawn, folded_backwards, asked, queued),
    pytest.param(differentiated, marks=pytest.mark.needs("autodiff")),
]


@pytest.mark.parametrize("executor", EXECUTORS)
@pytest.mark.parametrize("made", BODIES, ids=lambda made: made.__name__)
def test_bits_do_not_depend_on_how_many_iterations_overlap(executor, made):
    found = []
    for most in (1, 2, 10, 32):
        with hr.Graph().as_default():
            value = made(most)
            with session(executor) as sess:
                found.append(np.stack([sess.run(value) for _ in range(4)]).tobytes())
    assert found[1:] == found[:1] * 3
