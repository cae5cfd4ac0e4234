"""Frames between ranks: sending from any thread, and receiving without a thread to hand over from.

Handing a message from a receiving thread to the thread that waits for it costs about 130 us in
Python (two wake-ups and a fight for the interpreter lock), a hundred times what MPI itself needs.
So there is no fixed receiving thread. *The thread that waits drives*:

* Whoever waits (``Transport.wait``) and finds the *pump* free takes it, and receives and
  dispatches for everybody until its own ``Waiter`` is woken; it then offers the pump to another
  waiting thread. A step that waits for its tensor takes it out of MPI itself, in a few us.
* A service thread polls while nobody waits, so that the process always answers. It naps between
  polls, and costs about one percent of a core.
* ``Transport.serve`` is a wait that also runs the jobs that arriving frames ask for, on the waiting
  thread, one after the other: short ones never change threads, which would cost more than they do.
  Once a job has run for ``LONG_JOB_S``, the service thread receives, and hands what has come
  meanwhile to the pool. So do all others who hold the pump, because they have a wait of their own
  to end.

Polling adapts: for ``SPIN_S`` after the last sign of life the holder polls without a pause, giving
its core away between polls; then it naps an eighth of the time that it has waited, at most
``MAX_NAP_S``, or ``LONG_NAP_S`` where nothing happened for a second. While a large payload is on
its way it keeps its naps short, because MPI moves data only when it is called.

A handler runs on the thread that holds the pump and must not wait. For what may wait it returns a
job. Frames of one sender are dispatched in the order in which they *complete*: a small frame
overtakes a large one that was sent before it, so nothing may rest on their order.

Payloads up to ``INLINE_BYTES`` travel in the message of their header. Larger ones follow apart,
under a tag of their own, out of the sender's array and into one of exactly the size that MPI itself
reports, on a matched probe; so a header that lies allocates nothing.
"""

from __future__ import annotations

import contextlib
import functools
import itertools
import os
import threading
import time
from collections import deque
from collections.abc import Callable
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING, Any, final

import numpy as np

from headrace.errors import ClusterError
from headrace_mpi import wire
from headrace_mpi.flight import FlightRecord
from headrace_mpi.pool import Job, Pool
from headrace_mpi.waiting import QueueWaiter, Waiter, Waits
from headrace_mpi.wire import Frame, Header, Kind, WireError

if TYPE_CHECKING:
    from mpi4py import MPI

Handler = Callable[[int, Frame], "Job | None"]

INLINE_BYTES = 32 * 1024
CHUNK_BYTES = 1 << 30
# A tensor of a megabyte takes about as long to be made and moved; a nap costs more than it says.
SPIN_S = 0.001
MOVING_SPIN_S = 0.005
MIN_NAP_S = 0.00005
# A job that runs longer no longer holds up the others.
LONG_JOB_S = 0.001
MAX_NAP_S = 0.001
LONG_NAP_S = 0.004
_BATCH = 32
_HEADER_TAG = 1
_FIRST_TAG = 2
_MAX_MESSAGE_BYTES = wire.MAX_HEADER_BYTES + INLINE_BYTES

_yield_core: Callable[[], object] = getattr(os, "sched_yield", lambda: time.sleep(0))


