"""Without whom a job goes on, and what is taken back of a rank that is lost. No MPI is started."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from typing import Any

import pytest

from headrace.errors import ClusterError
from headrace_mpi.jobs import Jobs
from headrace_mpi.launcher import start
from headrace_mpi.launcher.options import parse
from headrace_mpi.launcher.output import JobStatus
from headrace_mpi.launcher.start import LOST, Outcome
from headrace_mpi.membership.chief_election import ChiefElection
from headrace_mpi.membership.fault_tolerance import (
    FaultTolerance,
    birth,
    checked_policy,
    end_process,
)
from headrace_mpi.membership.saving import Saving

JOBS = Jobs((("ps", 1), ("evaluator", 1), ("worker", 4)))
CHIEF = 2


def fault_tolerance(policy: str = "continue", least: int = 0) -> FaultTolerance:
    return FaultTolerance(policy, JOBS.tasks, JOBS.chief, least)


@pytest.mark.parametrize(
    ("policy", "least", "lost", "why"),
    [
        ("end", 0, [3], "the job needs it"),
        ("continue", 0, [0], "the job needs it"),
        ("continue", 0, [1], "the job needs it"),
        ("continue", 0, [CHIEF], ""),
        ("continue", 0, [CHIEF, 3, 4], ""),
        ("continue", 0, [CHIEF, 3, 4, 5], "no worker is left that could be the chief"),
        ("continue", 0, [3, 4, 5], ""),
        ("continue", 2, [3, 4], ""),
        ("continue", 2, [3, 4, 5], "1 workers are left, fewer than the 2 that are needed"),
    ],
)
def test_workers_can_be_spared(policy: str, least: int, lost: list[int], why: str) -> None:
    known = fault_tolerance(policy, least)
    told = [known.lose(rank) for rank in lost]
    assert told == [""] * (len(lost) - 1) + [why]
    assert known.lost == set(lost)
    assert known.ending == bool(why)


def test_who_may_be_lost() -> None:
    assert [rank for rank in range(6) if fault_tolerance().may_lose(rank)] == [2, 3, 4, 5]
    assert not any(fault_tolerance("end").may_lose(rank) for rank in range(6))


def test_a_chief_that_has_the_variables_is_needed() -> None:
    alone = Jobs((("worker", 3),))
    known = FaultTolerance("continue", alone.tasks, alone.chief, 0)
    assert [rank for rank in range(3) if known.may_lose(rank)] == [1, 2]
    assert known.lose(0) == "the job needs it"


def election(*jobs: tuple[str, int]) -> ChiefElection:
    named = Jobs(jobs)
    return ChiefElection(named.tasks, named.chief)


@pytest.mark.parametrize(
    ("jobs", "happens", "chief"),
    [
        (JOBS.counts, [], 2),
        (JOBS.counts, ["lose 3"], 2),
        (JOBS.counts, ["lose 2"], 3),
        (JOBS.counts, ["lose 3", "lose 2"], 4),
        (JOBS.counts, ["lose 2", "lose 3", "lose 4", "lose 5"], None),
        # A worker that has left knows no more, and does no more.
        (JOBS.counts, ["leave 3", "lose 2"], 4),
        # Told the other way round, it comes to the same.
        (JOBS.counts, ["lose 2", "leave 3"], 4),
        (JOBS.counts, ["lose 2", "leave 3", "leave 4", "leave 5"], None),
        # A chief that has left had done its work.
        (JOBS.counts, ["end 2", "lose 2"], 2),
        (JOBS.counts, ["lose 2", "end 3", "lose 3"], 3),
        ((("chief", 1), ("ps", 1), ("worker", 2)), [], 0),
        ((("chief", 1), ("ps", 1), ("worker", 2)), ["lose 0"], 2),
        ((("worker", 2), ("ps", 1), ("master", 1)), ["lose 3"], 0),
        ((("ps", 2),), [], 0),
        ((("ps", 2),), ["lose 0"], None),
    ],
)
def test_who_is_the_chief(
    jobs: tuple[tuple[str, int], ...], happens: list[str], chief: int | None
) -> None:
    known = election(*jobs)
    for event in happens:
        what, rank = event.split()
        if what == "lose":
            known.lose(int(rank))
        else:
            known.leave(int(rank), as_chief=what == "end")
    assert known.chief == chief


@pytest.mark.parametrize(
    ("wanted", "tolerant", "jobs", "message"),
    [
        ("restart", "1", JOBS, "on_worker_loss must be 'end' or 'continue', got 'restart'"),
        (True, "1", JOBS, "on_worker_loss must be 'end' or 'continue', got True"),
        ("continue", "0", JOBS, "was started without .ULFM.: start it with python -m headrace run"),
        (
            "continue",
            "1",
            Jobs((("ps", 5), ("worker", 1))),
            "needs a worker beside the chief, and the cluster ps: 5, worker: 1 has 1",
        ),
    ],
)
def test_what_cannot_go_on_is_refused(
    wanted: Any, tolerant: str, jobs: Jobs, message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OMPI_MCA_mpi_ft_enable", tolerant)
    with pytest.raises(ClusterError, match=message):
        checked_policy(wanted, 6, jobs)


def test_a_process_that_is_alone_may_ask_to_go_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OMPI_MCA_mpi_ft_enable", raising=False)
    assert checked_policy("continue", 1, Jobs((("worker", 1),))) == "continue"
    assert checked_policy("end", 6, JOBS) == "end"


def test_a_lost_process_that_is_stopped_is_ended() -> None:
    child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])
    born = birth(child.pid)
    child.send_signal(signal.SIGSTOP)
    # Another process that has its id by now, or that cannot be told from another, is not.
    for other in (f"{born}0", ""):
        end_process(child.pid, other)
    assert child.poll() is None
    end_process(child.pid, born)
    assert child.wait(10) == -signal.SIGKILL
    end_process(child.pid, born)


@pytest.mark.parametrize(
    ("notes", "code", "expected"),
    [
        # All came to the end.
        ({1: "left 0", 2: "left 0", 3: "left 0"}, 0, Outcome(0, 4)),
        # One was killed, one failed: what mpirun makes of it does not count.
        ({2: "alone 1"}, 3, Outcome(0, 4, without=("worker:1", "worker:2"))),
        # The parameter server is lost, too.
        ({0: "", 1: "left 75"}, 0, Outcome(LOST, 4, ("ps:0",))),
        ({0: "left 75", 1: "left 75", 2: "left 75"}, 75, Outcome(LOST, 4, ("worker:2",))),
        # A mistake of the chief's program is one of the job's.
        ({1: "left 3"}, 3, Outcome(3, 4)),
        # The chief is lost, and a worker has taken its place.
        ({1: "", 2: "left 0", 3: "left 0"}, 0, Outcome(0, 4, without=("worker:0",))),
        ({1: "", 2: "left 1", 3: ""}, 1, Outcome(1, 4)),
    ],
)
def test_exit_codes_where_workers_may_be_lost(
    notes: dict[int, str], code: int, expected: Outcome
) -> None:
    status = JobStatus(4, ["ps:0", "worker:0", "worker:1", "worker:2"])
    for rank in range(4):
        status.hear(rank, "here")
        if rank:
            status.hear(rank, "spare")
        told = notes.get(rank, "left 0" if rank < 2 else "")
        status.hear(rank, told)
    if expected.lost:
        status.hear(1, f"lost {0 if expected.lost == ('ps:0',) else 3}")
    assert start._judge(status, code, [], "") == expected


def test_the_least_number_of_workers_is_passed_on() -> None:
    from headrace_mpi.launcher.command import environment

    words = ["-n", "4", "--ps", "1", "--min-workers", "2", "train.py"]
    assert environment(parse(words), "", 0)["HEADRACE_MIN_WORKERS"] == "2"
    assert "HEADRACE_MIN_WORKERS" not in environment(parse(["-n", "4", "train.py"]), "", 0)


def test_steps_after_a_loss_are_signs_that_a_program_still_saves() -> None:
    saving = Saving()
    assert not saving.begun
    before, good, bad = object(), object(), object()
    # One that began before the loss is no sign, also when it ends.
    saving.end(before, failed=False)
    assert saving.last_sign == 0
    saving.begin(bad)
    assert saving.last_sign > 0
    saving.end(bad, failed=True)
    assert saving.last_sign == 0
    saving.begin(good)
    began = time.monotonic()
    assert saving.last_sign >= began
    saving.end(good, failed=False)
    ended = saving.last_sign
    assert began <= ended <= time.monotonic()
    assert saving.last_sign == ended
