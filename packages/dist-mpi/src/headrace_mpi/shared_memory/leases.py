"""Leases: large payloads between ranks of one host, in memory that is lent and comes back.

Who sends copies the payload into shared memory of its own, and says in a message where that is. Who
receives maps the memory, once, and hands out an array that lies in it. When the last reference to
the array goes, a word in the memory says so, and the sender uses it again: memory that was used
before is written several times faster than the system can provide new one.

What is lent to a rank that is lost is thrown away; the system frees it when nobody maps it any
more.
"""

from __future__ import annotations

import contextlib
import struct
import threading
import weakref
from collections.abc import Callable, Mapping
from typing import Any, Protocol, final

import numpy as np

from headrace_mpi.shared_memory import mapped_memory
from headrace_mpi.shared_memory.mapped_memory import PAGE_BYTES, Address, SharedMemory
from headrace_mpi.transport.wire import LEASE_BYTES, RAW, STRING, Encoded, Header, Kind, WireError

Bytes = np.ndarray[Any, np.dtype[np.uint8]]

# How much memory a rank lends at once, in pieces of which each takes a descriptor.
MOST_BYTES = 1 << 31
MOST_PIECES = 128
_LEAST_BYTES = 1 << 16
# A piece is used for what is at least so much smaller.
_SPARE = 2
_HANDLE = struct.Struct("<QQ16s")
_LENT = 0
_RETIRED = 1


class Peer(Protocol):
    """Another rank of this host."""

    @property
    def pid(self) -> int:
        """Its process."""


