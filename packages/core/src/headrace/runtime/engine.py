"""The engine of one process: its devices, and the plans that run on them."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from headrace.device_name import DeviceName
from headrace.errors import CancelledError, NoDeviceError
from headrace.finalizers import when_collected
from headrace.graph.function import Function
from headrace.graph.graph import Graph
from headrace.placement.device_counts import as_counted
from headrace.placement.place import Machine
from headrace.plugins.host import PluginHost, host
from headrace.runtime.concurrency.cancellation import Cancellation
from headrace.runtime.concurrency.concurrent_steps import ABREAST
from headrace.runtime.concurrency.deadlines import deadline
from headrace.runtime.concurrency.stalls import StallWatch
from headrace.runtime.concurrency.step_order import Order
from headrace.runtime.devices.device import Device, HostArray
from headrace.runtime.devices.options import Around, surroundings
from headrace.runtime.execution.executor import active, execute
from headrace.runtime.execution.plan import Plan
from headrace.runtime.execution.step import Step
from headrace.runtime.options import DEFAULT_OPTIONS, Options
from headrace.runtime.planning.nested_functions import function_partitions
from headrace.runtime.planning.planning import build_plan, devices_in
from headrace.runtime.state.session_state import SessionState
from headrace.runtime.transfers.rendezvous import LocalRendezvous, Rendezvous

if TYPE_CHECKING:
    from headrace.runtime.profiling.trace import Recorder

LOCAL_TASK = DeviceName("localhost", 0)


# What tells the plan of one function from that of another: the function, the names of tensors of
# it that are wanted besides, the device of what holds it, and how it is planned.
Nested = tuple[Function, tuple[str, ...], DeviceName, Options]


class Engine:
    """The devices of one task, opened when first used.

    Attributes:
        task: Job and index of the task.
        plugins: The host that provides devices and kernels.
    """

    def __init__(self, task: DeviceName = LOCAL_TASK, plugins: PluginHost | None = None) -> None:
        self.task = task
        self.plugins = plugins if plugins is not None else host()
        self._open: dict[DeviceName, Device] = {}
        self._names: tuple[DeviceName, ...] | None = None
        self._hints: dict[str, str] = {}
        self._lock = threading.Lock()

    @property
    def client(self) -> DeviceName:
        """The device on which this task's feeds and fetches live."""
        return DeviceName(self.task.job, self.task.task, "cpu", 0)

    def device_names(self) -> tuple[DeviceName, ...]:
        """Return the names of the task's devices.

        Raises:
            NoDeviceError: if no plugin provides a cpu device.
        """
        with self._lock:
            if self._names is None:
                self._names = self._list_devices()
            return self._names

    def _list_devices(self) -> tuple[DeviceName, ...]:
        self.plugins.environment_checked  # noqa: B018 - warns
        names: list[DeviceName] = []
        for kind in self.plugins.devices:
            count, why_none = self.plugins.count_devices(kind)
            if not count:
                self._hints[kind.name] = f"no {kind.name} device: {why_none}"
            names.extend(
                DeviceName(self.task.job, self.task.task, kind.name, i) for i in range(count)
            )
        if self.client not in names:
            broken = self.plugins.broken()
            raise NoDeviceError(
                "no plugin provides the cpu device, which every session needs: "
                "pip install headrace-backend-cpu" + (f"\n{broken}" if broken else "")
            )
        return tuple(names)

    def device(self, name: DeviceName) -> Device:
        """Return an open device.

        Of a virtual kind there are as many as anybody asks for.

        Raises:
            NoDeviceError: if the task has none of that name.
            PluginError: if its plugin fails to open it; names the plugin.
        """
        names = self.device_names()
        with self._lock:
            device = self._open.get(name)
            if device is None:
                if name not in names and not self._is_virtual(name):
                    raise NoDeviceError(f"this task has no device {str(name)!r}")
                device = self._open[name] = self.plugins.open_device(name)
            return device

    def _is_virtual(self, name: DeviceName) -> bool:
        kind = self.plugins.devices.get(name.kind or "")
        return kind is not None and kind.virtual and name.task_name == self.task

    def machine(
        self, devices: Sequence[DeviceName] | None = None, options: Options = DEFAULT_OPTIONS
    ) -> Machine:
        """Return what placement chooses from.

        Args:
            devices: The devices; the task's if None.
            options: What the session asks of their number and of placement.
        """
        names = self.device_names()
        kinds = list(self.plugins.devices)
        kernels, added = self.plugins.kernels, self.plugins.passes.added
        # Asked for last: collecting devices and kernels is what shows a plugin to be broken.
        broken = self.plugins.broken()
        made = Machine(
            tuple(devices) if devices is not None else names,
            {kind.name: kind.priority for kind in kinds},
            self.client,
            kernels,
            {**self._hints, "": broken} if broken else dict(self._hints),
            {kind.name: kind.dtypes for kind in kinds if kind.dtypes is not None},
            added,
            soft=options.soft,
            virtual=frozenset(kind.name for kind in kinds if kind.virtual),
        )
        return as_counted(made, options.device_count)

    def plan(
        self,
        partitions: Mapping[DeviceName, Graph],
        state: SessionState,
        fetches: int = 0,
        options: Options = DEFAULT_OPTIONS,
        nested: dict[Nested, Plan] | None = None,
    ) -> Plan:
        """Return the plan of this task's partitions of a step.

        Args:
            partitions: The graph of each device.
            state: What outlives the step.
            fetches: How many values it hands back.
            options: How it is made.
            nested: The plans of functions that the step has already: functions stay shared.
        """
        machine = self.machine(options=options)
        devices = {name: self.device(name) for name in devices_in(partitions, machine)}
        known: dict[Nested, Plan] = {} if nested is None else nested

        def nest(
            function: Function,
            saves: tuple[str, ...],
            home: DeviceName,
            options: Options = options,
        ) -> Plan:
            key = function, saves, home, options
            found = known.get(key)
            if found is not None:
                return found
            parts = function_partitions(
                function,
                saves,
                home,
                self.machine(options=options),
                optimize=options.optimize,
                verify=options.verify,
            )
            results = len(function.results) + len(saves)
            made = known[key] = self.plan(parts, state, results, options, known)
            return made

        around = self.around(options)
        return build_plan(
            partitions, devices, machine, state, fetches, nest, options, around=around
        )

    def around(self, options: Options) -> tuple[Around, ...]:
        """Return what makes the contexts that options of devices ask for.

        Raises:
            ConfigError: if the machine cannot do what one asks for.
        """
        return surroundings(options.device_options, self.plugins.devices)


