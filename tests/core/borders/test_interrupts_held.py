"""Interrupts that are held back while a call is carried through."""

from __future__ import annotations

import _thread
import os
import signal
import threading
import time
from collections.abc import Iterator
from types import FrameType

import pytest

from headrace import interrupts
from headrace.interrupts import uninterrupted


@pytest.fixture(autouse=True)
def _interrupts_stay_as_they_are(interrupts: None) -> Iterator[None]:
    yield
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_an_interrupt_is_raised_behind_the_call() -> None:
    done = []

    def work() -> None:
        signal.raise_signal(signal.SIGINT)
        done.append("whole")

    with pytest.raises(KeyboardInterrupt):
        uninterrupted(work)()
    assert done == ["whole"]


def test_a_second_interrupt_is_raised_at_once() -> None:
    done = []

    def work() -> None:
        signal.raise_signal(signal.SIGINT)
        signal.raise_signal(signal.SIGINT)
        done.append("whole")

    with pytest.raises(KeyboardInterrupt):
        uninterrupted(work)()
    assert done == []


def test_a_call_within_another_holds_for_both() -> None:
    done = []
    inner = uninterrupted(lambda: signal.raise_signal(signal.SIGINT))

    def work() -> None:
        inner()
        done.append("whole")

    with pytest.raises(KeyboardInterrupt):
        uninterrupted(work)()
    assert done == ["whole"]


def test_a_call_that_blocks_is_interrupted_after_a_while(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(interrupts, "_PATIENCE_S", 0.2)
    readable, writable = os.pipe()
    main = threading.main_thread().ident
    assert main is not None
    timer = threading.Timer(0.1, lambda: signal.pthread_kill(main, signal.SIGINT))
    timer.start()
    try:
        with pytest.raises(KeyboardInterrupt):
            uninterrupted(os.read)(readable, 1)
    finally:
        timer.join()
        os.close(readable)
        os.close(writable)


def test_nothing_comes_after_a_call_that_has_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(interrupts, "_PATIENCE_S", 0.1)
    with pytest.raises(KeyboardInterrupt):
        uninterrupted(lambda: signal.raise_signal(signal.SIGINT))()
    time.sleep(0.3)


@pytest.mark.parametrize("handler", [signal.SIG_IGN, signal.SIG_DFL])
def test_what_is_no_function_stays_the_handler(handler: signal.Handlers) -> None:
    signal.signal(signal.SIGINT, handler)
    try:
        assert uninterrupted(lambda: signal.getsignal(signal.SIGINT))() is handler
    finally:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def test_other_threads_hold_nothing() -> None:
    found = []
    look = uninterrupted(lambda: found.append(signal.getsignal(signal.SIGINT)))
    thread = threading.Thread(target=look)
    thread.start()
    thread.join()
    assert found == [signal.default_int_handler]


def test_a_second_interrupt_is_raised_at_once_within_two_calls() -> None:
    done = []

    def work() -> None:
        signal.raise_signal(signal.SIGINT)
        signal.raise_signal(signal.SIGINT)
        done.append("whole")

    with pytest.raises(KeyboardInterrupt):
        uninterrupted(uninterrupted(uninterrupted(work)))()
    assert done == []


def test_calls_within_calls_that_block_are_interrupted_after_one_while(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(interrupts, "_PATIENCE_S", 0.5)
    readable, writable = os.pipe()
    read = os.read
    for _ in range(20):
        read = uninterrupted(read)
    main = threading.main_thread().ident
    assert main is not None
    timer = threading.Timer(0.1, lambda: signal.pthread_kill(main, signal.SIGINT))
    began = time.monotonic()
    timer.start()
    try:
        with pytest.raises(KeyboardInterrupt):
            read(readable, 1)
    finally:
        timer.join()
        os.close(readable)
        os.close(writable)
    assert time.monotonic() - began < 5.0


def test_an_interrupt_is_held_where_no_thread_can_be_started(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def refuse(*given: object) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(_thread, "start_new_thread", refuse)
    test_an_interrupt_is_raised_behind_the_call()
    test_a_second_interrupt_is_raised_at_once()
    test_a_call_within_another_holds_for_both()


def test_a_handler_that_the_call_sets_stays() -> None:
    def mine(*given: object) -> None: ...

    uninterrupted(lambda: signal.signal(signal.SIGINT, mine))()
    assert signal.signal(signal.SIGINT, signal.default_int_handler) is mine


def test_an_interrupt_before_the_call_sets_a_handler_is_raised() -> None:
    def mine(*given: object) -> None: ...

    def work() -> None:
        signal.raise_signal(signal.SIGINT)
        signal.signal(signal.SIGINT, mine)

    with pytest.raises(KeyboardInterrupt):
        uninterrupted(work)()
    assert signal.signal(signal.SIGINT, signal.default_int_handler) is mine


@pytest.mark.parametrize("again", [False, True])
def test_a_handler_that_passes_on_to_what_it_found_interrupts_at_once(again: bool) -> None:
    found = []

    def passes_on(number: int, frame: FrameType | None) -> None:
        found[0](number, frame)

    uninterrupted(lambda: found.append(signal.signal(signal.SIGINT, passes_on)))()
    done = []

    def work() -> None:
        signal.raise_signal(signal.SIGINT)
        done.append("whole")

    try:
        with pytest.raises(KeyboardInterrupt):
            (uninterrupted(work) if again else work)()
    finally:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    assert done == (["whole"] if again else [])


def test_a_handler_that_was_found_and_is_set_again_holds_nothing() -> None:
    (found,) = [uninterrupted(lambda: signal.getsignal(signal.SIGINT))()]
    signal.signal(signal.SIGINT, found)
    try:
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)
        test_an_interrupt_is_raised_behind_the_call()
    finally:
        signal.signal(signal.SIGINT, signal.default_int_handler)
