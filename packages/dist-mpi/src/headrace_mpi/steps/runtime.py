"""The client's side: a session's runtime on a cluster.

A step is registered once, with every task that has a part in it. After that a run is one RUN
message of 40 bytes to each of these tasks; the calling thread runs its own task's part, and the
parts exchange values among themselves. The step is over when every task has answered, also after
an error: nothing of it runs on when the session raises.
"""

from __future__ import annotations

import functools
import itertools
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeAlias, final

from headrace import Graph
from headrace.errors import CancelledError, listing
from headrace.extend.devices import DeviceName, HostArray
from headrace.extend.documents import Arrays
from headrace.extend.faults import fault_point
from headrace.extend.graphs import functions_in
from headrace.extend.runtime import (
    DEFAULT_OPTIONS,
    Cancellation,
    ContainerSet,
    Engine,
    Machine,
    Options,
    Plan,
    Recorder,
    SessionState,
    Step,
    Wakeup,
    deadline,
    execute,
)
from headrace_mpi.flight.forensics import Forensics
from headrace_mpi.jobs import Layout
from headrace_mpi.membership.saving import Saving
from headrace_mpi.steps import faults
from headrace_mpi.steps.clocks import Clocks
from headrace_mpi.steps.faults import StepAbortedError
from headrace_mpi.steps.order import ClusterOrder
from headrace_mpi.steps.registration import pack_registration
from headrace_mpi.steps.rendezvous import (
    Exchange,
    NumberedEdge,
    Routes,
    StepRendezvous,
    first_step,
    number_of,
)
from headrace_mpi.steps.tracing import StepTracing
from headrace_mpi.transport.pool import Job
from headrace_mpi.transport.transport import Transport
from headrace_mpi.transport.wire import Frame, Kind, frame_of

_MAX_LAG = 2**32 - 1
_MAX_REASON = 500
_RUN = Kind.RUN


@final
class Call:
    """Something that other ranks were asked to do: a step, or a registration.

    Attributes:
        step: The step's number; 0 for a registration.
        cancellation: Ends this rank's part.
        error: The first error that is not the consequence of another.
        traces: Of a traced step, what the ranks tell of their parts.
    """

    __slots__ = (
        *("_lock", "_pending", "_transport", "_waiter", "cancellation", "error", "step"),
        "traces",
    )

    def __init__(self, ranks: Iterable[int], transport: Transport) -> None:
        self.step = 0
        self.cancellation = Cancellation()
        self.error: BaseException | None = None
        self.traces: dict[int, bytes] = {}
        self._pending = {*ranks}
        self._transport = transport
        self._waiter = Wakeup()
        self._lock = threading.Lock()

    @property
    def name(self) -> str:
        """How messages name it."""
        return f"step {number_of(self.step)}" if self.step else "a registration"

    @property
    def pending(self) -> list[int]:
        """The ranks that have not answered."""
        with self._lock:
            return sorted(self._pending)

    def asks(self, rank: int) -> bool:
        """Whether a rank has a part in it that it has not answered for."""
        return rank in self._pending

    def answered(self, rank: int) -> None:
        """Note that a rank has finished its part."""
        with self._lock:
            self._pending.discard(rank)
            done = not self._pending
        if done:
            self._waiter.wake()

    def fail(self, error: BaseException) -> None:
        """Note an error, and end all parts of the step that still run; the first one counts."""
        with self._lock:
            if self.error is not None or isinstance(error, StepAbortedError):
                return
            self.error = error
            pending = list(self._pending)
        reason = f"the step ended: {error}".splitlines()[0][:_MAX_REASON]
        self.cancellation.cancel(StepAbortedError(reason))
        if self.step:
            for rank in pending:
                self._transport.send(rank, Frame(Kind.ABORT, self.step, payload=reason.encode()))

    def wait(self) -> None:
        """Wait until every rank has answered."""
        if self._pending:
            self._transport.wait(self._waiter)


# A run that begins, and where its values meet.
Begun: TypeAlias = tuple[Call, StepRendezvous]


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
        forensics: Forensics,
    ) -> None:
        """Take the answers of other ranks.

        Args:
            transport: Not started yet.
            exchange: Where the values of steps meet.
            engine: The devices of this task.
            containers: The task's default container.
            layout: Which rank plays which task.
            machine: The devices of all tasks.
            forensics: Told of steps that fail.
        """
        self.transport = transport
        self.forensics = forensics
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
        call.fail(faults.unpack(payload, self.where(rank)))
        call.answered(rank)


