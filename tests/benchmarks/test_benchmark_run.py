"""Runs with real processes: rounds in turn, and participants that fail leave the others be."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from benchmarks import cli, studies
from benchmarks.controller import Outcome, RunSettings, run_workload
from benchmarks.peers import NOT_INSTALLED, PEERS, Peer
from benchmarks.process import environment
from benchmarks.report import replace_section
from benchmarks.workload import Entry, Workload, all_workloads

QUICK = RunSettings(rounds=3, settle_s=0.0, timeout_s=30.0)

GOOD = """
import os, sys
from benchmarks.participant import StepLoop

def build(request):
    print("libraries may print as they like")
    sys.stdout.flush()
    count = [0]
    def step(amount):
        count[0] += amount
    return StepLoop(step, [(2,)] * 10, final_loss=lambda: float(count[0]), lead_in=5)
"""

RAISES = """
def build(request):
    raise RuntimeError("no such engine\\nsecond line")
"""

ENDS = """
import os, sys
from benchmarks.participant import StepLoop

def build(request):
    calls = []
    def step():
        calls.append(None)
        if len(calls) > 2:
            sys.stderr.write("the engine is on fire\\n")
            sys.stderr.flush()
            os._exit(3)
    return StepLoop(step, [()], lead_in=0)
"""

LACKS = """
from benchmarks.participant import UnavailableError

def build(request):
    raise UnavailableError("it needs an engine")
"""

HANGS = """
import time

def build(request):
    time.sleep(60)
"""

ENVIRONMENT = """
import os
from benchmarks.participant import StepLoop

def build(request):
    cpus = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else 1
    assert cpus <= request.threads, cpus
    assert os.environ["OMP_NUM_THREADS"] == str(request.threads)
    return StepLoop(lambda: None, [()])
"""


@pytest.fixture
def toys(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the folder of a package whose modules are participants."""
    folder = tmp_path / "toys"
    folder.mkdir()
    (folder / "__init__.py").touch()
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    return folder


def run(folder: Path, settings: RunSettings = QUICK, **modules: str) -> dict[str, Outcome]:
    """Run a workload of the given modules, and return the outcomes by module."""
    for name, source in modules.items():
        (folder / f"{name}.py").write_text(source)
    entries = tuple(Entry("numpy", name, module=name) for name in modules)
    workload = Workload("toy", "toys", "Time of one turn", entries, "us")
    outcomes = run_workload(workload, settings, lambda line: None).outcomes
    return {outcome.entry.module: outcome for outcome in outcomes}


def test_rounds_are_counted_and_state_goes_on(toys: Path) -> None:
    good = run(toys, good=GOOD)["good"]
    assert len(good.samples) == QUICK.rounds
    assert all(sample.seconds > 0 and sample.memory_bytes > 0 for sample in good.samples)
    # One round that does not count before three that do, each of 15 steps.
    assert good.loss == 4 * 15 * 2
    assert good.version == PEERS["numpy"].version() != ""


def test_participants_that_fail_are_reported_and_others_go_on(toys: Path) -> None:
    outcomes = run(toys, raises=RAISES, ends=ENDS, good=GOOD)
    assert outcomes["raises"].trouble == "failed: RuntimeError: no such engine"
    ended = "failed: ended with exit code 3: the engine is on fire"
    assert outcomes["ends"].trouble == ended
    assert outcomes["ends"].samples == []
    assert outcomes["good"].trouble == ""
    assert len(outcomes["good"].samples) == QUICK.rounds


def test_participant_that_lacks_something_is_absent_and_not_failed(toys: Path) -> None:
    outcome = run(toys, lacks=LACKS)["lacks"]
    assert (outcome.trouble, outcome.absent) == ("not available: it needs an engine", True)


def test_workload_limits_its_rounds(toys: Path) -> None:
    (toys / "good.py").write_text(GOOD)
    entries = (Entry("numpy", module="good"),)
    workload = Workload("toy", "toys", "Time of one turn", entries, "us", rounds=2)
    (outcome,) = run_workload(workload, QUICK, lambda line: None).outcomes
    assert len(outcome.samples) == 2


def test_participants_may_lie_in_another_package(toys: Path) -> None:
    (toys / "good.py").write_text(GOOD)
    entries = (Entry("numpy", module="good"),)
    turn = "Time of one turn"
    workload = Workload("toy", "elsewhere", turn, entries, "us", participants="toys")
    (outcome,) = run_workload(workload, QUICK, lambda line: None).outcomes
    assert outcome.trouble == ""


