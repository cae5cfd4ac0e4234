"""``python -m headrace run``: what is asked for, and what is made of it. No job is started here."""

from __future__ import annotations

import io
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from headrace.cli.main import main as headrace_main
from headrace.errors import ClusterError, ConfigError
from headrace_mpi.jobs import Jobs, launched
from headrace_mpi.launcher import command, main, start
from headrace_mpi.launcher.options import LaunchOptions, parse
from headrace_mpi.launcher.output import JobStatus, Relay
from headrace_mpi.launcher.start import LOST, Outcome
from headrace_mpi.launcher.status_lines import MARK


def test_words_are_read() -> None:
    options = parse(
        [
            *("-n", "6", "--ps", "2", "--job", "evaluator=1", "--max-restarts", "3"),
            *("--min-workers", "1", "--max-workers", "4"),
            *("train.py", "--ps", "7", "-n", "9"),
        ]
    )
    assert (options.size, options.workers, options.max_restarts) == (6, 3, 3)
    assert str(options.jobs) == "ps: 2, evaluator: 1, worker: 3"
    assert (options.min_workers, options.max_workers) == (1, 4)
    assert options.program == ("train.py", "--ps", "7", "-n", "9")
    alone = parse(["-m", "trainer", "--fast"])
    assert (alone.size, alone.jobs, alone.program) == (1, None, ("-m", "trainer", "--fast"))
    assert options.resized(1).size == 4


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("-n 4", "run needs a program: a file"),
        ("-n 2 --ps 2 a.py", "2 tasks of ps leave none of 2 ranks for a worker: give -n 3"),
        ("-n 3 --job worker=2 a.py", "expected NAME=COUNT, as in evaluator=1, got 'worker=2'"),
        ("-n 3 --job ev=x a.py", "expected NAME=COUNT"),
        ("-n 3 --min-workers 4 a.py", "1 <= --min-workers <= workers <= --max-workers, got 4, 3"),
        ("-n 3 --max-workers 2 a.py", "got 3, 3 .*, 2"),
    ],
)
def test_arguments_that_contradict_are_refused(words: str, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        parse(words.split())


@pytest.mark.parametrize("words", ["-n 0 a.py", "-n x a.py", "--threads 0 a.py", "--what a.py"])
def test_words_of_the_wrong_kind_are_refused(
    words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit, match="2"):
        parse(words.split())
    assert "usage: python -m headrace run -n N" in capsys.readouterr().err


def test_the_command_and_the_environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(command, "tolerates_faults", lambda mpirun: True)
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    monkeypatch.setattr("os.sched_getaffinity", lambda pid: set(range(12)))
    options = parse(["-n", "4", "--ps", "1", "train.py", "x"])
    words = command.command_line(options, "/mpirun")
    assert words[:4] == ["/mpirun", "-n", "4", "--tag-output"]
    assert words[-3:] == [sys.executable, "train.py", "x"]
    assert "--bind-to none" in " ".join(words)
    assert "--with-ft ulfm" in " ".join(words)
    assert "-x" not in words
    found = command.environment(options, "token", 2)
    assert found["HEADRACE_JOBS"] == "ps=1,worker=3"
    assert (found["HEADRACE_RESTARTS"], found["OMP_NUM_THREADS"]) == ("2", "3")
    assert found["OMPI_MCA_mpi_yield_when_idle"] == "1"

    # On several hosts the ranks of one share its cores, and variables travel by name.
    hosts = tmp_path / "hosts"
    hosts.write_text("a slots=2\n# b slots=9\nc slots=2 max_slots=4\n")
    options = parse(f"-n 4 --hostfile {hosts} --bind cores --no-tolerance t.py".split())
    words = command.command_line(options, "/mpirun")
    assert command.slots(options) == {"a": 2, "c": 2}
    assert "slot:PE=6:OVERSUBSCRIBE --bind-to core" in " ".join(words)
    assert "--with-ft" not in words
    assert words[words.index("HEADRACE_LAUNCH") - 1] == "-x"


def test_a_missing_launcher_is_one_error(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    monkeypatch.setattr("shutil.which", lambda *args, **kwargs: None)
    assert headrace_main(["run", "-n", "2", "train.py"]) == 2
    err = capsys.readouterr().err
    assert err.startswith("there is no mpirun, which starts the ranks: pip install ")
    assert len(err.splitlines()) == 1
    other = tmp_path / "mpirun"
    other.write_text("#!/bin/sh\necho HYDRA build details\n")
    other.chmod(0o755)
    monkeypatch.setattr("shutil.which", lambda *args, **kwargs: str(other))
    with pytest.raises(ClusterError, match=r"is not the launcher of Open MPI \(it says \[.HYDRA"):
        command.find_mpirun()
    with pytest.raises(ClusterError, match="cannot read the file of hosts /none: No such file"):
        command.slots(parse(["-n", "2", "--hostfile", "/none", "t.py"]))


def test_programs_and_models_share_a_word(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    asked: list[list[str]] = []
    monkeypatch.setattr(main, "main", lambda words: asked.append(words) or 5)
    for words in (["-n", "2", "x"], ["train.py"], ["-m", "trainer"], ["--ps", "1", "a/b.py", "-q"]):
        assert headrace_main(["run", *words]) == 5
        assert asked.pop() == words
    assert headrace_main(["launch", "train.py"]) == 5
    asked.clear()
    assert headrace_main(["run", str(tmp_path / "model")]) == 2
    assert "the folder does not exist" in capsys.readouterr().err
    assert not asked


def test_lines_get_the_task_in_front() -> None:
    note = f"{MARK}token "
    source = (
        f"[1,0]<stderr>: {note}here\n[1,1]<stderr>: {note}here\n"
        f"[1,1]<stdout>: {note}plays worker:0\n"
        f"[1,1]<stderr>: {note}uses /dev/shm/sm_segment.h.0.1.1\n[1,1]<stderr>: {note}uses /x\n"
        "mpirun says\n"
        "[1,0]<stdout>: without an end[1,1]<stdout>: bar 1\rbar 2\r\n"
        "[1,1]<stdout>: \n"
        f"[1,2]<stdout>: {'-' * 74}\n[1,2]<stdout>: MPI_ABORT was invoked\n[1,2]<stdout>: more\n"
        f"[1,2]<stdout>: {'-' * 74}\n[1,2]<stdout>: {'-' * 74}\n[1,2]<stdout>: of the program\n"
        f"[1,1]<stdout>: \0\n[1,1]<stdout>: \0printed {note}left 3\n"
        f"[1,0]<stdout>: {note}left 0\n"
        "[1,2]<stdout>: the end"
    )
    sink = io.StringIO()
    status = JobStatus(3, ["ps:0"])
    relay = Relay(io.BytesIO(source.encode()), sink, status, "token", tagged=True)
    relay.finish(10)
    assert sink.getvalue().splitlines() == [
        "[worker:0] bar 2",
        "[worker:0] ",
        f"[rank 2] {'-' * 74}",
        "[rank 2] of the program",
        "[worker:0] printed ",
        "[ps:0] without an end",
        "[rank 2] the end",
    ]
    assert relay.notes == ["mpirun says"]
    assert status.left == {1: 3, 0: 0}
    assert (status.failure, status.lost) == (3, [])
    assert status.segments == {"/dev/shm/sm_segment.h.0.1.1"}


KILLED = "prterun noticed that process rank 1 with PID 7 on node vm exited on\nsignal 9 (Killed)."


@pytest.mark.parametrize(
    ("left", "code", "caught", "notes", "expected"),
    [
        ({0: 0, 1: 0, 2: 0}, 0, [], "", Outcome(0, 3)),
        # What a rank says comes before the code of mpirun, which may be 0.
        ({0: 0, 1: 4}, 0, [], "", Outcome(4, 3)),
        ({0: 0, 2: 0}, 0, [], "", Outcome(LOST, 3, ("rank 1",))),
        # Those that were done may end by another code, having waited for it in vain.
        ({0: 0, 2: 0}, 1, [], "", Outcome(LOST, 3, ("rank 1",))),
        ({0: LOST, 2: LOST}, 0, [], "", Outcome(LOST, 3, ("rank 1",))),
        ({0: 0, 1: 75, 2: 0}, 75, [], "", Outcome(LOST, 3)),
        ({}, 137, [], KILLED, Outcome(LOST, 3, ("rank 1",))),
        ({}, 3, [], "", Outcome(3, 3)),
        ({}, -11, [], "", Outcome(LOST, 3, ("rank 0", "rank 1", "rank 2"))),
        ({}, 1, [15], "", Outcome(143, 3, interrupted=True)),
        ({0: 70}, 70, [], "", Outcome(70, 3)),
    ],
    ids=range(11),
)
def test_exit_codes(
    left: dict[int, int], code: int, caught: list[int], notes: str, expected: Outcome
) -> None:
    status = JobStatus(3)
    status.here.update(range(3))
    status.left.update(left)
    assert start._judge(status, code, caught, notes) == expected


def test_restarts(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    sizes: list[tuple[int, int]] = []

    def run_once(options: LaunchOptions, restarts: int = 0) -> Outcome:
        sizes.append((options.size, restarts))
        return outcomes.pop(0)

    monkeypatch.setattr(main, "run_once", run_once)
    options = parse(["-n", "4", "--ps", "1", "--max-restarts", "2", "--min-workers", "2", "t.py"])
    lost, missing = Outcome(LOST, 4, ("worker:1",)), Outcome(70, 2)
    for ends, code, expected in (
        ([Outcome(0, 4)], 0, [4]),
        # A mistake of the program would come again.
        ([Outcome(1, 4)], 1, [4]),
        ([lost, Outcome(0, 4)], 0, [4, 4]),
        ([lost, lost, lost], LOST, [4, 4, 4]),
        # Two ranks did not come: go on with as few workers as are allowed.
        ([missing, Outcome(0, 3)], 0, [4, 3]),
        ([Outcome(143, 4, interrupted=True)], 143, [4]),
    ):
        outcomes = list(ends)
        sizes.clear()
        assert main.run(options) == code
        assert sizes == [(size, number) for number, size in enumerate(expected)]
    err = capsys.readouterr().err
    assert (
        "headrace: the job lost worker:1: start 1 of 2 anew, on 4 ranks (ps: 1, worker: 3)\n" in err
    )
    assert "the job lost worker:1; the job ended with exit code 75 after 2 restarts\n" in err


def test_the_size_follows_the_file_of_hosts(tmp_path: Path) -> None:
    hosts = tmp_path / "hosts"
    options = parse(f"-n 4 --ps 1 --min-workers 1 --max-workers 5 --hostfile {hosts} t.py".split())
    lost = Outcome(LOST, 4, ("worker:1",))
    for text, workers in (("a slots=2\nb", 2), ("a slots=9", 5), ("a", 1), ("a slots=4", 3)):
        hosts.write_text(text)
        assert main._workers(options, lost) == workers


def test_jobs_from_the_launcher() -> None:
    assert launched("", 3) is None
    assert launched("ps=1,worker=2", 3) == Jobs((("ps", 1), ("worker", 2)))
    with pytest.raises(ClusterError, match="HEADRACE_JOBS must name jobs as in ps=1,worker=3"):
        launched("ps", 3)


def test_a_launcher_that_does_not_end_is_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(start, "_END_S", 0.3)
    status = JobStatus(2)
    with subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"]) as job:
        status.left[0] = LOST
        start._await(job, [], status, "")
    assert job.returncode == -signal.SIGKILL


def test_a_launcher_is_asked_to_end_where_a_rank_failed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(start, "_ALONE_S", 0.1)
    status = JobStatus(2)
    with subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"]) as job:
        status.left[0] = 1
        start._await(job, [], status, "")
    assert job.returncode == -signal.SIGTERM


@pytest.mark.parametrize(("saves_s", "least", "most"), [(1.2, 1.0, 10.0), (60.0, 1.7, 10.0)])
def test_ranks_that_still_save_are_waited_for_up_to_a_deadline(
    monkeypatch: pytest.MonkeyPatch, saves_s: float, least: float, most: float
) -> None:
    monkeypatch.setattr(start, "_END_S", 0.5)
    monkeypatch.setattr(start, "SAVING_S", 1.5)
    status = JobStatus(2)
    status.left[0] = LOST
    over = threading.Event()

    def save() -> None:
        end = time.monotonic() + saves_s
        while time.monotonic() < end and not over.wait(0.05):
            status.hear(1, "saves")

    saver = threading.Thread(target=save)
    with subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"]) as job:
        began = time.monotonic()
        saver.start()
        start._await(job, [], status, "")
        took = time.monotonic() - began
    over.set()
    saver.join()
    assert job.returncode == -signal.SIGKILL
    assert least <= took < most


def test_a_launcher_whose_ranks_are_gone_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(start, "_ALONE_S", 0.1)
    mark = "HEADRACE_TEST_MARK=alone"
    name, value = mark.split("=")
    status = JobStatus(2)
    status.left[0] = LOST
    environ = {**os.environ, name: value}
    sleep = [sys.executable, "-c", "import time; time.sleep(60)"]
    began = time.monotonic()
    with subprocess.Popen(sleep, env=environ) as job:
        with subprocess.Popen(sleep, env=environ) as rank:
            # While a rank lives, the launcher has more time.
            threading.Timer(0.8, rank.kill).start()
            start._await(job, [], status, mark)
        took = time.monotonic() - began
    assert job.returncode == -signal.SIGKILL
    assert 0.8 <= took < start._END_S