def _nap(idle_s: float) -> float:
    """Return how long to sleep between polls when nothing has come for ``idle_s`` seconds."""
    return min(max(idle_s / 8, MIN_NAP_S), MAX_NAP_S if idle_s < 1.0 else LONG_NAP_S)


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
class Transport:
    """Sends frames to ranks and dispatches those that arrive, over one communicator.

    The communicator must be Headrace's own, and MPI must allow calls from many threads at once.
    """

    def __init__(self, comm: MPI.Intracomm, on_fault: Callable[[BaseException], None]) -> None:
        """Make a transport; nothing is received before ``start``.

        Args:
            comm: A communicator that nobody else uses.
            on_fault: Called when something fails that no sender can be told of: a frame that
                cannot be read, a handler or job that raises, MPI itself. The transport goes on.
        """
        from mpi4py import MPI

        self.rank = comm.Get_rank()
        self.size = comm.Get_size()
        self._mpi = MPI
        self._comm = comm
        self._on_fault = on_fault
        self._handlers: dict[Kind, Handler] = {}
        self._pool = Pool("headrace-step", on_fault, size=1)
        # Makes room for a tensor that travels apart, given its header, shape and dtype.
        self.room: Callable[[Header, tuple[int, ...], Any], Any] = lambda header, shape, dtype: (
            np.empty(shape, dtype)
        )
        self._jobs: deque[Job] = deque()
        self._pump = threading.Lock()
        self._followers: deque[Waits] = deque()
        self._status = MPI.Status()
        self._incoming: list[_Incoming] = []
        self._outgoing: deque[tuple[int, list[MPI.Request], object]] = deque()
        # What MPI may still read or write for a lost rank: kept, and waited for by nobody.
        self._abandoned: list[object] = []
        top = comm.Get_attr(MPI.TAG_UB)
        self._tags = (int(top) if top else 32767) - _FIRST_TAG
        self._sequence = itertools.count()
        self._bell = Waiter()
        # When a thread that serves began with a job; 0 while it receives.
        self._job_since = 0.0
        # The thread that receives, or runs jobs in between; 0 where that is the service thread.
        self._driver = 0
        self._posted = False
        self._closing = False
        self._service: threading.Thread | None = None
        self._forgotten: set[int] = set()
        self.flight = FlightRecord()
        self.frames_sent = 0
        self.bytes_sent = 0
        self.frames_received = 0

    def on(self, kind: Kind, handler: Handler) -> None:
        """Dispatch arriving frames of ``kind`` to ``handler(source, frame)``."""
        self._handlers[kind] = handler

    def start(self) -> None:
        """Begin to receive. All handlers should be there."""
        self._service = threading.Thread(
            target=self._serve_idle, name="headrace-transport", daemon=True
        )
        self._service.start()

    # -- sending ----------------------------------------------------------------------------

    def send(self, rank: int, frame: Frame) -> bool:
        """Send ``frame`` to ``rank``, without waiting until it is there.

        Safe from any thread. The payload is kept alive until MPI is done with it.

        Returns:
            Whether the payload's memory may be changed at once: True for small frames. Otherwise
            it must stay as it is until the receiver has it.

        Raises:
            ClusterError: if there is no such rank, or the transport is closed.
            WireError: if the frame cannot be sent.
        """
        if not 0 <= rank < self.size:
            raise ClusterError(f"there is no rank {rank}: the ranks are 0 to {self.size - 1}")
        if self._closing:
            raise ClusterError(
                f"a {frame.kind.name} frame was sent to rank {rank} after this rank left the "
                f"cluster"
            )
        encoded = wire.encode(frame)
        if rank in self._forgotten:
            return True
        try:
            return self._send(rank, frame, encoded)
        except self._mpi.Exception as error:
            # Where MPI tells of a lost rank, the frame is nobody's; else the fault ends the job.
            self._on_fault(error)
            return True

    def forget(self, rank: int) -> None:
        """Send nothing to a rank any more, and take nothing of it: it is lost."""
        self._forgotten.add(rank)

    def is_forgotten(self, rank: int) -> bool:
        """Whether a rank is lost."""
        return rank in self._forgotten

    def _send(self, rank: int, frame: Frame, encoded: wire.Encoded) -> bool:
        byte = self._mpi.BYTE
        body = encoded.body
        if frame.kind is not Kind.HEALTH:
            self.flight.note(True, rank, frame)
            self.frames_sent += 1
            self.bytes_sent += encoded.nbytes
        if body is None or body.size <= INLINE_BYTES:
            message = encoded.header() if body is None else encoded.header() + body.tobytes()
            request = self._comm.Isend([message, byte], rank, _HEADER_TAG)
            if not request.Test():
                self._keep(rank, [request], message)
            return True
        tag = next(self._sequence) % self._tags + _FIRST_TAG
        header = encoded.header(tag)
        requests = [self._comm.Isend([header, byte], rank, _HEADER_TAG)]
        requests += [
            self._comm.Isend([body[at : at + CHUNK_BYTES], byte], rank, tag)
            for at in range(0, body.size, CHUNK_BYTES)
        ]
        self._keep(rank, requests, (header, body))
        return False

    def _keep(self, rank: int, requests: list[MPI.Request], memory: object) -> None:
        self._outgoing.append((rank, requests, memory))
        self._bell.ring()

    def flush(self, timeout_s: float) -> bool:
        """Wait until all that was sent has left; return whether it did in time."""
        return self._wait_until(lambda: not self._outgoing, timeout_s)

    def post(self, job: Job) -> None:
        """Let a job run soon, on a thread that serves or on one of the pool; from any thread."""
        self._jobs.append(job)
        if threading.get_ident() != self._driver:
            self._posted = True
            self._bell.ring()

    # -- waiting ----------------------------------------------------------------------------

    def wait(self, waiter: Waiter, timeout_s: float | None = None) -> bool:
        """Wait until ``waiter`` is woken, receiving for everybody meanwhile.

        Returns:
            Whether it was woken; the waiter is then ready for another wait.
        """
        return self._wait_for(waiter, timeout_s)

    def serve(self, waiter: Waiter, timeout_s: float | None = None) -> bool:
        """Wait as ``wait`` does, and run arriving jobs on this thread."""
        return self._wait_for(waiter, timeout_s, serving=True)

    def take(self, queue: SimpleQueue[Any], timeout_s: float | None = None) -> Any:
        """Wait for the next item of ``queue`` and return it, receiving for everybody meanwhile.

        While it waits, marks of the transport's own pass through the queue: all that take from it
        must do so by this method, one at a time.

        Raises:
            queue.Empty: if none has come after about ``timeout_s``; while another thread drives
                the transport, it may take longer.
        """
        waiter = QueueWaiter(queue)
        if not self._wait(waiter, timeout_s, serving=False):
            raise Empty
        return waiter.item

    def _wait_for(self, waiter: Waiter, timeout_s: float | None, *, serving: bool = False) -> bool:
        if not self._wait(waiter, timeout_s, serving=serving):
            return False
        waiter.woken = False
        return True

    def _wait_until(self, condition: Callable[[], bool], timeout_s: float) -> bool:
        deadline = time.monotonic() + timeout_s
        waiter = Waiter()
        while not condition():
            left = deadline - time.monotonic()
            if left <= 0:
                return False
            self.wait(waiter, min(left, MAX_NAP_S))
        return True

    def _wait(self, waiter: Waits, timeout_s: float | None, *, serving: bool) -> bool:
        deadline = None if timeout_s is None else time.monotonic() + timeout_s
        try:
            return self._wait_or_drive(waiter, deadline, serving=serving)
        finally:
            if self._driver == threading.get_ident():
                self._driver = 0

    def _wait_or_drive(self, waiter: Waits, deadline: float | None, *, serving: bool) -> bool:
        while not waiter.woken:
            if deadline is not None and time.monotonic() >= deadline:
                return False
            if self._pump.acquire(blocking=False):
                try:
                    self._drive(waiter, deadline, serving)
                finally:
                    self._pump.release()
                    self._offer()
                if serving:
                    self._run_jobs_here()
            else:
                self._follow(waiter, deadline)
        return True

    def _drive(self, waiter: Waits, deadline: float | None, serving: bool) -> None:
        """Hold the pump until ``waiter`` is woken, or there is a job to run here."""
        alive = time.monotonic()
        self._driver = threading.get_ident()
        while not waiter.woken:
            found = self._poll()
            if self._jobs:
                if serving:
                    return
                self._start_jobs()
            if found:
                alive = time.monotonic()
                continue
            now = time.monotonic()
            if deadline is not None and now >= deadline:
                return
            idle = now - alive
            moving = self._moving
            if idle < (MOVING_SPIN_S if moving else SPIN_S):
                _yield_core()
            else:
                waiter.nap(MIN_NAP_S if moving else _nap(idle))

    def _follow(self, waiter: Waits, deadline: float | None) -> None:
        """Sleep until woken, or until the pump is offered."""
        self._followers.append(waiter)
        # The holder may have left before this thread was in the list; then nobody offers.
        if self._pump.locked() and not waiter.woken:
            left = 3600.0 if deadline is None else max(deadline - time.monotonic(), 0.0)
            waiter.sleep(left)
        with contextlib.suppress(ValueError):
            self._followers.remove(waiter)

    def _offer(self) -> None:
        with contextlib.suppress(IndexError):
            self._followers.popleft().ring()

    def _run_jobs_here(self) -> None:
        """Run the jobs that are there on this thread, one after the other."""
        for _ in range(len(self._jobs)):
            try:
                job = self._jobs.popleft()
            except IndexError:
                break
            self._job_since = time.monotonic()
            try:
                job()
            except Exception as error:
                self._on_fault(error)
        self._job_since = 0.0

    def _start_jobs(self) -> None:
        while self._jobs:
            try:
                job = self._jobs.popleft()
            except IndexError:
                return
            try:
                self._pool.run(job)
            except RuntimeError:
                # No thread starts any more, as from Python 3.12 on when the interpreter ends. A
                # rank that still serves then runs one job after the other.
                self._jobs.appendleft(job)
                return

    # -- the service thread -----------------------------------------------------------------

    def _serve_idle(self) -> None:
        alive = time.monotonic()
        while not self._closing:
            self._pool.relieve()
            since = self._job_since
            if since and time.monotonic() - since < LONG_JOB_S:
                # Whoever serves is back in a moment.
                alive = time.monotonic()
                self._bell.sleep(LONG_JOB_S)
            elif self._pump.acquire(blocking=False):
                try:
                    busy = self._poll()
                    moving = self._moving
                finally:
                    self._pump.release()
                    self._offer()
                self._start_jobs()
                now = time.monotonic()
                if busy:
                    alive = now
                self._bell.sleep(MIN_NAP_S if moving else _nap(now - alive))
            else:
                # A waiting thread receives; be there soon after it stops.
                alive = time.monotonic()
                if self._posted:
                    self._posted = False
                    self._start_jobs()
                self._bell.sleep(MAX_NAP_S)

    def close(self, timeout_s: float = 5.0) -> bool:
        """Let all that was sent leave, and stop receiving; return whether it left in time."""
        flushed = self.flush(timeout_s)
        self._closing = True
        self._bell.wake()
        service = self._service
        if service is not None and service is not threading.current_thread():
            service.join(timeout_s)
        return flushed

    # -- the pump: all below runs on the thread that holds it ---------------------------------

    @property
    def _moving(self) -> bool:
        """Whether MPI has data to move, for which it must be called."""
        return bool(self._incoming or self._outgoing)

    def _poll(self) -> bool:
        """Receive what is there and dispatch it; return whether there was anything."""
        found = False
        try:
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
        except Exception as error:
            # A fault must not take the thread that happens to hold the pump with it.
            self._on_fault(error)
        return found

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
        request_type = self._mpi.Request
        for _ in range(len(self._outgoing)):
            item = self._outgoing.popleft()
            rank, requests, _ = item
            if rank in self._forgotten:
                self._abandoned.append(item)
            elif not request_type.Testall(requests):
                self._outgoing.append(item)

    def _dispatch(self, source: int, frame: Frame) -> None:
        if source in self._forgotten:
            return
        if frame.kind is not Kind.HEALTH:
            self.flight.note(False, source, frame)
            self.frames_received += 1
        handler = self._handlers.get(frame.kind)
        if handler is None:
            raise ClusterError(
                f"a {frame.kind.name} frame came from rank {source}, but this rank does not "
                f"expect any"
            )
        job = handler(source, frame)
        if job is not None:
            self._jobs.append(job)
