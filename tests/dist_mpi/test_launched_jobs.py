"""Jobs started with ``python -m headrace run``: output, exit codes, signals, and starting anew."""

from __future__ import annotations

import re
import signal
import time
from pathlib import Path

import pytest

from tests.dist_mpi.launched import launch

pytestmark = pytest.mark.needs("mpi", "backend-cpu")


def test_a_job_knows_its_tasks_and_ends_with_our_code(tmp_path: Path) -> None:
    job = launch(
        tmp_path,
        """
import os, sys
import headrace as hr
from headrace.extend.runtime import is_chief
with hr.dist.Cluster() as cluster:
    print(cluster.job_name, sys.argv[1:], os.environ["OMP_NUM_THREADS"], is_chief(), "ends here")
if cluster.is_chief:
    sys.exit(7)
""",
        *("-n", "3", "--ps", "1", "--job", "evaluator=1", "--threads", "2"),
        words=("-n", "x"),
    )
    assert job.end() == 7, job.err
    assert sorted(job.out) == [
        "[evaluator:0] evaluator ['-n', 'x'] 2 False ends here",
        "[ps:0] ps ['-n', 'x'] 2 False ends here",
        "[worker:0] worker ['-n', 'x'] 2 True ends here",
    ]
    assert re.search(r"\[worker:0\] headrace: rank 2 of 3 .* left with exit code 7", job.err)
    assert "MPI_ABORT" not in job.err


TRAIN = """
import os, signal, sys
import headrace as hr

kill_at = int(sys.argv[2]) if os.environ["HEADRACE_RESTARTS"] == "0" else -1
with hr.dist.Cluster(ps=1) as cluster:
    if not cluster.is_chief:
        if kill_at >= 0 and cluster.job_name == sys.argv[3]:
            import threading, time
            def watch():
                while not os.path.exists(sys.argv[1] + "/now"):
                    time.sleep(0.01)
                os.kill(os.getpid(), signal.SIGKILL)
            threading.Thread(target=watch, daemon=True).start()
        cluster.serve()
    else:
        with hr.device("/job:ps/task:0"):
            step = hr.train.get_or_create_global_step()
            w = hr.get_variable("w", [3], initializer=hr.zeros_initializer())
        x = hr.random_normal([3], seed=5)
        loss = hr.reduce_sum(hr.square(w - x))
        train = hr.train.MomentumOptimizer(0.1, 0.9).minimize(loss, step)
        with hr.control_dependencies([train]):
            step = step.read_value()
        hooks = [hr.train.StopAtStepHook(last_step=12)]
        with hr.train.MonitoredTrainingSession(
            cluster.target, True, sys.argv[1], hooks=hooks, save_checkpoint_steps=4,
            save_checkpoint_secs=None, save_summaries_steps=None, save_summaries_secs=None,
            log_step_count_steps=None,
        ) as session:
            while not session.should_stop():
                _, value, at = session.run([train, loss, step])
                print(int(at), float(value).hex(), flush=True)
                if int(at) == kill_at:
                    open(sys.argv[1] + "/now", "w").close()
                    import time; time.sleep(30)
"""


@pytest.mark.slow
@pytest.mark.needs("train", "autodiff")
@pytest.mark.timeout(150)
def test_a_job_that_loses_its_ps_goes_on_from_its_checkpoint(tmp_path: Path) -> None:
    curves = []
    # Without the loss, one process plays all tasks; the numbers are the same.
    for name, kill_at, size in (("whole", "-1", "1"), ("killed", "6", "2")):
        (tmp_path / name / "run").mkdir(parents=True)
        job = launch(
            tmp_path / name,
            TRAIN,
            *("-n", size, "--max-restarts", "2"),
            words=(str(tmp_path / name / "run"), kill_at, "ps"),
        )
        assert job.end() == 0, job.err
        lines = [line.removeprefix("[worker:0] ").split() for line in job.out]
        # A step that was made again is the same to the bit.
        curve: dict[int, str] = {}
        for at, value in lines:
            assert curve.setdefault(int(at), value) == value
        curves.append(curve)
    assert sorted(curves[0]) == list(range(1, 13))
    assert curves[0] == curves[1]
    assert len(lines) > 12, "steps after the checkpoint are made again"
    assert "headrace: the job lost ps:0: start 1 of 2 anew, on 2 ranks" in job.err