def _capacity(nbytes: int) -> int:
    """Return the size of a piece for so many bytes: an eighth of a power of two, or more."""
    grain = max(1 << max(nbytes.bit_length() - 4, 0), PAGE_BYTES)
    return max(-(-nbytes // grain) * grain, _LEAST_BYTES)


@final
class _Piece:
    """Memory that is lent as a whole."""

    __slots__ = ("body", "capacity", "handle", "memory", "rank")

    def __init__(self, shared: SharedMemory) -> None:
        self.memory = shared
        self.capacity = shared.view.nbytes
        self.body = np.frombuffer(shared.view, np.uint8)
        address = shared.address
        # What others need to find it.
        self.handle = _HANDLE.pack(address.descriptor, address.nbytes, bytes.fromhex(address.word))
        self.rank = -1

    @property
    def lent(self) -> bool:
        return bool(self.memory.words[_LENT])

    def retire(self) -> None:
        """Give it up; who has mapped it lets go of it when it next looks."""
        self.memory.words[_RETIRED] = 1
        del self.body
        self.memory.close()


@final
class Leases:
    """What this rank lends to others of its host, and what it has from them."""

    def __init__(self, peers: Mapping[int, Peer]) -> None:
        """Lend and take nothing yet.

        Args:
            peers: The other ranks.
        """
        self._peers = peers
        self._pieces: list[_Piece] = []
        self._nbytes = 0
        self._lock = threading.Lock()
        self._mapped: dict[tuple[int, bytes], SharedMemory] = {}
        self._held: dict[tuple[int, bytes], weakref.ref[Bytes]] = {}
        self._closed = False

    @property
    def lent(self) -> int:
        """Number of payloads that others have not given back; for tests."""
        with self._lock:
            return sum(piece.lent for piece in self._pieces)

    # -- lending

    def lend(self, rank: int, encoded: Encoded) -> bytes | None:
        """Copy a payload into memory that is lent to a rank.

        Returns:
            What the rank needs to find it; None if this payload cannot be lent, or there is no
            memory to lend.
        """
        body = encoded.body
        lendable = encoded.dtype_code not in (RAW, STRING) or encoded.frame.kind is Kind.BUNDLE
        if body is None or not lendable:
            return None
        piece = self._piece(rank, body.size)
        if piece is None:
            return None
        if isinstance(body, np.ndarray):
            np.copyto(piece.body[: body.size], body)
        else:
            body.write(piece.body[: body.size])
        return piece.handle

    def _piece(self, rank: int, nbytes: int) -> _Piece | None:
        """Return a piece for so many bytes, which counts as lent; None if there is none."""
        with self._lock:
            if self._closed:
                return None
            best = None
            for piece in reversed(self._pieces):
                fits = nbytes <= piece.capacity <= _SPARE * max(nbytes, _LEAST_BYTES)
                if fits and not piece.lent and (best is None or piece.capacity < best.capacity):
                    best = piece
            if best is None:
                best = self._made(_capacity(nbytes))
            if best is not None:
                # What was used last is found first: it is in the cache.
                self._pieces.remove(best)
                self._pieces.append(best)
                best.rank = rank
                best.memory.words[_LENT] = 1
            return best

    def _made(self, capacity: int) -> _Piece | None:
        """Return a new piece, in place of idle ones where there are too many."""
        while self._pieces and (
            len(self._pieces) >= MOST_PIECES or self._nbytes + capacity > MOST_BYTES
        ):
            idle = next((piece for piece in self._pieces if not piece.lent), None)
            if idle is None:
                return None
            self._retire(idle)
        if capacity > MOST_BYTES:
            return None
        try:
            piece = _Piece(mapped_memory.make(capacity))
        except OSError:
            return None
        self._pieces.append(piece)
        self._nbytes += piece.capacity
        return piece

    def _retire(self, piece: _Piece) -> None:
        self._pieces.remove(piece)
        self._nbytes -= piece.capacity
        piece.retire()

    def reclaim(self, rank: int) -> None:
        """Throw away what is lent to a rank that is lost, and let go of what it lends."""
        with self._lock:
            for piece in [p for p in self._pieces if p.rank == rank and p.lent]:
                self._retire(piece)
            for key in [key for key in self._mapped if key[0] == rank]:
                self._unmap(key)

    # -- taking

    def take(self, rank: int, header: Header, message: bytes | bytearray) -> Bytes:
        """Return the bytes of a payload that another rank lends.

        The memory goes back when nothing refers to the result, or a view of it, any more.

        Raises:
            WireError: if there is no such memory.
        """
        handle = bytes(message[header.header_bytes :])
        descriptor, total, word = _HANDLE.unpack(handle)
        key = (rank, word)
        with self._lock:
            shared = self._mapped.get(key)
            if shared is None:
                self._sweep()
                shared = self._map(rank, Address(0, descriptor, total, word.hex()))
                self._mapped[key] = shared
            if header.nbytes > shared.view.nbytes:
                raise WireError(
                    f"a {header.kind.name} frame lends {header.nbytes} bytes in a piece of "
                    f"{shared.view.nbytes}"
                )
            body = np.frombuffer(shared.view, np.uint8, header.nbytes)
            self._held[key] = weakref.ref(body, _give_back(shared.words))
        return body

    def _map(self, rank: int, address: Address) -> SharedMemory:
        peer = self._peers.get(rank)
        if peer is None:
            raise WireError(f"rank {rank} lends memory, but shares none with this rank")
        try:
            return mapped_memory.find(address._replace(pid=peer.pid))
        except (OSError, ValueError) as error:
            raise WireError(f"what rank {rank} lends cannot be mapped: {error}") from error

    def _sweep(self) -> None:
        """Let go of what its owner does not lend any more."""
        for key, shared in list(self._mapped.items()):
            if shared.words[_RETIRED] and self._held[key]() is None:
                self._unmap(key)

    def _unmap(self, key: tuple[int, bytes]) -> None:
        shared = self._mapped.pop(key)
        self._held.pop(key, None)
        shared.close()

    def close(self) -> None:
        """Let go of everything; arrays that are in use stay as they are."""
        with self._lock:
            self._closed = True
            for piece in list(self._pieces):
                self._retire(piece)
            for key in list(self._mapped):
                self._unmap(key)


def _give_back(words: memoryview) -> Callable[[object], None]:
    def give_back(_: object) -> None:
        # Where all was closed meanwhile, nobody waits for it.
        with contextlib.suppress(ValueError):
            words[_LENT] = 0

    return give_back


assert _HANDLE.size == LEASE_BYTES
