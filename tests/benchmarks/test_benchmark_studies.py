"""The studies: what counts as drift, and the points of growth."""

from __future__ import annotations

import json
import math
import shutil
import subprocess
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import headrace as hr
from benchmarks.collectives.program import HEADRACE, OPEN_MPI, SIZES
from benchmarks.controller import Outcome, Run, RunSettings
from benchmarks.participant import Request, Sample
from benchmarks.ps_train.sizes import CLASSES, FULL, SAMPLES, words
from benchmarks.records import program
from benchmarks.records.headrace import build
from benchmarks.serving import network
from benchmarks.serving.client import load
from benchmarks.studies import collectives, growth, null_step, points, ps_train, records, shards
from benchmarks.studies.drift import ALLOWED_BYTES, Look, drifts
from benchmarks.studies.points import Cost, Point, PointError, measure
from benchmarks.workload import Entry, Workload
from tests.children import run_program

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
def test_an_update_of_rows_is_measured() -> None:
    cost = measure(Point("headrace", "Session.run", "FtrlOptimizer", 2000, 1), 50.0)
    assert cost.step_s > 0


@pytest.mark.needs("autodiff", "backend-cpu", "train")
def test_point_is_measured_in_a_process_of_its_own() -> None:
    pytest.importorskip("headrace_train")
    cost = measure(Point("headrace", "plain executor", "nodes", 30, 1), 50.0)
    assert cost.nodes == pytest.approx(30, abs=3)
    assert min(cost.build_s, cost.first_s, cost.step_s, cost.memory_bytes) > 0


# A job of two ranks that adds up 100 MB.
@pytest.mark.slow
@pytest.mark.needs("backend-cpu", "dist-mpi", "mpi")
def test_sums_over_ranks_are_measured() -> None:
    mpirun = shutil.which("mpirun", path=str(Path(sys.executable).parent)) or "mpirun"
    found = collectives.measure(mpirun, "sums", 2, 1, 1)
    for name in (HEADRACE, OPEN_MPI):
        assert [int(nbytes) for nbytes in found[name]] == list(SIZES)
        assert all(seconds > 0 for seconds in found[name].values())


@pytest.mark.needs("backend-cpu", "serve")
@pytest.mark.parametrize(("factor", "wrong"), [(1.0, 0), (1.5, 32)])
def test_every_answer_of_a_server_is_checked(factor: float, wrong: int) -> None:
    x = hr.placeholder(hr.float32, [None, network.INPUTS])
    w1, b1, w2, b2 = network.weights()
    logits = hr.matmul(hr.nn.relu(hr.matmul(x, w1) + b1), w2 * factor) + b2
    with hr.Session() as session:
        signature = hr.serve.signature_of(session, {"x": x}, {"logits": logits})
        with hr.serve.Server({"m": signature}, port=0) as server:
            found = load(server.port, requests=32, rows=2, clients=4)
    assert found.wrong == wrong
    assert 0 < found.median_s <= found.p99_s
    assert found.requests_s > 0


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
    done = run_program(script, cwd=root)
    looks = json.loads(done.stdout.splitlines()[-1])
    assert [look["nodes"] for look in looks] == [looks[0]["nodes"]] * 2
    assert looks[0]["resident"] > 0