LOSE = """
import os, signal, sys
import headrace as hr

with hr.dist.Cluster(ps=1) as cluster:
    with hr.device("/job:ps/task:0"):
        v = hr.Variable(0.0)
        add = hr.assign_add(v, 1.0)
    if cluster.job_name == "ps":
        cluster.serve()
    with hr.Session(cluster.target) as session:
        session.run(v.initializer)
        for step in range(1_000_000):
            try:
                session.run(add)
            except hr.errors.UnavailableError as error:
                assert isinstance(error, hr.errors.TaskLostError)
                # The parameter server lives, and what it has can be saved.
                print("saved", session.run(v) > 0, flush=True)
                raise
            if step == 20 and cluster.task_index == 1:
                {}
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("how", "why"),
    [
        (
            "os.kill(os.getpid(), signal.SIGKILL)",
            "MPI says that its process failed|its process ended",
        ),
        pytest.param("os._exit(0)", "MPI says|its process ended"),
        pytest.param("os._exit(3)", "its process ended without leaving"),
        pytest.param(
            "os.kill(os.getpid(), signal.SIGSTOP)",
            r"its process is stopped .SIGSTOP, or a debugger., for longer than 6 s",
        ),
    ],
    ids=["killed", "exit-0", "exit-3", "stopped"],
)
def test_each_survivor_names_the_lost_rank(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, how: str, why: str
) -> None:
    if "SIGSTOP" in how:
        monkeypatch.setenv("HEADRACE_SLOW_AFTER", "2")
        monkeypatch.setenv("HEADRACE_LOST_AFTER", "6")
    job = launch(tmp_path, LOSE.replace("{}", how), *("-n", "3", "--ps", "1"))
    assert job.end() == 75, job.err
    told = re.findall(rf"\[(\S+)\] headrace: rank . of 3 .* ends: (.*) was lost: ({why})", job.err)
    assert sorted(who for who, _, _ in told) == ["ps:0", "worker:0"], job.err
    assert {lost.partition(" ")[0] for _, lost, _ in told} == {"/job:worker/task:1"}
    assert job.out == ["[worker:0] saved True"]
    assert "Traceback" not in job.err
    assert "headrace: the job lost worker:1; the job ended with exit code 75" in job.err


def alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_signals_end_all_processes(tmp_path: Path, number: int, code: int) -> None:
    # One rank is deaf, as one in a long computation is.
    job = launch(
        tmp_path,
        """
import os, signal, time
if os.environ["OMPI_COMM_WORLD_RANK"] == "1":
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
# In one piece: without a cluster, nothing else keeps lines of ranks apart (Open MPI 5.0.8).
os.write(1, f"{os.getpid()}\\n".encode())
time.sleep(60)
""",
        *("-n", "2"),
    )
    until = time.monotonic() + 30
    while len(job.out) < 2 and time.monotonic() < until:
        time.sleep(0.05)
    pids = [int(line.split()[-1]) for line in job.out]
    assert len(pids) == 2, job.err
    begin = time.monotonic()
    job.process.send_signal(number)
    assert job.end(30) == code, job.err
    assert time.monotonic() - begin < 20
    assert not [pid for pid in pids if alive(pid)]


SAVING = """
import os, signal, sys, time
import headrace as hr

with hr.dist.Cluster(ps=1) as cluster:
    if cluster.job_name == "ps":
        cluster.serve()
    else:
        with hr.device("/job:ps/task:0"):
            v = hr.Variable(0.0)
        ready = hr.is_variable_initialized(v)
        with hr.Session(cluster.target) as session:
            if cluster.is_chief:
                session.run(v.initializer)
            while not session.run(ready):
                time.sleep(0.01)
            try:
                while True:
                    session.run(v)
                    open(f"{sys.argv[1]}/{cluster.task_index}", "w").close()
                    if cluster.is_chief and os.path.exists(f"{sys.argv[1]}/1"):
                        os.kill(cluster.node.members[0].pid, signal.SIGKILL)
            except hr.errors.TaskLostError:
                if cluster.is_chief:
                    # Longer than the others take to end, and less than is promised.
                    end = time.monotonic() + float(sys.argv[2])
                    if sys.argv[3] == "steps":
                        one = hr.add(1.0, 1.0)
                        while time.monotonic() < end:
                            session.run(one)
                            time.sleep(0.1)
                    time.sleep(max(end - time.monotonic(), 0.0))
                    print("saved", flush=True)
                raise
"""


@pytest.mark.slow
@pytest.mark.parametrize(("seconds", "how"), [(0.0, "sleep"), (2.5, "sleep"), (9.0, "steps")])
def test_nobody_cuts_off_what_another_rank_still_saves(
    tmp_path: Path, seconds: float, how: str
) -> None:
    # A program that is silent has some seconds; one that runs steps has more.
    words = (str(tmp_path), str(seconds), how)
    job = launch(tmp_path, SAVING, "-n", "3", "--ps", "1", words=words)
    assert job.end() == 75, job.err
    assert "[worker:0] saved" in job.out
    assert "the job lost ps:0" in job.err
