"""The examples run and learn: on MNIST where it is there, on the digits everywhere."""

from __future__ import annotations

import importlib
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import headrace as hr
from tests.children import run_python

pytestmark = [pytest.mark.needs("backend-cpu"), pytest.mark.usefixtures("no_races")]

EXAMPLES = Path(__file__).parents[2] / "examples"


def run(
    name: str, *arguments: str, timeout_s: float = 50.0, cwd: Path | None = None
) -> subprocess.CompletedProcess[str]:
    return run_python(
        "-W", "error", EXAMPLES / name, *arguments, cwd=cwd, timeout_s=timeout_s, check=False
    )


@pytest.fixture
def demo(monkeypatch: pytest.MonkeyPatch) -> Any:
    """The module of the demo."""
    monkeypatch.syspath_prepend(str(EXAMPLES))
    for name in ("demo", "models"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    return importlib.import_module("demo")


@pytest.mark.slow
@pytest.mark.skipif(not os.environ.get("HEADRACE_DATA"), reason="HEADRACE_DATA is not set")
def test_softmax_on_mnist() -> None:
    done = run("mnist_softmax.py")
    assert done.returncode == 0, done.stderr
    assert float(done.stdout) >= 0.91


@pytest.mark.slow
def test_convnet_goes_on_from_its_checkpoint(tmp_path: Path) -> None:
    first = run("digits_convnet.py", "--steps=60", cwd=tmp_path)
    assert first.returncode == 0, first.stderr
    assert "conv net 60/60 (100%)" in first.stderr
    assert first.stdout.splitlines()[-1].endswith("saved to checkpoints/digits-60")
    second = run("digits_convnet.py", "--steps=60", cwd=tmp_path)
    assert second.returncode == 0, second.stderr
    assert second.stdout.startswith("going on from checkpoints/digits-60\n")
    assert second.stdout.splitlines()[-1].endswith("saved to checkpoints/digits-120")
    accuracy = float(second.stdout.split("test accuracy ")[1].split(",")[0])
    assert accuracy > 0.9


@pytest.mark.parametrize(("index", "least"), [(0, 0.93), (1, 0.97)])
def test_models_of_the_demo(
    index: int, least: float, demo: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    run = demo.RUNS[index]
    assert run.least_accuracy == least
    demo.train(run)
    accuracy = float(capsys.readouterr().out.split("test accuracy ")[1].split(",")[0])
    assert accuracy >= least


def test_the_demo_fails_when_a_model_learns_too_little(demo: Any) -> None:
    run = demo.shortened(demo.RUNS[0], 1)._replace(least_accuracy=0.99)
    with pytest.raises(SystemExit, match=r"softmax regression is 0\.\d+, expected at least 0\.99"):
        demo.train(run)


def test_the_demo_fails_when_restoring_changes_the_accuracy(
    demo: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(hr.train.Saver, "restore", lambda *_: None)
    with pytest.raises(
        SystemExit, match=r"was saved with accuracy 0\.\d+ and restored with 0\.\d+"
    ):
        demo.train(demo.shortened(demo.RUNS[0], 50))


def test_the_demo_says_that_mpirun_is_missing(demo: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(demo.shutil, "which", lambda *_, **__: None)
    with pytest.raises(SystemExit, match="there is no mpirun; install one with: pip install"):
        demo.run_on_ranks(1)


@pytest.mark.slow
@pytest.mark.needs("dist-mpi", "mpi")
def test_the_whole_demo_shortened() -> None:
    done = run("demo.py", "--steps=10")
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert lines[0] == "In one process:"
    assert lines[3] == "On two MPI ranks, a parameter server and a worker:"
    # Both train the same model on the same batches.
    assert lines[1] == lines[4]
    assert lines[2] == lines[5]
    assert lines[6].startswith("All done in ")


@pytest.mark.needs("dist-mpi", "mpi")
def test_the_demo_fails_when_a_rank_fails(demo: Any, tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text("raise SystemExit(3)\n")
    demo.__file__ = str(program)
    with pytest.raises(SystemExit, match="demo: the ranks ended with exit code 3"):
        demo.run_on_ranks(None)


@pytest.mark.needs("dist-mpi", "mpi")
def test_the_demo_ends_ranks_that_hang(
    demo: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = tmp_path / "program.py"
    program.write_text("import time\ntime.sleep(100)\n")
    demo.__file__ = str(program)
    monkeypatch.setattr(demo, "MPI_TIMEOUT_S", 3)
    with pytest.raises(SystemExit, match="demo: the ranks did not finish within 3 s"):
        demo.run_on_ranks(None)
