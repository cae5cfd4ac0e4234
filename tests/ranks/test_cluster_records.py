"""What is recorded of steps over ranks: flight records where a step runs out of time."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import headrace as hr

pytestmark = [pytest.mark.ranks(2, 4), pytest.mark.needs("backend-cpu")]


def test_a_step_that_runs_out_of_time_names_the_flight_record(
    cluster: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HEADRACE_FLIGHT", str(tmp_path))
    if not cluster.is_chief:
        return
    with hr.device("/job:ps/task:0"):
        queue = hr.FIFOQueue(1, [hr.float32], shapes=[[]])
        item = queue.dequeue()
    with hr.Session(cluster.target) as session:
        with pytest.raises(hr.errors.DeadlineExceededError, match="headrace flight") as caught:
            session.run(item, options=hr.RunOptions(timeout_in_ms=100))
        session.run(queue.close())
    (note,) = [n for n in caught.value.__notes__ if "headrace flight" in n]
    head, *frames = map(json.loads, Path(note.split()[-1]).read_text().splitlines())
    assert head["task"] == "/job:worker/task:0"
    assert {frame["kind"] for frame in frames} >= {"REGISTER", "REGISTERED", "RUN", "ABORT"}