class LocalRuntime:
    """The runtime of a session without a target: everything runs in this process."""

    def __init__(self, engine: Engine | None = None, options: Options = DEFAULT_OPTIONS) -> None:
        self.engine = engine if engine is not None else Engine()
        self.options = options
        self.state = SessionState()
        # Is told of steps that wait for long; None where nobody is.
        self.watch: StallWatch | None = None
        self.rendezvous: Rendezvous = LocalRendezvous()
        # Among the steps of sessions that share this one's variables, of which there are none.
        self.order = Order()
        self._steps = itertools.count(1)
        self._running: set[Cancellation] = set()
        self._lock = threading.Lock()
        self._closed: BaseException | None = None
        # Threads of resources know the state, and not the runtime: it goes with the session.
        left = CancelledError("the session was left without being closed")
        when_collected(self, self.state.close, left, at_exit=False)

    def machine(self) -> Machine:
        """Return the devices of this process."""
        return self.engine.machine()

    def traced(self, recorder: Recorder) -> LocalRuntime:
        """Return the runtime once more, with the same state, recording what steps do."""
        made = LocalRuntime(self.engine, replace(self.options, recorder=recorder))
        made.state = self.state
        made.rendezvous = self.rendezvous
        made.order = self.order
        return made

    def register(self, partitions: Mapping[DeviceName, Graph], fetches: int) -> LocalStep:
        """Make the partitions of a step ready to run."""
        return LocalStep(self, self.engine.plan(partitions, self.state, fetches, self.options))

    def run(
        self, plan: Plan, feeds: Sequence[HostArray], timeout: float | None = None
    ) -> list[Any]:
        """Run a plan once, for so many seconds at most where it waits for something."""
        cancellation = Cancellation()
        step = Step(
            next(self._steps),
            feeds,
            plan.fetches,
            self.rendezvous,
            cancellation,
            watch=self.watch,
        )
        with self._lock:
            if self._closed is not None:
                raise self._closed
            running = self._running
            running.add(cancellation)
            if len(running) > 1:
                ABREAST.seen = True
        try:
            if timeout is None:
                execute(plan, step)
            else:
                with deadline(timeout, cancellation.cancel, step.explained):
                    execute(plan, step)
        finally:
            with self._lock:
                running.discard(cancellation)
            if plan.transfers:
                self.rendezvous.close(step.id)
        return step.fetches

    def repeat(self, plan: Plan, condition: Callable[[], bool]) -> None:
        """Run a plan that takes no feeds again and again, while a condition holds.

        Args:
            plan: The plan.
            condition: Called before each run, by any thread.
        """
        # lazy: only what fills queues runs so
        from headrace.runtime.execution.repeated_runs import RepeatedRuns, polled

        asked = polled(plan)
        if asked is None:
            while condition():
                self.run(plan, ())
            return
        cancellation = Cancellation()
        number, rendezvous = next(self._steps), self.rendezvous
        step = Step(number, (), 0, rendezvous, cancellation, watch=self.watch)
        repeated = RepeatedRuns(plan, asked, step, condition)
        with self._lock:
            if self._closed is not None:
                raise self._closed
            self._running.add(cancellation)
        key = cancellation.add(repeated.abort)
        try:
            with active(plan):
                repeated.run()
        except BaseException as error:
            # After an interrupt nothing may wait on.
            cancellation.cancel(CancelledError(f"the step was interrupted: {error!r}"))
            raise
        finally:
            cancellation.discard(key)
            with self._lock:
                self._running.discard(cancellation)

    def close(self, reason: BaseException | None = None) -> None:
        """Cancel the steps that still run, and wait for what goes on behind them."""
        why = reason if reason is not None else CancelledError("the session was closed")
        with self._lock:
            self._closed = why
            running = list(self._running)
        for cancellation in running:
            cancellation.cancel(why)
        self.state.close(why)
        self.state.background.close()


class LocalStep:
    """A step that is ready to run in this process."""

    def __init__(self, runtime: LocalRuntime, plan: Plan) -> None:
        self.runtime = runtime
        self.plan = plan
        # Nothing in such a step waits, so nothing has to be cancelled, and nobody asks for its id.
        # But a loop may take long.
        self._whole = None if plan.loops else plan.whole

    def run(self, feeds: Sequence[HostArray], timeout: float | None = None) -> list[Any]:
        """Run one step."""
        if self._whole is not None:
            return self._whole(feeds)
        return self.runtime.run(self.plan, feeds, timeout)

    def repeat(self, condition: Callable[[], bool]) -> None:
        """Run steps without feeds while a condition holds."""
        self.runtime.repeat(self.plan, condition)
