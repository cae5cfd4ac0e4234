"""The suite: its cases are whole, a lost fusion is seen, and the page tells what was measured."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from benchmarks.controller import Outcome, Run, RunSettings
from benchmarks.participant import Sample
from benchmarks.suite import counts, page
from benchmarks.suite.case import Case, checksum
from benchmarks.suite.cases import all_cases
from benchmarks.suite.counts import Counts
from benchmarks.suite.running import CaseRun, workload
from benchmarks.workload import all_workloads
from headrace.extend.devices import MachineLimits

TABLE = counts.read(counts.TABLE.read_text(encoding="utf-8"))
LIMITS = MachineLimits(bytes_per_second=10e9, flops_per_second=100e9)


def test_suite_is_broad_and_its_names_are_no_others() -> None:
    assert len(all_cases()) >= 30
    assert not set(all_cases()) & set(all_workloads())


@pytest.mark.parametrize("name", counts.counted())
@pytest.mark.needs("autodiff", "backend-cpu", "train")
def test_no_case_needs_more_than_the_table_says(name: str) -> None:
    assert not counts.worse(name, TABLE.get(name), counts.count(all_cases()[name]))


def test_table_has_the_cases_and_no_others() -> None:
    assert list(TABLE) == counts.counted()
    assert counts.read(counts.write(TABLE)) == TABLE


@pytest.mark.parametrize(
    ("now", "said"),
    [
        (Counts(3, 2, 1000), ""),
        (Counts(2, 1, 500), ""),
        (Counts(3, 2, 1020), ""),
        (Counts(4, 2, 1000), "4 kernels, was 3: see"),
        (Counts(3, 3, 1000), "3 operations outside of kernels, was 2: see"),
        (Counts(4, 2, 1021), "4 kernels, was 3; 1021 bytes, was 1000: see"),
    ],
)
def test_more_kernels_operations_or_bytes_are_named(now: Counts, said: str) -> None:
    assert said in counts.worse("some", Counts(3, 2, 1000), now)
    assert bool(said) == bool(counts.worse("some", Counts(3, 2, 1000), now))


def test_case_without_a_row_is_told_how_to_get_one() -> None:
    assert "not in the table; renew" in counts.worse("new", None, Counts(1, 0, 0))


@pytest.mark.needs("autodiff", "backend-cpu", "train")
def test_a_lost_fusion_is_seen() -> None:
    fused = Case(
        "formula",
        "a formula",
        lambda tf, p, x: tf.tanh(x["x"] * 2.0 + 1.0) * x["x"],
        batch=lambda rng: {"x": rng.standard_normal(1 << 16).astype(np.float32)},
    )
    # What waits for an operation that is fused with nothing is a kernel of its own.
    parted = Case(
        "formula",
        "a formula",
        lambda tf, p, x: tf.tanh(tf.cumsum(x["x"] * 2.0) + 1.0) * x["x"],
        batch=fused.batch,
    )
    assert not counts.worse("formula", counts.count(fused), counts.count(fused))
    assert "bytes" in counts.worse("formula", counts.count(fused), counts.count(parted))


def test_checksum_takes_all_results() -> None:
    assert checksum((np.array([-1, 3]), np.array(5.0))) == 7.0
    assert checksum(np.array([True, False])) == 0.5


def _run(seconds: Sequence[float | None], loss: Sequence[float] = (1.0,) * 5) -> CaseRun:
    case = all_cases()["layer-norm"]
    outcomes = []
    for entry, time, value in zip(workload(case).entries, seconds, loss, strict=False):
        outcome = Outcome(entry, "1.0", loss=value)
        if time is None:
            outcome.trouble, outcome.loss = "failed: no such engine", None
        else:
            outcome.samples = [Sample(time, 0), Sample(time * 2, 0), Sample(time, 0)]
        outcomes.append(outcome)
    costs = {"bytes": 10_000_000, "flops": 1000, "slowest": "fused_0: Mul", "share": 0.75}
    return CaseRun(case, Run(outcomes, 0.0), costs)


def test_page_has_the_worst_ratio_first_and_says_what_bounds() -> None:
    runs = [_run([0.001, 0.002, 0.004, 0.005, 0.006]), _run([0.03, 0.02, 0.04, 0.01, 0.06])]
    text = page.render(runs, RunSettings(rounds=3), LIMITS, "Some machine").splitlines()
    rows = [line for line in text if line.startswith("| `layer-norm`")]
    assert "| 30 | tensorflow, Session.run | 10 | 3 | 3% | 75% in fused_0: Mul |" in rows[0]
    assert "| 1 | torch, eager | 2 | 0.5 | 100% | memory; 75% in fused_0: Mul |" in rows[1]
    assert "2 workloads: geometric mean 1.22, 1 at or below 0.9, 1 above 1.1." in text
    assert page.succeeded(runs)


def test_page_names_who_fails_or_computes_something_else() -> None:
    failed = _run([0.001, None, 0.002, 0.003, 0.004])
    odd = _run([0.001, 0.002, 0.003, 0.004, 0.005], [1.0, 1.0, 1.0, 1.5, 1.0])
    text = page.render([failed, odd], RunSettings(), LIMITS, "Some machine")
    assert "- `layer-norm`: torch, eager failed: no such engine" in text
    assert "disagree** by more than 0.001: tensorflow, Session.run" in text
    assert page.succeeded([failed])
    assert not page.succeeded([odd])
    assert not page.succeeded([_run([None, 0.002, 0.003, 0.004, 0.005])])


@pytest.mark.parametrize(
    ("seconds", "said"),
    [
        ([0.001, 0.002, 0.004], "layer-norm: 0.5 of the best: 1 ms, torch, eager 2 ms"),
        ([0.001], "layer-norm: headrace 1 ms, and no peer has figures"),
        ([None, 0.002], "layer-norm: headrace has no figures"),
    ],
)
def test_each_case_is_told_as_soon_as_it_was_run(
    seconds: Sequence[float | None], said: str
) -> None:
    assert page.said(page.line(_run(seconds))) == said


def test_page_without_peers_has_no_ratio() -> None:
    text = page.render([_run([0.001])], RunSettings(), LIMITS, "Some machine")
    assert "No workload has figures of Headrace and of a peer." in text
