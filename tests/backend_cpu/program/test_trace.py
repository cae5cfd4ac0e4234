"""Traces and profiles: what steps did, measured."""

from __future__ import annotations

import json
import threading

import numpy as np
import pytest

import headrace as hr
from headrace.ops.queue import fifo_queue, queue_dequeue, queue_enqueue
from headrace.runtime.profiling import trace as recording
from headrace.shapes import Shape

X = np.ones((8, 4), np.float32)


def network():
    x = hr.placeholder(hr.float32, [None, 4], name="x")
    w = hr.Variable(np.full((4, 3), 0.5, np.float32), name="w")
    return x, hr.reduce_sum(hr.tanh(hr.matmul(x, w) * 2.0 + 1.0))


def events(path):
    """Return the events of a trace, by their phase."""
    document = json.loads(path.read_text())
    found: dict[str, list] = {}
    for event in document["traceEvents"]:
        found.setdefault(event["ph"], []).append(event)
    return found


@pytest.mark.parametrize("executor", ["plan", "plain"])
def test_a_trace_holds_every_kernel_with_what_it_computes(tmp_path, executor):
    path = tmp_path / "trace.json"
    x, loss = network()
    with hr.Session(config=hr.Config(trace=path, executor=executor)) as session:
        session.run(hr.global_variables_initializer())
        for _ in range(3):
            session.run(loss, {x: X})
    found = events(path)
    steps = [event for event in found["X"] if event["cat"] == "step"]
    products = [e for e in found["X"] if "MatMul" in e["args"].get("computes", "")]
    assert len(steps) == 4
    assert len(products) == 3
    for product in products:
        assert product["args"]["bytes"] >= (8 * 4 + 4 * 3 + 8 * 3) * 4
        assert any("MatMul" in name for name in product["args"]["operations"])
        assert product["args"]["line"].startswith(__file__)
        assert any(s["ts"] <= product["ts"] and product["dur"] <= s["dur"] for s in steps)
    names = {event["args"]["name"] for event in found["M"] if event["name"] == "process_name"}
    assert names == {"session", "/job:localhost/task:0/device:cpu:0"}


def test_the_file_is_there_after_the_first_step(tmp_path):
    path = tmp_path / "trace.json"
    with hr.Session(config=hr.Config(trace=str(path))) as session:
        session.run(hr.exp(hr.constant(np.ones(4, np.float32))) + 1.0)
        assert [e for e in events(path)["X"] if e["cat"] == "step"]
        assert list(tmp_path.iterdir()) == [path]


def test_rounds_of_a_loop_are_events_inside_the_loops(tmp_path):
    path = tmp_path / "trace.json"
    x = hr.placeholder(hr.float32, [None], name="x")
    _, y = hr.while_loop(
        lambda i, t: i < 3, lambda i, t: (i + 1, hr.tanh(t) * 2.0), [hr.constant(0), x]
    )
    with hr.Session(config=hr.Config(trace=path)) as session:
        session.run(y, {x: np.ones(5, np.float32)})
    whole = events(path)["X"]
    (loop,) = [e for e in whole if e["name"] == "While"]
    rounds = [e for e in whole if "Tanh" in e["args"].get("computes", "")]
    assert len(rounds) == 3
    ends = [e["ts"] + e["dur"] for e in (loop, *rounds)]
    assert all(
        loop["ts"] <= e["ts"] and end <= ends[0] for e, end in zip(rounds, ends[1:], strict=True)
    )


def test_what_waits_is_an_event_from_asking_to_answer(tmp_path):
    path = tmp_path / "trace.json"
    queue = fifo_queue(2, (hr.float32,), (Shape([]),), "", "numbers")
    put = queue_enqueue(queue, [hr.constant(1.0)])
    got = queue_dequeue(queue, (hr.float32,), (Shape([]),))[0] * 2.0
    with hr.Session(config=hr.Config(trace=path)) as session:
        session.run(put)
        assert session.run(got) == 2.0
    found = events(path)
    assert [e["name"] for e in found["b"]] == ["QueueEnqueue", "QueueDequeue"]
    assert [e["id"] for e in found["b"]] == [e["id"] for e in found["e"]]


