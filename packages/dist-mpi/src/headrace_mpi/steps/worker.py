"""The worker service: holds this task's partitions for clients on other ranks, and runs them.

Every rank has one, whatever its job: a parameter server is a task like any other. Handlers run
while frames are received and must not wait, so they note what has to be in order (a step is known
here before a message that aborts it) and leave the work to a job.

A step that waits holds no thread: its job ends there, and is handed to the transport again when the
step can go on. So one thread runs the steps of all clients, in the order in which they can go on.
"""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, final

from headrace.errors import ClusterError
from headrace.extend.devices import Background, DeviceName
from headrace.extend.faults import fault_point
from headrace.extend.runtime import (
    Cancellation,
    ContainerSet,
    Engine,
    Options,
    Plan,
    Recorder,
    SessionState,
    StartedRun,
    Step,
)
from headrace_mpi.flight.record import clock
from headrace_mpi.steps import remote_errors, tracing
from headrace_mpi.steps.agreement import Agreement
from headrace_mpi.steps.registration import Received, read_partitions, unpack_fields
from headrace_mpi.steps.remote_errors import StepAbortedError
from headrace_mpi.steps.rendezvous import Exchange, Routes, StepRendezvous, client_of
from headrace_mpi.transport.thread_pool import Job
from headrace_mpi.transport.transport import Transport
from headrace_mpi.transport.wire import Frame, Kind, frame_of

_DONE = Kind.DONE


@dataclass(slots=True, eq=False)
class Registered:
    """This task's part of a step that a client registered.

    Attributes:
        key: The client, and the handle that it has for it.
        plan: What it runs.
        routes: Its transfers.
        session: The client's session.
        recorder: What records runs; None where nobody wants to know.
        ready: A run that is made before a client asks for it, while nobody waits for this task.
    """

    key: tuple[int, int]
    plan: Plan
    routes: Routes
    session: int
    recorder: Recorder | None = None
    ready: list[_RemoteRun] = field(default_factory=list)


