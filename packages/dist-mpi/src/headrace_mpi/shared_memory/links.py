"""The links of a rank to the other ranks of its host: a ring to each of them, and one from each.

A rank makes one piece of memory, its inbox: a bell, and for each other rank of its host a ring that
only that rank writes, and a count of what is in it; the counts lie side by side. Whoever could map
the inbox of another rank sends through it; what cannot be sent so goes by MPI, which is the only
way where memory cannot be shared.
"""

from __future__ import annotations

import contextlib
import json
import threading
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import final

from headrace_mpi.settings import SHARE_MEMORY
from headrace_mpi.shared_memory import doorbell, mapped_memory, ring_buffer
from headrace_mpi.shared_memory.doorbell import Doorbell
from headrace_mpi.shared_memory.mapped_memory import PAGE_BYTES, Address, SharedMemory
from headrace_mpi.shared_memory.ring_buffer import RingReader, RingWriter

# Where an inbox says on which core its rank is busy, and where its counts begin.
_CORE_AT = 16
_COUNTS_AT = 64


def _pages(nbytes: int) -> int:
    return -(-nbytes // PAGE_BYTES) * PAGE_BYTES


@final
class _Parts:
    """Where things are in an inbox.

    Attributes:
        nbytes: Its size.
        bell: The bell.
        core: On which core the rank is busy with messages: from 1 on, 0 where it is not.
        counts: What was written into the rings, by index.
        passed: Of which rings nothing is read just now: a byte for each, by index.
    """

    def __init__(self, peers: int) -> None:
        self._stride = _pages(ring_buffer.TOTAL_BYTES)
        self._rings_at = _pages(_COUNTS_AT + 9 * peers)
        self.nbytes = self._rings_at + peers * self._stride
        self.bell = slice(0, doorbell.WORDS_BYTES)
        self.core = slice(_CORE_AT, _CORE_AT + 8)
        self.counts = slice(_COUNTS_AT, _COUNTS_AT + 8 * peers)
        self.passed = slice(_COUNTS_AT + 8 * peers, _COUNTS_AT + 9 * peers)

    def ring(self, view: memoryview, index: int) -> tuple[memoryview, memoryview]:
        """Return the memory of a ring, and of its count."""
        start, count = self._rings_at + index * self._stride, _COUNTS_AT + 8 * index
        return view[start : start + ring_buffer.TOTAL_BYTES], view[count : count + 8]


@final
class Link:
    """The way to another rank of this host; any thread may send."""

    __slots__ = (
        *("_backlog", "_bell", "_core", "_lock", "_memory", "_passed", "_pid", "_put", "_ring"),
        "_ring_bell",
    )

    def __init__(self, pid: int, found: SharedMemory, index: int, peers: int) -> None:
        """Send through a ring in the inbox of another rank's process.

        Args:
            pid: The process.
            found: The inbox.
            index: The index of the ring.
            peers: How many rings there are.
        """
        self._pid = pid
        self._memory = found
        parts = _Parts(peers)
        self._ring = RingWriter(*parts.ring(found.view, index))
        self._bell = Doorbell(found.view[parts.bell])
        self._core = found.view[parts.core].cast("Q")
        self._passed = found.view[parts.passed][index : index + 1]
        self._put, self._ring_bell = self._ring.put, self._bell.ring
        # What found no room: the other rank does not read just now.
        self._backlog: deque[bytes] = deque()
        self._lock = threading.Lock()

    def send(self, message: bytes) -> bool:
        """Send a message, in the order of calls; return whether it is in the ring already."""
        with self._lock:
            if self._backlog or not self._put(message):
                self._backlog.append(message)
                return False
        self._ring_bell()
        return True

    @property
    def passed_over(self) -> bool:
        """Whether the other rank reads messages of others just now, and not those of this one."""
        return self._passed[0] != 0

    @property
    def busy_core(self) -> int:
        """The core on which the other rank is busy with messages; -1 where it is not."""
        return self._core[0] - 1

    @property
    def pid(self) -> int:
        """The other rank's process."""
        return self._pid

    def push(self) -> bool:
        """Send what found no room before; return whether all of it went."""
        sent = False
        with self._lock:
            while self._backlog and self._put(self._backlog[0]):
                self._backlog.popleft()
                sent = True
            done = not self._backlog
        if sent:
            self._ring_bell()
        return done

    def drop(self) -> None:
        """Forget what found no room: nobody reads it any more."""
        with self._lock:
            self._backlog.clear()

    def close(self) -> None:
        """Let go of the memory."""
        with self._lock:
            self._bell.close()
            self._ring.close()
            self._core.release()
            self._passed.release()
            with contextlib.suppress(BufferError):
                self._memory.close()


@final
class Links:
    """All links of a rank, and its inbox.

    Attributes:
        to: The way to each rank that has one.
        bell: The bell of this rank.
    """

    def __init__(self, inbox: SharedMemory, peers: Iterable[int], to: Mapping[int, Link]) -> None:
        """Use ``open_links``."""
        self._inbox = inbox
        self.to = dict(to)
        ranks = list(peers)
        parts = _Parts(len(ranks))
        self.bell = Doorbell(inbox.view[parts.bell])
        self._rings = [
            (peer, RingReader(*parts.ring(inbox.view, index))) for index, peer in enumerate(ranks)
        ]
        self._counts = inbox.view[parts.counts]
        self._core = inbox.view[parts.core].cast("Q")
        self._passed = inbox.view[parts.passed]
        # The counts when all that had come was taken.
        self._taken = bytearray(8 * len(ranks))
        self._ends = memoryview(self._taken).cast("Q")

    @property
    def ranks(self) -> int:
        """Number of ranks of this host."""
        return 1 + len(self._rings)

    @property
    def waiting(self) -> bool:
        """Whether a message is there."""
        return self._counts.tobytes() != self._taken

    def look(self, times: int) -> bool:
        """Look so many times in a row whether a message comes; return whether one is there."""
        look, taken = self._counts.tobytes, self._taken
        # A loop: it is what a step waits in, and an iterator takes twice as long.
        for _ in range(times):  # noqa: SIM110
            if look() != taken:
                return True
        return False

    def receive(self, most: int) -> Sequence[tuple[int, bytearray]]:
        """Return messages that have come, each with its sender; at most so many of each.

        One thread at a time may do so.

        Raises:
            ValueError: if a ring holds no message where one should be.
        """
        counts = self._counts.tobytes()
        if counts == self._taken:
            return ()
        found: list[tuple[int, bytearray]] = []
        more = False
        for peer, reader in self._rings:
            if reader.drain(found, peer, most) == most:
                more = True
        if not more:
            self._taken[:] = counts
        return found

    def pass_over(self, index: int, passed: bool) -> None:
        """Let a rank know whether its messages are read, by the index of its ring."""
        self._passed[index] = passed

    def tell_core(self, core: int) -> None:
        """Let others know on which core this rank is busy with messages; -1 where it is not."""
        self._core[0] = core + 1

    def has(self, index: int) -> bool:
        """Whether a message has come in a ring, by its index."""
        return self._rings[index][1].waiting

    def receive_from(self, index: int, into: list[tuple[int, bytearray]], most: int) -> None:
        """Append what has come in one ring to a list, as ``receive`` returns what came in all."""
        peer, reader = self._rings[index]
        reader.drain(into, peer, most)
        # Exact, since nothing is waiting then: what no ring has would be looked for without an end.
        self._ends[index] = reader.taken

    def close(self) -> None:
        """Let go of all memory."""
        for link in self.to.values():
            link.close()
        for _, reader in self._rings:
            reader.close()
        self._counts.release()
        self._ends.release()
        self._core.release()
        self._passed.release()
        self.bell.close()
        with contextlib.suppress(BufferError):
            self._inbox.close()


def open_links(
    rank: int, hosts: list[str], exchange: Callable[[bytes], list[bytes]]
) -> Links | None:
    """Link this rank with those of its host; every rank of the job must call it.

    Args:
        rank: This rank.
        hosts: The host of each rank.
        exchange: Hands bytes to all ranks and returns those of each, in order.

    Returns:
        The links; None if this rank has no inbox.
    """
    near = [r for r, host in enumerate(hosts) if host == hosts[rank] and r != rank]
    inbox = _inbox(len(near)) if near and SHARE_MEMORY.read() else None
    handle = b"" if inbox is None else json.dumps(inbox.address).encode()
    handles = exchange(handle)
    if inbox is None:
        return None
    links: dict[int, Link] = {}
    for other in near:
        if not handles[other]:
            continue
        # The rings of an inbox are those of its host's other ranks, in order.
        theirs = [r for r, host in enumerate(hosts) if host == hosts[other] and r != other]
        with contextlib.suppress(OSError):
            address = Address(*json.loads(handles[other]))
            found = mapped_memory.find(address)
            links[other] = Link(address.pid, found, theirs.index(rank), len(theirs))
    return Links(inbox, near, links)


def _inbox(peers: int) -> SharedMemory | None:
    if not doorbell.is_supported():
        return None
    try:
        return mapped_memory.make(_Parts(peers).nbytes)
    except OSError:
        return None
