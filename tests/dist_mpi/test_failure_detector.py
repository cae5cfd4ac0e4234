"""Who lives: silence, processes of this host, and ranks that leave. Nothing here starts MPI."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from headrace.errors import TaskLostError, UnavailableError
from headrace_mpi.membership.failure_detector import GONE, STOPPED, FailureDetector, process_state
from headrace_mpi.membership.members import Member
from headrace_mpi.transport.wire import Frame, Kind
from tests.waiting import wait_until

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads /proc")


class Line:
    """A transport of rank 0 that keeps what is sent, and hands over what a test says came."""

    rank = 0

    def __init__(self) -> None:
        self.handlers: dict[Kind, Callable[[int, Frame], Any]] = {}
        self.sent: list[tuple[int, Kind]] = []

    def on(self, kind: Kind, handler: Callable[[int, Frame], Any]) -> None:
        self.handlers[kind] = handler

    def send(self, rank: int, frame: Frame) -> bool:
        self.sent.append((rank, frame.kind))
        return True

    def come(self, rank: int, kind: Kind, text: str = "") -> None:
        self.handlers[kind](rank, Frame(kind, payload=text.encode() or None))


def member(rank: int, pid: int, host: str = "") -> Member:
    return Member(
        rank,
        host or socket.gethostname(),
        pid,
        "worker: 3",
        f"/job:worker/task:{rank}",
        "1",
        (),
        {},
    )


class Watched:
    """A failure detector of rank 0, and what it tells."""

    def __init__(self, *others: Member, slow_s: float, lost_s: float) -> None:
        self.line = Line()
        self.slow: list[str] = []
        self.lost: list[tuple[int, str]] = []
        members = [member(0, os.getpid()), *others]
        self.detector = FailureDetector(
            self.line,  # type: ignore[arg-type]  # all that it uses
            members,
            slow_s,
            lost_s,
            on_slow=lambda what, who: self.slow.append(f"{who.rank}: {what}"),
            on_lost=lambda error, rank: self.lost.append((rank, str(error))),
        )


@pytest.fixture
def child() -> Iterator[subprocess.Popen[bytes]]:
    with subprocess.Popen(["sleep", "60"]) as process:
        yield process
        process.kill()


def test_states_of_processes(child: subprocess.Popen[bytes]) -> None:
    assert process_state(child.pid) == ""
    child.send_signal(signal.SIGSTOP)
    wait_until(lambda: process_state(child.pid) == STOPPED, within_s=10.0)
    child.kill()
    # Nobody has waited for it; it is a zombie.
    wait_until(lambda: process_state(child.pid) == GONE, within_s=10.0)
    child.wait()
    assert process_state(child.pid) == GONE


def test_a_process_that_is_gone_is_lost_at_once(child: subprocess.Popen[bytes]) -> None:
    watched = Watched(member(1, child.pid), slow_s=0.5, lost_s=60.0)
    watched.detector.start()
    child.kill()
    wait_until(lambda: watched.lost)
    watched.detector.stop()
    ((rank, text),) = watched.lost
    assert rank == 1
    assert text.startswith(f"/job:worker/task:1 (rank 1, host {socket.gethostname()}, pid ")
    assert "was lost: its process ended without leaving the cluster; last sign" in text
    assert issubclass(TaskLostError, UnavailableError)
    assert (1, Kind.HEALTH) in watched.line.sent


def test_a_stopped_process_is_slow_then_lost(child: subprocess.Popen[bytes]) -> None:
    far = member(2, 1, host="elsewhere")
    watched = Watched(member(1, child.pid), far, slow_s=0.3, lost_s=1.5)
    child.send_signal(signal.SIGSTOP)
    watched.detector.start()
    while not watched.lost:
        watched.line.come(2, Kind.HEALTH)
        time.sleep(0.02)
    watched.detector.stop()
    (slow,) = watched.slow
    assert slow.startswith("1: no sign of life for ")
    assert slow.endswith("s: its process is stopped (SIGSTOP, or a debugger)")
    ((rank, text),) = watched.lost
    assert rank == 1
    assert "or a debugger), for longer than 1.5 s; last sign of life" in text


def test_silence_is_told_by_what_is_known(child: subprocess.Popen[bytes]) -> None:
    far = member(2, 1, host="elsewhere")
    watched = Watched(member(1, child.pid), far, slow_s=0.2, lost_s=60.0)
    watched.detector.start()
    wait_until(lambda: len(watched.slow) >= 2)
    one, two = sorted(watched.slow)
    assert "its process lives, but holds the interpreter, or gets no time" in one
    assert "its host or the network does not answer" in two
    # Who is heard of again can become slow again, and is told of again.
    watched.line.come(1, Kind.HEALTH)
    wait_until(lambda: len(watched.slow) >= 3)
    watched.detector.stop()
    assert not watched.lost


def test_who_leaves_is_not_lost(child: subprocess.Popen[bytes]) -> None:
    watched = Watched(member(1, child.pid), slow_s=0.2, lost_s=0.5)
    watched.detector.start()
    watched.line.come(1, Kind.LEAVING)
    child.kill()
    time.sleep(1.0)
    watched.detector.lost([1], "MPI says that its process failed")
    watched.detector.leave()
    assert not watched.lost
    assert not watched.slow
    assert (1, Kind.LEAVING) not in watched.line.sent


def test_what_mpi_says_is_taken_once() -> None:
    watched = Watched(member(1, 1, "far"), member(2, 1, "far"), slow_s=5, lost_s=60)
    watched.detector.lost([2, 2], "MPI says so")
    watched.detector.lost([2], "MPI says so")
    watched.detector.leave()
    assert [rank for rank, _ in watched.lost] == [2]
    assert watched.line.sent == [(1, Kind.LEAVING)]


def test_who_fails_alone_is_lost_and_says_why(child: subprocess.Popen[bytes]) -> None:
    watched = Watched(member(1, child.pid), member(2, child.pid), slow_s=60, lost_s=60)
    watched.line.come(1, Kind.LEAVING, "it failed with ValueError: too late")
    ((rank, text),) = watched.lost
    assert rank == 1
    assert "/job:worker/task:1 (rank 1" in text
    assert "was lost: it failed with ValueError: too late" in text
    watched.detector.fail("it needed rank 1")
    # Not to the one that is lost.
    assert watched.line.sent == [(2, Kind.LEAVING)]
