"""One rank of a cluster: its devices, the service that others use, and its own sessions' client.

All ranks leave together. A rank that is done says so to all others and goes on serving them;
when every rank has said so, no step can run any more, and each may end.
"""

from __future__ import annotations

import functools
import time
from dataclasses import replace
from typing import TYPE_CHECKING, Protocol, final

from headrace import Graph
from headrace.errors import CancelledError, ClusterError, TaskLostError
from headrace.extend.devices import DeviceName
from headrace.extend.faults import fault_point, name_process
from headrace.extend.graphs import Function
from headrace.extend.runtime import (
    DEFAULT_OPTIONS,
    ContainerSet,
    Engine,
    LocalRuntime,
    LocalStep,
    Machine,
    Options,
    Order,
    Plan,
    Recorder,
    Runtime,
    SessionState,
    Wakeup,
    build_plan,
    devices_in,
    function_partitions,
    outlive_tasks,
    tell_chief,
    tell_loss,
)
from headrace_mpi.collectives import groups
from headrace_mpi.flight.dump import FlightDump
from headrace_mpi.jobs import Jobs, Layout
from headrace_mpi.launcher.status_lines import tell
from headrace_mpi.membership.deadline import StartDeadline
from headrace_mpi.membership.failure_detector import FailureDetector
from headrace_mpi.membership.fault_tolerance import (
    CONTINUE,
    END,
    FaultTolerance,
    birth,
    end_process,
)
from headrace_mpi.membership.loss import Losses
from headrace_mpi.membership.members import gather, introduce, joint_machine, meet
from headrace_mpi.membership.saving import GRACE_S, SAVING_S, TELL_S
from headrace_mpi.membership.ulfm import failed_ranks
from headrace_mpi.settings import LOST_AFTER, MIN_WORKERS, RESTARTS, SLOW_AFTER, STALL_AFTER
from headrace_mpi.shared_memory.links import open_links
from headrace_mpi.steps.client import Client
from headrace_mpi.steps.rendezvous import Exchange
from headrace_mpi.steps.runtime import ClusterRuntime
from headrace_mpi.steps.stalls import StepStalls
from headrace_mpi.steps.worker import WorkerService
from headrace_mpi.transport.transport import Transport
from headrace_mpi.transport.wire import Frame, Kind
from headrace_mpi.world import World

if TYPE_CHECKING:
    from collections.abc import Mapping

_FINISH_S = 5.0


class Node(Protocol):
    """What a cluster needs of the process that it runs in."""

    @property
    def is_chief(self) -> bool:
        """Whether this process is the chief now."""

    def machine(self) -> Machine:
        """Return the devices of all tasks."""

    def lost(self) -> tuple[str, ...]:
        """Return the names of the tasks that are lost."""

    def open_runtime(self, options: Options = DEFAULT_OPTIONS) -> Runtime:
        """Return a runtime for a new session."""

    def serve(self) -> None:
        """Say that this rank is done, and serve the others until all are."""

    def close(self) -> None:
        """Serve until all are done, and stop."""


