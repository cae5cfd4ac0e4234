"""Flight records: what is kept, written, and told of the files of several ranks."""

from __future__ import annotations

import json
import time
from pathlib import Path

import pytest

from headrace.cli.main import main
from headrace.errors import (
    DeadlineExceededError,
    InvalidArgumentError,
    OutOfRangeError,
    TaskLostError,
)
from headrace_mpi.flight.dump import FlightDump
from headrace_mpi.flight.record import FRAMES, FlightRecord, lost_frames
from headrace_mpi.transport.wire import Frame, Kind


def test_the_last_frames_are_kept_and_noting_one_is_cheap() -> None:
    record = FlightRecord()
    frame = Frame(Kind.TENSOR, 7, 3, 1)
    count = 20_000
    best = float("inf")
    for _ in range(3):
        begin = time.perf_counter()
        for _ in range(count):
            record.note(True, 1, frame)
        best = min(best, (time.perf_counter() - begin) / count)
    # 0.15 us where nothing else runs.
    assert best < 3e-6, f"{best * 1e6:.2f} us a frame"
    assert len(record.frames()) == FRAMES
    record.note(False, 2, Frame(Kind.DONE, 8))
    (noted,) = record.frames(step=8)
    assert (noted.sent, noted.peer, noted.kind, noted.step) == (False, 2, Kind.DONE, 8)
    record.widen()
    for _ in range(FRAMES):
        record.note(True, 1, frame)
    assert len(record.frames()) == 2 * FRAMES


def pair() -> tuple[FlightRecord, FlightRecord]:
    """The records of two ranks; of three frames one was not received."""
    zero, one = FlightRecord(), FlightRecord()
    run = Frame(Kind.RUN, 5, 1)
    zero.note(True, 1, run)
    one.note(False, 0, run)
    one.note(True, 0, Frame(Kind.TENSOR, 5, 2))
    for rank, peer in ((zero, 1), (one, 0)):
        rank.note(True, peer, Frame(Kind.TENSOR, 5, 9, 4))
    zero.note(False, 1, Frame(Kind.TENSOR, 5, 9, 4))
    one.note(False, 0, Frame(Kind.TENSOR, 5, 9, 4))
    return zero, one


def test_what_never_came_is_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    records = pair()
    ((rank, noted),) = lost_frames((r, record.frames()) for r, record in enumerate(records))
    assert (rank, noted.peer, noted.kind, noted.edge) == (1, 0, Kind.TENSOR, 2)

    monkeypatch.setenv("HEADRACE_FLIGHT", str(tmp_path / "flight"))
    for rank, record in enumerate(records):
        assert record.write(rank, f"/job:worker/task:{rank}", "job", "it stood still") is not None
    assert main(["flight", str(tmp_path / "flight"), "--last", "1"]) == 0
    out = capsys.readouterr().out
    assert "rank 0 (/job:worker/task:0): it stood still; 3 frames, " in out
    assert "rank 1 (/job:worker/task:1): it stood still; 4 frames, " in out
    assert "frames that were sent and never came: 1\n" in out
    assert out.rstrip().endswith("1 -> 0  TENSOR step 5 of rank 0, edge 2")


def test_what_is_no_record_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "odd.jsonl").write_text('{"rank": 0}\n')
    for words, message in (
        ([str(tmp_path / "none.jsonl")], "cannot read "),
        ([str(tmp_path)], "odd.jsonl is no flight record: KeyError"),
        ([str(tmp_path / "empty")], "there is no flight record"),
    ):
        (tmp_path / "empty").mkdir(exist_ok=True)
        assert main(["flight", *words]) == 2
        assert message in capsys.readouterr().err


class Line:
    """A transport of rank 0 of 3 that keeps what is sent."""

    rank, size = 0, 3

    def __init__(self) -> None:
        self.flight = FlightRecord()
        self.sent: list[tuple[int, Kind]] = []
        self.handlers: dict[Kind, object] = {}

    def on(self, kind: Kind, handler: object) -> None:
        self.handlers[kind] = handler

    def send(self, rank: int, frame: Frame) -> bool:
        self.sent.append((rank, frame.kind))
        return True


@pytest.mark.parametrize(
    ("error", "folder", "written"),
    [
        (DeadlineExceededError("too long"), "", True),
        (TaskLostError("worker:1 was lost"), "", True),
        (InvalidArgumentError("a bad label"), "", False),
        (InvalidArgumentError("a bad label"), "named", True),
        (OutOfRangeError("the end of the data"), "named", False),
    ],
    ids=["deadline", "lost", "mistake", "mistake-asked", "normal"],
)
def test_which_failures_are_recorded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: Exception, folder: str, written: bool
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    monkeypatch.setenv("HEADRACE_FLIGHT", folder and str(tmp_path / folder))
    line = Line()
    flight_dump = FlightDump(line, "/job:worker/task:0", "job")  # type: ignore[arg-type]
    flight_dump.failed(error)
    path = tmp_path / (folder or "headrace-flight") / "job-rank0.jsonl"
    assert path.exists() == written
    if not written:
        assert not line.sent
        return
    assert error.__notes__ == [f"the last frames of this rank: python -m headrace flight {path}"]
    assert line.sent == [(1, Kind.DUMP), (2, Kind.DUMP)]
    assert json.loads(path.read_text().splitlines()[0])["reason"] == str(error)
    # Another rank asks, too.
    line.handlers[Kind.DUMP](2, Frame(Kind.DUMP, payload=b"slow"))()  # type: ignore[operator]
    assert json.loads(path.read_text())["reason"] == "asked by rank 2: slow"
