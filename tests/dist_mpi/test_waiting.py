"""Waits end when they should."""

from __future__ import annotations

import threading
import time

from headrace.extend.runtime import Wakeup


def test_a_waiter_wakes_at_once_and_remembers() -> None:
    waiter = Wakeup()
    threading.Timer(0.05, waiter.wake).start()
    begin = time.monotonic()
    waiter.sleep(30)
    assert waiter.woken
    waiter.wake()
    waiter.sleep(30)
    assert time.monotonic() - begin < 10
