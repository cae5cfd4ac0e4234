"""A step over ranks in one trace: one clock, all devices, and an arrow for each frame."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import headrace as hr

pytestmark = [pytest.mark.ranks(1, 2, 4), pytest.mark.needs("backend-cpu")]


def model() -> tuple[Any, Any]:
    """Products on the ps and the chief that need each other's results."""
    with hr.device("/job:ps/task:0"):
        v = hr.Variable(np.eye(300, dtype=np.float32))
        there = hr.matmul(v, v)
    with hr.device("/job:worker/task:0"):
        here = hr.matmul(there, there)
        apart = hr.reduce_sum(hr.matmul(hr.ones([300, 300]), hr.ones([300, 300])))
    with hr.device("/job:ps/task:0"):
        back = hr.reduce_sum(hr.matmul(here, v))
    return v, hr.add(back, apart)


def test_a_trace_has_all_ranks_and_an_arrow_for_each_frame(cluster: Any, tmp_path: Path) -> None:
    if not cluster.is_chief:
        return
    v, total = model()
    file = tmp_path / "trace.json"
    with hr.Session(cluster.target, config=hr.Config(trace=file)) as session:
        session.run(v.initializer)
        transport = getattr(cluster.node, "transport", None)
        session.run(total)
        frames = arrows = None
        if transport is not None:
            before = len(flows(file)[0])
            noted = transport.frames_sent + transport.frames_received
            assert session.run(total) == 300 + 300**3
            # Beside the arrows there is the answer of the other task.
            frames = transport.frames_sent + transport.frames_received - noted - 1
            arrows = len(flows(file)[0]) - before
    events = json.loads(file.read_text())["traceEvents"]
    names = {e["args"]["name"] for e in events if e["name"] == "process_name"}
    assert {"/job:ps/task:0/device:cpu:0", "/job:worker/task:0/device:cpu:0"} <= names
    if transport is None:
        return
    assert arrows == frames > 2
    assert {"/job:ps/task:0 messages", "/job:worker/task:0 messages"} <= names
    starts, ends = flows(file)
    assert starts.keys() == ends.keys()
    # On one clock nothing comes before it was sent; the error is half of a round trip.
    assert all(ends[i]["ts"] - starts[i]["ts"] > -500 for i in starts)
    step = [e for e in events if e.get("cat") == "step"][-1]
    inside = [
        e
        for e in events
        if e.get("cat") in ("kernel", "operation") and e["ph"] == "X" and e["ts"] > step["ts"]
    ]
    processes = {e["pid"]: e["args"]["name"] for e in events if e["name"] == "process_name"}
    assert len({processes[e["pid"]] for e in inside}) == 2
    assert all(e["ts"] + e["dur"] <= step["ts"] + step["dur"] + 500 for e in inside)
    assert any(e.get("cat") == "queue" and e["name"].endswith("waits to run") for e in events)


def flows(file: Path) -> tuple[dict[int, Any], dict[int, Any]]:
    """Return the beginnings and ends of arrows."""
    events = json.loads(file.read_text())["traceEvents"]
    ends = [{e["id"]: e for e in events if e["ph"] == phase} for phase in "sf"]
    return ends[0], ends[1]


def test_a_single_run_tells_what_ran_on_all_tasks(cluster: Any) -> None:
    if not cluster.is_chief:
        return
    v, total = model()
    with hr.Session(cluster.target) as session:
        session.run(v.initializer)
        metadata = hr.RunMetadata()
        full = hr.RunOptions(trace_level=hr.RunOptions.FULL_TRACE)
        for _ in range(2):
            assert session.run(total, options=full, run_metadata=metadata) == 300 + 300**3
        stats = {d.device: d.node_stats for d in metadata.step_stats.dev_stats}
        assert {"/job:ps/task:0/device:cpu:0", "/job:worker/task:0/device:cpu:0"} <= stats.keys()
        there = [node.timeline_label for node in stats["/job:ps/task:0/device:cpu:0"]]
        assert any("MatMul" in label for label in there), there
        starts = [node.all_start_micros for nodes in stats.values() for node in nodes]
        assert max(starts) - min(starts) < 60e6
        # Runs that nobody traces go on as they did.
        assert session.run(total) == 300 + 300**3
