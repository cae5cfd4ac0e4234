"""Jobs that go on without a worker, however that is lost; and those that do not."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.dist_mpi.launched import launch

if TYPE_CHECKING:
    from tests.dist_mpi.conftest import RunProgram

pytestmark = [pytest.mark.needs("mpi", "backend-cpu"), pytest.mark.timeout(150)]

LOSE = """
import os, signal, sys, time
import headrace as hr

how, victim = sys.argv[1:]
with hr.dist.Cluster(on_worker_loss="continue") as cluster:
    me = f"{cluster.job_name}:{cluster.task_index}"
    with hr.device("/job:ps/task:0"):
        begun = hr.Variable(0.0)
        v = hr.Variable(0.0)
        add = hr.assign_add(v, 1.0)
        one = hr.assign_add(begun, 1.0)
    if me == "ps:0" != victim:
        cluster.serve()
    else:
        with hr.Session(cluster.target) as session:
            if cluster.is_chief:
                session.run([v.initializer, begun.initializer])
            while True:
                try:
                    session.run(one)
                    break
                except hr.errors.FailedPreconditionError:
                    time.sleep(0.01)
            if me == victim:
                while session.run(v) < 20:
                    session.run(add)
                exec(how)
            # Until somebody is lost, and then for a while.
            until = time.monotonic() + 60
            while not cluster.lost and time.monotonic() < until:
                session.run(add)
            before = session.run(v)
            for _ in range(50):
                session.run(add)
            if cluster.is_chief:
                print("went on", session.run(v) - before >= 50, *cluster.lost, flush=True)
