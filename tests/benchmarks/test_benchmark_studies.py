"""The studies: what counts as drift, and the points of growth."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks.studies import growth, points
from benchmarks.studies.drift import ALLOWED_BYTES, Look, drifts
from benchmarks.studies.points import Cost, Point, PointError, measure

STEADY = Look(50_000_000, 3, 40, 1e-4)


@pytest.mark.parametrize(
    ("last", "grown"),
    [
        (STEADY, []),
        (Look(STEADY.resident + ALLOWED_BYTES, 3, 40, 9e-4), []),
        (Look(STEADY.resident + ALLOWED_BYTES + 1, 3, 40, 1e-4), ["memory"]),
        (Look(50_000_000, 4, 41, 1e-4), ["threads", "graph"]),
        (Look(40_000_000, 2, 39, 1e-4), []),
    ],
)
def test_drifts_names_what_grew(last: Look, grown: list[str]) -> None:
    assert drifts(STEADY, last) == grown


@pytest.mark.needs("autodiff", "backend-cpu", "train")
def test_point_is_measured_in_a_process_of_its_own() -> None:
    pytest.importorskip("headrace_train")
    cost = measure(Point("headrace", "plain executor", "nodes", 30, 1), 50.0)
    assert cost.nodes == pytest.approx(30, abs=3)
    assert min(cost.build_s, cost.first_s, cost.step_s, cost.memory_bytes) > 0


def test_failing_point_tells_its_last_line(monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(command: list[str], **_: object) -> None:
        raise subprocess.CalledProcessError(1, command, stderr="Traceback\nValueError: no\n")

    monkeypatch.setattr(points.subprocess, "run", fails)
    with pytest.raises(PointError, match="ValueError: no"):
        measure(Point("headrace", "Session.run", "nodes", 10, 1), 1.0)


def test_growth_has_a_row_for_every_point(monkeypatch: pytest.MonkeyPatch) -> None:
    cost = Cost(12, 2e9, 1e-3, 5e-3, 1e-3, 3_000_000)
    monkeypatch.setattr(growth, "measure", lambda point, timeout_s: cost)
    monkeypatch.setattr(growth.PEERS["tensorflow"].__class__, "installed", lambda self: True)
    from benchmarks.controller import RunSettings

    result = growth.run(RunSettings(), lambda line: None)
    assert result.succeeded
    assert "| batch | 16 | 12 | 1 | 5 | 1 | 2000 | 3 |" in result.lines
    named = [line for line in result.lines if line.startswith("| headrace, make_callable")]
    assert len(named) == len(growth.NODES)


def test_drift_prints_its_looks_as_json() -> None:
    pytest.importorskip("headrace_train")
    script = (
        "from benchmarks.studies import drift\n"
        "drift.SETTLED, drift.STEPS = 20, 60\n"
        "drift.main(['make_callable', '1'])\n"
    )
    root = Path(__file__).parents[2]
    done = subprocess.run(
        [sys.executable, "-c", script], cwd=root, capture_output=True, check=True, encoding="utf-8"
    )
    looks = json.loads(done.stdout.splitlines()[-1])
    assert [look["nodes"] for look in looks] == [looks[0]["nodes"]] * 2
    assert looks[0]["resident"] > 0
