"""Progress: a bar on terminals, plain lines in logs, silence on other ranks, and no cost."""

from __future__ import annotations

import io
import time

import pytest

import headrace as hr
from headrace.errors import AttributeValueError
from headrace_train.progress import Progress

RANK = "OMPI_COMM_WORLD_RANK"


class Clock:
    """A clock that is set by hand."""

    now = 100.0

    def __call__(self) -> float:
        return self.now


class Terminal(io.StringIO):
    """A stream that says it is a terminal."""

    def isatty(self) -> bool:
        return True


@pytest.fixture(autouse=True)
def _no_ranks(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in (RANK, "PMIX_RANK", "PMI_RANK"):
        monkeypatch.delenv(name, raising=False)


def run(stream: io.StringIO, steps: int = 100, seconds: float = 50.0) -> str:
    clock = Clock()
    with Progress(steps, "training", stream=stream, clock=clock) as progress:
        for step in range(steps):
            clock.now += seconds / steps
            progress.update(loss=1 / (step + 1), note="ok")
    return stream.getvalue()


def test_is_public() -> None:
    assert hr.train.Progress is Progress


def test_a_log_gets_whole_lines_now_and_then() -> None:
    assert run(io.StringIO(), steps=4, seconds=50).splitlines() == [
        "training 1/4 (25%), 0.08 steps/s, 38 s left, loss 1, note ok",
        "training 2/4 (50%), 0.08 steps/s, 25 s left, loss 0.5, note ok",
        "training 3/4 (75%), 0.08 steps/s, 12 s left, loss 0.3333, note ok",
        "training 4/4 (100%), 0.08 steps/s, in 50 s, loss 0.25, note ok",
    ]
    lines = run(io.StringIO(), steps=100_000, seconds=50).splitlines()
    assert len(lines) == 5
    assert lines[-1].startswith("training 100000/100000 (100%)")
    assert lines[0].startswith("training 20000/100000 (20%), 2,000 steps/s, 40 s left")


def test_a_terminal_gets_one_line_that_is_redrawn() -> None:
    text = run(Terminal(), steps=100, seconds=50)
    assert text.count("\n") == 1
    lines = text.split("\r")
    assert len(lines) > 50
    assert lines[50].startswith("training [############............] 50/100 (50%), 2 steps/s, 25 s")
    assert lines[-1].startswith("training [########################] 100/100 (100%), 2 steps/s, in")


def test_a_shorter_line_covers_a_longer_one() -> None:
    clock, stream = Clock(), Terminal()
    progress = Progress(10, stream=stream, clock=clock)
    for note in ("a long note", ""):
        clock.now += 1
        progress.update(note=note)
    _, first, second = stream.getvalue().split("\r")
    assert len(second) == len(first)


def test_a_narrow_terminal_is_not_overrun(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "30")
    assert max(map(len, run(Terminal()).split("\r"))) <= 30


def test_long_times() -> None:
    clock = Clock()
    progress = Progress(10, stream=io.StringIO(), clock=clock)
    clock.now += 100
    progress.done = 1
    assert progress.line() == "1/10 (10%), 0.01 steps/s, 15:00 left"
    clock.now += 100_000
    assert progress.line() == "1/10 (10%), 1e-05 steps/s, 250:15:00 left"


def test_nothing_done_and_nothing_to_do() -> None:
    assert Progress(10, stream=io.StringIO()).line() == "0/10 (0%)"
    assert Progress(0, stream=io.StringIO()).line() == "0/0 (100%)"


def test_other_ranks_are_silent(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(RANK, "1")
    assert run(io.StringIO()) == ""
    assert run(Terminal()) == ""
    stream = io.StringIO()
    with Progress(1, stream=stream, enabled=True) as progress:
        progress.update()
    assert stream.getvalue().startswith("1/1 (100%)")
    monkeypatch.setenv(RANK, "0")
    assert run(io.StringIO())


def test_a_negative_total() -> None:
    with pytest.raises(AttributeValueError, match="total of a progress must be from 0 to"):
        Progress(-1)


def test_an_update_costs_next_to_nothing() -> None:
    count = 20_000
    progress = Progress(count, "training", stream=io.StringIO())
    best = float("inf")
    for _ in range(5):
        start = time.process_time()
        for _ in range(count):
            progress.update(loss=0.5)
        best = min(best, (time.process_time() - start) / count)
    # One percent of a step of half a millisecond.
    assert best < 5e-6
