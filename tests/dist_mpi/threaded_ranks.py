"""Ranks that are threads of one process: groups whose frames go through queues, and the wire."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from queue import Empty, SimpleQueue
from typing import Any

import headrace as hr
from headrace.extend.runtime import Wakeup
from headrace_mpi.collectives.group import Group
from headrace_mpi.collectives.groups import use_group
from headrace_mpi.transport import wire
from headrace_mpi.transport.wire import Frame, Kind

# A rank that does not end by then is reported.
JOIN_S = 30.0


class ThreadedWires:
    """The transport of one rank. Whoever takes from a queue receives."""

    def __init__(
        self, rank: int, boxes: list[SimpleQueue[tuple[int, bytes]]], near: bool = False
    ) -> None:
        self.rank = rank
        self.near = near
        self.sent: list[Frame] = []
        self._boxes = boxes
        self._handlers: dict[Kind, Callable[[int, Frame], Any]] = {}

    def on(self, kind: Kind, handler: Callable[[int, Frame], Any]) -> None:
        self._handlers[kind] = handler

    def send(self, rank: int, frame: Frame) -> bool:
        encoded = wire.encode(frame)
        body = b"" if encoded.body is None else encoded.body.tobytes()
        self.sent.append(frame)
        self._boxes[rank].put((self.rank, encoded.header() + body))
        return True

    def is_near(self, rank: int) -> bool:
        return self.near

    def wait(self, waiter: Wakeup, timeout_s: float | None = None) -> bool:
        end = time.monotonic() + (JOIN_S if timeout_s is None else timeout_s)
        while time.monotonic() < end:
            if waiter.wait(0.0):
                return True
            try:
                source, message = self._boxes[self.rank].get(timeout=0.002)
            except Empty:
                continue
            frame = wire.parse(message)
            self._handlers[frame.kind](source, frame)
        return False


class Rank:
    """What a program of a test gets to see of its rank."""

    def __init__(self, group: Group, wires: ThreadedWires) -> None:
        self.group = group
        self.wires = wires
        self.rank = group.rank
        self.size = group.size


def run_ranks(
    size: int, program: Callable[[Rank], Any], timeout_s: float = 20.0, near: bool = False
) -> list[Any]:
    """Run a program on ranks, each with a graph of its own; return results, or what they raise.

    They share memory where they are near.
    """
    boxes: list[SimpleQueue[tuple[int, bytes]]] = [SimpleQueue() for _ in range(size)]
    wires = [ThreadedWires(rank, boxes, near) for rank in range(size)]
    ranks = [Rank(Group(w, range(size), timeout_s), w) for w in wires]
    results: list[Any] = [None] * size

    def run(rank: Rank) -> None:
        try:
            with use_group(rank.group), hr.Graph().as_default():
                results[rank.rank] = program(rank)
        except BaseException as error:
            results[rank.rank] = error
        finally:
            rank.group.close("its program has ended")

    threads = [threading.Thread(target=run, args=(rank,), daemon=True) for rank in ranks]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(JOIN_S)
    assert not any(thread.is_alive() for thread in threads), "a rank hangs"
    return results


def good(results: list[Any]) -> list[Any]:
    """Return results, none of which is an error."""
    errors = [result for result in results if isinstance(result, BaseException)]
    if errors:
        raise BaseExceptionGroup("ranks failed", errors)
    return results
