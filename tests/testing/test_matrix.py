"""The conformance matrix: runs are counted, kept in files, and told in one table."""

from __future__ import annotations

from pathlib import Path

import pytest

from headrace_testing.matrix.__main__ import main
from headrace_testing.matrix.run import FamilyResult, RunResult, read, run
from headrace_testing.matrix.table import failed, page, table


def test_samples_of_a_family_run_and_are_counted() -> None:
    pytest.importorskip("headrace_cpu")
    result = run("cpu", "plain", families=["unique"])
    assert result is not None
    (found,) = result.families.values()
    assert found.passed > 20
    assert not found.failed


def test_kernels_that_a_backend_lacks_are_refused_with_a_reason() -> None:
    pytest.importorskip("headrace_cuda")
    result = run("cuda, pretended", "plain", families=["text"])
    assert result is not None
    found = result.families["text"]
    assert not found.failed
    assert found.refused
    assert all("has no kernel of" in reason for reason in found.refused)


@pytest.mark.needs("dist-mpi", "backend-cpu", "mpi")
def test_samples_run_on_another_rank(mpirun, tmp_path: Path) -> None:
    words = ["--backend", "cpu of another rank", "--family", "unique", "--folder", str(tmp_path)]
    done = mpirun(2, "-m", "headrace_testing.matrix", "run", *words)
    assert done.returncode == 0, done.stderr
    (file,) = tmp_path.iterdir()
    assert read(file).families["unique"].passed > 0


def runs() -> list[RunResult]:
    broken = FamilyResult(3, {"cuda:0 has no kernel of Bincount": 2}, {"Sum-forward": "9"})
    return [
        RunResult(
            "cpu", "plain", "3.11", 1.5, {"reduce": FamilyResult(4), "sort": FamilyResult(2)}
        ),
        RunResult("cpu", "compiled", "3.12", 2.5, {"reduce": FamilyResult(4)}),
        RunResult("cuda", "plain", "3.11", 0.5, {"reduce": broken}),
    ]


def test_the_table_adds_up_what_came_of_each_backend() -> None:
    assert table(runs()) == [
        "| family | cpu | cuda |",
        "|---|---|---|",
        "| reduce | 8 | 3, 2 refused, **1 failed** |",
        "| sort | 2 | – |",
        "| **all** | 10 | 3, 2 refused, **1 failed** |",
    ]


def test_the_page_tells_of_runs_reasons_and_failures() -> None:
    told = page(runs())
    assert "| cpu | compiled | 3.12 | 4 | 0 | 0 | 2.5 |" in told
    assert "| cuda | cuda:0 has no kernel of Bincount | 2 |" in told
    assert "cuda, plain, Python 3.11, Sum-forward: 9" in told
    assert "What failed" not in page(runs()[:2])


def test_results_are_kept_in_files(tmp_path: Path) -> None:
    for made in runs():
        assert read(made.write(tmp_path)) == made
    assert len(list(tmp_path.iterdir())) == 3


def test_the_exit_code_says_whether_anything_failed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for made in runs()[:2]:
        made.write(tmp_path / "good")
    made = runs()[2]
    made.write(tmp_path / "bad")
    told = tmp_path / "page.md"
    assert main(["table", "--folder", str(tmp_path / "good"), "--write", str(told)]) == 0
    assert told.read_text() == page([read(f) for f in sorted((tmp_path / "good").iterdir())])
    assert main(["table", "--folder", str(tmp_path / "bad")]) == 1
    assert main(["table", "--folder", str(tmp_path / "none")]) == 2
    assert "there are no results" in capsys.readouterr().out
    assert failed([made]) == ["cuda, plain, Python 3.11, Sum-forward: 9"]


def test_a_device_that_is_not_there_is_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HEADRACE_EXECUTOR", "plan")
    monkeypatch.setenv("HEADRACE_ONEDNN", "")
    words = ["--folder", str(tmp_path)]
    assert main(["run", "--backend", "warp", "--executor", "compiled", *words]) == 2
    assert "warp: not run, no plugin provides devices of the kind 'warp'" in capsys.readouterr().out
    assert main(["run", "--executor", "fast", *words]) == 2
    assert "--executor must be one of plain, compiled, " in capsys.readouterr().out