def test_memory_of_steps_is_counted_without_that_of_building(toys: Path) -> None:
    source = (
        "from benchmarks.participant import StepLoop\n"
        "def build(request):\n"
        "    large = b'1' * 300_000_000\n"
        "    large = large[:1]\n"
        "    return StepLoop(lambda: bytes(b'1' * 60_000_000), [()], lead_in=0)\n"
    )
    (sample, *_) = run(toys, hungry=source)["hungry"].samples
    assert sample.step_bytes is not None
    assert sample.memory_bytes > 290_000_000
    assert 50_000_000 < sample.step_bytes < 200_000_000


def test_participant_without_a_module_is_reported(toys: Path) -> None:
    workload = Workload("toy", "toys", "Time of one turn", (Entry("numpy"),), "us")
    (outcome,) = run_workload(workload, QUICK, lambda line: None).outcomes
    assert outcome.trouble == "failed: ModuleNotFoundError: No module named 'toys.numpy'"


def test_participant_that_hangs_is_ended(toys: Path) -> None:
    settings = RunSettings(rounds=1, settle_s=0.0, timeout_s=1.0)
    trouble = run(toys, settings, hangs=HANGS)["hangs"].trouble
    assert trouble == "failed: no answer to 'build' within 1 s"


def test_threads_are_set_before_libraries_load(toys: Path) -> None:
    settings = RunSettings(rounds=1, threads=1, settle_s=0.0, timeout_s=30.0)
    assert run(toys, settings, environment=ENVIRONMENT)["environment"].trouble == ""


def test_absent_peer_is_shown_and_not_started(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(PEERS, "absent", Peer("absent", ("no_such_library",), ()))
    workload = Workload("toy", "toys", "Time of one turn", (Entry("absent"),), "us")
    (outcome,) = run_workload(workload, QUICK, lambda line: None).outcomes
    assert (outcome.trouble, outcome.version) == (NOT_INSTALLED, "")


def test_rounds_are_interleaved(toys: Path, tmp_path: Path) -> None:
    log = tmp_path / "log"
    source = (
        "from benchmarks.participant import StepLoop\n"
        "def build(request):\n"
        "    def step():\n"
        f"        with open({str(log)!r}, 'a') as log: log.write(request.variant)\n"
        "    return StepLoop(step, [()], lead_in=0)\n"
    )
    run(toys, a=source, b=source)
    # Both warm up, and then each begins a round in turn.
    assert log.read_text() == "ab" + "ab" + "ba" + "ab"


def test_every_workload_has_its_modules_and_its_section() -> None:
    root = Path(cli.__file__).parents[1]
    document = (root / "docs" / "benchmarks.md").read_text(encoding="utf-8")
    for name in studies.NAMES:
        assert f"\n## {name}\n" in document
        assert replace_section(document, name, "x\n").count("\n## ") == document.count("\n## ")
    for name, workload in all_workloads().items():
        assert f"\n## {name}\n" in document
        assert replace_section(document, name, "x\n").count("\n## ") == document.count("\n## ")
        for entry in workload.entries:
            path = root.joinpath(*workload.module_of(entry).split(".")).with_suffix(".py")
            assert path.is_file(), path


def test_command_line_writes_sections(
    toys: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (toys / "good.py").write_text(GOOD)
    entry = Entry("numpy", module="good")
    workload = Workload("toy", "toys", "Time of one turn", (entry,), "us", loss_tolerance=1e-4)
    monkeypatch.setattr(cli, "all_workloads", lambda: {"toy": workload})
    target = tmp_path / "benchmarks.md"
    assert cli.main(["--workloads", "toy", "--rounds", "1", "--write", str(target)]) == 0
    assert "| numpy |" in capsys.readouterr().out
    assert target.read_text().startswith("# Benchmarks\n\n## toy\n\n<!-- benchmark toy: begin -->")
    (participant,) = json.loads((tmp_path / "benchmarks.json").read_text())["toy"]["participants"]
    assert participant["min"] <= participant["median"] <= participant["max"]
    assert (tmp_path / "benchmarks-ahead-narrow.svg").read_text().startswith("<svg ")


@pytest.mark.parametrize("arguments", [["--rounds", "0"], ["--workloads", "nonsense"]])
def test_command_line_refuses_nonsense(
    arguments: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit):
        cli.main(arguments)
    assert "error: argument" in capsys.readouterr().err


def test_participants_may_keep_bytecode(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONDONTWRITEBYTECODE", "1")
    told = environment(2)
    assert "PYTHONDONTWRITEBYTECODE" not in told
    assert told["OMP_NUM_THREADS"] == "2"
