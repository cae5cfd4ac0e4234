"""However a monitored session ends, its threads end, and what it holds is given back."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import headrace as hr
from headrace.errors import GraphFinalizedError, InvalidArgumentError

pytestmark = pytest.mark.needs("backend-cpu")

METHODS = ("after_create_session", "before_run", "after_run", "end")


@pytest.fixture(autouse=True)
def no_thread_is_left() -> Iterator[None]:
    before = set(threading.enumerate())
    yield
    hr.summary.FileWriterCache.clear()
    left = [t for t in threading.enumerate() if t not in before and t.is_alive()]
    for thread in left:
        thread.join(20)
    assert not [t.name for t in left if t.is_alive()]


def filled_queue() -> Any:
    """Return an element of a queue that a thread fills for ever."""
    queue = hr.FIFOQueue(3, hr.int32, shapes=[[]])
    hr.train.add_queue_runner(hr.train.QueueRunner(queue, [queue.enqueue(7)] * 2))
    return queue.dequeue()


@pytest.mark.parametrize("method", METHODS)
def test_threads_end_where_a_hook_raises(method: str, tmp_path: Path) -> None:
    def fail(*_: Any) -> None:
        raise KeyError(f"boom in {method}")

    hook = hr.train.SessionRunHook()
    setattr(hook, method, fail)
    with hr.Graph().as_default():
        element = filled_queue()
        train = hr.assign_add(hr.train.get_or_create_global_step(), 1)

        def loop() -> None:
            with hr.train.MonitoredTrainingSession(
                checkpoint_dir=tmp_path, hooks=[hook]
            ) as session:
                session.run([element, train])

        with pytest.raises(KeyError, match=f"boom in {method}"):
            loop()
        assert not hr.get_default_graph().finalized
    assert not (tmp_path / ".chief").exists()
    assert not list(tmp_path.glob("*.tmp"))
    steps = 1 if method in ("after_run", "end") else 0
    assert hr.train.latest_checkpoint(tmp_path) == str(tmp_path / f"model.ckpt-{steps}")


def test_an_error_of_a_thread_surfaces() -> None:
    with hr.Graph().as_default():
        queue = hr.FIFOQueue(3, hr.int32, shapes=[[]])
        index = hr.placeholder_with_default(hr.constant(5), [])
        wrong = hr.gather(hr.constant([1, 2]), index)
        hr.train.add_queue_runner(hr.train.QueueRunner(queue, [queue.enqueue(wrong)]))
        element = queue.dequeue()

        def loop() -> None:
            with hr.train.MonitoredSession() as session:
                while not session.should_stop():
                    session.run(element)

        with pytest.raises(InvalidArgumentError, match="5"):
            loop()


def test_sigterm_ends_after_the_step(tmp_path: Path) -> None:
    assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL
    with hr.Graph().as_default():
        train = hr.assign_add(hr.train.get_or_create_global_step(), 1)
        seen = []

        def loop() -> None:
            with hr.train.MonitoredTrainingSession(checkpoint_dir=tmp_path) as session:
                while True:
                    seen.append(int(session.run(train)))
                    if len(seen) == 3:
                        os.kill(os.getpid(), signal.SIGTERM)

        with pytest.raises(SystemExit) as ended:
            loop()
    assert ended.value.code == 143
    assert seen == [1, 2, 3]
    assert hr.train.latest_checkpoint(tmp_path) == str(tmp_path / "model.ckpt-3")
    assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL


def test_sigterm_at_the_end_keeps_the_program_from_going_on(tmp_path: Path) -> None:
    with hr.Graph().as_default():
        train = hr.assign_add(hr.train.get_or_create_global_step(), 1)

        def loop() -> None:
            with hr.train.MonitoredTrainingSession(checkpoint_dir=tmp_path) as session:
                session.run(train)
                os.kill(os.getpid(), signal.SIGTERM)

        with pytest.raises(SystemExit) as ended:
            loop()
    assert ended.value.code == 143
    assert hr.train.latest_checkpoint(tmp_path) == str(tmp_path / "model.ckpt-1")


def test_a_handler_of_the_program_stays(tmp_path: Path) -> None:
    called = []

    def mine(number: int, frame: Any) -> None:
        called.append(number)

    before = signal.signal(signal.SIGTERM, mine)
    try:
        with hr.Graph().as_default():
            train = hr.assign_add(hr.train.get_or_create_global_step(), 1)
            with hr.train.MonitoredTrainingSession(checkpoint_dir=tmp_path) as session:
                os.kill(os.getpid(), signal.SIGTERM)
                session.run(train)
        assert signal.getsignal(signal.SIGTERM) is mine
    finally:
        signal.signal(signal.SIGTERM, before)
    assert called == [signal.SIGTERM]


def test_the_graph_of_an_open_session_is_finalized() -> None:
    with hr.Graph().as_default():
        hr.constant(1)
        with (
            hr.train.MonitoredSession(),
            pytest.raises(GraphFinalizedError, match="graph was finalized") as refused,
        ):
            hr.constant(2)
        assert isinstance(refused.value, RuntimeError)
        hr.constant(2)
