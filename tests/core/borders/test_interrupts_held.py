"""Interrupts that are held back while a call is carried through."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Iterator

import pytest

from headrace import interrupts
from headrace.interrupts import uninterrupted


@pytest.fixture(autouse=True)
def _interrupts_raise() -> Iterator[None]:
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    signal.signal(signal.SIGINT, before)


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
