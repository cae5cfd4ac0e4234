"""``Config(consistency=...)``: how stale what steps change may be, with threads of one session."""

from __future__ import annotations

import threading
import time
from typing import Any

import numpy as np
import pytest

import headrace as hr
from headrace.errors import (
    ConfigError,
    DeadlineExceededError,
    SessionClosedError,
    UnimplementedError,
)

pytestmark = pytest.mark.needs("backend-cpu")

THREADS, EACH = 4, 25


class Meanwhile:
    """A step that counts how many others changed the variable between its read and its write."""

    def __init__(self, seed: int = 0) -> None:
        self.version = hr.Variable(np.int64(0), name="version")
        self.most = hr.Variable(np.int64(0), name="most")
        before = self.version.value()
        rng = np.random.default_rng(seed)
        lock = threading.Lock()

        def pause(value: Any) -> Any:
            with lock:
                seconds = rng.exponential(0.0005)
            time.sleep(seconds)
            return value

        held = hr.ensure_shape(hr.py_func(pause, [before], hr.int64), ())
        with hr.control_dependencies([held]):
            now = self.version.assign_add(1)
            stale = now - held - 1
            with hr.control_dependencies([now]):
                most = hr.maximum(self.most.value(), stale)
            self.step = hr.group(self.most.assign(most))


