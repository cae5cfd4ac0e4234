"""Steps that run for long are reported once, with what they wait for."""

from __future__ import annotations

import pytest

from headrace_mpi.steps.rendezvous import first_step
from headrace_mpi.steps.stalls import StepStalls


class Steps:
    """The steps of a session, as a test says."""

    def __init__(self) -> None:
        self.steps: list[int] = []

    def waits(self) -> list[str]:
        return [f"step {step & 0xFF} waits for /job:ps/task:0 (rank 0)" for step in self.steps]


def test_a_step_that_runs_for_long_is_reported_once(capsys: pytest.CaptureFixture[str]) -> None:
    client, now = Steps(), [0.0]
    stalls = StepStalls(client, "/job:worker/task:0 (rank 1)", 60.0, lambda: now[0])
    one, two = first_step(1) + 1, first_step(1) + 2

    def look(at: float, *running: int) -> str:
        now[0], client.steps = at, list(running)
        stalls.look()
        return capsys.readouterr().err

    assert look(0, one) == ""
    assert look(59, one, two) == ""
    assert look(60, one, two) == (
        "headrace: /job:worker/task:0 (rank 1): step 1 runs for 60 s and more\n"
        "  step 1 waits for /job:ps/task:0 (rank 0)\n"
        "  step 2 waits for /job:ps/task:0 (rank 0)\n"
    )
    assert look(100, one, two) == ""
    assert "step 2 runs for 60 s and more" in look(120, one, two)
    # What has ended is forgotten.
    assert look(121) == ""
    assert stalls._since == {}
    assert stalls._told == set()