def test_each_thread_has_a_track(tmp_path):
    path = tmp_path / "trace.json"
    x, loss = network()
    with hr.Session(config=hr.Config(trace=path)) as session:
        session.run(hr.global_variables_initializer())
        threads = [
            threading.Thread(target=session.run, args=(loss, {x: X}), name=f"worker {i}")
            for i in range(3)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    found = events(path)
    steps = [e for e in found["X"] if e["cat"] == "step"]
    assert len({e["tid"] for e in steps}) >= 2
    named = {e["tid"] for e in found["M"] if e["name"] == "thread_name"}
    assert {e["tid"] for e in found["X"]} <= named


def test_a_trace_is_bounded_and_says_what_it_left_out(tmp_path, monkeypatch):
    monkeypatch.setattr(recording, "MAX_EVENTS", 10)
    path = tmp_path / "trace.json"
    x, loss = network()
    with hr.Session(config=hr.Config(trace=path)) as session:
        session.run(hr.global_variables_initializer())
        for _ in range(20):
            session.run(loss, {x: X})
    document = json.loads(path.read_text())
    assert len([e for e in document["traceEvents"] if e["ph"] != "M"]) == 10
    assert "later events were left out" in document["headrace"]


def test_a_step_that_fails_leaves_a_valid_trace(tmp_path):
    path = tmp_path / "trace.json"
    x = hr.placeholder(hr.int32, [None], name="x")
    y = hr.gather(hr.constant([1.0, 2.0]), x) * 2.0
    with hr.Session(config=hr.Config(trace=path)) as session:
        session.run(y, {x: [0]})
        with pytest.raises(hr.errors.HeadraceError, match="Gather"):
            session.run(y, {x: [7]})
    assert len([e for e in events(path)["X"] if e["cat"] == "step"]) == 2


def test_a_trace_that_cannot_be_written_fails_at_the_end_and_not_in_a_step(tmp_path):
    folder = tmp_path / "gone"
    folder.mkdir()
    session = hr.Session(config=hr.Config(trace=folder / "trace.json"))
    folder.rmdir()
    assert session.run(hr.square(hr.constant(3.0))) == 9.0
    with pytest.raises(FileNotFoundError, match="gone"):
        session.close()


def test_programs_know_nothing_of_recorders_unless_asked():
    x, loss = network()
    plain, measured = hr.Session(), hr.Session(config=hr.Config(profile=True))
    with plain, measured:
        feed = {x: X}
        assert "clock" not in plain.explain(loss, feed).source()
        assert "clock" in measured.explain(loss, feed).source()


@pytest.mark.parametrize("executor", ["plan", "plain"])
def test_a_profile_adds_up(executor):
    x, loss = network()
    config = hr.Config(profile=True, executor=executor)
    with hr.Session(config=config) as session:
        session.run(hr.global_variables_initializer())
        for _ in range(5):
            session.run(loss, {x: X})
        profile = session.profile()
    assert profile.steps == 6
    (product,) = [row for row in profile.types if "MatMul" in row.computes]
    assert product.calls == 5
    assert product.bytes >= 5 * (8 * 4 + 4 * 3 + 8 * 3) * 4
    assert product.mean * 5 == pytest.approx(product.seconds)
    assert sum(row.share for row in profile.types) == pytest.approx(1.0)
    assert sum(row.seconds for row in profile.kernels) == pytest.approx(
        sum(row.seconds for row in profile.types)
    )
    times = [row.seconds for row in profile.types]
    assert times == sorted(times, reverse=True)
    assert profile.seconds <= profile.step_seconds
    if executor == "plan":
        assert product.flops >= 5 * 2 * 8 * 4 * 3
        assert product.flops_per_second > 0
    else:
        assert product.flops is None


def test_a_profile_prints_a_table():
    x, loss = network()
    with hr.Session(config=hr.Config(profile=True)) as session:
        session.run(hr.global_variables_initializer())
        session.run(loss, {x: X})
        profile = session.profile()
    assert str(profile).startswith("2 steps in ")
    assert "calls" in str(profile)
    rows = profile.table(by="kernels", limit=1).splitlines()
    assert len(rows) == 3
    assert rows[-1] == f"and {len(profile.kernels) - 1} more rows"


def test_a_profile_stands_beside_the_machines_limit():
    a, b = (hr.Variable(hr.ones([512, 512])) for _ in range(2))
    product = hr.matmul(a, b)
    with hr.Session(config=hr.Config(profile=True)) as session:
        session.run(hr.global_variables_initializer())
        for _ in range(5):
            session.run(product)
        profile = session.profile()
    (row,) = [row for row in profile.types if "MatMul" in row.computes]
    # Of 2 * 512**3 operations in each call, on no machine in less than this.
    assert 5 * 1e-6 < row.limit_seconds < 5.0
    assert row.of_limit == row.limit_seconds / row.seconds
    assert not row.memory_bound
    (read, *_) = [row for row in profile.types if row.computes == "ReadVariable"]
    assert read.of_limit is None
    assert profile.hints[-1].startswith("slowest: ")
    assert str(profile).endswith(profile.hints[-1])


def test_time_inside_a_loop_is_counted_once():
    _, y = hr.while_loop(
        lambda i, t: i < 3, lambda i, t: (i + 1, hr.tanh(t)), [hr.constant(0), hr.ones([5])]
    )
    with hr.Session(config=hr.Config(profile=True)) as session:
        session.run(y)
        profile = session.profile()
    names = [row.name for row in profile.types]
    assert "While" not in names
    (tanh,) = [row for row in profile.types if "Tanh" in row.computes]
    assert tanh.calls == 3
