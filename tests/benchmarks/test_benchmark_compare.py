"""The guard: both sides run in turn, and only what is slower twice is an error."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks import cli, compare
from benchmarks.compare import Compared, RevisionError
from benchmarks.controller import RunSettings
from benchmarks.process import ParticipantError
from benchmarks.suite.running import Kept
from benchmarks.workload import Entry, Workload

QUICK = RunSettings(rounds=3, settle_s=0.0, timeout_s=30.0)

# A participant that takes as long as the variable of its side says.
TIMED = """
import os
from benchmarks.participant import Sample

class Timed:
    def round(self):
        if TIMES[0] < 0:
            raise RuntimeError("no such engine")
        return Sample(TIMES[0], 0)
    def loss(self):
        return None

TIMES = [float(os.environ["TOY_SECONDS"])]

def build(request):
    return Timed()
"""


@pytest.fixture
def toy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Workload:
    """Return a workload whose participant reads its time from ``TOY_SECONDS``."""
    folder = tmp_path / "toys"
    folder.mkdir()
    (folder / "__init__.py").touch()
    (folder / "timed.py").write_text(TIMED)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    return Workload("toy", "toys", "Time", (Entry("headrace", module="timed"),), "us")


def _sides(toy: Workload, monkeypatch: pytest.MonkeyPatch, old_s: float, new_s: float) -> Compared:
    """Run the toy on two sides that take these times; a negative one fails."""
    entry = toy.entries[0]
    with Kept(1) as old, Kept(1) as new:
        for kept, seconds in ((old, old_s), (new, new_s)):
            monkeypatch.setenv("TOY_SECONDS", str(seconds))
            with kept.lend(entry) as process:
                assert process.alive()
        return compare.run(toy, old, new, QUICK)


def test_both_sides_run_the_same_rounds(toy: Workload, monkeypatch: pytest.MonkeyPatch) -> None:
    compared = _sides(toy, monkeypatch, 0.5, 0.25)
    assert (compared.old, compared.new) == ((0.5,) * 3, (0.25,) * 3)
    assert compared.ratios == (0.5, 0.5)
    assert not compared.slower(1.1)


@pytest.mark.parametrize(
    ("old", "new", "said", "failed"),
    [
        (0.5, -1.0, "here failed: RuntimeError: no such engine", True),
        (-1.0, 0.5, "the revision failed: RuntimeError: no such engine", False),
    ],
)
def test_only_what_is_here_must_run(
    toy: Workload,
    monkeypatch: pytest.MonkeyPatch,
    old: float,
    new: float,
    said: str,
    failed: bool,
) -> None:
    compared = _sides(toy, monkeypatch, old, new)
    assert compared.trouble == said
    assert compared.slower(1.1) is failed


@pytest.mark.parametrize(
    ("new", "slower"),
    [
        ((1.0, 1.0, 1.0), False),
        ((1.2, 1.2, 1.2), True),
        # One side was disturbed: the shortest round, or the median, says that it is as quick.
        ((1.5, 1.0, 1.5), False),
        ((1.0, 1.05, 9.0), False),
    ],
)
def test_median_and_shortest_round_must_both_be_slower(
    new: tuple[float, ...], slower: bool
) -> None:
    assert Compared("some", (1.0, 1.0, 1.0), new).slower(1.1) is slower


def test_what_is_slower_is_measured_again_and_the_second_time_counts() -> None:
    asked = []

    def measure(name: str) -> Compared:
        asked.append(name)
        again = asked.count(name) == 2
        new = {"same": 1.0, "disturbed": 1.0 if again else 2.0, "slower": 2.0}[name]
        return Compared(name, (1.0,), (new,))

    found = compare.run_all(["same", "disturbed", "slower"], 1.1, measure)
    assert asked == ["same", "disturbed", "disturbed", "slower", "slower"]
    assert [each.slower(1.1) for each in found] == [False, False, True]


def test_table_has_the_slowest_first_and_troubles_last() -> None:
    compared = [
        Compared("quick", (0.002,), (0.001,)),
        Compared("slow", (0.001,), (0.002,)),
        Compared("lost", trouble="here failed: it is gone", failed=True),
    ]
    lines = compare.table(compared, "v1", 1.1)
    assert lines[2] == "| slow | 1 | 2 | 2 | 2 | slower |"
    assert lines[3] == "| quick | 2 | 1 | 0.5 | 0.5 |  |"
    assert lines[4] == "- lost: here failed: it is gone"
    assert lines[5] == "2 of 3 slower than 1.1 times v1, or failed"


def test_unknown_revision_is_an_error() -> None:
    with (
        pytest.raises(RevisionError, match="revision 'no-such-branch' is not here: fatal"),
        compare.installed("no-such-branch", lambda line: None),
    ):
        pytest.fail("there is no such revision")


def test_study_cannot_be_compared(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["--compare", "HEAD", "--workloads", "growth"]) == 2
    assert "'growth' cannot be compared: expected a workload of steps" in capsys.readouterr().err


@pytest.mark.parametrize("limit", ["0.9", "nan", "inf"])
def test_limit_below_one_is_refused(limit: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match="2"):
        cli.main(["--compare", "HEAD", "--limit", limit])
    assert "expected a number of at least 1" in capsys.readouterr().err


def test_kept_process_that_ended_is_started_again(
    toy: Workload, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TOY_SECONDS", "1")
    entry = toy.entries[0]
    with Kept(1) as kept:
        with kept.lend(entry) as first, pytest.raises(ParticipantError, match="no answer"):
            first.build("toys.timed", compare.Request("headrace", "", 1), 0.0)
        with kept.lend(entry) as second:
            assert second is not first
            assert second.alive()
        with kept.lend(entry) as third:
            assert third is second
