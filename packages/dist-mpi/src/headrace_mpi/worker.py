"""The worker service: holds this task's partitions for clients on other ranks, and runs them.

Every rank has one, whatever its job: a parameter server is a task like any other. Handlers run
while frames are received and must not wait, so they note what has to be in order (a step is known
here before a message that aborts it) and leave the work to a job on another thread.
"""

from __future__ import annotations

import functools
import json
import threading
from collections.abc import Callable
from dataclasses import asdict, replace
from typing import Any, NamedTuple, final

from headrace.device_name import DeviceName
from headrace.errors import ClusterError
from headrace.graph.document import dump
from headrace.graph.graph import Graph
from headrace.runtime.cancellation import Cancellation
from headrace.runtime.containers import ContainerSet
from headrace.runtime.engine import Engine
from headrace.runtime.executor import Step, execute
from headrace.runtime.options import DEFAULT_OPTIONS, Options
from headrace.runtime.plan import Plan
from headrace.runtime.state import SessionState
from headrace_mpi import faults
from headrace_mpi.faults import StepAbortedError
from headrace_mpi.pool import Job
from headrace_mpi.rendezvous import Exchange, NumberedEdge, Routes, StepRendezvous
from headrace_mpi.transport import Transport
from headrace_mpi.wire import Frame, Kind


class Registered(NamedTuple):
    """This task's part of a step that a client registered."""

    plan: Plan
    routes: Routes
    session: int


def pack_registration(
    session: int,
    partitions: dict[DeviceName, Graph],
    edges: list[NumberedEdge],
    options: Options = DEFAULT_OPTIONS,
) -> bytes:
    """Return the payload of a REGISTER frame."""
    # With the user's lines, which errors on this task will name.
    documents = {str(device): dump(graph, sites=True) for device, graph in partitions.items()}
    fields = {
        "session": session,
        "edges": edges,
        "partitions": documents,
        "options": asdict(replace(options, recorder=None)),
    }
    return json.dumps(fields, separators=(",", ":")).encode()


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
            fields = json.loads(payload)
            session = int(fields["session"])
            partitions = {
                DeviceName.parse(name): Graph.from_document(text)
                for name, text in fields["partitions"].items()
            }
            with self._lock:
                state = self._states.setdefault(
                    (client, session), SessionState(default=self._containers)
                )
            plan = self._engine.plan(partitions, state, options=Options(**fields["options"]))
            routes = Routes.of(fields["edges"], self._transport.rank, self._rank_of)
        except Exception as error:
            self._transport.send(client, Frame(Kind.REGISTERED, edge=handle, payload=_text(error)))
            return
        with self._lock:
            self._registered[client, handle] = Registered(plan, routes, session)
            self.registrations += 1
        self._transport.send(client, Frame(Kind.REGISTERED, edge=handle))

    def _on_release(self, client: int, frame: Frame) -> None:
        """Drop what a session of a client registered. Its variables stay: they are the task's."""
        session = frame.step
        with self._lock:
            self._states.pop((client, session), None)
            for key, registered in list(self._registered.items()):
                if key[0] == client and registered.session == session:
                    del self._registered[key]

    # -- running

    def _on_run(self, client: int, frame: Frame) -> Job | None:
        # The client tells in `iteration` how far the oldest of its steps that still run is behind.
        self._exchange.raise_floor(client, frame.step - frame.iteration)
        registered = self._registered.get((client, frame.edge))
        if registered is None:
            unknown = ClusterError(f"nothing is registered under handle {frame.edge}")
            self._reply(client, frame.step, unknown)
            return None
        cancellation = Cancellation()
        with self._lock:
            self._running[frame.step] = cancellation
        rendezvous = self._exchange.open(frame.step, registered.routes)
        return functools.partial(
            self._run, client, frame.step, registered.plan, rendezvous, cancellation
        )

    def _run(
        self,
        client: int,
        step: int,
        plan: Plan,
        rendezvous: StepRendezvous,
        cancellation: Cancellation,
    ) -> None:
        failure: Exception | None = None
        try:
            execute(plan, Step(step, (), 0, rendezvous, cancellation))
        except Exception as error:
            failure = error
        with self._lock:
            del self._running[step]
        self._exchange.end(step, failed=failure is not None)
        self._reply(client, step, failure)

    def _reply(self, client: int, step: int, failure: Exception | None) -> None:
        if failure is None:
            self._transport.send(client, Frame(Kind.DONE, step))
        else:
            self._transport.send(client, Frame(Kind.ERROR, step, payload=_text(failure)))

    def _on_abort(self, client: int, frame: Frame) -> Job | None:
        cancellation = self._running.get(frame.step)
        if cancellation is None:
            return None
        reason = StepAbortedError(frame.text or "the step ended on another task")
        return functools.partial(cancellation.cancel, reason)


def _text(error: BaseException) -> Any:
    return faults.pack(error)