@final
class ClusterRuntime:
    """Runs the steps of one session on the tasks of a cluster."""

    def __init__(self, client: Client, options: Options = DEFAULT_OPTIONS) -> None:
        """Make a runtime that has registered nothing.

        Args:
            client: What all sessions of this rank share.
            options: How the session's steps are planned and run, on all tasks.
        """
        self._client = client
        self._options = options
        self._session = next(client.sessions)
        self._state = SessionState(default=client.containers)
        self._tracing: StepTracing | None = None
        if options.recorder is not None:
            self._tracing = StepTracing(
                options.recorder, client.transport, client.clocks, client.layout
            )
        self._ranks: set[int] = set()
        # The large constants that each rank has of this session.
        self._held: dict[int, set[str]] = {}
        self._running: set[Call] = set()
        self._closed: BaseException | None = None
        self._released = False
        self._lock = threading.Lock()
        self.order = client.order
        client.runtimes.add(self)

    def machine(self) -> Machine:
        """Return the devices of all tasks."""
        return self._client.machine

    def traced(self, recorder: Recorder) -> ClusterRuntime:
        """Return the runtime once more, with the same state, recording what steps do."""
        made = ClusterRuntime(self._client, replace(self._options, recorder=recorder))
        made._session, made._state, made._ranks = self._session, self._state, self._ranks
        # This runtime lets the tasks forget the session.
        made._released = True
        return made

    # -- registering

    def register(self, partitions: Mapping[DeviceName, Graph], fetches: int) -> ClusterStep:
        """Register each task's partitions with it, and wait until all are ready.

        Raises:
            HeadraceError: what a task found wrong with its part.
        """
        client = self._client
        own = client.transport.rank
        edges = _transfers(partitions, client.layout.rank)
        parts: dict[int, dict[DeviceName, Graph]] = {}
        for device, graph in partitions.items():
            parts.setdefault(client.layout.rank(device), {})[device] = graph
        local = parts.pop(own, None)
        plan = (
            None
            if local is None
            else client.engine.plan(local, self._state, fetches, self._options)
        )
        handle = next(client.handles)
        if parts:
            if self._tracing is not None:
                self._tracing.meet(parts)
            self._send_parts(handle, parts, edges)
        routes = Routes.of(edges, own, client.layout.rank)
        if local is not None:
            routes.fetched.update(_fetched(local.values(), routes))
        return ClusterStep(self, handle, tuple(sorted(parts)), plan, routes)

    def _send_parts(
        self,
        handle: int,
        parts: Mapping[int, dict[DeviceName, Graph]],
        edges: Sequence[NumberedEdge],
    ) -> None:
        client = self._client
        fault_point("register")
        with self._lock:
            if self._closed is not None:
                raise self._closed
            self._ranks.update(parts)
        call = client.begin_registration(handle, parts)
        arrays = {rank: Arrays(frozenset(self._held.get(rank, ()))) for rank in parts}
        try:
            for rank, part in parts.items():
                theirs = [edge for edge in edges if rank in self._ends(edge)]
                payload = pack_registration(
                    self._session, part, theirs, self._options, arrays[rank]
                )
                client.transport.send(rank, Frame(Kind.REGISTER, edge=handle, payload=payload))
            call.wait()
        finally:
            client.end_registration(handle)
        if call.error is not None:
            raise call.error
        with self._lock:
            for rank, sent in arrays.items():
                self._held.setdefault(rank, set()).update(sent.new)

    def _ends(self, edge: NumberedEdge) -> tuple[int, int]:
        _, _, source, destination, _ = edge
        rank_of = self._client.layout.rank
        return rank_of(DeviceName.parse(source)), rank_of(DeviceName.parse(destination))

    # -- running

    def run(
        self, step: ClusterStep, feeds: Sequence[HostArray], timeout: float | None = None
    ) -> list[Any]:
        """Run a registered step once, for so many seconds at most where it waits."""
        client = self._client
        try:
            begun = step.ready.pop()
        except IndexError:
            begun = self._made(step)
        call, _ = begun
        lag = client.begin(call, step.ranks)
        results: list[Any] = []
        finished = False
        try:
            with self._lock:
                if self._closed is not None:
                    raise self._closed
                self._running.add(call)
            if timeout is None:
                results = self._run_parts(step, begun, lag, feeds)
            else:
                with deadline(timeout, call.fail):
                    results = self._run_parts(step, begun, lag, feeds)
            finished = True
        finally:
            if not finished:
                call.fail(CancelledError("the step was interrupted"))
            client.exchange.end(call.step, failed=call.error is not None)
            client.end(call)
            self._running.discard(call)
            if self._closed is not None:
                self._release()
        if call.error is not None:
            client.forensics.failed(call.error)
            raise call.error
        if self._tracing is not None:
            self._tracing.take_in(call.step, call.traces)
        return results

    def _made(self, step: ClusterStep) -> Begun:
        """Return what a run of a step needs, and does not know its number yet."""
        client = self._client
        return Call(step.ranks, client.transport), client.exchange.prepare(step.routes)

    def _run_parts(
        self, step: ClusterStep, begun: Begun, lag: int, feeds: Sequence[HostArray]
    ) -> list[Any]:
        """Let the other tasks run their parts, run this task's, and wait for the others."""
        client = self._client
        call, rendezvous = begun
        number = call.step
        client.exchange.begin(rendezvous, number)
        for rank in step.ranks:
            client.transport.send(rank, frame_of((_RUN, number, step.handle, lag, 0, None)))
        if step.ranks and not step.ready:
            # The others are at work now.
            step.ready.append(self._made(step))
        results: list[Any] = []
        if step.plan is not None:
            work = Step(number, feeds, step.plan.fetches, rendezvous, call.cancellation)
            try:
                fault_point("run")
                execute(step.plan, work)
                results = work.fetches
            except Exception as error:
                call.fail(error)
        call.wait()
        return results

    # -- closing

    def close(self, reason: BaseException | None = None) -> None:
        """Cancel the steps that still run; the last of them lets the tasks forget the session."""
        why = reason if reason is not None else CancelledError("the session was closed")
        with self._lock:
            if self._closed is not None:
                return
            self._closed = why
            running = list(self._running)
        for call in running:
            call.fail(why)
        self._release()
        self._state.background.close()

    def _release(self) -> None:
        with self._lock:
            if self._closed is None or self._running:
                return
            released, self._released = self._released, True
        client = self._client
        client.runtimes.discard(self)
        if released:
            return
        for rank in self._ranks:
            client.transport.send(rank, Frame(Kind.RELEASE, self._session))

    @property
    def busy(self) -> bool:
        """Whether steps still run."""
        return bool(self._running)


