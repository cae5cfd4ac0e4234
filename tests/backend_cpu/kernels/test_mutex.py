"""Mutexes: what runs under their lock runs alone, and no lock outlives its step."""

from __future__ import annotations

import gc
import threading
import time

import numpy as np
import pytest

import headrace as hr
from headrace.errors import (
    AttributeValueError,
    CancelledError,
    ExecutionError,
    GraphError,
    ResourceError,
    SessionClosedError,
)
from headrace_cpu.mutexes import Mutex


def read_modify_write(v: hr.Variable) -> hr.Tensor:
    """Add one to a variable by two nodes, between which others may come."""
    old = v.read_value()
    with hr.control_dependencies([old]):
        slow = hr.reduce_sum(hr.ones([50, 50])) * 0.0
    return v.assign(old + 1.0 + slow)


def assign_only(v: hr.Variable) -> None:
    v.assign([5.0, 5.0])


def run_many(session: hr.Session, fetch: object, threads: int = 8, times: int = 40) -> None:
    failures: list[BaseException] = []

    def work() -> None:
        try:
            for _ in range(times):
                session.run(fetch)
        except BaseException as error:
            failures.append(error)

    workers = [threading.Thread(target=work) for _ in range(threads)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join(60)
    assert not failures


def test_eight_threads_that_read_modify_and_write_under_the_lock_are_exact() -> None:
    with hr.Graph().as_default():
        v = hr.Variable(0.0)
        section = hr.CriticalSection(name="section")
        step = section.execute(lambda: read_modify_write(v))
        with hr.Session() as session:
            session.run(v.initializer)
            run_many(session, step)
            assert session.run(v) == 320.0


def test_acquire_and_release_are_nodes_of_their_own() -> None:
    with hr.Graph().as_default():
        v = hr.Variable(0.0)
        mutex = hr.Mutex(name="m")
        lock = mutex.acquire()
        with hr.control_dependencies([lock.op]):
            update = read_modify_write(v)
        with hr.control_dependencies([update]):
            done = lock.release()
        assert mutex.name == "m"
        assert lock.op.type == "MutexAcquire"
        with hr.Session() as session:
            session.run(v.initializer)
            run_many(session, done, times=20)
            assert session.run(v) == 160.0


def test_structures_come_out_and_are_there_after_the_release() -> None:
    with hr.Graph().as_default():
        v = hr.Variable([1.0, 2.0])
        section = hr.CriticalSection()
        result = section.execute(lambda: {"a": v.assign_add([1.0, 1.0]), "b": [v.value() * 0.0]})
        nothing = section.execute(lambda: assign_only(v))
        with hr.Session() as session:
            session.run(v.initializer)
            fetched = session.run(result)
            np.testing.assert_array_equal(fetched["a"], [2.0, 3.0])
            np.testing.assert_array_equal(fetched["b"][0], [0.0, 0.0])
            session.run(nothing)
            np.testing.assert_array_equal(session.run(v), [5.0, 5.0])


def test_a_step_that_fails_gives_its_lock_back() -> None:
    with hr.Graph().as_default():
        v = hr.Variable([1.0, 2.0])
        index = hr.placeholder(hr.int32, [1])
        section = hr.CriticalSection()
        step = section.execute(lambda: hr.scatter_add(v, index, [1.0]))
        with hr.Session() as session:
            session.run(v.initializer)
            for _ in range(3):
                with pytest.raises(ExecutionError, match="index 7 is out of range"):
                    session.run(step, {index: [7]})
                np.testing.assert_array_equal(session.run(step, {index: [0]})[1], 2.0)


def test_a_lock_that_is_never_released_ends_with_its_step() -> None:
    with hr.Graph().as_default():
        mutex = hr.Mutex()
        lock = mutex.acquire()
        with hr.control_dependencies([lock.op]):
            x = hr.identity(hr.constant(1.0))
        with hr.Session() as session:
            for _ in range(3):
                assert session.run(x) == 1.0
                gc.collect()


def test_a_lock_is_released_once() -> None:
    with hr.Graph().as_default():
        lock = hr.Mutex().acquire()
        first = lock.release()
        with hr.control_dependencies([first]):
            second = lock.release()
        with hr.Session() as session, pytest.raises(ResourceError, match="released before"):
            session.run(second)


@pytest.mark.needs("train")
def test_closing_the_session_wakes_who_waits() -> None:
    with hr.Graph().as_default():
        mutex = hr.Mutex()
        queue = hr.train.FIFOQueue(1, [hr.float32])
        lock = mutex.acquire()
        with hr.control_dependencies([lock.op]):
            held = queue.dequeue()
        other = mutex.acquire(name="other").release()
        session = hr.Session()
        errors: list[BaseException] = []

        def work(fetch: object) -> None:
            try:
                session.run(fetch)
            except BaseException as error:
                errors.append(error)

        threads = [threading.Thread(target=work, args=(f,)) for f in (held, other)]
        for thread in threads:
            thread.start()
            time.sleep(0.1)
        session.close()
        for thread in threads:
            thread.join(20)
            assert not thread.is_alive()
        # Who gets the lock of a step that was ended may end before it is ended itself.
        assert 1 <= len(errors) <= 2
        kinds = {type(error) for error in errors}
        assert kinds <= {SessionClosedError, CancelledError}, errors


def test_the_lock_passes_on_in_the_order_of_arrival() -> None:
    mutex = Mutex("m")
    served: list[tuple[int, object]] = []
    for i in range(3):
        mutex.acquire(lambda lock, i=i: served.append((i, lock)))
    assert [i for i, _ in served] == [0]
    served[0][1].release()
    assert [i for i, _ in served] == [0, 1]
    served[1][1].release()
    served[2][1].release()
    assert [i for i, _ in served] == [0, 1, 2]
    assert not mutex.is_held


def test_a_forgotten_lock_passes_on() -> None:
    mutex = Mutex("m")
    held: list[object] = []
    mutex.acquire(held.append)
    mutex.acquire(held.append)
    del held[0]
    gc.collect()
    assert len(held) == 1
    assert mutex.is_held


def test_reset_fails_those_that_wait() -> None:
    mutex = Mutex("m")
    answers: list[object] = []
    mutex.acquire(answers.append)
    mutex.acquire(answers.append)
    mutex.reset()
    assert "was reset" in str(answers[1])
    with pytest.raises(ResourceError, match="released before"):
        answers[0].release()


def test_a_section_is_not_entered_inside_of_itself() -> None:
    with hr.Graph().as_default():
        section = hr.CriticalSection(name="s")
        with pytest.raises(GraphError, match="inside of itself"):
            section.execute(lambda: section.execute(lambda: hr.constant(1.0)))


def test_two_sections_do_not_share_state_unless_both_say_so() -> None:
    with hr.Graph().as_default():
        v = hr.Variable(0.0)
        one, two = hr.CriticalSection(name="one"), hr.CriticalSection(name="two")
        one.execute(lambda: v.assign_add(1.0))
        with pytest.raises(GraphError, match="'one' uses exclusively"):
            two.execute(lambda: v.assign_add(1.0))
        with pytest.raises(GraphError, match="'one' uses exclusively"):
            two.execute(lambda: v.assign_add(1.0), exclusive_resource_access=False)


def test_definitions_are_refused() -> None:
    with pytest.raises(AttributeValueError, match="from_document"):
        hr.CriticalSection(import_scope="x")


def test_mutexes_of_one_shared_name_are_one() -> None:
    with hr.Graph().as_default():
        v = hr.Variable(0.0)
        sections = [hr.CriticalSection(name="a", shared_name="x") for _ in range(2)]
        steps = [
            s.execute(lambda: read_modify_write(v), exclusive_resource_access=False)
            for s in sections
        ]
        with hr.Session() as session:
            session.run(v.initializer)
            run_many(session, steps, times=15)
            assert session.run(v) == 240.0


def test_another_kind_of_resource_is_refused() -> None:
    with hr.Graph().as_default():
        from headrace.ops.mutex import mutex_acquire, mutex_release

        v = hr.Variable(0.0)
        with hr.Session() as session:
            with pytest.raises(ResourceError, match="expected a mutex"):
                session.run(mutex_release(mutex_acquire(v.handle)))
            with pytest.raises(ResourceError, match="expected the lock"):
                session.run(mutex_release(v.handle))
