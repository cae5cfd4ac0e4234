"""Timelines: what a trace says of a step, and what is refused."""

from __future__ import annotations

import json

import pytest

import headrace as hr
from headrace.cli.main import main
from headrace.drawing.timeline import to_svg

SVG = "{http://www.w3.org/2000/svg}"


def event(name: str, cat: str, ts: float, dur: float, tid: int = 0, pid: int = 1, **args: object):
    place = {"name": name, "cat": cat, "pid": pid, "tid": tid}
    return {**place, "ph": "X", "ts": ts, "dur": dur, "args": args}


def named(what: str, name: str, pid: int, tid: int = 0):
    return {"ph": "M", "name": f"{what}_name", "pid": pid, "tid": tid, "args": {"name": name}}


TRACE = {
    "traceEvents": [
        event("step 1: loss:0", "step", 0.0, 50.0, pid=0),
        event("early", "kernel", 5.0, 20.0, computes="Exp"),
        event("step 2: loss:0", "step", 100.0, 1000.0, pid=0),
        event("While", "operation", 150.0, 800.0),
        event("fused_0", "kernel", 160.0, 300.0, computes="Mul, Add", line="model.py:3: y = x"),
        event("fused_0", "kernel", 500.0, 300.0, computes="Mul, Add", line="model.py:3: y = x"),
        event("product", "kernel", 200.0, 100.0, tid=1, computes="MatMul"),
        {
            "ph": "b",
            "cat": "operation",
            "name": "Dequeue",
            "id": 7,
            "pid": 1,
            "tid": 0,
            "ts": 110.0,
        },
        {
            "ph": "e",
            "cat": "operation",
            "name": "Dequeue",
            "id": 7,
            "pid": 1,
            "tid": 0,
            "ts": 900.0,
        },
        {"ph": "b", "cat": "operation", "name": "open", "id": 8, "pid": 1, "tid": 0, "ts": 120.0},
        named("process", "session", 0),
        named("process", "/device:cpu:0", 1),
        named("thread", "MainThread", 1),
        named("thread", "worker", 1, 1),
    ]
}


def test_a_timeline_shows_the_last_step_its_tracks_and_what_took_longest(read_svg):
    svg = to_svg(TRACE)
    found = read_svg(svg).texts
    assert found[0] == "step 2: loss:0, 1 ms"
    assert {"/device:cpu:0, MainThread", "/device:cpu:0, worker"} <= set(found)
    assert "3 kernels, 700 us" in found
    assert "1 operation by itself, 800 us" in found
    assert "1 wait, 790 us" in found
    assert "2 x fused_0: Mul, Add" in found
    assert "fused_0, 300 us\nMul, Add\nmodel.py:3: y = x" in read_svg(svg).titles
    assert not any("early" in title for title in read_svg(svg).titles)


def test_a_step_is_chosen_by_its_number(read_svg):
    assert "early" in "".join(read_svg(to_svg(TRACE, step=1)).titles)


@pytest.mark.parametrize("width", [320, 760, 1600])
def test_texts_stay_inside(width: int, read_svg):
    assert not read_svg(to_svg(TRACE, width=width)).overflowing


def test_what_overlaps_on_a_track_is_drawn_in_rows_of_its_own(read_svg):
    rows: dict[str, set[str]] = {}
    for group in read_svg(to_svg(TRACE)).root.iter(f"{SVG}g"):
        title, rect, *_ = group
        rows.setdefault(str(title.text).split(",")[0], set()).add(rect.attrib["y"])
    # What waits and a loop hold others, which are below them; these follow each other in one row.
    assert len(rows["fused_0"]) == len(rows["While"]) == len(rows["Dequeue"]) == 1
    assert len(rows["fused_0"] | rows["While"] | rows["Dequeue"] | rows["product"]) == 4


@pytest.mark.parametrize(
    ("trace", "message"),
    [
        ([], "this is no trace: expected an object with a list 'traceEvents'"),
        ({"traceEvents": 3}, "this is no trace"),
        ({"traceEvents": []}, "the trace has no step in it"),
        (
            {"traceEvents": [{"ph": "X", "name": "a"}]},
            "an event of the trace lacks or mistakes 'pid'",
        ),
        ({"traceEvents": ["x"]}, "an event of the trace lacks or mistakes"),
    ],
)
def test_what_is_no_trace_is_refused(trace: object, message: str):
    with pytest.raises(hr.errors.DocumentError, match=message):
        to_svg(trace)


def test_a_step_that_is_not_there_is_refused():
    with pytest.raises(hr.errors.DocumentError, match="the trace has 2 steps, and no step 3"):
        to_svg(TRACE, step=3)


def test_the_command_writes_a_file(tmp_path, capsys, read_svg):
    trace, picture = tmp_path / "trace.json", tmp_path / "step.svg"
    trace.write_text(json.dumps(TRACE))
    assert main(["draw", "timeline", str(trace), "--step", "1", "-o", str(picture)]) == 0
    assert "step 1: loss:0, 50 us" in read_svg(picture.read_text()).texts
    assert main(["draw", "timeline", str(trace), "--step", "9"]) == 2
    assert "the trace has 2 steps, and no step 9" in capsys.readouterr().err