@final
class WorkerService:
    """Runs partitions of other ranks' clients on the devices of this task."""

    def __init__(
        self,
        transport: Transport,
        exchange: Exchange,
        engine: Engine,
        containers: ContainerSet,
        rank_of: Callable[[DeviceName], int],
    ) -> None:
        """Answer the frames of clients.

        Args:
            transport: Not started yet.
            exchange: Where the values of steps meet.
            engine: The devices of this task.
            containers: The task's default container, which all clients share.
            rank_of: Returns the rank that plays the task of a device.
        """
        self._transport = transport
        self._exchange = exchange
        self._engine = engine
        self._containers = containers
        self._rank_of = rank_of
        self._registered: dict[tuple[int, int], Registered] = {}
        self._states: dict[tuple[int, int], SessionState] = {}
        self._running: dict[int, Cancellation] = {}
        self._received: dict[tuple[int, int], Received] = {}
        self._agreement = Agreement()
        # One for the sessions of all clients: each of its own would have a thread of its own.
        self._background = Background()
        self._lock = threading.Lock()
        self.registrations = 0
        transport.on(Kind.REGISTER, self._on_register)
        transport.on(Kind.RUN, self._on_run)
        transport.on(Kind.ABORT, self._on_abort)
        transport.on(Kind.RELEASE, self._on_release)

    # -- registering

    def _on_register(self, client: int, frame: Frame) -> Job:
        return functools.partial(self._register, client, frame.edge, frame.payload)

    def _register(self, client: int, handle: int, payload: bytes) -> None:
        try:
            fault_point("register")
            fields, arrays = unpack_fields(payload)
            session = int(fields["session"])
            options = Options(**fields["options"])
            self._agreement.join(client, session, options)
            with self._lock:
                received = self._received.setdefault((client, session), Received())
                received.held.update(arrays)
            partitions = read_partitions(fields, received)
            self._agreement.order(client, session, options, partitions.values())
            with self._lock:
                state = self._states.setdefault(
                    (client, session), SessionState(self._containers, self._background)
                )
            recorder = None
            if fields["record"]:
                recorder = Recorder()
                options = replace(options, recorder=recorder)
                self._transport.flight.widen()
            plan = self._engine.plan(partitions, state, options=options)
            routes = Routes.of(fields["edges"], self._transport.rank, self._rank_of)
        except Exception as error:
            self._transport.send(client, Frame(Kind.REGISTERED, edge=handle, payload=_text(error)))
            return
        with self._lock:
            if self._transport.is_forgotten(client):
                return
            key = client, handle
            self._registered[key] = Registered(key, plan, routes, session, recorder)
            self.registrations += 1
        self._transport.send(client, Frame(Kind.REGISTERED, edge=handle))

    def _on_release(self, client: int, frame: Frame) -> None:
        """Drop what a session of a client registered. Its variables stay: they are the task's."""
        session = frame.step
        self._agreement.leave(client, session)
        with self._lock:
            self._states.pop((client, session), None)
            self._received.pop((client, session), None)
            for key, registered in list(self._registered.items()):
                if key[0] == client and registered.session == session:
                    self._forget(key)

    def _forget(self, key: tuple[int, int]) -> None:
        """Drop what was registered."""
        ready = self._registered.pop(key).ready
        while ready:
            ready.pop().drop()

    def lose_client(self, client: int) -> None:
        """Cancel the steps of a client that is lost, and drop what it registered.

        It must not wait for steps: those that do not look at their cancellation run to their end.
        """
        self._agreement.lose_client(client)
        with self._lock:
            running = [c for step, c in self._running.items() if client_of(step) == client]
            for key in [key for key in self._registered if key[0] == client]:
                self._forget(key)
            for kept in (self._states, self._received):
                for key in [key for key in kept if key[0] == client]:
                    del kept[key]
        reason = StepAbortedError(f"the step ended: its client, rank {client}, was lost")
        for cancellation in running:
            cancellation.cancel(reason)

    # -- running

    def _on_run(self, client: int, frame: Frame) -> Job | None:
        _, number, handle, lag, _, _ = frame
        registered = self._registered.get((client, handle))
        if registered is None:
            unknown = ClusterError(f"nothing is registered under handle {handle}")
            self._reply(client, number, unknown)
            return None
        try:
            run = registered.ready.pop()
        except IndexError:
            run = self._made(registered)
        step = run.step
        step.id = number
        with self._lock:
            self._running[number] = step.cancellation
        # The lag is how far the oldest of the client's steps that still run is behind.
        self._exchange.begin(run.rendezvous, number, number - lag)
        return run.go_on

    def _made(self, registered: Registered) -> _RemoteRun:
        """Return a run of what a client registered, which gets its number when it begins."""
        rendezvous = self._exchange.prepare(registered.routes)
        return _RemoteRun(registered, rendezvous, self._transport, self._ended)

    def _ended(self, run: _RemoteRun, failure: Exception | None) -> None:
        registered, step = run.registered, run.step.id
        client, _ = key = registered.key
        # What can be done later is: the client waits for the answer.
        if failure is not None:
            self._end(step, failed=True)
            self._reply(client, step, failure)
            return
        if registered.recorder is None:
            self._reply(client, step, None)
        else:
            trace = tracing.pack(registered.recorder, self._transport, step, run.began)
            self._transport.send(client, Frame(Kind.TRACE, step, payload=trace))
        self._end(step, failed=False)
        if not registered.ready:
            made = self._made(registered)
            with self._lock:
                if self._registered.get(key) is registered:
                    registered.ready.append(made)
                    return
            made.drop()

    def _end(self, step: int, *, failed: bool) -> None:
        with self._lock:
            del self._running[step]
        self._exchange.end(step, failed=failed)

    def _reply(self, client: int, step: int, failure: Exception | None) -> None:
        if failure is None:
            self._transport.send(client, frame_of((_DONE, step, 0, 0, 0, None)))
        else:
            self._transport.send(client, Frame(Kind.ERROR, step, payload=_text(failure)))

    def _on_abort(self, client: int, frame: Frame) -> Job | None:
        cancellation = self._running.get(frame.step)
        if cancellation is None:
            return None
        reason = StepAbortedError(frame.text or "the step ended on another task")
        return functools.partial(cancellation.cancel, reason)


@final
class _RemoteRun:
    """This task's part of one run of a step, as a job that goes on when it can."""

    __slots__ = ("_ended", "_run", "_transport", "began", "registered", "rendezvous", "step")

    def __init__(
        self,
        registered: Registered,
        rendezvous: StepRendezvous,
        transport: Transport,
        ended: Callable[[_RemoteRun, Exception | None], None],
    ) -> None:
        self.registered = registered
        self.rendezvous = rendezvous
        self.step = Step(0, (), 0, rendezvous, Cancellation())
        # When it first ran.
        self.began = 0
        self._transport = transport
        self._ended = ended
        self._run = StartedRun(registered.plan, self.step, self._wake)

    def _wake(self) -> None:
        self._transport.post(self.go_on)

    def drop(self) -> None:
        """Forget a run that nobody asked for: it and what wakes it refer to each other."""
        self._run.drop()
        del self._run

    def go_on(self) -> None:
        """Run the step until it waits or ends; answer the client when it has ended."""
        failure: Exception | None = None
        first, self.began = not self.began, self.began or clock()
        try:
            if first:
                fault_point("run")
            if not self._run.advance():
                return
        except Exception as error:
            failure = error
        # It knows how to wake this: what a step held goes with it, without a collector.
        del self._run
        self._ended(self, failure)


def _text(error: BaseException) -> Any:
    return remote_errors.pack(error)
