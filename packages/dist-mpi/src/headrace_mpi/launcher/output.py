"""Relaying the output of ranks, with the task in front of each line, and their status lines.

``mpirun --tag-output`` marks with the rank what each rank writes. The marks become ``[worker:1]``;
lines of several ranks are kept apart, also where a rank writes a line in pieces.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Iterable
from typing import IO, TextIO, final

from headrace_mpi.launcher.status_lines import MARK, SEGMENTS

_TAG = re.compile(r"\[\d+,(\d+)\]<std(?:out|err)>: ?")
_RULE = "-" * 74


@final
class JobStatus:
    """The status of the ranks of one start of a job.

    Attributes:
        names: For each rank what stands before its lines.
        here: The ranks that came to the start of the cluster.
        told_lost: The ranks that others lost.
        segments: Files of shared memory that the ranks use.
        spare: The ranks without which the job goes on.
        alone: For each of those that failed by itself its exit code.
        saves: How often ranks have said that they still save what they have.
        left: For each other rank that left by itself its exit code, in the order in which they
            left.
    """

    def __init__(self, size: int, tasks: Iterable[str] = ()) -> None:
        """Know nothing of ``size`` ranks but, maybe, the ``tasks`` that they play."""
        self.names = {rank: f"rank {rank}" for rank in range(size)}
        self.names.update(enumerate(tasks))
        self.here: set[int] = set()
        self.left: dict[int, int] = {}
        self.told_lost: set[int] = set()
        self.spare: set[int] = set()
        self.alone: dict[int, int] = {}
        self.segments: set[str] = set()
        self.saves = 0

    def hear(self, rank: int, note: str) -> None:
        """Take what a rank tells; see ``status_lines.tell``."""
        word, _, rest = note.strip().partition(" ")
        if word == "here":
            self.here.add(rank)
        elif word == "plays":
            self.names[rank] = rest
        elif word == "lost" and rest.isdigit() and int(rest) in self.names:
            self.told_lost.add(int(rest))
        elif word == "uses" and rest.startswith(SEGMENTS):
            self.segments.add(rest)
        elif word == "saves":
            self.saves += 1
        elif word == "spare":
            self.spare.add(rank)
        elif word == "alone" and rest.isdigit():
            self.alone.setdefault(rank, int(rest))
        elif word == "left" and rest.isdigit():
            self.left.setdefault(rank, int(rest))

    @property
    def named(self) -> list[int]:
        """The ranks whose loss others told."""
        return sorted(self.told_lost - self.left.keys())

    @property
    def without(self) -> list[int] | None:
        """The ranks without which the job came to its end; None where it did not come there."""
        needed = self.names.keys() - self.spare
        if not self.spare or self.failure or any(rank not in self.left for rank in needed):
            return None
        return sorted(rank for rank in self.spare if self.left.get(rank) != 0)

    @property
    def lost(self) -> list[int]:
        """The ranks that came and did not tell how they leave."""
        return sorted(self.here - self.left.keys())

    @property
    def failure(self) -> int:
        """The exit code of the first rank that left with another than 0, else 0."""
        return next((code for code in self.left.values() if code), 0)


@final
class Relay:
    """Passes one stream of the job on, line by line, from a thread of its own."""

    def __init__(
        self, source: IO[bytes], sink: TextIO, status: JobStatus, token: str, *, tagged: bool
    ) -> None:
        """Begin to pass on what comes.

        Args:
            source: What the ranks write.
            sink: Where their lines go.
            status: Gets what the ranks tell.
            token: Begins what they tell.
            tagged: Whether the launcher marks lines with ranks; otherwise all are of rank 0.
        """
        self._source = source
        self._sink = sink
        self._status = status
        self._mark = f"{MARK}{token} "
        self._tagged = tagged
        self._parts: dict[int | None, str] = {}
        self._rules: set[int] = set()
        self._banners: set[int] = set()
        # Lines of the launcher itself.
        self.notes: list[str] = []
        self._thread = threading.Thread(target=self._pass_on, name="headrace-relay", daemon=True)
        self._thread.start()

    def finish(self, timeout_s: float) -> None:
        """Wait until all has come, or something that outlives the job holds the stream open."""
        self._thread.join(timeout_s)

    def _pass_on(self) -> None:
        # Reads what is there, for a line that is not ended must not hold up those of others.
        read = getattr(self._source, "read1", self._source.read)
        rest = b""
        rank: int | None = None if self._tagged else 0
        while data := read(1 << 16):
            whole, end, rest = (rest + data).rpartition(b"\n")
            if end:
                for line in whole.decode("utf-8", "replace").split("\n"):
                    rank = self._take(rank, line)
        if rest:
            self._take(rank, rest.decode("utf-8", "replace"))
        for rank, text in self._parts.items():
            if text:
                self._show(rank, text)

    def _take(self, rank: int | None, line: str) -> int | None:
        """Take a line of the launcher's stream; return the rank whose text it ends with."""
        rank = None if self._tagged else 0
        at = 0
        for tag in _TAG.finditer(line) if self._tagged else ():
            # A mark within a line follows what another rank wrote without an end of line.
            if tag.start() > at:
                self._parts[rank] = self._parts.get(rank, "") + line[at : tag.start()]
            rank, at = int(tag[1]), tag.end()
        self._show(rank, self._parts.pop(rank, "") + line[at:])
        return rank

    def _show(self, rank: int | None, line: str) -> None:
        if rank is None:
            self.notes.append(line)
            return
        # Open MPI ends its own messages among a rank's lines with a zero.
        empty, line = line == "\0", line.replace("\0", "")
        shown, mark, note = line.partition(self._mark)
        if mark:
            self._status.hear(rank, note)
        if empty or (mark and not shown) or self._in_banner(rank, shown):
            return
        self._write(rank, shown)

    def _in_banner(self, rank: int, line: str) -> bool:
        """Whether a line is of what Open MPI says, in ten lines, where a rank ends the job."""
        rule = line.startswith(_RULE)
        if rank in self._banners:
            if rule:
                self._banners.discard(rank)
            return True
        if rank in self._rules:
            self._rules.discard(rank)
            if line.startswith("MPI_ABORT was invoked"):
                self._banners.add(rank)
                return True
            self._write(rank, _RULE)
        if rule:
            # Which it is, the next line tells.
            self._rules.add(rank)
        return rule

    def _write(self, rank: int, shown: str) -> None:
        # Of a bar that is redrawn in place a log wants the last state only.
        shown = shown.rstrip("\r").rpartition("\r")[2]
        self._sink.write(f"[{self._status.names.get(rank, f'rank {rank}')}] {shown}\n")
        self._sink.flush()
