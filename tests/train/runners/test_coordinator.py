"""Coordinators: stops, errors that travel, and threads that do not end."""

from __future__ import annotations

import sys
import threading
import time
from typing import Any

import pytest

import headrace as hr
from headrace.errors import ArgumentTypeError, AttributeValueError, OutOfRangeError

WAIT = 10


def started(target: Any) -> threading.Thread:
    thread = threading.Thread(target=target, daemon=True)
    thread.start()
    return thread


def test_a_stop_ends_all_threads() -> None:
    coord = hr.train.Coordinator()
    threads = [started(coord.wait_for_stop) for _ in range(4)]
    assert not coord.should_stop()
    assert not coord.wait_for_stop(0.01)
    coord.request_stop()
    coord.join(threads)
    assert coord.should_stop()
    assert coord.joined
    assert not any(thread.is_alive() for thread in threads)


def test_threads_may_end_without_a_stop() -> None:
    coord = hr.train.Coordinator()
    coord.register_thread(started(lambda: time.sleep(0.05)))
    begin = time.monotonic()
    coord.join()
    assert time.monotonic() - begin < 1
    assert not coord.should_stop()


@pytest.mark.parametrize("given", ["error", "exc_info"])
def test_the_first_error_is_raised_where_the_program_joins(given: str) -> None:
    coord = hr.train.Coordinator()

    def fail() -> None:
        try:
            raise KeyError("first")
        except KeyError as error:
            coord.request_stop(error if given == "error" else sys.exc_info())  # type: ignore[arg-type]

    thread = started(fail)
    coord.wait_for_stop(WAIT)
    coord.request_stop(ValueError("second"))
    with pytest.raises(KeyError, match="first") as caught:
        coord.join([thread])
    assert caught.traceback[-1].name == "fail"
    with pytest.raises(KeyError, match="first"):
        coord.raise_requested_exception()


def test_what_is_raised_in_a_block_stops_the_threads() -> None:
    coord = hr.train.Coordinator()
    with coord.stop_on_exception():
        raise LookupError("in the block")
    assert coord.should_stop()
    with pytest.raises(LookupError, match="in the block"):
        coord.join()


@pytest.mark.parametrize(
    ("kinds", "error", "clean"),
    [
        (None, OutOfRangeError("the end"), True),
        (None, StopIteration("the end"), False),
        ((StopIteration,), StopIteration("the end"), True),
        ((StopIteration,), OutOfRangeError("the end"), False),
        ([hr.errors.OpError], OutOfRangeError("the end"), True),
    ],
    ids=["default", "other", "given", "not-given", "family"],
)
def test_some_errors_mean_a_normal_end(kinds: Any, error: Exception, clean: bool) -> None:
    coord = hr.train.Coordinator(clean_stop_exception_types=kinds)
    coord.request_stop(error)
    assert coord.should_stop()
    if clean:
        coord.join()
        return
    with pytest.raises(type(error), match="the end"):
        coord.join()


def test_an_error_after_the_join_is_raised_at_once() -> None:
    coord = hr.train.Coordinator()
    coord.request_stop()
    coord.join()
    coord.request_stop(OutOfRangeError("the end"))
    with pytest.raises(ValueError, match="late"):
        coord.request_stop(ValueError("late"))


def test_a_stop_may_be_cleared() -> None:
    coord = hr.train.Coordinator()
    coord.request_stop(ValueError("forgotten"))
    coord.clear_stop()
    assert not coord.should_stop()
    assert not coord.joined
    coord.request_stop()
    coord.join()


def test_threads_that_do_not_end_are_named(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO")
    release = threading.Event()
    thread = threading.Thread(target=lambda: release.wait(WAIT), name="stubborn", daemon=True)
    thread.start()
    coord = hr.train.Coordinator()
    coord.request_stop()
    with pytest.raises(RuntimeError, match=r"0\.1 seconds after .* to stop: stubborn;"):
        coord.join([thread], stop_grace_period_secs=0.1)
    coord.clear_stop()
    coord.request_stop()
    coord.join([thread], stop_grace_period_secs=0.1, ignore_live_threads=True)
    assert "stubborn" in caplog.text
    coord.clear_stop()
    coord.request_stop(LookupError("more important"))
    with pytest.raises(LookupError, match="more important"):
        coord.join([thread], stop_grace_period_secs=0.1)
    release.set()
    thread.join(WAIT)


def test_a_stop_for_something_that_is_no_error() -> None:
    with pytest.raises(ArgumentTypeError, match=r"request_stop takes an exception, .* got 3"):
        hr.train.Coordinator().request_stop(3)  # type: ignore[arg-type]


def test_a_looper_calls_until_it_is_stopped() -> None:
    coord, calls = hr.train.Coordinator(), []

    def count(by: int, *, most: int) -> None:
        calls.append(by)
        if len(calls) == most:
            coord.request_stop()

    thread = hr.train.LooperThread.loop(coord, None, count, args=(2,), kwargs={"most": 5})
    coord.join()
    assert calls == [2] * 5
    assert thread.daemon
    assert not thread.is_alive()


def test_a_looper_keeps_its_interval() -> None:
    coord, times = hr.train.Coordinator(), []
    hr.train.LooperThread.loop(coord, 0.05, lambda: times.append(time.monotonic()))
    time.sleep(0.33)
    coord.request_stop()
    coord.join()
    # 7 calls in 0.33 s; fewer on a busy machine, and never more.
    assert 2 <= len(times) <= 8


def test_a_looper_of_a_class() -> None:
    seen: list[str] = []

    class Looper(hr.train.LooperThread):
        def start_loop(self) -> None:
            seen.append("start")

        def run_loop(self) -> None:
            seen.append("run")
            coord.request_stop()

        def stop_loop(self) -> None:
            seen.append("stop")

    coord = hr.train.Coordinator()
    Looper(coord, None).start()
    coord.join()
    assert seen == ["start", "run", "stop"]


def test_an_error_in_a_looper_stops_the_others() -> None:
    coord = hr.train.Coordinator()
    hr.train.LooperThread.loop(coord, None, lambda: 1 // 0)
    waiting = started(coord.wait_for_stop)
    with pytest.raises(ZeroDivisionError, match="division"):
        coord.join([waiting])
    assert not waiting.is_alive()


def test_what_a_looper_refuses() -> None:
    with pytest.raises(AttributeValueError, match="coord must be a Coordinator, got 3"):
        hr.train.LooperThread(3, 1)  # type: ignore[arg-type]
    with pytest.raises(AttributeValueError, match="are for a target, and there is none"):
        hr.train.LooperThread(hr.train.Coordinator(), 1, kwargs={"x": 1})
