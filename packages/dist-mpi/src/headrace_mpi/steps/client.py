"""The client that all sessions of a rank share: calls under way, their answers, and lost ranks."""

from __future__ import annotations

import functools
import itertools
import threading
from collections.abc import Iterable
from typing import TYPE_CHECKING, final

from headrace.errors import listing
from headrace.extend.devices import DeviceName
from headrace.extend.runtime import ContainerSet, Engine, Machine
from headrace_mpi.flight.dump import FlightDump
from headrace_mpi.jobs import Layout
from headrace_mpi.membership.saving import Saving
from headrace_mpi.steps import remote_errors
from headrace_mpi.steps.call import Call
from headrace_mpi.steps.clocks import Clocks
from headrace_mpi.steps.order import ClusterOrder
from headrace_mpi.steps.rendezvous import Exchange, first_step
from headrace_mpi.transport.thread_pool import Job
from headrace_mpi.transport.transport import Transport
from headrace_mpi.transport.wire import Frame, Kind

if TYPE_CHECKING:
    from headrace_mpi.steps.runtime import ClusterRuntime

_MAX_LAG = 2**32 - 1


@final
class Client:
    """What all sessions of this rank share: the calls under way, and the answers to them."""

    def __init__(
        self,
        transport: Transport,
        exchange: Exchange,
        engine: Engine,
        containers: ContainerSet,
        layout: Layout,
        machine: Machine,
        flight_dump: FlightDump,
    ) -> None:
        """Take the answers of other ranks.

        Args:
            transport: Not started yet.
            exchange: Where the values of steps meet.
            engine: The devices of this task.
            containers: The task's default container.
            layout: Which rank plays which task.
            machine: The devices of all tasks.
            flight_dump: Told of steps that fail.
        """
        self.transport = transport
        self.flight_dump = flight_dump
        self.exchange = exchange
        self.engine = engine
        self.containers = containers
        self.layout = layout
        self.machine = machine
        self.runtimes: set[ClusterRuntime] = set()
        self.handles = itertools.count(1)
        self.sessions = itertools.count(1)
        self._steps = itertools.count(first_step(transport.rank) + 1)
        self._running: dict[int, Call] = {}
        self._registering: dict[int, Call] = {}
        self.clocks = Clocks(transport)
        self.order = ClusterOrder(
            transport, layout.keeper, self.where, functools.partial(next, self._steps)
        )
        self._lost: dict[int, BaseException] = {}
        self._untold: BaseException | None = None
        # What the program does about a loss that ends the job.
        self.saving = Saving()
        self._lock = threading.Lock()
        transport.on(Kind.DONE, self._on_done)
        transport.on(Kind.TRACE, self._on_trace)
        transport.on(Kind.ERROR, self._on_error)
        transport.on(Kind.REGISTERED, self._on_registered)

    def lose(self, rank: int, error: BaseException, *, tell: bool = True) -> None:
        """Fail what waits for a rank that is lost, and steps with a part on it from now on.

        Args:
            rank: The rank.
            error: What they fail with.
            tell: Whether the next step raises the error in any case, unless one does now.
        """
        with self._lock:
            self._lost[rank] = error
            calls = [*self._running.values(), *self._registering.values()]
            hit = [call for call in calls if call.asks(rank)]
            if tell:
                self._untold = None if hit else error
                self.saving.begun = True
        self.order.lose(rank, error)
        for call in hit:
            call.fail(error)
            call.answered(rank)

    def _check(self, ranks: Iterable[int]) -> None:
        """Refuse to ask ranks that are lost; of a loss that nobody was told of, tell once."""
        with self._lock:
            untold, self._untold = self._untold, None
        for error in (untold, *(self._lost.get(rank) for rank in ranks)):
            if error is not None:
                raise error

    @property
    def steps(self) -> list[int]:
        """The steps that run, or wait for their turns."""
        with self._lock:
            return [*self._running, *self.order.steps]

    def waits(self, rank: int | None = None) -> list[str]:
        """Return who waits for what and whom, as far as this rank knows, for messages.

        Args:
            rank: The rank that is waited for; None for all.
        """
        with self._lock:
            calls = [*self._running.values(), *self._registering.values()]
        found = [
            f"{call.name} waits for {listing(map(self.where, ranks))}"
            for call in calls
            if (ranks := [r for r in call.pending if rank in (None, r)])
        ]
        for step, name, source in self.exchange.waits():
            giver = self.layout.rank(DeviceName.parse(source))
            if rank in (None, giver):
                found.append(f"step {step} waits for {name!r} from {self.where(giver)}")
        return found + (self.order.waits() if rank is None else [])

    def where(self, rank: int) -> str:
        """Return how messages name a rank."""
        return f"{self.layout.task(rank)} (rank {rank})"

    def begin(self, call: Call, ranks: Iterable[int]) -> int:
        """Number a step, and return how far the oldest step that runs is behind it."""
        if self._lost:
            self._check(ranks)
        with self._lock:
            step = call.step = next(self._steps)
            self._running[step] = call
            oldest = next(iter(self._running))
        if self.saving.begun:
            self.saving.begin(call)
        if self._lost:
            self._lose_late(call, ranks)
        return min(step - oldest, _MAX_LAG)

    def end(self, call: Call) -> None:
        """Forget a step."""
        with self._lock:
            del self._running[call.step]
        if self.saving.begun:
            self.saving.end(call, failed=call.error is not None)

    def begin_registration(self, handle: int, ranks: Iterable[int]) -> Call:
        """Expect the answers to a registration."""
        if self._lost:
            self._check(ranks)
        with self._lock:
            call = self._registering[handle] = Call(ranks, self.transport)
        if self.saving.begun:
            self.saving.begin(call)
        if self._lost:
            self._lose_late(call, ranks)
        return call

    def _lose_late(self, call: Call, ranks: Iterable[int]) -> None:
        """Fail a call that began while one of its ranks was lost: nobody else tells it."""
        for rank in ranks:
            error = self._lost.get(rank)
            if error is not None:
                call.fail(error)
                call.answered(rank)

    def end_registration(self, handle: int) -> None:
        """Forget a registration."""
        call = self._registering.pop(handle)
        if self.saving.begun:
            self.saving.end(call, failed=call.error is not None)

    # Answers to a step that this rank has given up come too, and are nobody's.

    def _on_done(self, rank: int, frame: Frame) -> None:
        call = self._running.get(frame.step)
        if call is not None:
            call.answered(rank)

    def _on_trace(self, rank: int, frame: Frame) -> None:
        call = self._running.get(frame.step)
        if call is not None:
            call.traces[rank] = frame.payload
            call.answered(rank)

    def _on_error(self, rank: int, frame: Frame) -> Job | None:
        call = self._running.get(frame.step)
        if call is None:
            return None
        # Ending a step calls functions of kernels, which may take a while.
        return functools.partial(self._failed, call, rank, frame.payload)

    def _on_registered(self, rank: int, frame: Frame) -> Job | None:
        call = self._registering.get(frame.edge)
        if call is None:
            return None
        if frame.payload:
            return functools.partial(self._failed, call, rank, frame.payload)
        call.answered(rank)
        return None

    def _failed(self, call: Call, rank: int, payload: bytes) -> None:
        call.fail(remote_errors.unpack(payload, self.where(rank)))
        call.answered(rank)
