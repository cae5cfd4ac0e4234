"""The tasks of a cluster in one process, each of which runs its part of a step on a thread."""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import pytest

import headrace as hr
from headrace.device_name import DeviceName
from headrace.graph.graph import Graph
from headrace.runtime.concurrency.cancellation import Cancellation
from headrace.runtime.engine import Engine
from headrace.runtime.execution.executor import execute
from headrace.runtime.execution.plan import Plan
from headrace.runtime.execution.step import Step
from headrace.runtime.options import Options
from headrace.runtime.state.session_state import SessionState
from headrace.runtime.transfers.rendezvous import LocalRendezvous
from headrace.session.prepare import place_and_partition, step_graph

CLIENT = DeviceName("worker", 0)
TASKS = (CLIENT, DeviceName("ps", 0), DeviceName("ps", 1))
COMPILED = Options(compile_after=1000)
PLAIN = replace(COMPILED, compiled=False)


class Tasks:
    """The tasks of a cluster in one process: each runs its part of a step on a thread."""

    def __init__(self, options: Options = COMPILED) -> None:
        self.engines = {task: Engine(task) for task in TASKS}
        self.states = {task: SessionState() for task in TASKS}
        self.options = options
        self.pinned: dict[str, DeviceName] = {}
        self.steps = 0
        names = [name for engine in self.engines.values() for name in engine.device_names()]
        self.machine = self.engines[CLIENT].machine(names)

    def parts(
        self, tensors: Sequence[hr.Tensor], operations: Sequence[hr.Operation] = ()
    ) -> dict[DeviceName, Graph]:
        graph = hr.get_default_graph()
        step, _ = step_graph((), tensors, operations, self.machine, hr.Config())
        return place_and_partition(step, self.machine, graph, self.pinned)

    def plans(self, parts: Mapping[DeviceName, Graph], fetches: int) -> dict[DeviceName, Plan]:
        of_task: dict[DeviceName, dict[DeviceName, Graph]] = {}
        for device, graph in parts.items():
            of_task.setdefault(device.task_name, {})[device] = graph
        return {
            task: self.engines[task].plan(
                part, self.states[task], fetches if task == CLIENT else 0, self.options
            )
            for task, part in of_task.items()
        }

    def run(
        self, tensors: Sequence[hr.Tensor], operations: Sequence[hr.Operation] = ()
    ) -> list[Any]:
        plans = self.plans(self.parts(tensors, operations), len(tensors))
        rendezvous, cancellation = LocalRendezvous(), Cancellation()
        self.steps += 1
        steps = {
            task: Step(self.steps, (), plan.fetches, rendezvous, cancellation)
            for task, plan in plans.items()
        }
        errors: list[BaseException] = []

        def work(task: DeviceName) -> None:
            try:
                execute(plans[task], steps[task])
            except BaseException as error:
                errors.append(error)
                cancellation.cancel(error)

        threads = [threading.Thread(target=work, args=(task,), daemon=True) for task in plans]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(30.0)
        if any(thread.is_alive() for thread in threads):
            cancellation.cancel(hr.errors.DeadlineExceededError("the test took too long"))
            pytest.fail("the tasks of a step wait for each other")
        if errors:
            raise errors[0]
        return steps[CLIENT].fetches if CLIENT in steps else []


def on(task: DeviceName) -> Any:
    return hr.device(f"{task}/device:cpu:0")