@pytest.mark.needs("autodiff", "backend-cpu", "io", "train")
@pytest.mark.parametrize("way", [program.FEEDS, program.RECORDS])
def test_training_on_records_and_feeds(way: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(program, "EXAMPLES", 1500)
    monkeypatch.setattr(program, "STEPS", {"softmax": 20})
    stops: list[Callable[[], None]] = []
    monkeypatch.setattr(
        program.atexit, "register", lambda *call, **named: stops.append(partial(*call, **named))
    )
    with hr.Graph().as_default():
        participant = build(Request("headrace", way, 1, "records_softmax"))
        assert participant.round().seconds > 0
    for stop in reversed(stops):
        stop()


def test_records_are_compared_with_feeds(monkeypatch: pytest.MonkeyPatch) -> None:
    def measured(workload: Workload, *_: Any) -> Run:
        def outcome(entry: Entry) -> Outcome:
            seconds = 9e-4 if entry.variant == program.FEEDS else 1e-3
            return Outcome(entry, "1.0", [Sample(seconds, 0)])

        return Run([outcome(entry) for entry in workload.entries], 0.5)

    monkeypatch.setattr(records, "run_workload", measured)
    result = records.run(RunSettings(), print)
    assert result.succeeded
    assert "| softmax | headrace 1.0 | 900 | 1000 | 0.9 |" in result.lines
    assert "other programs took 50%" in result.lines[-1]


# Two ranks that start, and import everything.
@pytest.mark.slow
@pytest.mark.needs("mpi", "backend-cpu")
def test_null_steps_are_measured() -> None:
    found = null_step.measure("headrace", "4 B", 1, 0.2)
    assert 0 < found.best_s <= found.step_s
    assert found.steps_s == pytest.approx(1 / found.step_s)
    assert (found.slowest, found.cpu_s > 0) == (1.0, True)
    assert found.threads <= null_step.MOST_THREADS


@pytest.mark.slow
@pytest.mark.needs("mpi", "backend-cpu")
def test_null_steps_take_from_all_servers() -> None:
    found = null_step.measure("headrace", "32 of 10^6 rows", 1, 0.2, servers=2)
    assert 0 < found.best_s <= found.step_s
    assert found.threads <= null_step.MOST_THREADS


def test_what_null_steps_measure() -> None:
    jobs = list(null_step.jobs())
    assert len(set(jobs)) == len(jobs)
    assert ("1 GB", 1, 1) in jobs
    assert ("1 GB", 1, 2) not in jobs
    assert {("4 B", 1, 16), ("4 B", 4, 1), ("32 of 10^6 rows", 1, 16)} <= set(jobs)


# Three ranks that start, and a kernel of each product.
@pytest.mark.slow
@pytest.mark.needs("mpi", "backend-cpu", "autodiff", "train")
@pytest.mark.parametrize("kind", [FULL, SAMPLES])
def test_language_models_on_servers_are_measured(kind: str) -> None:
    found = ps_train.measure("headrace", kind, 2, 1, 0.5)
    assert 0 < found.best_s <= found.step_s
    # It begins with equal chances, and frequent words are learnt soon.
    assert 3.0 < found.result < math.log(CLASSES)


def test_words_are_frequent_or_rare() -> None:
    drawn = words(np.random.default_rng(1))
    assert drawn.dtype == np.int64
    assert drawn.min() >= 0
    assert drawn.max() < CLASSES
    assert np.median(drawn) < CLASSES / 50


# A job of two ranks that trains two networks, one of them with a million parameters.
@pytest.mark.slow
@pytest.mark.needs("mpi", "backend-cpu", "train")
def test_networks_on_a_server_are_measured() -> None:
    mpirun = shutil.which("mpirun", path=str(Path(sys.executable).parent)) or shutil.which("mpirun")
    assert mpirun is not None
    found, servers = shards.measure(mpirun, "network", 2, 1)
    assert found.keys() == {str(batch) for batch in shards.LAYERS}
    assert all(one["seconds"] > 0 and one["cpu"] > 0 for one in found.values())
    assert len(servers) == 1


def test_a_table_of_16_times_the_rows_may_not_cost_more_than_allowed() -> None:
    large = shards.ROWS[1]
    times = {f"{way} {rows}": 1e-3 for way in shards.STRATEGIES for rows in shards.ROWS}
    assert shards._lookups(times)[1]
    times[f"div {large}"] = 1.3e-3
    lines, good = shards._lookups(times)
    assert not good
    assert lines[-1] == "| div | 1000 | 1300 | 1.30 |"


def test_a_suggestion_may_be_one_off() -> None:
    seconds = {str(count): 1.0 + count for count in range(1, 5)}
    found = {str(rows): {"seconds": seconds, "suggested": 2} for rows in shards.WHOLE}
    assert shards._whole(found)[1]
    found[str(shards.WHOLE[0])]["suggested"] = 3
    assert not shards._whole(found)[1]
