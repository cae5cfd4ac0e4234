"""Workers that wait for the chief's initialization hear of it at once."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

import headrace as hr
from headrace.errors import CancelledError, DeadlineExceededError
from headrace_train.resumption.event import ModelEvent, ready_event

pytestmark = pytest.mark.needs("backend-cpu")

# Far longer than a test may take: who looks again after it comes too late.
LONG_SECS = 60


@pytest.fixture
def container() -> Iterator[str]:
    name = "ready_event_test"
    hr.Session.reset("", [name])
    yield name
    hr.Session.reset("", [name])


def replica(container: str) -> Any:
    with hr.Graph().as_default() as graph, hr.container(container):
        hr.Variable(3.0, name="shared")
    return graph


def waiting(graph: Any, seconds: float = LONG_SECS) -> float:
    """Wait for the model, and return how long that took."""
    begin = time.monotonic()
    with graph.as_default():
        scaffold = hr.train.Scaffold().finalize()
        manager = hr.train.SessionManager(
            ready_op=scaffold.ready_op, graph=graph, recovery_wait_secs=LONG_SECS
        )
        with manager.wait_for_session("", max_wait_secs=seconds):
            return time.monotonic() - begin


def test_a_worker_goes_on_when_the_chief_is_ready(container: str) -> None:
    graph = replica(container)
    with ThreadPoolExecutor(2) as pool:
        waits = [pool.submit(waiting, graph), pool.submit(waiting, replica(container))]
        time.sleep(0.3)
        assert not any(wait.done() for wait in waits)
        with replica(container).as_default(), hr.train.MonitoredTrainingSession():
            pass
        for wait in waits:
            assert wait.result(LONG_SECS / 2) < LONG_SECS / 2


def test_a_model_that_is_ready_is_not_waited_for(container: str) -> None:
    with replica(container).as_default(), hr.train.MonitoredTrainingSession():
        pass
    assert waiting(replica(container)) < LONG_SECS / 2


def test_a_worker_whose_chief_does_not_come_fails_in_time(container: str) -> None:
    begin = time.monotonic()
    with pytest.raises(DeadlineExceededError, match=r"was not ready after waiting 0\.2 secs: Var"):
        waiting(replica(container), 0.2)
    assert time.monotonic() - begin < LONG_SECS / 2


def test_a_program_of_one_process_has_no_event() -> None:
    with hr.Graph().as_default() as graph:
        hr.Variable(1.0)
        hr.train.Scaffold().finalize()
    assert ready_event(graph) is None


def test_ready_operations_are_called_as_in_tensorflow() -> None:
    with hr.Graph().as_default():
        hr.Variable(1.0, name="v")
        scaffold = hr.train.Scaffold().finalize()
        assert scaffold.ready_op.name == "concat:0"
        assert scaffold.ready_for_local_init_op.name == "concat_1:0"
        with hr.Session() as session:
            assert session.run(scaffold.ready_op).tolist() == [b"v"]


def test_an_event_wakes_who_has_not_seen_it() -> None:
    event, answers = ModelEvent("e"), []
    event.wait(0, LONG_SECS, answers.append, None)
    assert answers == []
    event.signal()
    assert answers == [1]
    event.wait(0, LONG_SECS, answers.append, None)
    event.wait(1, 0.0, answers.append, None)
    assert answers == [1, 1, 1]
    late = threading.Event()
    event.wait(1, 0.01, lambda count: (answers.append(count), late.set()), None)
    assert late.wait(LONG_SECS / 2)
    event.wait(1, LONG_SECS, answers.append, None)
    event.close(CancelledError("closed"))
    assert isinstance(answers[-1], CancelledError)
