"""Whole jobs: how clusters form, how all ranks end, and what is said when one of them fails."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.dist_mpi.conftest import Ended, RunProgram

pytestmark = pytest.mark.needs("mpi", "backend-cpu")

OPENING = """
import os, signal, sys, threading, time
import numpy as np
import headrace as hr

RANK = int(os.environ["OMPI_COMM_WORLD_RANK"])

def say(text):
    sys.stdout.write(f"rank {RANK}: {text}\\n")
    sys.stdout.flush()

def counter():
    with hr.device("/job:ps/task:0"):
        return hr.Variable(np.int64(0), name="counter")
"""

TRAIN = """
def train(cluster, steps=20):
    v = counter()
    add = hr.assign_add(v, 1)
    with hr.Session(cluster.target) as session:
        if cluster.is_chief:
            session.run(hr.global_variables_initializer())
        while not session.run(hr.is_variable_initialized(v)):
            time.sleep(0.01)
        for _ in range(steps):
            session.run(add)
        return int(session.run(v))
"""


def run(run_program: RunProgram, size: int, source: str, **options: object) -> Ended:
    return run_program(size, source, opening=OPENING + TRAIN, **options)


@pytest.mark.parametrize("size", [1, 2, 4])
def test_all_ranks_end_together_and_cleanly(run_program: RunProgram, size: int) -> None:
    done = run(
        run_program,
        size,
        """
with hr.dist.Cluster(ps=1) as cluster:
    if cluster.job_name == "ps":
        cluster.serve()
    else:
        # The workers end one after the other.
        time.sleep(0.3 * cluster.task_index)
        say(f"counted {train(cluster)}")
say("end")
""",
    )
    assert (done.code, done.err) == (0, "")
    assert done.out.count("end") == size
    assert done.out.count("counted") == max(1, size - 1)
    assert done.seconds < 20


def test_a_program_without_a_with_block_ends_cleanly_too(run_program: RunProgram) -> None:
    done = run(
        run_program,
        3,
        """
cluster = hr.dist.Cluster(ps=1)
if cluster.job_name == "ps":
    cluster.serve()
elif cluster.is_chief:
    with hr.device("/job:worker/task:1"):
        far = hr.constant(2.0) * hr.constant(3.0)
    time.sleep(0.5)
    # The other worker's program is over; its devices are not gone.
    with hr.Session(cluster.target, config=hr.Config(optimize=False)) as session:
        say(f"got {session.run(far)}")
say("end")
""",
    )
    assert (done.code, done.err) == (0, "")
    assert "rank 1: got 6.0" in done.out
    assert done.out.count("end") == 3


def test_a_rank_whose_interpreter_ends_serves_without_new_threads(run_program: RunProgram) -> None:
    done = run(
        run_program,
        2,
        """
cluster = hr.dist.Cluster(ps=1)
if cluster.job_name == "ps":
    def refuse(thread):
        raise RuntimeError("can't create new thread at interpreter shutdown")
    threading.Thread.start = refuse
