"""Bells that wake who sleeps on shared memory."""

from __future__ import annotations

import threading
import time

import pytest

from headrace.extend.runtime import Wakeup
from headrace_mpi.shared_memory import doorbell
from headrace_mpi.shared_memory.doorbell import Doorbell
from headrace_mpi.shared_memory.links import open_links
from tests.dist_mpi.linked import NEEDS_FUTEXES

pytestmark = NEEDS_FUTEXES


def a_bell() -> Doorbell:
    return Doorbell(memoryview(bytearray(doorbell.WORDS_BYTES)))


def test_a_bell_ends_a_sleep_at_once_also_when_it_rang_before() -> None:
    bell = a_bell()
    heard = bell.listen()
    bell.ring()
    start = time.monotonic()
    bell.sleep(heard, 20.0)
    heard = bell.listen()
    threading.Timer(0.05, bell.ring).start()
    bell.sleep(heard, 20.0)
    assert time.monotonic() - start < 10.0


def test_a_sleep_ends_with_its_time_and_others_may_not_ring_then() -> None:
    bell = a_bell()
    heard = bell.listen()
    bell.sleep(heard, 0.01)
    bell.ring()
    assert bell.listen() == heard


def test_a_bell_wakes_all_threads_that_sleep_on_it() -> None:
    bell, done = a_bell(), []

    def sleep(seconds: float) -> None:
        bell.sleep(bell.listen(), seconds)
        done.append(seconds)

    # One that gives up does not make the bell forget the others.
    threads = [threading.Thread(target=sleep, args=(s,)) for s in (0.01, 20.0, 20.0)]
    for thread in threads:
        thread.start()
    threads[0].join(10)
    start = time.monotonic()
    while len(done) < 3 and time.monotonic() - start < 10.0:
        bell.ring()
        time.sleep(0.01)
    assert sorted(done) == [0.01, 20.0, 20.0]
    for thread in threads:
        thread.join(10)


@pytest.mark.parametrize("before", [True, False])
def test_a_waiter_that_sleeps_on_a_bell_is_woken_by_threads(before: bool) -> None:
    bell, waiter = a_bell(), Wakeup()
    start = time.monotonic()
    heard = bell.listen()
    if before:
        waiter.wake()
    else:
        threading.Timer(0.05, waiter.wake).start()
    waiter.sleep_by(bell, heard, 20.0)
    assert waiter.woken
    assert time.monotonic() - start < 10.0


def test_a_system_without_futexes_has_no_bells(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doorbell, "_calls", lambda: None)
    with pytest.raises(OSError, match="no futexes"):
        a_bell()
    assert open_links(0, ["a", "a"], lambda handle: [handle, handle]) is None
