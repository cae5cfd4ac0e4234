"""The engine of one process: its devices, and the plans that run on them."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Mapping, Sequence
from typing import Any

from headrace.device_name import DeviceName
from headrace.errors import CancelledError, NoDeviceError
from headrace.graph.function import Function
from headrace.graph.graph import Graph
from headrace.placement.place import Machine
from headrace.plugins.host import PluginHost, host
from headrace.runtime.cancellation import Cancellation
from headrace.runtime.device import Device, HostArray
from headrace.runtime.executor import Step, execute
from headrace.runtime.nested import function_partitions
from headrace.runtime.options import DEFAULT_OPTIONS, Options
from headrace.runtime.plan import Plan
from headrace.runtime.planning import build_plan
from headrace.runtime.rendezvous import LocalRendezvous, Rendezvous
from headrace.runtime.state import SessionState

LOCAL_TASK = DeviceName("localhost", 0)


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
        names: list[DeviceName] = []
        for kind in self.plugins.devices:
            count = kind.count()
            if not count:
                reason = kind.why_none() or "none found"
                self._hints[kind.name] = f"no {kind.name} device: {reason}"
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

        Raises:
            NoDeviceError: if the task has none of that name.
        """
        names = self.device_names()
        with self._lock:
            device = self._open.get(name)
            if device is None:
                kind = self.plugins.devices.get(name.kind or "")
                if kind is None or name not in names:
                    raise NoDeviceError(f"this task has no device {str(name)!r}")
                device = self._open[name] = kind.factory(name)
            return device

    def machine(self, devices: Sequence[DeviceName] | None = None) -> Machine:
        """Return what placement chooses from: the task's devices, or ``devices``."""
        names = self.device_names()
        kinds = list(self.plugins.devices)
        kernels = self.plugins.kernels
        # Asked for last: collecting devices and kernels is what shows a plugin to be broken.
        broken = self.plugins.broken()
        return Machine(
            tuple(devices) if devices is not None else names,
            {kind.name: kind.priority for kind in kinds},
            self.client,
            kernels,
            {**self._hints, "": broken} if broken else dict(self._hints),
            {kind.name: kind.dtypes for kind in kinds if kind.dtypes is not None},
        )

    def plan(
        self,
        partitions: Mapping[DeviceName, Graph],
        state: SessionState,
        fetches: int = 0,
        options: Options = DEFAULT_OPTIONS,
    ) -> Plan:
        """Return the plan of this task's partitions of a step."""
        devices = {name: self.device(name) for name in partitions}

        def nest(function: Function, saves: tuple[str, ...], home: DeviceName) -> Plan:
            parts = function_partitions(
                function, saves, home, self.machine(), optimize=options.optimize
            )
            return self.plan(parts, state, len(function.results) + len(saves), options)

        kernels = self.plugins.kernels
        return build_plan(partitions, devices, kernels, state, fetches, nest, options)


class LocalRuntime:
    """The runtime of a session without a target: everything runs in this process."""

    def __init__(self, engine: Engine | None = None, options: Options = DEFAULT_OPTIONS) -> None:
        self.engine = engine if engine is not None else Engine()
        self.options = options
        self.state = SessionState()
        self.rendezvous: Rendezvous = LocalRendezvous()
        self._steps = itertools.count(1)
        self._running: set[Cancellation] = set()
        self._lock = threading.Lock()
        self._closed: BaseException | None = None

    def machine(self) -> Machine:
        """Return the devices of this process."""
        return self.engine.machine()

    def register(self, partitions: Mapping[DeviceName, Graph], fetches: int) -> LocalStep:
        """Make the partitions of a step ready to run."""
        return LocalStep(self, self.engine.plan(partitions, self.state, fetches, self.options))

    def run(self, plan: Plan, feeds: Sequence[HostArray]) -> list[Any]:
        """Run a plan once."""
        cancellation = Cancellation()
        step = Step(next(self._steps), feeds, plan.fetches, self.rendezvous, cancellation)
        with self._lock:
            if self._closed is not None:
                raise self._closed
            self._running.add(cancellation)
        try:
            execute(plan, step)
        finally:
            with self._lock:
                self._running.discard(cancellation)
            if plan.waits or plan.branches:
                self.rendezvous.close(step.id)
        return step.fetches

    def close(self, reason: BaseException | None = None) -> None:
        """Cancel the steps that still run."""
        why = reason if reason is not None else CancelledError("the session was closed")
        with self._lock:
            self._closed = why
            running = list(self._running)
        for cancellation in running:
            cancellation.cancel(why)


class LocalStep:
    """A step that is ready to run in this process."""

    def __init__(self, runtime: LocalRuntime, plan: Plan) -> None:
        self.runtime = runtime
        self.plan = plan
        # Nothing in such a step waits, so nothing has to be cancelled, and nobody asks for its id.
        self._whole = plan.whole

    def run(self, feeds: Sequence[HostArray]) -> list[Any]:
        """Run one step."""
        if self._whole is not None:
            return self._whole(feeds)
        return self.runtime.run(self.plan, feeds)
