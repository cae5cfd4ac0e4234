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

Ranks of one host talk through memory that they share (``links``), all others, and what is large
and finds no room there, by MPI (``channel``).

Polling adapts (``polling``): for a moment after the last sign of life the holder polls without a
pause, giving its core away between polls; then it naps an eighth of the time that it has waited, at
most ``MAX_NAP_S``, or ``LONG_NAP_S`` where nothing happened for a second. Ranks of the same host
ring a bell that ends the nap. While a large payload is on its way by MPI it keeps its naps short,
because MPI moves data only when it is called.

A handler runs on the thread that holds the pump and must not wait. For what may wait it returns a
job. Frames of one sender are dispatched in the order in which they *complete*: a small frame
overtakes a large one that was sent before it, so nothing may rest on their order.
"""

from __future__ import annotations

import contextlib
import threading
import time
from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, final

from headrace.errors import ClusterError
from headrace.extend.runtime import Wakeup
from headrace_mpi.flight.record import FlightRecord
from headrace_mpi.shared_memory.active_rings import ActiveRings, seats_on
from headrace_mpi.shared_memory.core_affinity import CoreAffinity
from headrace_mpi.shared_memory.leases import Leases
from headrace_mpi.transport import wire
from headrace_mpi.transport.mpi_channel import INLINE_BYTES, Channel
from headrace_mpi.transport.polling import MIN_NAP_S, PollingBackoff, cores
from headrace_mpi.transport.small_frames import small_frame, small_message
from headrace_mpi.transport.thread_pool import Job, ThreadPool
from headrace_mpi.transport.wire import Frame, Header, Kind

if TYPE_CHECKING:
    from mpi4py import MPI

    from headrace_mpi.shared_memory.links import Link, Links

Handler = Callable[[int, Frame], "Job | None"]

_HEALTH = Kind.HEALTH
# A job that runs longer no longer holds up the others.
LONG_JOB_S = 0.001
MAX_NAP_S = 0.001
# How seldom the service thread looks whether anybody receives, as long as somebody does.
MAX_REST_S = 0.008
_BATCH = 32
# How often a rank looks for messages, in two microseconds or three, before it gives its core away.
_LOOKS = 32
# How often MPI is asked where nothing is expected from it: it may give the core away meanwhile.
ASK_MPI_S = 0.005


@final
class Transport:
    """Sends frames to ranks and dispatches those that arrive, over one communicator.

    The communicator must be Headrace's own, and MPI must allow calls from many threads at once.
    """

    def __init__(
        self,
        comm: MPI.Intracomm,
        on_fault: Callable[[BaseException], None],
        links: Links | None = None,
    ) -> None:
        """Make a transport; nothing is received before ``start``.

        Args:
            comm: A communicator that nobody else uses.
            on_fault: Called when something fails that no sender can be told of: a frame that
                cannot be read, a handler or job that raises, MPI itself. The transport goes on.
            links: The ways to other ranks of this host; they are closed with the transport.
        """
        from mpi4py import MPI

        self.rank = comm.Get_rank()
        self.size = comm.Get_size()
        self._mpi_error = MPI.Exception
        self._on_fault = on_fault
        self._handlers: dict[Kind, Handler] = {}
        self._pool = ThreadPool("headrace-step", on_fault, size=1)
        self._forgotten: set[int] = set()
        self._channel = Channel(comm, self._dispatch, self._on_channel_fault, self._forgotten)
        self._links = links
        self._to: dict[int, Link] = {} if links is None else links.to
        self._leases = Leases(self._to)
        self._crowded = links is not None and links.ranks > cores()
        # Reads messages where this rank serves others with which it shares cores.
        self._active_rings: ActiveRings | None = None
        # To whom this rank sent something last, and from whom it may expect an answer.
        self._asked: Link | None = None
        self._affinity = CoreAffinity()
        # Ranks of this host for which messages found no room.
        self._behind: set[int] = set()
        # Whether all others are of this host: MPI has to be asked for large payloads only then, and
        # now and then for ranks that are lost.
        self._near = len(self._to) == self.size - 1
        self._ask_mpi_at = 0.0
        self._backoff = PollingBackoff(
            0 if links is None else links.ranks, near=self._near, alone=not self._crowded
        )
        self._jobs: deque[Job] = deque()
        self._pump = threading.Lock()
        self._followers: deque[Wakeup] = deque()
        self._bell = Wakeup()
        # When a thread that serves began with a job; 0 while it receives.
        self._job_since = 0.0
        # The thread that receives, or runs jobs in between; 0 where that is the service thread.
        self._driver = 0
        # When a thread last stopped to receive.
        self._left = 0.0
        self._posted = False
        self._closing = False
        self._service: threading.Thread | None = None
        self.flight = FlightRecord()
        self.frames_sent = 0
        self.bytes_sent = 0
        self.frames_received = 0

    def on(self, kind: Kind, handler: Handler) -> None:
        """Dispatch arriving frames of ``kind`` to ``handler(source, frame)``."""
        self._handlers[kind] = handler

    @property
    def room(self) -> Callable[[Header, tuple[int, ...], Any], Any]:
        """What makes room for a tensor that travels apart, given its header, shape and dtype."""
        return self._channel.room

    @room.setter
    def room(self, room: Callable[[Header, tuple[int, ...], Any], Any]) -> None:
        self._channel.room = room

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
        link = self._to.get(rank)
        message = None if link is None else small_message(frame, INLINE_BYTES)
        if message is None or link is None or self._closing:
            return self._send_any(rank, link, frame)
        if rank not in self._forgotten:
            if frame[0] is not _HEALTH:
                self.flight.note(True, rank, frame)
                self.frames_sent += 1
                self.bytes_sent += len(message) - wire.HEADER_BYTES
            self._asked = link
            if not link.send(message):
                self._left_behind(rank)
        return True

    def _send_any(self, rank: int, link: Link | None, frame: Frame) -> bool:
        """Send a frame that is no small one, or not to a rank of this host."""
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
        self._note(rank, frame, encoded.nbytes)
        if link is not None and encoded.nbytes <= INLINE_BYTES:
            self._post(rank, link, encoded.message())
            return True
        try:
            if link is None:
                free = self._channel.send(rank, encoded)
            else:
                free = self._send_large(rank, link, encoded)
        except self._mpi_error as error:
            # Where MPI tells of a lost rank, the frame is nobody's; else the fault ends the job.
            self._on_fault(error)
            return True
        if self._channel.sending:
            self._disturb()
        return free

    def _note(self, rank: int, frame: Frame, nbytes: int) -> None:
        if frame.kind is not _HEALTH:
            self.flight.note(True, rank, frame)
            self.frames_sent += 1
            self.bytes_sent += nbytes

    def _send_large(self, rank: int, link: Link, encoded: wire.Encoded) -> bool:
        """Send a frame to a rank of this host that does not fit into its ring."""
        lease = self._leases.lend(rank, encoded)
        if lease is None:
            self._post(rank, link, self._channel.send_body(rank, encoded))
            return False
        self._post(rank, link, encoded.header(lease=True) + lease)
        return True

    def _post(self, rank: int, link: Link, message: bytes) -> None:
        if not link.send(message):
            self._left_behind(rank)

    def _left_behind(self, rank: int) -> None:
        """See to a message that found no room."""
        self._behind.add(rank)
        self._disturb()

    def _disturb(self) -> None:
        """Make whoever receives look for what is to be moved now."""
        self._bell.ring()
        if self._links is not None:
            self._links.bell.ring()

    def forget(self, rank: int) -> None:
        """Send nothing to a rank any more, and take nothing of it: it is lost."""
        self._forgotten.add(rank)
        link = self._to.get(rank)
        if link is not None:
            link.drop()
            self._leases.reclaim(rank)

    def is_near(self, rank: int) -> bool:
        """Whether a rank can be reached through memory that it shares with this one."""
        return rank in self._to

    def is_forgotten(self, rank: int) -> bool:
        """Whether a rank is lost."""
        return rank in self._forgotten

    def flush(self, timeout_s: float) -> bool:
        """Wait until all that was sent has left; return whether it did in time."""
        return self._wait_until(lambda: not (self._channel.sending or self._behind), timeout_s)

    def post(self, job: Job) -> None:
        """Let a job run soon, on a thread that serves or on one of the pool; from any thread."""
        self._jobs.append(job)
        if threading.get_ident() != self._driver:
            self._posted = True
            self._bell.ring()

    # -- waiting ----------------------------------------------------------------------------

    def wait(self, waiter: Wakeup, timeout_s: float | None = None) -> bool:
        """Wait until ``waiter`` is woken, receiving for everybody meanwhile.

        Returns:
            Whether it was woken; the waiter is then ready for another wait.
        """
        return self._wait(waiter, timeout_s, serving=False)

    def serve(self, waiter: Wakeup, timeout_s: float | None = None) -> bool:
        """Wait as ``wait`` does, and run arriving jobs on this thread."""
        if self._crowded and self._links is not None:
            self._active_rings = ActiveRings(self._links, seats_on(cores()))
        return self._wait(waiter, timeout_s, serving=True)

    def _wait_until(self, condition: Callable[[], bool], timeout_s: float) -> bool:
        deadline = time.monotonic() + timeout_s
        waiter = Wakeup()
        while not condition():
            left = deadline - time.monotonic()
            if left <= 0:
                return False
            self.wait(waiter, min(left, MAX_NAP_S))
        return True

    def _wait(self, waiter: Wakeup, timeout_s: float | None, *, serving: bool) -> bool:
        deadline = None if timeout_s is None else time.monotonic() + timeout_s
        me = threading.get_ident()
        try:
            while not waiter.woken:
                if deadline is not None and time.monotonic() >= deadline:
                    return False
                if self._pump.acquire(blocking=False):
                    self._driver = me
                    self._drive(waiter, deadline, serving)
                else:
                    self._follow(waiter, deadline)
        finally:
            if self._driver == me:
                self._driver = 0
                self._left = time.monotonic()
        waiter.woken = False
        return True

    def _drive(self, waiter: Wakeup, deadline: float | None, serving: bool) -> None:
        """Hold the pump until ``waiter`` is woken; it is held already, and let go in the end.

        Who serves lets it go for the jobs that there are, and returns if another has it then.
        """
        held = True
        try:
            while held and self._receive_for(waiter, deadline, serving):
                held = False
                self._let_go()
                self._run_jobs_here()
                held = self._pump.acquire(blocking=False)
        finally:
            if held:
                self._let_go()

    def _let_go(self) -> None:
        """Let go of the pump, and offer it to who waits."""
        self._pump.release()
        if self._followers:
            with contextlib.suppress(IndexError):
                self._followers.popleft().ring()

    def _receive_for(self, waiter: Wakeup, deadline: float | None, serving: bool) -> bool:
        """Receive until ``waiter`` is woken; return before that if there is a job to run here."""
        # When there was nothing for the first time; 0 while there is.
        since = 0.0
        while not waiter.woken:
            if self._poll():
                if since:
                    self._backoff.came(time.monotonic() - since)
                    since = 0.0
                if not self._jobs:
                    continue
            if self._jobs:
                if serving:
                    return True
                self._start_jobs()
            now = time.monotonic()
            if deadline is not None and now >= deadline:
                return False
            since = since or now
            idle = now - since
            moving = self._moving
            # At first the core is given away, for an answer may have to be made on this very one;
            # always so where ranks outnumber cores.
            if idle and not self._crowded and self._links and self._links.look(_LOOKS):
                continue
            passed_over = False
            if self._crowded and self._asked is not None:
                passed_over = self._asked.passed_over
                core = self._asked.busy_core
                if core >= 0:
                    self._affinity.keep_off(core, now, self._backoff.late)
            if passed_over or not self._backoff.spins(idle, moving=moving):
                nap_s = self._backoff.nap_s(idle, passed_over=passed_over)
                self._nap(waiter, MIN_NAP_S if moving else nap_s)
        return False

    def _nap(self, waiter: Wakeup, seconds: float) -> None:
        """Sleep until the waiter is disturbed, a rank of this host rings, or the time is over."""
        links = self._links
        if links is None:
            waiter.sleep(seconds)
            return
        heard = links.bell.listen()
        if links.waiting:
            links.bell.stay()
        else:
            if self._active_rings is not None:
                self._active_rings.rest()
            waiter.sleep_by(links.bell, heard, seconds)

    def _follow(self, waiter: Wakeup, deadline: float | None) -> None:
        """Sleep until woken, or until the pump is offered."""
        self._followers.append(waiter)
        # The holder may have left before this thread was in the list; then nobody offers.
        if self._pump.locked() and not waiter.woken:
            left = 3600.0 if deadline is None else max(deadline - time.monotonic(), 0.0)
            waiter.sleep(left)
        with contextlib.suppress(ValueError):
            self._followers.remove(waiter)

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
        rest = LONG_JOB_S
        while not self._closing:
            self._pool.relieve()
            since = self._job_since
            now = time.monotonic()
            if (since and now - since < LONG_JOB_S) or now - self._left < MAX_NAP_S:
                # Whoever serves, or waits for one step after another, is back in a moment.
                alive = now
                self._bell.sleep(rest)
                rest = min(2 * rest, MAX_REST_S)
            elif self._pump.acquire(blocking=False):
                try:
                    busy = self._poll()
                    moving = self._moving
                finally:
                    self._let_go()
                self._start_jobs()
                now = time.monotonic()
                rest = LONG_JOB_S
                if busy:
                    alive = now
                self._nap(self._bell, MIN_NAP_S if moving else self._backoff.nap_s(now - alive))
            else:
                # A waiting thread receives; be there soon after it stops.
                alive = time.monotonic()
                if self._posted:
                    self._posted = False
                    self._start_jobs()
                self._bell.sleep(rest)
                rest = min(2 * rest, MAX_REST_S)

    def close(self, timeout_s: float = 5.0) -> bool:
        """Let all that was sent leave, and stop receiving; return whether it left in time."""
        flushed = self.flush(timeout_s)
        self._closing = True
        self._bell.wake()
        service = self._service
        if service is not None and service is not threading.current_thread():
            service.join(timeout_s)
        self._leases.close()
        if self._links is not None:
            self._links.close()
        return flushed

    # -- the pump: all below runs on the thread that holds it ---------------------------------

    @property
    def _moving(self) -> bool:
        """Whether there is data to move, for which this rank has to do something."""
        return self._channel.moving or bool(self._behind)

    def _poll(self) -> bool:
        """Receive what is there and dispatch it; return whether there was anything."""
        found = False
        try:
            links = self._links
            if links is not None:
                if links.waiting:
                    found = self._receive_near(links)
                if self._behind:
                    self._push()
            if not self._near or time.monotonic() >= self._ask_mpi_at or self._channel.moving:
                self._ask_mpi_at = time.monotonic() + ASK_MPI_S
                found |= self._poll_mpi()
        except Exception as error:
            # A fault must not take the thread that happens to hold the pump with it.
            self._on_fault(error)
        return found

    def _poll_mpi(self) -> bool:
        try:
            return self._channel.poll()
        except self._mpi_error:
            # It may be about a rank that has ended, and what that said before counts first.
            if self._links is not None:
                self._receive_near(self._links)
            raise

    def _receive_near(self, links: Links) -> bool:
        found = (
            links.receive(_BATCH)
            if self._active_rings is None
            else self._active_rings.receive(_BATCH)
        )
        for source, message in found:
            try:
                frame = small_frame(message) or self._large_frame(source, message)
                if frame is not None:
                    self._dispatch(source, frame)
            except Exception as error:
                error.add_note(f"the frame came from rank {source}")
                self._on_fault(error)
        return bool(found)

    def _large_frame(self, source: int, message: bytearray) -> Frame | None:
        """Return a frame that is no small one; None where its payload comes by another way."""
        if source in self._forgotten:
            return None
        header = wire.parse_header(message)
        if header.leased:
            return wire.decode(header, self._leases.take(source, header, message))
        if header.apart:
            self._channel.expect(source, header)
            return None
        return wire.parse_body(header, message)

    def _push(self) -> None:
        for rank in list(self._behind):
            # First, for another thread may just find no room.
            self._behind.discard(rank)
            if not self._to[rank].push():
                self._behind.add(rank)

    def _on_channel_fault(self, error: BaseException) -> None:
        self._on_fault(error)

    def _dispatch(self, source: int, frame: Frame) -> None:
        if source in self._forgotten:
            return
        kind = frame.kind
        if kind is not _HEALTH:
            self.flight.note(False, source, frame)
            self.frames_received += 1
        handler = self._handlers.get(kind)
        if handler is None:
            raise ClusterError(
                f"a {kind.name} frame came from rank {source}, but this rank does not expect any"
            )
        job = handler(source, frame)
        if job is not None:
            self._jobs.append(job)