def run_all(session: hr.Session, step: Any, threads: int = THREADS, each: int = EACH) -> None:
    wrong: list[BaseException] = []

    def work() -> None:
        try:
            for _ in range(each):
                session.run(step)
        except BaseException as error:
            wrong.append(error)

    workers = [threading.Thread(target=work) for _ in range(threads)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join(60)
    assert not wrong, wrong


BOUNDS = {"sequential": 0, "bounded:0": 0, "bounded:1": 1, "bounded:3": 3}


@pytest.mark.parametrize(("consistency", "bound"), BOUNDS.items(), ids=BOUNDS)
def test_updates_are_no_staler_than_the_bound(consistency: str, bound: int) -> None:
    with hr.Graph().as_default():
        made = Meanwhile()
        with hr.Session(config=hr.Config(consistency=consistency)) as session:
            session.run(hr.global_variables_initializer())
            run_all(session, made.step)
            version, most = session.run([made.version, made.most])
            assert version == THREADS * EACH
            assert most <= bound
            if bound > 1:
                # It is no tighter than was asked for, either.
                assert most > 0


def test_without_a_bound_updates_are_stale() -> None:
    with hr.Graph().as_default():
        made = Meanwhile()
        with hr.Session() as session:
            session.run(hr.global_variables_initializer())
            run_all(session, made.step)
            assert session.run(made.most) > 0


@pytest.mark.parametrize("consistency", ["sequential", "bounded:0"])
def test_only_sequential_steps_that_read_see_no_half_of_a_change(consistency: str) -> None:
    with hr.Graph().as_default():
        a, b = (hr.Variable(np.int64(0), name=name) for name in "ab")
        first = a.assign_add(1)
        with hr.control_dependencies([first]):
            held = hr.py_func(lambda v: time.sleep(0.002) or v, [first], hr.int64)
            with hr.control_dependencies([held]):
                change = hr.group(b.assign_add(1))
        apart = hr.subtract(a.value(), b.value())
        with hr.Session(config=hr.Config(consistency=consistency)) as session:
            session.run(hr.global_variables_initializer())
            found: list[int] = []
            writer = threading.Thread(target=lambda: [session.run(change) for _ in range(20)])
            writer.start()
            while writer.is_alive():
                found.append(int(session.run(apart)))
            writer.join()
            if consistency == "sequential":
                assert set(found) == {0}
            else:
                assert 1 in found


def test_a_fence_shows_variables_of_one_moment() -> None:
    with hr.Graph().as_default():
        a, b = (hr.Variable(np.int64(0), name=name) for name in "ab")
        first = a.assign_add(1)
        with hr.control_dependencies([first]):
            held = hr.py_func(lambda v: time.sleep(0.001) or v, [first], hr.int64)
            with hr.control_dependencies([held]):
                change = hr.group(b.assign_add(1))
        local = hr.Variable(
            np.int64(0), trainable=False, collections=[hr.GraphKeys.LOCAL_VARIABLES], name="own"
        )
        own = local.assign_add(1)
        with hr.Session() as session:
            session.run([hr.global_variables_initializer(), hr.local_variables_initializer()])
            over = threading.Event()

            def write() -> None:
                while not over.is_set():
                    session.run(change)

            writers = [threading.Thread(target=write) for _ in range(2)]
            for writer in writers:
                writer.start()
            for _ in range(10):
                with session.fence():
                    # In two steps, between which nobody writes.
                    before = session.run(a)
                    time.sleep(0.003)
                    assert session.run(b) == before
                    # What the thread itself changes, it may.
                    session.run(change)
                    assert session.run([a, b]) == [before + 1, before + 1]
                    session.run(own)
                time.sleep(0.002)
            over.set()
            for writer in writers:
                writer.join(10)
            assert session.run(local) == 10


def test_a_fence_gives_up_after_its_time() -> None:
    with hr.Graph().as_default():
        v = hr.Variable(np.float32(0))
        begun, over = threading.Event(), threading.Event()

        def wait() -> Any:
            begun.set()
            over.wait(10)
            return np.float32(1)

        change = v.assign(hr.ensure_shape(hr.py_func(wait, [], hr.float32), ()))
        with hr.Session() as session:
            session.run(hr.global_variables_initializer())
            thread = threading.Thread(target=lambda: session.run(change))
            thread.start()
            begun.wait(10)
            with (
                pytest.raises(DeadlineExceededError, match=r"still under way after 0\.05 s"),
                session.fence(0.05),
            ):
                raise AssertionError("a step is under way")
            over.set()
            thread.join(10)
            with session.fence():
                assert session.run(v) == 1.0
        for wrong in (0, -1.0, None, "1", float("nan"), float("inf")):
            with pytest.raises(ConfigError, match="timeout must be a number of seconds above 0"):
                session.fence(wrong)  # type: ignore[arg-type]


@pytest.mark.needs("train")
def test_closing_the_session_ends_what_waits_for_its_turn() -> None:
    with hr.Graph().as_default():
        v = hr.Variable(np.float32(0))
        queue = hr.FIFOQueue(1, [hr.float32], shapes=[()])
        waits = v.assign(queue.dequeue())
        add = v.assign_add(1.0)
        session = hr.Session(config=hr.Config(consistency="sequential"))
        session.run(v.initializer)
        ended: list[type[BaseException]] = []

        def run(fetch: Any) -> None:
            try:
                session.run(fetch)
            except BaseException as error:
                ended.append(type(error))

        first = threading.Thread(target=run, args=(waits,))
        first.start()
        time.sleep(0.05)
        second = threading.Thread(target=run, args=(add,))
        second.start()
        time.sleep(0.05)
        # What changes nothing that is shared gets through.
        session.run(queue.size())
        session.close()
        first.join(10)
        second.join(10)
        assert len(ended) == 2
        assert SessionClosedError in ended


def test_a_step_waits_for_its_turn_no_longer_than_it_may_take() -> None:
    with hr.Graph().as_default():
        v = hr.Variable(np.float32(0))
        begun, over = threading.Event(), threading.Event()

        def wait() -> Any:
            begun.set()
            over.wait(10)
            return np.float32(1)

        change = v.assign(hr.ensure_shape(hr.py_func(wait, [], hr.float32), ()))
        add = v.assign_add(1.0)
        with hr.Session(config=hr.Config(consistency="bounded:0", timeout=8.0)) as session:
            session.run(v.initializer)
            thread = threading.Thread(target=lambda: session.run(change))
            thread.start()
            begun.wait(10)
            with pytest.raises(DeadlineExceededError, match=r"not done within 0\.05 s"):
                session.run(add, options=hr.RunOptions(timeout_in_ms=50))
            over.set()
            thread.join(10)
            assert session.run(add) == 2.0


def test_what_cannot_be_ordered_is_refused() -> None:
    with pytest.raises(ConfigError, match="consistency must be 'relaxed', 'sequential', or"):
        hr.Config(consistency="eventual")
    assert hr.Config() == hr.Config(consistency="relaxed")
    with hr.Graph().as_default():
        x = hr.placeholder(hr.float32, [])
        with hr.Session(config=hr.Config(consistency="bounded:1")) as session:
            with pytest.raises(ConfigError, match="orders whole steps"):
                session.partial_run_setup([x + 1.0], [x])
            assert session.run(x + 1.0, {x: 1.0}) == 2.0


def test_a_runtime_without_an_order_has_no_fences(monkeypatch: pytest.MonkeyPatch) -> None:
    from headrace.runtime.engine import LocalRuntime
    from headrace.session import session as module

    class Bare:
        def __init__(self, **kwargs: Any) -> None:
            self._local = LocalRuntime(**kwargs)

        def __getattr__(self, name: str) -> Any:
            if name == "order":
                raise AttributeError(name)
            return getattr(self._local, name)

    monkeypatch.setattr(module, "LocalRuntime", Bare)
    with hr.Graph().as_default():
        v = hr.Variable(np.float32(0))
        with hr.Session() as session:
            session.run(v.initializer)
            with pytest.raises(UnimplementedError, match="has no fences"):
                session.fence()
        with pytest.raises(ConfigError, match="keeps no order"):
            hr.Session(config=hr.Config(consistency="sequential"))
