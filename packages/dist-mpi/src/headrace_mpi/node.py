"""One rank of a cluster: its devices, the service that others use, and its own sessions' client.

All ranks leave together. A rank that is done says so to all others and goes on serving them;
when every rank has said so, no step can run any more, and each may end.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Protocol, final

from headrace.device_name import DeviceName
from headrace.errors import CancelledError, ClusterError
from headrace.graph.function import Function
from headrace.graph.graph import Graph
from headrace.placement.place import Machine
from headrace.runtime.containers import ContainerSet
from headrace.runtime.engine import Engine, LocalRuntime, LocalStep
from headrace.runtime.nested import function_partitions
from headrace.runtime.options import DEFAULT_OPTIONS, Options
from headrace.runtime.plan import Plan
from headrace.runtime.planning import build_plan
from headrace.runtime.runtime import Runtime
from headrace.runtime.state import SessionState
from headrace_mpi.deadline import StartDeadline
from headrace_mpi.rendezvous import Exchange
from headrace_mpi.runtime import Client, ClusterRuntime
from headrace_mpi.tasks import Layout, introduce, joint_machine, meet
from headrace_mpi.transport import Transport
from headrace_mpi.waiting import Waiter
from headrace_mpi.wire import Frame, Kind
from headrace_mpi.worker import WorkerService
from headrace_mpi.world import World

if TYPE_CHECKING:
    from collections.abc import Mapping

_FINISH_S = 5.0


class Node(Protocol):
    """What a cluster needs of the process that it runs in."""

    def machine(self) -> Machine:
        """Return the devices of all tasks."""

    def open_runtime(self, options: Options = DEFAULT_OPTIONS) -> Runtime:
        """Return a runtime for a new session."""

    def serve(self) -> None:
        """Say that this rank is done, and serve the others until all are."""

    def close(self) -> None:
        """Serve until all are done, and stop."""


@final
class RankNode:
    """A process that plays one task, among others."""

    def __init__(self, world: World, layout: Layout, deadline_s: float) -> None:
        """Meet the other ranks, and begin to serve them.

        Args:
            world: The ranks.
            layout: Which rank plays which task.
            deadline_s: Time after which ranks that are still missing are reported and the job is
                ended.

        Raises:
            ClusterError: if the ranks' programs do not agree.
        """
        engine = Engine(layout.task(world.rank))
        own = engine.machine()
        with StartDeadline(world.launch, deadline_s):
            # A cluster has a communicator of its own, so a later one never sees its frames.
            comm = world.comm.Dup()
            self.members = meet(comm, introduce(world.rank, layout.ps, own))
        self.transport = Transport(comm, world.fail)
        self._machine = joint_machine(own, self.members)
        containers = ContainerSet()
        exchange = Exchange(self.transport)
        self.worker = WorkerService(self.transport, exchange, engine, containers, layout.rank)
        self.client = Client(self.transport, exchange, engine, containers, layout, self._machine)
        self.exchange = exchange
        self._others = [rank for rank in range(world.size) if rank != world.rank]
        self._here = set(self._others)
        self._all_done = Waiter()
        self._said = False
        self.transport.on(Kind.SHUTDOWN, self._on_done)
        self.transport.start()

    def machine(self) -> Machine:
        """Return the devices of all tasks."""
        return self._machine

    def open_runtime(self, options: Options = DEFAULT_OPTIONS) -> Runtime:
        """Return a runtime for a new session.

        Raises:
            ClusterError: if this rank has said that it is done.
        """
        if self._said:
            raise ClusterError(
                "this rank only serves the others since cluster.serve(): open sessions before it"
            )
        return ClusterRuntime(self.client, options)

    def serve(self) -> None:
        """Say that this rank is done, and serve the others until all are."""
        if not self._said:
            self._end_sessions()
            self._said = True
            for rank in self._others:
                self.transport.send(rank, Frame(Kind.SHUTDOWN))
        while self._here:
            self.transport.serve(self._all_done)

    def _end_sessions(self) -> None:
        runtimes = list(self.client.runtimes)
        for runtime in runtimes:
            runtime.close(CancelledError("the cluster was closed while the session was open"))
        deadline = time.monotonic() + _FINISH_S
        while any(runtime.busy for runtime in runtimes) and time.monotonic() < deadline:
            time.sleep(0.001)

    def _on_done(self, rank: int, frame: Frame) -> None:
        self._here.discard(rank)
        if not self._here:
            self._all_done.wake()

    def close(self) -> None:
        """Serve until all are done, and stop."""
        self.serve()
        self.transport.close()


@final
class SoloNode:
    """A process that is alone, and plays all tasks; no message is ever sent."""

    def __init__(self, layout: Layout) -> None:
        """Make the tasks' devices known.

        Args:
            layout: The tasks.
        """
        self._engines = {task: Engine(task) for task in layout.tasks(0)}
        self._containers = ContainerSet()
        own = self._engines[layout.task(0)]
        names = [name for engine in self._engines.values() for name in engine.device_names()]
        self._machine = own.machine(names)
        self._own = own

    def machine(self) -> Machine:
        """Return the devices of all tasks."""
        return self._machine

    def open_runtime(self, options: Options = DEFAULT_OPTIONS) -> Runtime:
        """Return a runtime for a new session."""
        return SoloRuntime(self._own, self._engines, self._machine, self._containers, options)

    def serve(self) -> None:
        """Return at once: there is nobody to serve."""

    def close(self) -> None:
        """Do nothing: there is nobody to tell."""


class SoloRuntime(LocalRuntime):
    """A local runtime with the devices of several tasks."""

    def __init__(
        self,
        own: Engine,
        engines: Mapping[DeviceName, Engine],
        machine: Machine,
        containers: ContainerSet,
        options: Options,
    ) -> None:
        """Make a runtime.

        Args:
            own: The engine of the client's task.
            engines: The engine of each task.
            machine: The devices of all tasks.
            containers: The tasks' default containers, shared by all sessions.
            options: How steps are planned and run.
        """
        super().__init__(own, options)
        self.state = SessionState(default=containers)
        self._engines = engines
        self._machine = machine

    def machine(self) -> Machine:
        """Return the devices of all tasks."""
        return self._machine

    def register(self, partitions: Mapping[DeviceName, Graph], fetches: int) -> LocalStep:
        """Make the partitions of a step ready to run."""
        return LocalStep(self, self._plan(partitions, fetches))

    def _plan(self, partitions: Mapping[DeviceName, Graph], fetches: int) -> Plan:
        devices = {name: self._engines[name.task_name].device(name) for name in partitions}

        def nest(function: Function, saves: tuple[str, ...], home: DeviceName) -> Plan:
            machine = self._engines[home.task_name].machine()
            optimize = self.options.optimize
            parts = function_partitions(function, saves, home, machine, optimize=optimize)
            return self._plan(parts, len(function.results) + len(saves))

        kernels = self._machine.kernels
        return build_plan(partitions, devices, kernels, self.state, fetches, nest, self.options)