@final
class RankNode:
    """A process that plays one task, among others."""

    def __init__(
        self,
        world: World,
        jobs: Jobs,
        task: DeviceName,
        deadline_s: float,
        on_worker_loss: str = END,
    ) -> None:
        """Meet the other ranks, and begin to serve them.

        Args:
            world: The ranks.
            jobs: The jobs of the cluster.
            task: The task that this rank plays.
            deadline_s: Time after which ranks that are still missing are reported and the job is
                ended.
            on_worker_loss: Whether the job goes on without a worker: "end" or "continue".

        Raises:
            ClusterError: if the ranks' programs do not agree.
        """
        engine = Engine(task)
        own = engine.machine()
        with StartDeadline(world.launch, deadline_s):
            # A cluster has a communicator of its own, so a later one never sees its frames.
            comm = world.comm.Dup()
            self.members = meet(comm, introduce(world.rank, jobs, task, own, on_worker_loss))
        tell(f"plays {task.job}:{task.task}")
        if not RESTARTS.read():
            # What a job that was started anew goes on from is to be seen without faults.
            name_process(f"{task.job}:{task.task}")
        played = [DeviceName.parse(member.task) for member in self.members]
        layout = Layout(jobs, tuple(played))
        self._world = world
        self._comm = comm
        hosts = [member.host for member in self.members]
        links = open_links(world.rank, hosts, functools.partial(gather, comm))
        self.transport = Transport(comm, self._on_fault, links)
        self._machine = joint_machine(own, self.members)
        containers = ContainerSet()
        exchange = Exchange(self.transport)
        self.worker = WorkerService(self.transport, exchange, engine, containers, layout.rank)
        flight_dump = FlightDump(self.transport, str(task), world.launch.job)
        self.client = Client(
            self.transport, exchange, engine, containers, layout, self._machine, flight_dump
        )
        self.exchange = exchange
        stalls = StepStalls(self.client, self.client.where(world.rank), STALL_AFTER.read())
        self.fault_tolerance = FaultTolerance(
            on_worker_loss, played, jobs.chief, MIN_WORKERS.read()
        )
        # Whether that was told to whoever listens.
        self._is_chief = self.is_chief
        self._loss_told = False
        losses = Losses(
            world,
            self.client,
            self.transport,
            self.fault_tolerance,
            self._go_on,
            self._told_loss,
            self._say_saving,
            self._is_idle,
        )
        self.failure_detector = FailureDetector(
            self.transport,
            self.members,
            SLOW_AFTER.read(),
            LOST_AFTER.read(),
            on_slow=losses.slow,
            on_lost=self._on_lost,
            on_beat=stalls.look,
        )
        self._losses = losses
        self.group = groups.of_cluster(self.transport, layout)
        groups.enter(self.group)
        host = self.members[world.rank].host
        self._born = {m.rank: birth(m.pid) for m in self.members if m.host == host}
        self._others = [rank for rank in range(world.size) if rank != world.rank]
        self._here = set(self._others)
        self._all_done = Wakeup()
        self._said = False
        self.transport.on(Kind.SHUTDOWN, self._on_done)
        # Who has nothing more to do since a loss that ends the job.
        self._ending: set[int] = set()
        # When which rank last said that it still saves.
        self._saving: dict[int, float] = {}
        self._all_end = Wakeup()
        self.transport.on(Kind.ENDING, self._on_ending)
        self.transport.on(Kind.SAVING, self._on_saving)
        world.hooks.await_others = self._await_others
        self._leave_others = outlive_tasks() if on_worker_loss == CONTINUE else lambda: None
        world.goes_on = on_worker_loss == CONTINUE
        self.transport.start()
        self.failure_detector.start()
        if self.fault_tolerance.may_lose(world.rank):
            tell("spare")
            if not self._is_chief:
                world.hooks.leave_alone = self._fail_alone

    def _on_fault(self, error: BaseException) -> None:
        """Take what MPI tells of lost ranks; any other fault is the job's."""
        failed = failed_ranks(self._comm, error)
        if failed:
            self.failure_detector.lost(failed, "MPI says that its process failed")
        else:
            self._world.fail(error)

    def _on_lost(self, error: TaskLostError, rank: int) -> None:
        """Fail what waits for a rank that is lost."""
        if self.group is not None:
            self.group.lose_member(rank, error)
        self._losses.lost(error, rank)

    def _go_on(self, rank: int) -> None:
        """Take back what a rank has here without which the job goes on."""
        member = self.members[rank]
        if rank in self._born:
            patient = self.failure_detector.told_itself(rank)
            end_process(member.pid, self._born[rank], patient=patient)

        def take_back() -> None:
            self.worker.lose_client(rank)
            self.exchange.lose_client(rank)
            tell_loss(DeviceName.parse(member.task))
            self._take_place()

        # Cancelling calls functions of kernels, which may take a while.
        self.transport.post(take_back)
        self._here.discard(rank)
        if not self._here:
            self._all_done.wake()

    def _take_place(self) -> None:
        """Be the chief from now on where that is this rank's turn."""
        if self._is_chief or not self.is_chief or self.fault_tolerance.ending:
            return
        self._is_chief = True
        # Its mistakes are the job's, as those of the first chief were.
        self._world.hooks.leave_alone = None
        self._world.hooks.say("is the chief from now on")
        tell_chief()

    @property
    def is_chief(self) -> bool:
        """Whether this rank is the chief now."""
        return self.fault_tolerance.election.chief == self._world.rank

    def lost(self) -> tuple[str, ...]:
        """Return the names of the tasks that are lost."""
        return tuple(self.members[rank].task for rank in sorted(self.fault_tolerance.lost))

    def _fail_alone(self, why: str) -> None:
        """Tell the others that this rank fails, and that it does so alone."""
        self.failure_detector.fail(why)
        self.transport.flush(TELL_S)

    def _await_others(self) -> None:
        """Say that this rank ends because of a loss; wait until the others do, or only serve.

        Those that only serve have to tell of the loss, too, before the first end ends all. One that
        still saves says so, and is waited for as long as it does, up to a deadline.
        """
        self._say_ending()
        began = time.monotonic()
        while awaited := self._awaited:
            heard = max(began, *(self._saving.get(rank, began) for rank in awaited))
            until = min(heard + GRACE_S, began + SAVING_S) + TELL_S
            if not self.transport.wait(self._all_end, max(until - time.monotonic(), 0.0)):
                return

    @property
    def _awaited(self) -> set[int]:
        """The ranks that have something to do yet after a loss that ends the job."""
        return {*self._others} - self._ending - self.fault_tolerance.lost

    def _is_idle(self) -> bool:
        return self._said and not self._awaited

    def _told_loss(self) -> None:
        """Say so where this rank only serves; programs may save before they end."""
        self._loss_told = True
        if self._said:
            self._say_ending()

    def _say_ending(self) -> None:
        for rank in self._others:
            self.transport.send(rank, Frame(Kind.ENDING))

    def _say_saving(self) -> None:
        tell("saves")
        for rank in self._others:
            self.transport.send(rank, Frame(Kind.SAVING))

    def _on_saving(self, rank: int, frame: Frame) -> None:
        self._saving[rank] = time.monotonic()
        self._all_end.wake()

    def _on_ending(self, rank: int, frame: Frame) -> None:
        self._ending.add(rank)
        self._all_end.wake()

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
            groups.leave(self.group)
            if self.group is not None:
                self.group.close("it is done")
            as_chief = self.is_chief
            self.fault_tolerance.election.leave(self._world.rank, as_chief=as_chief)
            for rank in self._others:
                self.transport.send(rank, Frame(Kind.SHUTDOWN, edge=int(as_chief)))
            if self._loss_told:
                self._say_ending()
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
        self.fault_tolerance.election.leave(rank, as_chief=bool(frame.edge))
        # One that left without knowing that it was to be the chief, was not.
        self._take_place()
        self._here.discard(rank)
        self._all_end.wake()
        if not self._here:
            self._all_done.wake()

    def close(self) -> None:
        """Serve until all are done, and stop."""
        self.serve()
        fault_point("exit")
        self._world.hooks.leave_alone = None
        self._world.hooks.await_others = lambda: None
        self.failure_detector.leave()
        self.transport.close()
        self._leave_others()


