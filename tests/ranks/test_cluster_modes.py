"""Explanations, traces and checks of numbers, of steps that several tasks run."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import headrace as hr
from headrace.errors import DeterminismError, NumericsError

pytestmark = [pytest.mark.ranks(1, 2, 4), pytest.mark.needs("backend-cpu")]

FAR = "/job:ps/task:0"


def program() -> tuple[Any, Any]:
    x = hr.placeholder(hr.float32, [None], name="x")
    with hr.device(FAR):
        far = hr.log(x, name="far")
    with hr.device("/job:worker/task:0"):
        near = hr.exp(far, name="near")
    return x, near


def test_an_explanation_shows_this_task_and_names_the_others(cluster: Any) -> None:
    if not cluster.is_chief:
        return
    x, near = program()
    with hr.Session(cluster.target) as session:
        found = session.explain(near, {x: [1.0, 2.0]})
        placed = {name: p.device for p in found.placement for name in p.operations}
        assert placed["far"].startswith(FAR)
        assert any("near" in {op.name for op in w.ops} for p in found.walk() for w in p.works)
        if hasattr(cluster.node, "transport") and cluster.node.transport.rank != 0:
            assert FAR in str(found.remote)
            assert "are not shown" in str(found)


def test_a_trace_holds_what_this_task_did(cluster: Any, tmp_path: Path) -> None:
    if not cluster.is_chief:
        return
    x, near = program()
    path = tmp_path / "trace.json"
    with hr.Session(cluster.target, config=hr.Config(trace=path)) as session:
        for _ in range(2):
            session.run(near, {x: [1.0, 2.0]})
    events = json.loads(path.read_text())["traceEvents"]
    assert sum(event.get("cat") == "step" for event in events) == 2
    done = [e for e in events if "near" in e.get("args", {}).get("operations", ())]
    assert len(done) == 2


def test_numbers_are_checked_on_every_task(cluster: Any) -> None:
    if not cluster.is_chief:
        return
    x, near = program()
    with hr.Session(cluster.target, config=hr.Config(check_numerics=True)) as session:
        with pytest.raises(NumericsError, match=r"(?s)Log makes 1 infinity .* far = hr.log"):
            session.run(near, {x: [0.0, 1.0]})
        assert session.run(near, {x: [1.0]}).tolist() == [1.0]


def test_chance_is_refused_on_every_task(cluster: Any) -> None:
    if not cluster.is_chief:
        return
    with hr.device(FAR):
        draw = hr.random_normal([2], name="draw")
    config = hr.Config(deterministic=True)
    with (
        hr.Session(cluster.target, config=config) as session,
        pytest.raises(DeterminismError, match="refuses RandomStandardNormal"),
    ):
        session.run(draw)
