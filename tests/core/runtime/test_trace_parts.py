"""What other processes recorded, as data and back, and what traces show of what travels."""

from __future__ import annotations

import json
import threading
from pathlib import Path

import headrace as hr
from headrace.runtime.profiling.report import plain_work
from headrace.runtime.profiling.trace import Recorder
from headrace.runtime.profiling.trace_parts import pack_events, unpack_events
from headrace.runtime.profiling.trace_traffic import Flow, Span


def test_what_another_process_recorded_comes_back_in_our_time() -> None:
    with hr.Graph().as_default():
        op = hr.square(hr.constant([1.0, 2.0]), name="squared").op
    work = plain_work(op, "/job:ps/task:0/device:cpu:0")
    ident = threading.get_ident()
    events = [(work, ident, 1_000, 3_000, False, 8), (work, ident, 4_000, 5_000, True, 8)]
    data = json.loads(json.dumps(pack_events(events)))
    assert len(data["works"]) == 1
    part = unpack_events(data, 600, process=2)
    (first, second) = part.events
    assert first[2:] == (400, 2_400, False, 8)
    assert second[2:] == (3_400, 4_400, True, 8)
    assert part.threads == {first[1]: threading.current_thread().name}
    assert first[1] != unpack_events(data, 0, process=3).events[0][1]
    same = first[0]
    assert (same.name, same.device, same.types, same.bytes) == ("Square", work.device, "Square", 16)
    assert (same.ops[0].name, same.ops[0].inputs[0].name) == ("squared", op.inputs[0].name)
    assert same.line == work.line


def test_a_trace_shows_what_travels_between_tasks(tmp_path: Path) -> None:
    file = tmp_path / "trace.json"
    recorder = Recorder(file)
    start = recorder._start
    flows = [Flow("x", "/job:a", start + 1_000, "/job:b", start + 5_000)]
    flows.append(Flow("y", "/job:b", start + 6_000, "/job:a", start + 9_000))
    recorder.take_in([], {}, flows, [Span("waits", "/job:b", start + 5_000, start + 7_500)])
    recorder.settle(end=True)
    events = json.loads(file.read_text())["traceEvents"]
    names = {e["pid"]: e["args"]["name"] for e in events if e["name"] == "process_name"}
    assert sorted(names.values()) == ["/job:a messages", "/job:b messages"]
    arrows = [(e["id"], e["ph"], names[e["pid"]][:6], e["ts"]) for e in events if e["ph"] in "sf"]
    assert sorted(arrows) == [
        (0, "f", "/job:b", 5.0),
        (0, "s", "/job:a", 1.0),
        (1, "f", "/job:a", 9.0),
        (1, "s", "/job:b", 6.0),
    ]
    # The ends of an arrow lie in slices of their tracks; without these none is drawn.
    slices = {(e["name"], names[e["pid"]][:6], e["ts"]) for e in events if e["ph"] == "X"}
    assert slices >= {("x", "/job:a", 1.0), ("x", "/job:b", 5.0), ("waits", "/job:b", 5.0)}
