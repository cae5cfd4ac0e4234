"""Waits end when they should, and never depend on a short timeout of a queue."""

from __future__ import annotations

import threading
import time
from queue import SimpleQueue
from typing import Any

from headrace_mpi.transport.waiting import QueueWaiter, Waiter


class Recorder(SimpleQueue):  # type: ignore[type-arg]
    """A queue that refuses timeouts: CPython 3.11 may then wait for ever."""

    def get(self, block: bool = True, timeout: float | None = None) -> Any:
        assert timeout is None
        return super().get(block)


def test_a_queue_is_never_waited_for_with_a_timeout() -> None:
    queue: SimpleQueue[Any] = Recorder()
    waiter = QueueWaiter(queue)
    waiter.nap(0.0001)
    assert not waiter.woken
    waiter.ring()
    waiter.sleep(0.0001)
    assert not waiter.woken
    queue.put("item")
    waiter.nap(30)
    waiter.sleep(30)
    assert waiter.woken
    assert waiter.item == "item"


def test_a_ring_is_no_item() -> None:
    waiter = QueueWaiter(SimpleQueue())
    waiter.ring()
    assert not waiter.woken
    threading.Timer(0.05, waiter.ring).start()
    begin = time.monotonic()
    waiter.sleep(30)
    assert time.monotonic() - begin < 10
    assert not waiter.woken


def test_an_item_may_be_none() -> None:
    queue: SimpleQueue[Any] = SimpleQueue()
    waiter = QueueWaiter(queue)
    queue.put(None)
    assert waiter.woken
    assert waiter.item is None


def test_a_waiter_wakes_at_once_and_remembers() -> None:
    waiter = Waiter()
    threading.Timer(0.05, waiter.wake).start()
    begin = time.monotonic()
    waiter.sleep(30)
    assert waiter.woken
    waiter.wake()
    waiter.nap(30)
    assert time.monotonic() - begin < 10