"""
GONE = r"MPI says that its process failed|its process ended without leaving the cluster"
HOWS = {
    "killed": ("os.kill(os.getpid(), signal.SIGKILL)", GONE),
    "exit-0": ("os._exit(0)", GONE),
    "exit-3": ("os._exit(3)", GONE),
    "left": ("sys.exit(3)", "it left with exit code 3"),
    "failed": ("raise ValueError('too late')", "it failed with ValueError: too late"),
    "stopped": ("os.kill(os.getpid(), signal.SIGSTOP)", f"{GONE}|.*, for longer than 4 s"),
}


@pytest.mark.parametrize(
    "how",
    ["killed", *(pytest.param(how, marks=pytest.mark.slow) for how in HOWS if how != "killed")],
)
def test_a_job_goes_on_without_a_worker(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, how: str
) -> None:
    if how == "stopped":
        monkeypatch.setenv("HEADRACE_SLOW_AFTER", "2")
        monkeypatch.setenv("HEADRACE_LOST_AFTER", "4")
    code, why = HOWS[how]
    job = launch(tmp_path, LOSE, *("-n", "3", "--ps", "1"), words=(code, "worker:1"))
    assert job.end(120) == 0, job.err
    assert job.out == ["[worker:0] went on True /job:worker/task:1"]
    told = re.findall(
        r"\[(\S+)\] headrace: rank . of 3 .* goes on without a worker: "
        rf"/job:worker/task:1 .rank 2, .* was lost: (?:{why})",
        job.err,
    )
    assert sorted(told) == ["ps:0", "worker:0"], job.err
    assert job.err.rstrip().endswith("headrace: the job came to its end without worker:1")


@pytest.mark.parametrize(
    "how",
    ["killed", *(pytest.param(how, marks=pytest.mark.slow) for how in ("exit-0", "stopped"))],
)
def test_a_worker_takes_the_place_of_a_lost_chief(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, how: str
) -> None:
    if how == "stopped":
        monkeypatch.setenv("HEADRACE_SLOW_AFTER", "2")
        monkeypatch.setenv("HEADRACE_LOST_AFTER", "4")
    job = launch(tmp_path, LOSE, *("-n", "4", "--ps", "1"), words=(HOWS[how][0], "worker:0"))
    assert job.end(120) == 0, job.err
    assert job.out == ["[worker:1] went on True /job:worker/task:0"]
    told = re.findall(r"\[(\S+)\] headrace: rank . of 4 .* is the chief from now on", job.err)
    assert told == ["worker:1"], job.err
    assert job.err.rstrip().endswith("headrace: the job came to its end without worker:0")


@pytest.mark.slow
def test_a_job_goes_on_without_a_worker_of_which_nothing_is_heard(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HEADRACE_SLOW_AFTER", "2")
    monkeypatch.setenv("HEADRACE_LOST_AFTER", "4")
    monkeypatch.setenv("HEADRACE_FAULTS", "worker:1 run mute 20")
    job = launch(tmp_path, LOSE, *("-n", "3", "--ps", "1"), words=("", "nobody"))
    assert job.end(120) == 0, job.err
    assert job.out == ["[worker:0] went on True /job:worker/task:1"]
    told = re.findall(
        r"\[(\S+)\] .* goes on without a worker: /job:worker/task:1 .rank 2, .* was lost: (.*);",
        job.err,
    )
    assert sorted(who for who, _ in told) == ["ps:0", "worker:0"], job.err
    # Whoever finds out first ends the process, which the other may see before.
    silent = [
        why for _, why in told if re.match(r"its process lives, .*, for longer than 4 s", why)
    ]
    assert silent, job.err


@pytest.mark.slow
@pytest.mark.parametrize(
    ("how", "code", "told"),
    [("left", 3, "left with exit code 3"), ("failed", 1, "ValueError: too late")],
)
def test_a_chief_whose_program_fails_ends_the_job(
    tmp_path: Path, how: str, code: int, told: str
) -> None:
    job = launch(tmp_path, LOSE, *("-n", "3", "--ps", "1"), words=(HOWS[how][0], "worker:0"))
    assert job.end(120) == code, job.err
    assert told in job.err


@pytest.mark.slow
def test_a_job_ends_without_its_ps(tmp_path: Path) -> None:
    code, _ = HOWS["killed"]
    job = launch(tmp_path, LOSE, *("-n", "3", "--ps", "1"), words=(code, "ps:0"))
    assert job.end(120) == 75, job.err
    told = re.findall(
        r"\[(\S+)\] headrace: rank . of 3 .* ends: /job:ps/task:0 .* was lost", job.err
    )
    assert len(told) == 2, job.err
    assert "headrace: the job lost ps:0; the job ended with exit code 75" in job.err


@pytest.mark.slow
def test_a_job_ends_where_too_few_workers_are_left(tmp_path: Path) -> None:
    code, _ = HOWS["killed"]
    options = ("-n", "3", "--ps", "1", "--min-workers", "2")
    job = launch(tmp_path, LOSE, *options, words=(code, "worker:1"))
    assert job.end(120) == 75, job.err
    assert "1 workers are left, fewer than the 2 that are needed" in job.err
    assert "headrace: the job lost worker:1; the job ended with exit code 75" in job.err


def test_going_on_is_refused_where_mpi_cannot(run_program: RunProgram) -> None:
    source = 'import headrace as hr\nhr.dist.Cluster(ps=0, on_worker_loss="continue")\n'
    ended = run_program(2, source, opening="")
    assert ended.code == 1
    assert "ClusterError: on_worker_loss='continue' needs an MPI that lives on" in ended.err


TURNS = """
import os, signal, time
import headrace as hr

with hr.dist.Cluster(on_worker_loss="continue") as cluster:
    if cluster.job_name == "ps":
        cluster.serve()
    else:
        with hr.device("/job:ps/task:0"):
            v = hr.Variable(0.0)
            add = hr.assign_add(v, 1.0)
        # While it has its turn.
        dies = hr.py_func(lambda x: os.kill(os.getpid(), signal.SIGKILL), [v.value()], hr.float32)
        with hr.control_dependencies([dies]), hr.device("/job:ps/task:0"):
            never = v.assign_add(1.0).op
        ready = hr.is_variable_initialized(v)
        config = hr.Config(consistency="sequential", timeout=30.0)
        with hr.Session(cluster.target, config=config) as session:
            if cluster.is_chief:
                session.run(v.initializer)
            while not session.run(ready):
                time.sleep(0.01)
            if cluster.task_index == 2:
                session.run(never)
            while not cluster.lost:
                session.run(add)
            for _ in range(20):
                session.run(add)
            if cluster.is_chief:
                with session.fence(20.0):
                    before = session.run(v)
                    print("fenced", before == session.run(v), *cluster.lost, flush=True)
"""


def test_a_lost_worker_takes_no_turn_and_no_fence_with_it(tmp_path: Path) -> None:
    job = launch(tmp_path, TURNS, "-n", "4", "--ps", "1")
    assert job.end() == 0, job.err
    assert "[worker:0] fenced True /job:worker/task:2" in job.out