else:
    v = counter()
    add = hr.assign_add(v, 1)
    with hr.Session(cluster.target) as session:
        session.run(hr.global_variables_initializer())
        def work():
            for _ in range(50):
                session.run(add)
        threads = [threading.Thread(target=work) for _ in range(6)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        say(f"counted {session.run(v)}")
""",
    )
    assert (done.code, done.err) == (0, "")
    assert "counted 300" in done.out


@pytest.mark.parametrize("leaving", ["sys.exit(0)", "sys.exit()", "raise SystemExit"])
def test_leaving_the_block_by_exit_is_a_clean_end(run_program: RunProgram, leaving: str) -> None:
    done = run(
        run_program,
        3,
        f"""
with hr.dist.Cluster(ps=1) as cluster:
    if cluster.job_name == "ps":
        cluster.serve()
        {leaving}
    train(cluster)
    {leaving}
""",
    )
    assert (done.code, done.err) == (0, "")


@pytest.mark.parametrize("failing", [0, 1, 2])
@pytest.mark.parametrize("block", ["with cluster:", "if True:"], ids=["with", "plain"])
def test_an_exception_on_any_rank_ends_the_job(
    run_program: RunProgram, failing: int, block: str
) -> None:
    done = run(
        run_program,
        3,
        f"""
cluster = hr.dist.Cluster(ps=1)
{block}
    if RANK == {failing}:
        time.sleep(0.3)
        raise ValueError("the model is wrong")
    if cluster.job_name == "ps":
        cluster.serve()
    else:
        train(cluster, 10**9)
""",
    )
    assert done.code == 1, done
    assert done.seconds < 20
    assert done.err.count("Traceback (most recent call last)") == 1
    assert f"headrace: rank {failing} of 3 (host " in done.err
    assert f"[rank {failing}] ValueError: the model is wrong" in done.err


def test_a_failing_exit_within_the_block_ends_the_job(run_program: RunProgram) -> None:
    done = run(
        run_program,
        3,
        """
with hr.dist.Cluster(ps=1) as cluster:
    if RANK == 2:
        raise SystemExit(3)
    cluster.serve()
""",
    )
    assert done.code == 3, done
    assert done.seconds < 20
    assert "rank 2 of 3" in done.err
    assert "left with exit code 3; this ends the job" in done.err


@pytest.mark.parametrize("killed", [0, 2])
def test_a_killed_rank_ends_the_job_and_is_named(run_program: RunProgram, killed: int) -> None:
    done = run(
        run_program,
        3,
        f"""
with hr.dist.Cluster(ps=1) as cluster:
    if RANK == {killed}:
        threading.Timer(0.5, os.kill, (os.getpid(), signal.SIGKILL)).start()
    if cluster.job_name == "ps":
        cluster.serve()
    else:
        train(cluster, 10**9)
""",
    )
    assert done.code != 0
    assert done.seconds < 15
    assert "Traceback" not in done.err
    # The launcher's own message.
    assert f"rank {killed}" in done.err or f",{killed}]" in done.err, done.err


def test_an_error_of_a_step_can_be_caught_and_the_job_goes_on(run_program: RunProgram) -> None:
    done = run(
        run_program,
        2,
        """
with hr.dist.Cluster(ps=1) as cluster:
    if cluster.job_name == "ps":
        cluster.serve()
    else:
        try:
            with hr.Session(cluster.target) as session:
                session.run(counter())
        except hr.errors.UninitializedError as error:
            say(error)
        say(f"counted {train(cluster)}")
""",
    )
    assert (done.code, done.err) == (0, "")
    assert "on /job:ps/task:0 (rank 0)" in done.out
    assert "counted 20" in done.out


def test_an_uncaught_error_of_a_step_names_task_and_line(run_program: RunProgram) -> None:
    done = run(
        run_program,
        2,
        """
with hr.dist.Cluster(ps=1) as cluster:
    if cluster.job_name == "ps":
        cluster.serve()
    v = counter()
    with hr.Session(cluster.target) as session:
        session.run(v + 1)
""",
    )
    assert done.code == 1, done
    assert done.err.count("Traceback") == 1
    assert "[rank 1] headrace.errors.UninitializedError: 1 variable is not init" in done.err
    assert "on /job:ps/task:0 (rank 0)" in done.err
    assert "program.py" in done.err


def test_too_few_ranks_end_with_one_message(run_program: RunProgram) -> None:
    done = run(run_program, 2, "hr.dist.Cluster(ps=2)")
    assert done.code == 1, done
    assert done.err.count("Cluster: ps=2 needs at least 3 ranks") == 1
    assert "mpirun -n 3" in done.err


def test_programs_that_do_not_agree_are_told(run_program: RunProgram) -> None:
    done = run(run_program, 3, "hr.dist.Cluster(ps=1 if RANK < 2 else 0)")
    assert done.code == 1, done
    assert done.err.count("the ranks do not agree on the jobs of the cluster") == 1
    assert "ps: 1, worker: 2: ranks 0, 1" in done.err
    assert "ps: 0, worker: 3: ranks 2" in done.err


CLAIMS = """
tasks = [("worker", 1), ("evaluator", 0), ("worker", 0)]
job_name, task_index = tasks[RANK]
jobs = {"worker": 2, "evaluator": 1}
with hr.dist.Cluster(jobs=jobs, job_name=job_name, task_index=task_index) as cluster:
    if cluster.is_chief:
        with hr.device("/job:evaluator/task:0"):
            v = hr.Variable(3.0)
        with hr.device("/job:worker/task:1"):
            y = v * 2.0
        with hr.Session(cluster.target) as session:
            session.run(v.initializer)
            print(RANK, session.run(y))
"""


def test_ranks_may_say_which_task_is_theirs(run_program: RunProgram) -> None:
    done = run(run_program, 3, CLAIMS)
    assert done.code == 0, done
    assert "2 6.0" in done.out


def test_two_ranks_cannot_be_one_task(run_program: RunProgram) -> None:
    program = 'hr.dist.Cluster(jobs={"worker": 3}, job_name="worker", task_index=max(RANK, 1))'
    done = run(run_program, 3, program)
    assert done.code == 1, done
    assert done.err.count("the ranks do not agree on who plays which task of worker: 3") == 1
    assert "/job:worker/task:1: ranks 0, 1" in done.err


def test_a_rank_that_never_comes_is_missed(run_program: RunProgram) -> None:
    done = run(
        run_program,
        2,
        """
if RANK == 1:
    time.sleep(30)
hr.dist.Cluster(ps=1, start_deadline_s=2)
""",
    )
    assert done.code != 0
    assert done.seconds < 12
    assert "waited 2 s for the job to start" in done.err
    assert "missing: 1" in done.err


def test_a_rank_that_misses_the_second_cluster_is_told(run_program: RunProgram) -> None:
    done = run(
        run_program,
        2,
        """
hr.dist.Cluster(ps=1).close()
if RANK == 1:
    time.sleep(30)
hr.dist.Cluster(ps=1, start_deadline_s=2)
""",
    )
    assert done.code != 0
    assert done.seconds < 12
    assert "missing: 1" in done.err


def test_the_chief_of_a_cluster_is_that_of_the_process(run_program: RunProgram) -> None:
    source = """
from headrace.extend.runtime import is_chief

with hr.dist.Cluster(ps=1) as cluster:
    say(f"{is_chief()} {cluster.is_chief}")
"""
    done = run(run_program, 3, source)
    assert (done.code, done.err) == (0, "")
    # Rank 0 is the parameter server.
    assert sorted(done.out.splitlines()) == [
        "rank 0: False False",
        "rank 1: True True",
        "rank 2: False False",
    ]
