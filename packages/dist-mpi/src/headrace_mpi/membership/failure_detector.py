"""The failure detector: heartbeats, and what this host knows of its processes.

Each rank sends every other one a HEALTH frame each second, from a thread of its own, so that a
rank that computes, or waits for a user, still gives signs of life. Nothing is heard of a rank that
was stopped (SIGSTOP), whose host is cut off, or where code holds the interpreter's lock; so silence
makes a rank *slow*, which is reported once, and *lost* only after a long time. Of the ranks of this
host the operating system knows more: a process that is gone without having left is lost at once,
and one that is stopped is said to be. MPI's own word (``ulfm``) counts, too.

A rank that leaves says so with a LEAVING frame: its end is no loss.
"""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, final

from headrace.errors import ClusterError, TaskLostError
from headrace.extend.faults import is_muted
from headrace_mpi.transport.wire import Frame, Kind

if TYPE_CHECKING:
    from headrace_mpi.membership.members import Member
    from headrace_mpi.transport.transport import Transport

_BEAT_S = 1.0
# What a process that is gone has sent may still be on its way: its LEAVING, or an error.
_GONE_S = 0.6
_MAX_WHY = 500
GONE = "gone"
STOPPED = "stopped"


def process_state(pid: int) -> str:
    """Return the state of a process of this host: ``"gone"``, ``"stopped"`` or "" for others.

    Where there is no ``/proc``, no process is known to be gone.
    """
    if not sys.platform.startswith("linux"):
        return ""
    try:
        letter = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return GONE
    except OSError:
        return ""
    return {"Z": GONE, "X": GONE, "T": STOPPED, "t": STOPPED}.get(letter, "")


@final
class FailureDetector:
    """Watches the other ranks of a cluster, from a thread of its own."""

    def __init__(
        self,
        transport: Transport,
        members: Sequence[Member],
        slow_s: float,
        lost_s: float,
        *,
        on_slow: Callable[[str, Member], object],
        on_lost: Callable[[TaskLostError, int], object],
        on_beat: Callable[[], object] = lambda: None,
    ) -> None:
        """Watch nobody before ``start``.

        Args:
            transport: Carries signs of life. Not started yet.
            members: All ranks, in order.
            slow_s: Seconds of silence after which a rank is reported as slow.
            lost_s: Seconds of silence after which it is lost.
            on_slow: Called once for each silence, with what is known of it.
            on_lost: Called once for each rank that is lost, with the error and the rank.
            on_beat: Called with each beat.
        """
        self._transport = transport
        self._members = members
        self._slow_s = slow_s
        self._lost_s = lost_s
        self._on_slow = on_slow
        self._on_lost = on_lost
        self._on_beat = on_beat
        self._beat_s = min(_BEAT_S, slow_s / 5, lost_s / 5)
        own = members[transport.rank]
        self._heard = {m.rank: time.monotonic() for m in members if m is not own}
        # Processes of this host that can be seen; in a container of its own a rank cannot.
        self._seen = {m.rank: m.pid for m in members if m is not own and m.host == own.host}
        self._seen = {rank: pid for rank, pid in self._seen.items() if not process_state(pid)}
        self._gone_since: dict[int, float] = {}
        self._told: set[int] = set()
        self._slow: set[int] = set()
        self._over = threading.Event()
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None
        transport.on(Kind.HEALTH, self._on_sign)
        transport.on(Kind.LEAVING, self._on_leaving)

    def start(self) -> None:
        """Begin to watch, and to give signs of life."""
        self._thread = threading.Thread(
            target=self._watch, name="headrace-failure-detector", daemon=True
        )
        self._thread.start()

    def stop(self) -> None:
        """Watch nobody any more."""
        self._over.set()
        thread = self._thread
        if thread is not None and thread is not threading.current_thread():
            thread.join(5.0)

    def leave(self) -> None:
        """Tell the others that this rank leaves, and watch nobody any more."""
        self.stop()
        self._send(Frame(Kind.LEAVING))

    def fail(self, why: str) -> None:
        """Tell the others that this rank fails, which is its loss to them."""
        self._over.set()
        self._send(Frame(Kind.LEAVING, payload=why.encode()[:_MAX_WHY]))

    def lost(self, ranks: Iterable[int], why: str) -> None:
        """Take the word of somebody else for the loss of ranks, such as that of MPI.

        Args:
            ranks: The ranks; those that have left, or were lost before, are passed over.
            why: What happened, as in ``"its process ended without leaving"``.
        """
        for rank in ranks:
            with self._lock:
                heard = self._heard.pop(rank, None)
                if heard is None or self._over.is_set():
                    continue
            member = self._members[rank]
            silence = time.monotonic() - heard
            # In the error's first line, which names all that one has to know.
            error = TaskLostError(
                f"{member.task} (rank {rank}, host {member.host}, pid {member.pid}) was lost: "
                f"{why}; last sign of life {silence:.1f} s ago"
            )
            self._on_lost(error, rank)

    def told_itself(self, rank: int) -> bool:
        """Whether a rank that is lost has told so itself: it is ending."""
        return rank in self._told

    def _on_sign(self, rank: int, frame: Frame) -> None:
        if rank in self._heard:
            self._heard[rank] = time.monotonic()

    def _on_leaving(self, rank: int, frame: Frame) -> None:
        if frame.text:
            self._told.add(rank)
            self.lost([rank], frame.text)
            return
        with self._lock:
            self._heard.pop(rank, None)

    def _send(self, frame: Frame) -> None:
        for rank in list(self._heard):
            try:
                self._transport.send(rank, frame)
            except ClusterError:
                return

    def _watch(self) -> None:
        before = time.monotonic()
        while not self._over.wait(self._beat_s):
            if not is_muted():
                self._send(Frame(Kind.HEALTH))
            now = time.monotonic()
            late = now - before - self._beat_s
            before = now
            if late > self._beat_s:
                # This process itself stood still, and could not hear anybody.
                with self._lock:
                    self._heard = {rank: heard + late for rank, heard in self._heard.items()}
            for rank in list(self._heard):
                self._look(rank, now)
            self._on_beat()

    def _look(self, rank: int, now: float) -> None:
        heard = self._heard.get(rank)
        if heard is None:
            return
        state = process_state(self._seen[rank]) if rank in self._seen else ""
        if state == GONE:
            if now - self._gone_since.setdefault(rank, now) >= _GONE_S:
                self.lost([rank], "its process ended without leaving the cluster")
            return
        silence = now - heard
        if silence < self._slow_s:
            self._slow.discard(rank)
            return
        known = _known(state, seen=rank in self._seen)
        if silence >= self._lost_s:
            self.lost([rank], f"{known}, for longer than {self._lost_s:g} s")
        elif rank not in self._slow:
            self._slow.add(rank)
            self._on_slow(f"no sign of life for {silence:.1f} s: {known}", self._members[rank])


def _known(state: str, *, seen: bool) -> str:
    """Return why nothing may be heard of a rank."""
    if state == STOPPED:
        return "its process is stopped (SIGSTOP, or a debugger)"
    if seen:
        return "its process lives, but holds the interpreter, or gets no time on its cores"
    return "its host or the network does not answer, or its process holds the interpreter"