@final
class SoloNode:
    """A process that is alone, and plays all tasks; no message is ever sent."""

    def __init__(self, jobs: Jobs, task: DeviceName) -> None:
        """Make the tasks' devices known.

        Args:
            jobs: The jobs of the cluster.
            task: The task as which the process runs its program.
        """
        self._engines = {played: Engine(played) for played in jobs.tasks}
        self._containers = ContainerSet()
        own = self._engines[task]
        self.is_chief = task == jobs.chief
        names = [name for engine in self._engines.values() for name in engine.device_names()]
        self._machine = own.machine(names)
        self._own = own
        # Sessions share the variables of the tasks.
        self._order = Order()
        self._group = groups.alone()
        groups.enter(self._group)

    def machine(self) -> Machine:
        """Return the devices of all tasks."""
        return self._machine

    def lost(self) -> tuple[str, ...]:
        """Return nothing: a process does not outlive itself."""
        return ()

    def open_runtime(self, options: Options = DEFAULT_OPTIONS) -> Runtime:
        """Return a runtime for a new session."""
        return SoloRuntime(
            self._own, self._engines, self._machine, self._containers, options, self._order
        )

    def serve(self) -> None:
        """Return at once: there is nobody to serve."""

    def close(self) -> None:
        """Let later collectives run without the cluster."""
        groups.leave(self._group)


class SoloRuntime(LocalRuntime):
    """A local runtime with the devices of several tasks."""

    def __init__(
        self,
        own: Engine,
        engines: Mapping[DeviceName, Engine],
        machine: Machine,
        containers: ContainerSet,
        options: Options,
        order: Order,
    ) -> None:
        """Make a runtime.

        Args:
            own: The engine of the client's task.
            engines: The engine of each task.
            machine: The devices of all tasks.
            containers: The tasks' default containers, shared by all sessions.
            options: How steps are planned and run.
            order: The order of the steps of all sessions.
        """
        super().__init__(own, options)
        self.order = order
        self.state = SessionState(default=containers)
        self._containers = containers
        self._engines = engines
        self._machine = machine

    def machine(self) -> Machine:
        """Return the devices of all tasks."""
        return self._machine

    def traced(self, recorder: Recorder) -> SoloRuntime:
        """Return the runtime once more, with the same state, recording what steps do."""
        options = replace(self.options, recorder=recorder)
        made = SoloRuntime(
            self.engine, self._engines, self._machine, self._containers, options, self.order
        )
        made.state = self.state
        made.rendezvous = self.rendezvous
        return made

    def register(self, partitions: Mapping[DeviceName, Graph], fetches: int) -> LocalStep:
        """Make the partitions of a step ready to run."""
        return LocalStep(self, self._plan(partitions, fetches, self.options))

    def _plan(self, partitions: Mapping[DeviceName, Graph], fetches: int, options: Options) -> Plan:
        whole = self.engine.machine(self._machine.devices, options)
        devices = {
            name: self._engines[name.task_name].device(name)
            for name in devices_in(partitions, whole)
        }

        def nest(
            function: Function,
            saves: tuple[str, ...],
            home: DeviceName,
            options: Options = options,
        ) -> Plan:
            machine = self._engines[home.task_name].machine(options=options)
            parts = function_partitions(
                function,
                saves,
                home,
                machine,
                optimize=options.optimize,
                verify=options.verify,
            )
            return self._plan(parts, len(function.results) + len(saves), options)

        around = self.engine.around(options)
        return build_plan(
            partitions, devices, whole, self.state, fetches, nest, options, around=around
        )
