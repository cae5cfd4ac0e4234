"""The flight record: the last frames that a rank sent and got, kept for when something goes wrong.

Noting a frame costs less than half a microsecond, so every rank does always. The record is written,
on all ranks, when a step runs out of time or a rank is lost; ``python -m headrace flight`` then
tells from the files of all ranks which frames were sent and never came, and who did what last.

References:
    PyTorch's flight recorder and Horovod's stall inspector do so for collectives.
"""

from __future__ import annotations

import contextlib
import json
import os
import tempfile
import time
from collections import deque
from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple, final

from headrace_mpi.settings import FLIGHT
from headrace_mpi.transport.wire import Frame, Kind

FRAMES = 2000
# Of steps that are traced every frame counts.
TRACED_FRAMES = 200_000

clock = time.perf_counter_ns


class Noted(NamedTuple):
    """A frame in the record.

    Attributes:
        at: When it was sent or came, in nanoseconds of ``clock``.
        sent: Whether this rank sent it.
        peer: The other rank.
        kind: What it says.
        step: The step it belongs to.
        edge: The edge whose tensor it carries, or the handle that it is about.
        iteration: How many values the edge has carried before.
    """

    at: int
    sent: bool
    peer: int
    kind: Kind
    step: int
    edge: int
    iteration: int


@final
class FlightRecord:
    """The last frames of a rank."""

    def __init__(self) -> None:
        self._ring: deque[Any] = deque(maxlen=FRAMES)

    def note(self, sent: bool, peer: int, frame: Frame) -> None:
        """Note a frame that is sent or has come."""
        # The kind, the step, the edge and the iteration; not the payload, which would live on.
        self._ring.append((clock(), sent, peer, frame[:4]))

    def widen(self) -> None:
        """Keep more frames from now on."""
        if self._ring.maxlen != TRACED_FRAMES:
            self._ring = deque(self._ring, TRACED_FRAMES)

    def frames(self, step: int | None = None) -> list[Noted]:
        """Return the frames in the record, those of one step or all, the oldest first."""
        while True:
            try:
                return [
                    Noted(*entry[:3], *entry[3])
                    for entry in self._ring
                    if step is None or entry[3][1] == step
                ]
            except RuntimeError:
                # Another thread noted a frame meanwhile.
                continue

    def write(self, rank: int, task: str, job: str, reason: str) -> Path | None:
        """Write the record as lines of JSON, and return the file; None where that fails.

        Args:
            rank: The rank whose record it is.
            task: Its task.
            job: What tells the job from others; a later record of it replaces an earlier one.
            reason: Why it is written.
        """
        folder = Path(FLIGHT.read() or Path(tempfile.gettempdir(), "headrace-flight"))
        path = folder / f"{job or os.getpid()}-rank{rank}.jsonl"
        head = {
            "rank": rank,
            "task": task,
            "reason": reason,
            # What makes of ``at`` the nanoseconds since 1970.
            "epoch": time.time_ns() - clock(),
            "now": clock(),
        }
        lines = [json.dumps(head), *(json.dumps(_fields(noted)) for noted in self.frames())]
        beside = path.with_name(f".{path.name}.{os.getpid()}")
        with contextlib.suppress(OSError):
            folder.mkdir(parents=True, exist_ok=True)
            beside.write_text("\n".join(lines) + "\n", encoding="utf-8")
            beside.replace(path)
            return path
        return None


def _fields(noted: Noted) -> dict[str, Any]:
    return {**noted._asdict(), "kind": noted.kind.name}


def key(rank: int, noted: Noted) -> tuple[Any, ...]:
    """Return what tells a frame from all others, the same at both ends.

    Args:
        rank: Whose record it is in.
        noted: The frame.
    """
    ends = (rank, noted.peer) if noted.sent else (noted.peer, rank)
    return (*ends, noted.kind, noted.step, noted.edge, noted.iteration)


def lost_frames(records: Iterable[tuple[int, list[Noted]]]) -> list[tuple[int, Noted]]:
    """Return the frames that were sent, and are in no record of who should have got them.

    Args:
        records: Ranks and what they noted. Frames to ranks that are missing are passed over, and
            those that are older than all that the receiver's record still has.
    """
    by_rank = dict(records)
    came = {key(rank, n) for rank, notes in by_rank.items() for n in notes if not n.sent}
    since = {rank: notes[0].at for rank, notes in by_rank.items() if notes}
    return [
        (rank, noted)
        for rank, notes in by_rank.items()
        for noted in notes
        if noted.sent
        and noted.peer in by_rank
        and noted.at >= since.get(noted.peer, 0)
        and noted.kind is not Kind.HEALTH
        and key(rank, noted) not in came
    ]