@final
class ClusterStep:
    """A step that every task with a part in it knows."""

    __slots__ = ("_runtime", "handle", "plan", "ranks", "ready", "routes")

    def __init__(
        self,
        runtime: ClusterRuntime,
        handle: int,
        ranks: tuple[int, ...],
        plan: Plan | None,
        routes: Routes,
    ) -> None:
        self._runtime = runtime
        self.handle = handle
        self.ranks = ranks
        self.plan = plan
        self.routes = routes
        # What the next run needs, made while this one waits.
        self.ready: list[Begun] = []

    def run(self, feeds: Sequence[HostArray], timeout: float | None = None) -> list[Any]:
        """Run one step."""
        return self._runtime.run(self, feeds, timeout)


def _fetched(graphs: Iterable[Graph], routes: Routes) -> Iterator[int]:
    """Return the numbers of the edges whose values are fetched as they come."""
    for graph in graphs:
        for op in graph.operations:
            source = op.inputs[0].op if op.type == "Fetch" else None
            if source is not None and source.type == "Recv":
                edge = tuple(source.attrs[k] for k in ("edge", "source", "destination"))
                if edge in routes.incoming:
                    yield routes.incoming[edge]


def _transfers(
    partitions: Mapping[DeviceName, Graph], rank_of: Callable[[DeviceName], int]
) -> list[NumberedEdge]:
    """Number the transfers of a step that cross ranks, also those inside functions."""
    edges: list[NumberedEdge] = []
    bundles: dict[tuple[object, ...], int] = {}
    # All that runs once in the step, and each function: what a loop sends, it sends in each round.
    places = [(None, graph) for graph in partitions.values()]
    functions = dict.fromkeys(f for graph in partitions.values() for f in functions_in(graph))
    for place, graph in (*places, *((function, function) for function in functions)):
        for op in graph.operations:
            if op.type != "Send":
                continue
            source, destination = op.attrs["source"], op.attrs["destination"]
            ends = (rank_of(DeviceName.parse(source)), rank_of(DeviceName.parse(destination)))
            if ends[0] == ends[1]:
                continue
            bundle = 0
            if op.attrs["round"]:
                key = (place, *ends, op.attrs["round"], op.attrs["sources"])
                bundle = bundles.setdefault(key, len(bundles) + 1)
            edges.append((len(edges) + 1, op.attrs["edge"], source, destination, bundle))
    return edges
