"""The links of a rank to the other ranks of its host: a ring to each of them, and one from each.

A rank makes one piece of memory, its inbox: a bell, and for each other rank of its host a ring that
only that rank writes. Whoever could map the inbox of another rank sends through it; what cannot be
sent so goes by MPI, which is the only way where memory cannot be shared.
"""

from __future__ import annotations

import contextlib
import json
import threading
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from typing import final

from headrace_mpi.links import doorbell, memory, ring
from headrace_mpi.links.doorbell import Doorbell
from headrace_mpi.links.memory import PAGE_BYTES, Address, SharedMemory
from headrace_mpi.links.ring import RingReader, RingWriter
from headrace_mpi.settings import SHARE_MEMORY

_RING_STRIDE = -(-ring.TOTAL_BYTES // PAGE_BYTES) * PAGE_BYTES


@final
class Link:
    """The way to another rank of this host; any thread may send."""

    __slots__ = ("_backlog", "_bell", "_lock", "_memory", "_pid", "_ring")

    def __init__(self, pid: int, found: SharedMemory, index: int) -> None:
        """Send through the ring with this index in the inbox of another rank's process."""
        self._pid = pid
        self._memory = found
        start = PAGE_BYTES + index * _RING_STRIDE
        self._ring = RingWriter(found.view[start : start + ring.TOTAL_BYTES])
        self._bell = Doorbell(found.view[: doorbell.WORDS_BYTES])
        # What found no room: the other rank does not read just now.
        self._backlog: deque[bytes] = deque()
        self._lock = threading.Lock()

    def send(self, message: bytes) -> bool:
        """Send a message, in the order of calls; return whether it is in the ring already."""
        with self._lock:
            if self._backlog or not self._ring.put(message):
                self._backlog.append(message)
                return False
        self._bell.ring()
        return True

    @property
    def pid(self) -> int:
        """The other rank's process."""
        return self._pid

    def push(self) -> bool:
        """Send what found no room before; return whether all of it went."""
        sent = False
        with self._lock:
            while self._backlog and self._ring.put(self._backlog[0]):
                self._backlog.popleft()
                sent = True
            done = not self._backlog
        if sent:
            self._bell.ring()
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
        self.bell = Doorbell(inbox.view[: doorbell.WORDS_BYTES])
        self._rings = [
            (peer, RingReader(inbox.view[start : start + ring.TOTAL_BYTES]))
            for index, peer in enumerate(peers)
            for start in [PAGE_BYTES + index * _RING_STRIDE]
        ]

    @property
    def ranks(self) -> int:
        """Number of ranks of this host."""
        return 1 + len(self._rings)

    @property
    def waiting(self) -> bool:
        """Whether a message is there."""
        return any(reader.waiting for _, reader in self._rings)

    def receive(self, most: int) -> list[tuple[int, bytearray]]:
        """Return messages that have come, each with its sender; at most so many of each.

        One thread at a time may do so.

        Raises:
            ValueError: if a ring holds no message where one should be.
        """
        found: list[tuple[int, bytearray]] = []
        for peer, reader in self._rings:
            for _ in range(most):
                message = reader.get()
                if message is None:
                    break
                found.append((peer, message))
        return found

    def close(self) -> None:
        """Let go of all memory."""
        for link in self.to.values():
            link.close()
        for _, reader in self._rings:
            reader.close()
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
    card = b"" if inbox is None else json.dumps(inbox.address).encode()
    cards = exchange(card)
    if inbox is None:
        return None
    links: dict[int, Link] = {}
    for other in near:
        if not cards[other]:
            continue
        # The rings of an inbox are those of its host's other ranks, in order.
        theirs = [r for r, host in enumerate(hosts) if host == hosts[other] and r != other]
        with contextlib.suppress(OSError):
            address = Address(*json.loads(cards[other]))
            links[other] = Link(address.pid, memory.find(address), theirs.index(rank))
    return Links(inbox, near, links)


def _inbox(peers: int) -> SharedMemory | None:
    if not doorbell.is_supported():
        return None
    try:
        return memory.make(PAGE_BYTES + peers * _RING_STRIDE)
    except OSError:
        return None
