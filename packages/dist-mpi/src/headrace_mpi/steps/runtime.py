"""A session's runtime on a cluster.

A step is registered once, with every task that has a part in it. After that a run is one RUN
message of 40 bytes to each of these tasks; the calling thread runs its own task's part, and the
parts exchange values among themselves. The step is over when every task has answered, also after
an error: nothing of it runs on when the session raises.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeAlias, final

from headrace import Graph
from headrace.errors import CancelledError
from headrace.extend.devices import DeviceName, HostArray
from headrace.extend.documents import Arrays
from headrace.extend.faults import fault_point
from headrace.extend.runtime import (
    DEFAULT_OPTIONS,
    Machine,
    Options,
    Plan,
    Recorder,
    SessionState,
    Step,
    deadline,
    execute,
)
from headrace_mpi.steps.call import Call
from headrace_mpi.steps.client import Client
from headrace_mpi.steps.registration import pack_registration
from headrace_mpi.steps.rendezvous import NumberedEdge, Routes, StepRendezvous
from headrace_mpi.steps.tracing import StepTracing
from headrace_mpi.steps.transfers import fetched_edges, numbered_transfers
from headrace_mpi.transport.wire import Frame, Kind, frame_of

_RUN = Kind.RUN

# A run that begins, and where its values meet.
Begun: TypeAlias = tuple[Call, StepRendezvous]


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
        edges = numbered_transfers(partitions, client.layout.rank)
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
            routes.fetched.update(fetched_edges(local.values(), routes))
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
            client.flight_dump.failed(call.error)
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
