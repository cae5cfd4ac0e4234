"""One start of a job: its processes, their output, signals, and the exit code that we compute."""

from __future__ import annotations

import contextlib
import os
import re
import signal
import subprocess
import sys
import threading
import time
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import Any

from headrace_mpi.launcher import command
from headrace_mpi.launcher.options import LaunchOptions
from headrace_mpi.launcher.output import JobStatus, Relay
from headrace_mpi.launcher.processes import end_all, of_job
from headrace_mpi.launcher.session_folder import session_folder
from headrace_mpi.membership.abort import LOST
from headrace_mpi.membership.deadline import EXIT_CODE as NOT_STARTED
from headrace_mpi.membership.saving import SAVING_S
from headrace_mpi.settings import LAUNCH

# After that time, processes that were asked to end are killed.
_END_S = 5.0
# After that time, a launcher without ranks is, and ranks that one of them has ended by its failure.
_ALONE_S = 0.5
_LOOK_S = 0.1
_KILLED = re.compile(r"process rank (\d+) .*exited on\s+signal")
_ENDINGS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a start of a job went.

    Attributes:
        code: The exit code.
        came: How many ranks came to the start of the cluster.
        lost: What the tasks were called that were lost.
        interrupted: Whether a signal ended it.
        without: What the tasks were called that were lost, and without which it came to its end.
    """

    code: int
    came: int
    lost: tuple[str, ...] = ()
    interrupted: bool = False
    without: tuple[str, ...] = ()

    @property
    def again(self) -> bool:
        """Whether it may go better next time."""
        return not self.interrupted and self.code in (LOST, NOT_STARTED)


def run_once(options: LaunchOptions, restarts: int = 0) -> Outcome:
    """Start the job, wait for its end, and leave no process of it on this host.

    Args:
        options: The job.
        restarts: How often it was started before.

    Raises:
        ClusterError: if there is no ``mpirun``.
    """
    elsewhere = bool(options.hosts or options.hostfile or options.extra)
    with session_folder(elsewhere=elsewhere) as own:
        return _run(options, restarts, own, elsewhere=elsewhere)


def _run(options: LaunchOptions, restarts: int, own: dict[str, str], *, elsewhere: bool) -> Outcome:
    """Run the job, with further variables for the launcher; see ``run_once``."""
    token = uuid.uuid4().hex
    mark = f"{LAUNCH.variable}={token}"
    alone = options.size == 1 and not elsewhere
    tasks = [f"{task.job}:{task.task}" for task in options.jobs.tasks] if options.jobs else ()
    status = JobStatus(options.size, tasks)
    if alone:
        call = [sys.executable, *options.program]
        status.names[0] = "worker:0"
    else:
        call = command.command_line(options, command.find_mpirun(options.mpirun))
    job = subprocess.Popen(
        call,
        env={**os.environ, **own, **command.environment(options, token, restarts)},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        # A terminal's Ctrl-C comes to us alone, and we pass it on once.
        start_new_session=True,
    )
    assert job.stdout is not None
    assert job.stderr is not None
    relays = [
        Relay(job.stdout, sys.stdout, status, token, tagged=not alone),
        Relay(job.stderr, sys.stderr, status, token, tagged=not alone),
    ]
    try:
        with _signals() as caught:
            _await(job, caught, status, "" if elsewhere else mark)
    finally:
        end_all(mark)
        job.wait()
        for relay in relays:
            relay.finish(2.0)
    for path in status.segments:
        # Those of ranks that were killed; there are none of others any more, and none elsewhere.
        with contextlib.suppress(OSError):
            Path(path).unlink()
    notes = "\n".join(line for relay in relays for line in relay.notes).strip()
    outcome = _judge(status, job.returncode, caught, notes)
    if notes and outcome.code and not (status.failure or outcome.lost or outcome.interrupted):
        # No rank said why: then what the launcher says may be of use.
        sys.stderr.write(f"{notes}\n")
    return outcome


@contextlib.contextmanager
def _signals() -> Iterator[list[int]]:
    """Collect the signals that ask us to end, in place of ending by them."""
    caught: list[int] = []

    def note(number: int, frame: FrameType | None) -> None:
        caught.append(number)

    before: dict[int, Any] = {}
    if threading.current_thread() is threading.main_thread():
        before = {number: signal.signal(number, note) for number in _ENDINGS}
    try:
        yield caught
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _await(job: subprocess.Popen[bytes], caught: list[int], status: JobStatus, mark: str) -> None:
    """Wait for the end of a job; pass signals on, and end what does not end by them.

    Nor does mpirun end where a rank ends the job, if the job tolerates faults: where that rank
    failed, mpirun is asked to. After a loss, and before the job has started, the others end by
    themselves, and are given some seconds for that: more where one says that it still saves, and
    less where none is left.

    Args:
        job: The launcher, or the only rank.
        caught: The signals that asked us to end.
        status: What the ranks told.
        mark: Stands in the environment of all processes; empty where ranks are on other hosts.
    """
    passed, saves, gone = 0, 0, False
    never = float("inf")
    # When mpirun is asked to end, when it is killed, and when at the latest.
    ask = until = latest = never
    while True:
        with contextlib.suppress(subprocess.TimeoutExpired):
            job.wait(_LOOK_S)
            return
        now = time.monotonic()
        if status.failure and until == never:
            ask = never if status.failure in (LOST, NOT_STARTED) else now + _ALONE_S
            until = min(ask, now) + _END_S
            latest = now + SAVING_S + _END_S
        if status.saves > saves:
            saves = status.saves
            until = min(max(until, now + _END_S), latest)
        if status.failure and mark and not gone and set(of_job(mark)) <= {job.pid}:
            gone = True
            until = min(until, now + _ALONE_S)
        if len(caught) > passed:
            passed = len(caught)
            until = min(until, now + _END_S)
            if passed == 1:
                # mpirun asks the ranks to end by SIGTERM, and kills those that do not.
                job.send_signal(signal.SIGTERM)
        if now > ask:
            ask = never
            job.send_signal(signal.SIGTERM)
        if passed > 1 or now > until:
            job.kill()


def _judge(status: JobStatus, code: int, caught: list[int], notes: str) -> Outcome:
    """Return how it went.

    Args:
        status: What the ranks told.
        code: The exit code of ``mpirun``, or of the only rank.
        caught: The signals that asked us to end.
        notes: What ``mpirun`` said.
    """
    came = len(status.here)
    if caught:
        return Outcome(128 + caught[0], came, interrupted=True)
    without = status.without
    if without is not None:
        return Outcome(0, came, without=tuple(status.names[rank] for rank in without))
    if status.failure not in (0, LOST):
        return Outcome(status.failure, came)
    killed = {int(rank) for rank in _KILLED.findall(notes)} & status.names.keys()
    # Where mpirun ended the job it names who was lost; the others were, because of that.
    lost = tuple(status.names[rank] for rank in status.named or sorted(killed) or status.lost)
    # Where some were done, and wait for one that left without a word, MPI ends them with any code.
    silent = lost and (not code or status.left)
    if killed or code < 0 or code > 128 or status.failure or silent:
        return Outcome(LOST, came, lost)
    return Outcome(code, came)
