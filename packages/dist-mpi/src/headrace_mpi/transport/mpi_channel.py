"""Frames by MPI: how they leave, and how they are taken in, for whoever holds the pump.

Payloads up to ``INLINE_BYTES`` travel in the message of their header. Larger ones follow apart,
under a tag of their own, out of the sender's array and into one of exactly the size that MPI itself
reports, on a matched probe; so a header that lies allocates nothing.
"""

from __future__ import annotations

import contextlib
import functools
import itertools
from collections import deque
from collections.abc import Callable, Container
from typing import TYPE_CHECKING, Any, final

import numpy as np

from headrace_mpi.transport import wire
from headrace_mpi.transport.wire import Frame, Header, WireError

if TYPE_CHECKING:
    from mpi4py import MPI

INLINE_BYTES = 32 * 1024
CHUNK_BYTES = 1 << 30
_BATCH = 32
_HEADER_TAG = 1
_FIRST_TAG = 2
_MAX_MESSAGE_BYTES = wire.MAX_HEADER_BYTES + INLINE_BYTES

Dispatch = Callable[[int, Frame], None]


class _Incoming:
    """A payload that travels apart and has not arrived completely."""

    __slots__ = ("array", "body", "filled", "header", "request", "source")

    def __init__(self, source: int, header: Header) -> None:
        self.source = source
        self.header = header
        self.array: Any = None
        self.body: np.ndarray[Any, np.dtype[np.uint8]] | None = None
        self.filled = 0
        self.request: MPI.Request | None = None


