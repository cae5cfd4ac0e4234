"""Values leave for other tasks as soon as they are there, while the rest of a region still runs."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import headrace as hr

pytestmark = [pytest.mark.ranks(2), pytest.mark.needs("backend-cpu"), pytest.mark.needs("train")]
LAYERS, SIDE = 4, 600


def network() -> tuple[Any, Any, Any, list[hr.Variable]]:
    """Return batch, loss, update and variables of layers whose matrices have more than 1 MB."""
    rng = np.random.default_rng(0)
    x = h = hr.placeholder(hr.float32, [64, SIDE])
    matrices = []
    for _ in range(LAYERS):
        with hr.device("/job:ps/task:0"):
            start = rng.normal(size=(SIDE, SIDE)).astype(np.float32) * 0.05
            matrices.append(hr.Variable(start))
        h = hr.tanh(hr.matmul(h, matrices[-1]))
    loss = hr.reduce_mean(hr.square(h))
    return x, loss, hr.train.GradientDescentOptimizer(0.1).minimize(loss), matrices


BATCH = np.random.default_rng(1).normal(size=(64, SIDE)).astype(np.float32)


def test_gradients_leave_during_the_backward_pass(cluster: Any, tmp_path: Path) -> None:
    assert os.environ["OMPI_COMM_WORLD_SIZE"] == "2"
    if not cluster.is_chief:
        return
    x, loss, update, _ = network()
    file = tmp_path / "trace.json"
    config = hr.Config(trace=file, compile_after=0, executor="plan")
    with hr.Session(cluster.target, config=config) as session:
        session.run(hr.global_variables_initializer())
        session.run([loss, update], {x: BATCH})
        transport = cluster.node.transport
        before = transport.frames_sent + transport.frames_received
        known = len(events_of(file, "s"))
        session.run([loss, update], {x: BATCH})
        # Beside the arrows there is the answer of the other task.
        frames = transport.frames_sent + transport.frames_received - before - 1
    assert len(events_of(file, "s")) - known == frames
    (step,) = [e for e in events_of(file, "X") if e.get("cat") == "step"][-1:]
    names = {e["args"]["name"]: e["pid"] for e in events_of(file, "M") if "process" in e["name"]}
    here = names["/job:worker/task:0/device:cpu:0"]
    inside = [e for e in events_of(file, "X") if e["ts"] >= step["ts"] and e["pid"] == here]
    sends = [e for e in inside if e["name"] == "Send"]
    kernels = [e for e in inside if e.get("cat") == "kernel"]
    assert len(sends) == LAYERS
    last = max(e["ts"] for e in kernels)
    assert sum(e["ts"] + e["dur"] <= last for e in sends) >= LAYERS - 1
    # What they send is on its way then.
    left = [e for e in events_of(file, "s") if step["ts"] < e["ts"] < last]
    assert sum(e["name"].startswith("TENSOR") for e in left) >= LAYERS - 1


def test_what_leaves_early_is_what_the_plain_executor_sends(cluster: Any) -> None:
    if not cluster.is_chief:
        return
    x, loss, update, matrices = network()
    found = []
    for settings in ({"executor": "plain"}, {"compile_after": 0, "executor": "plan"}):
        with hr.Session(cluster.target, config=hr.Config(**settings)) as session:
            session.run(hr.global_variables_initializer())
            losses = [session.run([loss, update], {x: BATCH})[0] for _ in range(4)]
            found.append((losses, session.run(matrices)))
    np.testing.assert_allclose(found[0][0], found[1][0], rtol=1e-5)
    for plain, compiled in zip(found[0][1], found[1][1], strict=True):
        np.testing.assert_allclose(plain, compiled, rtol=1e-4, atol=1e-5)


def test_what_is_read_here_too_stays_and_a_failure_behind_it_ends_the_step(cluster: Any) -> None:
    if not cluster.is_chief:
        return
    x = hr.placeholder(hr.float32, [SIDE, SIDE])
    rows = hr.placeholder(hr.int32, [1])
    with hr.device("/job:worker/task:0"):
        made = hr.matmul(x, x)
        checked = hr.gather(hr.exp(made * 0.0), rows)
    with hr.device("/job:ps/task:0"):
        there = hr.reduce_sum(made)
    eye = np.eye(SIDE, dtype=np.float32)
    config = hr.Config(compile_after=0, executor="plan")
    with hr.Session(cluster.target, config=config) as session:
        for _ in range(2):
            total, row, kept = session.run([there, checked, made], {x: eye, rows: [1]})
            assert total == SIDE
            assert row.tolist() == [[1.0] * SIDE]
            np.testing.assert_array_equal(kept, eye)
            with pytest.raises(hr.errors.HeadraceError, match="index 600 is out of range"):
                session.run([there, checked], {x: eye, rows: [SIDE]})


def events_of(file: Path, phase: str) -> list[Any]:
    """Return the events of a trace of one phase."""
    return [e for e in json.loads(file.read_text())["traceEvents"] if e["ph"] == phase]
