"""Python functions of one step run beside one another, and hold up nothing when they fail."""

from __future__ import annotations

import threading
import time

import numpy as np
import pytest

import headrace as hr
from headrace import errors

pytestmark = [
    pytest.mark.needs("backend-cpu"),
    pytest.mark.usefixtures("graph"),
    pytest.mark.timeout(60),
]


def test_a_single_function_runs_in_the_thread_of_the_step() -> None:
    y = hr.py_func(lambda: np.int64(threading.get_ident()), [], hr.int64) + 0
    with hr.Session() as session:
        assert session.run(y) == threading.get_ident()


def test_many_functions_meet() -> None:
    """All of them are under way at once, step after step."""
    barrier = threading.Barrier(5)

    def meet(i: int) -> np.int32:
        barrier.wait(30)
        return np.int32(i)

    total = hr.add_n([hr.py_func(meet, [hr.constant(i)], hr.int32) for i in range(5)])
    with hr.Session() as session:
        assert [session.run(total) for _ in range(3)] == [10, 10, 10]


@pytest.mark.parametrize("kind", [ValueError, SystemExit])
def test_an_error_ends_the_step_while_another_function_waits(kind: type[BaseException]) -> None:
    over = threading.Event()

    def fail() -> np.float32:
        raise kind("broken")

    a = hr.py_func(lambda: np.float32(over.wait(30)), [], hr.float32)
    b = hr.py_func(fail, [], hr.float32)
    c = hr.py_func(lambda: np.float32(over.wait(30)), [], hr.float32)
    with hr.Session() as session:
        with pytest.raises((errors.OpError, SystemExit), match="broken"):
            session.run(a + b + c)
        over.set()
        assert session.run(a) == 1


def test_a_step_of_functions_that_wait_can_be_given_up() -> None:
    over = threading.Event()
    parts = [hr.py_func(lambda: np.float32(over.wait(60)), [], hr.float32) for _ in range(2)]
    # Something else that waits keeps both functions out of the thread of the step.
    waits = hr.FIFOQueue(1, hr.float32).dequeue()
    with hr.Session() as session:
        began = time.monotonic()
        with pytest.raises(errors.DeadlineExceededError, match="not done within"):
            session.run([*parts, waits], options=hr.RunOptions(timeout_in_ms=200))
        assert time.monotonic() - began < 30
    over.set()


def test_functions_see_the_context_of_the_step() -> None:
    def graph() -> np.int64:
        return np.int64(id(hr.get_default_graph()))

    parts = [hr.py_func(graph, [], hr.int64) for _ in range(2)]
    with hr.Session() as session:
        assert set(session.run(parts)) == {id(hr.get_default_graph())}


@pytest.mark.parametrize("most", [1, 2])
@pytest.mark.parametrize("executor", ["plan", "plain"])
def test_no_more_functions_run_at_one_time_than_the_session_allows(
    most: int, executor: str
) -> None:
    lock = threading.Lock()
    now, seen = [0], [0]

    def pause(i: int) -> np.int32:
        with lock:
            now[0] += 1
            seen[0] = max(seen[0], now[0])
        time.sleep(0.02)
        with lock:
            now[0] -= 1
        return np.int32(i)

    total = hr.add_n([hr.py_func(pause, [hr.constant(i)], hr.int32) for i in range(5)])
    config = hr.Config(inter_op_threads=most, executor=executor)
    with hr.Session(config=config) as session:
        assert [session.run(total) for _ in range(2)] == [10, 10]
    assert seen[0] <= most


def test_two_functions_meet_where_two_may_run() -> None:
    barrier = threading.Barrier(2)
    parts = [hr.py_func(lambda: np.int32(barrier.wait(30) >= 0), [], hr.int32) for _ in range(4)]
    with hr.Session(config=hr.ConfigProto(inter_op_parallelism_threads=2)) as session:
        assert session.run(hr.add_n(parts)) == 4


def test_one_function_at_a_time_runs_in_the_thread_of_the_step() -> None:
    parts = [hr.py_func(lambda: np.int64(threading.get_ident()), [], hr.int64) for _ in range(3)]
    with hr.Session(config=hr.Config(inter_op_threads=1)) as session:
        assert set(session.run(parts)) == {threading.get_ident()}


@pytest.mark.parametrize("threads", [0, -1, 1.0, True, "2"])
def test_the_number_of_operations_at_one_time_is_a_positive_integer(threads: object) -> None:
    expected = "inter_op_threads must be a positive integer, or None for as many as threads, got"
    with pytest.raises(errors.ConfigError, match=expected):
        hr.Config(inter_op_threads=threads)