@final
class Channel:
    """The frames of one communicator; any thread may send, and one at a time take in."""

    def __init__(
        self,
        comm: MPI.Intracomm,
        dispatch: Dispatch,
        on_fault: Callable[[BaseException], None],
        forgotten: Container[int] = frozenset(),
    ) -> None:
        """Use a communicator that nobody else does.

        Args:
            comm: The communicator.
            dispatch: Called with each frame that has come, and its sender.
            on_fault: Called with what is wrong with a payload that travels apart.
            forgotten: Ranks that are lost: nothing is waited for that goes to them or comes from
                them.
        """
        from mpi4py import MPI

        self._mpi = MPI
        self._comm = comm
        self._dispatch = dispatch
        self._on_fault = on_fault
        self._forgotten = forgotten
        # Makes room for a tensor that travels apart, given its header, shape and dtype.
        self.room: Callable[[Header, tuple[int, ...], Any], Any] = lambda header, shape, dtype: (
            np.empty(shape, dtype)
        )
        self._status = MPI.Status()
        self._incoming: list[_Incoming] = []
        self._outgoing: deque[tuple[int, list[MPI.Request], object]] = deque()
        # What MPI may still read or write for a lost rank: kept, and waited for by nobody.
        self._abandoned: list[object] = []
        top = comm.Get_attr(MPI.TAG_UB)
        self._tags = (int(top) if top else 32767) - _FIRST_TAG
        self._sequence = itertools.count()

    @property
    def moving(self) -> bool:
        """Whether MPI has data to move, for which it must be called."""
        return bool(self._incoming or self._outgoing)

    @property
    def sending(self) -> bool:
        """Whether something has not left yet."""
        return bool(self._outgoing)

    def send(self, rank: int, encoded: wire.Encoded) -> bool:
        """Send a frame; return whether its payload's memory may be changed at once."""
        byte = self._mpi.BYTE
        body = encoded.body
        if body is None or body.size <= INLINE_BYTES:
            message = encoded.message()
            request = self._comm.Isend([message, byte], rank, _HEADER_TAG)
            if not request.Test():
                self._outgoing.append((rank, [request], message))
            return True
        header = self.send_body(rank, encoded)
        request = self._comm.Isend([header, byte], rank, _HEADER_TAG)
        self._outgoing.append((rank, [request], header))
        return False

    def send_body(self, rank: int, encoded: wire.Encoded) -> bytes:
        """Send a payload; return the header, which is to reach the rank by any way."""
        body = encoded.body
        assert body is not None
        if not isinstance(body, np.ndarray):
            body = np.frombuffer(body.tobytes(), np.uint8)
        tag = next(self._sequence) % self._tags + _FIRST_TAG
        requests = [
            self._comm.Isend([body[at : at + CHUNK_BYTES], self._mpi.BYTE], rank, tag)
            for at in range(0, body.size, CHUNK_BYTES)
        ]
        self._outgoing.append((rank, requests, body))
        return encoded.header(tag)

    # -- what follows runs on the thread that holds the pump ------------------------------------

    def poll(self) -> bool:
        """Take in what is there and dispatch it; return whether there was anything."""
        found = False
        for _ in range(_BATCH):
            message = self._comm.Improbe(self._mpi.ANY_SOURCE, _HEADER_TAG, self._status)
            if message is None:
                break
            found = True
            self._receive(message)
        if self._incoming:
            found |= self._progress_incoming()
        if self._outgoing:
            self._progress_outgoing()
        return found

    def expect(self, source: int, header: Header) -> None:
        """Take in a payload of which the header has come by another way."""
        self._incoming.append(_Incoming(source, header))

    def _receive(self, message: MPI.Message) -> None:
        status = self._status
        source = status.Get_source()
        nbytes = status.Get_count(self._mpi.BYTE)
        if nbytes > _MAX_MESSAGE_BYTES:
            self._drop(message, nbytes)
            raise WireError(
                f"a message of {nbytes} bytes came from rank {source}, expected at most "
                f"{_MAX_MESSAGE_BYTES}"
            )
        buffer = np.empty(nbytes, np.uint8)
        message.Recv([buffer, self._mpi.BYTE])
        try:
            header = wire.parse_header(buffer)
            if not header.apart:
                self._dispatch(source, wire.decode(header, buffer[header.header_bytes :]))
                return
        except WireError as error:
            error.add_note(f"the frame came from rank {source}")
            raise
        self._incoming.append(_Incoming(source, header))

    def _drop(self, message: MPI.Message, nbytes: int) -> None:
        # A matched message must be received. Into less room than it needs it must not be: Open MPI
        # writes beyond the buffer then. Its size is what MPI holds, not what a header claims.
        with contextlib.suppress(self._mpi.Exception, MemoryError):
            message.Recv([np.empty(nbytes, np.uint8), self._mpi.BYTE])

    def _progress_incoming(self) -> bool:
        found = False
        for item in list(self._incoming):
            if item.source in self._forgotten:
                self._incoming.remove(item)
                self._abandoned.append(item)
                continue
            try:
                if not self._advance(item):
                    continue
                found = True
                self._incoming.remove(item)
                if item.body is not None:
                    frame = wire.decode(item.header, item.body, item.array)
                    self._dispatch(item.source, frame)
            except Exception as error:
                if item in self._incoming:
                    self._incoming.remove(item)
                error.add_note(f"the payload came from rank {item.source}")
                self._on_fault(error)
        return found

    def _advance(self, item: _Incoming) -> bool:
        """Take in what has come of a payload; return whether it is complete."""
        header = item.header
        expected = min(CHUNK_BYTES, header.nbytes - item.filled)
        if item.request is None:
            message = self._comm.Improbe(item.source, header.tag, self._status)
            if message is None:
                return False
            nbytes = self._status.Get_count(self._mpi.BYTE)
            if nbytes != expected:
                self._drop(message, nbytes)
                raise WireError(
                    f"the payload of a {header.kind.name} frame comes in {nbytes} bytes, "
                    f"announced were {expected}"
                )
            if item.body is None:
                try:
                    empty = functools.partial(self.room, header)
                    item.array, item.body = wire.allocate(header, empty)
                except MemoryError:
                    self._drop(message, nbytes)
                    raise
            room = item.body[item.filled : item.filled + expected]
            item.request = message.Irecv([room, self._mpi.BYTE])
        if not item.request.Test():
            return False
        item.request = None
        item.filled += expected
        return bool(item.filled == header.nbytes)

    def _progress_outgoing(self) -> None:
        for _ in range(len(self._outgoing)):
            item = self._outgoing.popleft()
            rank, requests, _ = item
            if rank in self._forgotten:
                self._abandoned.append(item)
            elif not all(request.Test() for request in requests):
                # One by one: of several at once MPI does not tell that the rank is lost.
                self._outgoing.append(item)
