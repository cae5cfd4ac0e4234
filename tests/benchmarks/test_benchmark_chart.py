"""Figures as data, the charts drawn of them, and whether they are those of the page."""

from __future__ import annotations

import json
import re
from itertools import pairwise
from pathlib import Path
from xml.etree import ElementTree

import pytest

from benchmarks import chart
from benchmarks.controller import Outcome, Run, RunSettings
from benchmarks.figures import figures, read, write
from benchmarks.participant import Sample
from benchmarks.workload import Entry, Workload, all_workloads
from headrace.drawing.canvas import text_width

DOCS = Path(__file__).resolve().parents[2] / "docs"
DATA = DOCS / "benchmarks.json"
SVG = "{http://www.w3.org/2000/svg}"
UNITS = {"us": 1e-6, "ms": 1e-3, "s": 1.0}

WORKLOAD = Workload(
    name="toy",
    package="toys",
    measured="Time of one turn",
    entries=(
        Entry("headrace"),
        Entry("headrace", "slow"),
        Entry("numpy"),
        Entry("torch", "eager"),
        Entry("jax", "jit"),
        Entry("numpy", "bare work", limit=True),
    ),
    unit="us",
)


@pytest.fixture
def made():
    """The figures of a run in which one peer ended."""
    ours, slow, numpy, torch, jax, limit = WORKLOAD.entries
    samples = [Sample(seconds, 80_000_000) for seconds in (20e-6, 40e-6, 30e-6)]
    outcomes = [
        Outcome(ours, "1.0", samples, 0.5),
        Outcome(slow, "1.0", [Sample(90e-6, 1)]),
        Outcome(numpy, "2.0", [Sample(60e-6, 90_000_000)] * 3, 0.5),
        Outcome(torch, "3.0", [Sample(15e-6, 1)]),
        Outcome(jax, "4.0", trouble="failed"),
        Outcome(limit, "2.0", [Sample(10e-6, 70_000_000)] * 3),
    ]
    run = Run(outcomes, others=0.02)
    return figures(WORKLOAD, run, RunSettings(rounds=3), "2026-01-02; a machine")


def test_figures_are_seconds_bytes_and_reasons(made) -> None:
    assert (made["date"], made["rounds"], made["others"]) == ("2026-01-02", 3, 0.02)
    first, *_, jax, limit = made["participants"]
    assert first == {
        "label": "headrace",
        "library": "headrace",
        "role": "headrace",
        "version": "1.0",
        "median": 30e-6,
        "min": 20e-6,
        "max": 40e-6,
        "memory": 80_000_000,
        "loss": 0.5,
    }
    assert jax["trouble"] == "failed"
    assert "median" not in jax
    assert limit["role"] == "limit"


def test_ratios_are_to_the_first_row_and_the_limit_is_nobodys_competitor(made) -> None:
    found = {label: round(ratio, 3) for _, label, ratio in chart.ratios(made)}
    assert found == {
        "headrace": 1.0,
        "headrace, slow": 3.0,
        "numpy": 2.0,
        "torch, eager": 0.5,
        "limit: bare work": 0.333,
    }
    assert chart.best_peer(made) == ("torch, eager", pytest.approx(0.5))


def test_without_headrace_there_are_no_ratios(made) -> None:
    alone = {**made, "participants": [p for p in made["participants"] if p["role"] == "peer"]}
    assert chart.ratios(alone) == []
    assert chart.best_peer(alone) is None
    for svg in chart.charts({"toy": alone}).values():
        ElementTree.fromstring(svg)


def test_a_run_replaces_its_workload_only(made, tmp_path) -> None:
    path = tmp_path / "page.json"
    write(path, "toy", made)
    write(path, "other", made)
    write(path, "toy", {**made, "date": "2027-01-01"})
    assert {name: entry["date"] for name, entry in read(path).items()} == {
        "toy": "2027-01-01",
        "other": "2026-01-02",
    }
    assert {p.name for p in chart.draw(path)} == {
        "page.svg",
        "page-narrow.svg",
        "page-ahead.svg",
        "page-ahead-narrow.svg",
    }


def test_the_chart_tells_every_ratio(made) -> None:
    root = ElementTree.fromstring(chart.all_ratios({"toy": made}, chart.WIDE))
    titles = [element.text for element in root.iter(f"{SVG}title")]
    assert "headrace, slow: 3 of Headrace's time" in titles
    assert "torch, eager: 0.5 of Headrace's time" in titles
    assert len(titles) == 5


def test_the_command_names_a_file_that_is_not_there(tmp_path, capsys) -> None:
    with pytest.raises(SystemExit):
        chart.main([str(tmp_path / "none.json")])
    assert "there is no file" in capsys.readouterr().err


# -- the page in the repository


@pytest.mark.parametrize(("name", "drawn"), chart.charts(read(DATA)).items())
def test_the_charts_of_the_page_are_drawn_from_its_figures(name: str, drawn: str) -> None:
    path = DATA.with_name(f"benchmarks{name}.svg")
    assert path.read_text(encoding="utf-8") == drawn + "\n", (
        "run python -m benchmarks.chart docs/benchmarks.json"
    )


@pytest.mark.parametrize("name", chart.charts({}))
def test_texts_of_the_charts_stay_inside_and_apart(name: str) -> None:
    root = ElementTree.parse(DATA.with_name(f"benchmarks{name}.svg")).getroot()
    width, height = float(root.attrib["width"]), float(root.attrib["height"])
    rows: dict[float, list[tuple[float, float, str]]] = {}
    for element in root.iter(f"{SVG}text"):
        text, x = element.text or "", float(element.attrib["x"])
        wide = text_width(text, float(element.attrib["font-size"]))
        left = {"start": x, "middle": x - wide / 2, "end": x - wide}[element.attrib["text-anchor"]]
        assert left >= 0, text
        assert left + wide <= width, text
        assert 8 <= float(element.attrib["y"]) <= height, text
        rows.setdefault(float(element.attrib["y"]), []).append((left, left + wide, text))
    for row in rows.values():
        row.sort()
        for (_, end, one), (begin, _, other) in pairwise(row):
            assert end <= begin + 1, (one, other)


def test_the_figures_are_those_of_the_tables() -> None:
    page = (DOCS / "benchmarks.md").read_text(encoding="utf-8")
    data = json.loads(DATA.read_text(encoding="utf-8"))
    assert set(data) == set(all_workloads())
    for name, made in data.items():
        section = page.split(f"<!-- benchmark {name}: begin -->\n")[1].split("<!-- ")[0]
        assert section.startswith(f"{made['machine']}.")
        unit = UNITS[re.search(r"median (\w+)", section)[1]]
        rows = [
            [cell.strip() for cell in line.strip("| ").split(" | ")]
            for line in section.splitlines()
            if line.startswith("| ")
        ][2:]
        assert [row[0] for row in rows] == [p["label"] for p in made["participants"]]
        for row, participant in zip(rows, made["participants"], strict=True):
            if "median" in participant:
                for cell, key in zip(row[2:5], ("median", "min", "max"), strict=True):
                    assert float(cell) * unit == pytest.approx(participant[key], rel=6e-3)
