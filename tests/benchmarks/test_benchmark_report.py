"""The table of a run, and the sections of the document that holds it."""

from __future__ import annotations

import dataclasses

import pytest

from benchmarks.controller import Outcome, Run, RunSettings
from benchmarks.participant import Sample
from benchmarks.peers import NOT_INSTALLED
from benchmarks.report import SectionError, loss_note, markers, render, replace_section, succeeded
from benchmarks.workload import Entry, Workload

WORKLOAD = Workload(
    name="toy",
    package="toys",
    measured="Time of one turn",
    entries=(
        Entry("headrace"),
        Entry("numpy"),
        Entry("torch", "eager"),
        Entry("jax", "jit"),
        Entry("numpy", "bare work", limit=True),
    ),
    unit="us",
    loss_tolerance=1e-4,
)

HEAD = (
    "| participant | version | median us | min | max | / best peer | / headrace | / limit "
    "| peak memory MB | final loss |"
)


def outcomes(headrace_loss: float = 0.5) -> list[Outcome]:
    """Return a run in which one peer is absent and one ended."""
    headrace, numpy, torch, jax, limit = WORKLOAD.entries
    times = [Sample(seconds, 80_000_000) for seconds in (20e-6, 40e-6, 30e-6)]
    return [
        Outcome(headrace, "1.0", times, headrace_loss),
        Outcome(numpy, "2.0", [Sample(60e-6, 90_000_000)] * 3, 0.5),
        Outcome(torch, "", trouble=NOT_INSTALLED),
        Outcome(jax, "3.0", trouble="failed: a | b"),
        Outcome(limit, "2.0", [Sample(10e-6, 70_000_000)] * 3),
    ]


def test_table_has_times_ratios_memory_and_losses() -> None:
    text = render(WORKLOAD, Run(outcomes()), RunSettings(rounds=3), "A machine")
    assert text.splitlines() == [
        "A machine.",
        "Time of one turn; 3 interleaved rounds, 2 threads.",
        "",
        HEAD,
        "| --- | --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |",
        "| headrace | 1.0 | 30 | 20 | 40 | 0.5 | 1 | 3 | 80 | 0.5 |",
        "| numpy | 2.0 | 60 | 60 | 60 | 1 | 2 | 6 | 90 | 0.5 |",
        "| torch, eager |  | not installed |  |  |  |  |  |  |  |",
        "| jax, jit | 3.0 | failed: a \\| b |  |  |  |  |  |  |  |",
        "| limit: bare work | 2.0 | 10 | 10 | 10 | 0.167 | 0.333 | 1 | 70 |  |",
        "",
        "The final losses of all 2 agree to 0.0001 (relative).",
    ]


def test_further_times_and_memory_of_steps_have_columns() -> None:
    workload = dataclasses.replace(WORKLOAD, more_times={"five": "first 5"}, loss_tolerance=None)
    samples = [Sample(1e-6, 9_000_000, 2_000_000, {"five": 5e-6})] * 3
    run = [Outcome(WORKLOAD.entries[0], "1.0", samples)]
    lines = render(workload, Run(run), RunSettings(), "A machine").splitlines()
    assert lines[3].endswith("| / headrace | first 5 us | peak memory MB | over imports MB |")
    assert lines[5].endswith("| 1 | 5 | 9 | 2 |")


def test_absent_variant_of_headrace_is_no_failure_but_its_first_row_is() -> None:
    variant = Entry("headrace", "without oneDNN")
    lacks = Outcome(variant, "1.0", trouble="not available: x", absent=True)
    assert succeeded(WORKLOAD, [*outcomes(), lacks])
    assert not succeeded(WORKLOAD, [lacks, *outcomes()])
    assert not succeeded(WORKLOAD, [*outcomes(), Outcome(variant, "1.0", trouble="failed: x")])


def test_disagreeing_loss_is_said_and_fails() -> None:
    run = outcomes(headrace_loss=0.6)
    note = "**The final losses disagree** by more than 0.0001: headrace."
    assert loss_note(WORKLOAD, run) == note
    assert not succeeded(WORKLOAD, run)
    assert succeeded(WORKLOAD, outcomes())


def test_single_loss_is_compared_with_nothing() -> None:
    assert "compared with nothing" in loss_note(WORKLOAD, outcomes()[:1])


def test_workload_without_loss_has_no_loss_column_and_no_note() -> None:
    workload = dataclasses.replace(WORKLOAD, loss_tolerance=None)
    text = render(workload, Run(outcomes()), RunSettings(), "A machine")
    assert "loss" not in text
    assert succeeded(workload, outcomes())


def test_headrace_without_figures_fails_the_run() -> None:
    run = [Outcome(WORKLOAD.entries[0], "", trouble=NOT_INSTALLED), *outcomes()[1:]]
    assert not succeeded(WORKLOAD, run)


@pytest.mark.parametrize(("others", "said"), [(None, False), (0.02, False), (0.4, True)])
def test_busy_machine_is_said(others: float | None, said: bool) -> None:
    text = render(WORKLOAD, Run(outcomes(), others), RunSettings(), "A machine")
    assert ("**The machine was not quiet**: other programs took 40%" in text) is said


def test_section_is_replaced_between_its_markers_only() -> None:
    begin, end = markers("toy")
    document = f"# Top\n\nBefore.\n\n{begin}\nold\n{end}\n\nAfter.\n"
    replaced = replace_section(document, "toy", "new\n")
    assert replaced == f"# Top\n\nBefore.\n\n{begin}\nnew\n{end}\n\nAfter.\n"
    assert replace_section(replaced, "toy", "new\n") == replaced


def test_missing_section_is_added_at_the_end() -> None:
    begin, end = markers("toy")
    document = replace_section("# Top\n", "toy", "new\n")
    assert document == f"# Top\n\n## toy\n\n{begin}\nnew\n{end}\n"


def test_section_of_another_name_is_left_alone() -> None:
    document = replace_section(replace_section("# Top\n", "toy", "1\n"), "toy-2", "2\n")
    assert document == replace_section(document, "toy", "1\n")


@pytest.mark.parametrize(
    "broken", ["{begin}\n", "{end}\n", "{end}\n{begin}\n", "{begin}{begin}{end}"]
)
def test_broken_markers_are_refused(broken: str) -> None:
    begin, end = markers("toy")
    with pytest.raises(SectionError, match=r"expected one .* and one .* after it, got"):
        replace_section(broken.format(begin=begin, end=end), "toy", "new\n")
