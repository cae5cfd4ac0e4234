"""Running nodes in parallel: each on a thread of its own, where that ends the step earlier.

A plan measures its nodes in its first runs (``timing.py``). Where some take long, leave cores to
others and do not wait for each other, later runs hand each of these to another thread, as soon as
its inputs are there. Everything else runs on the step's own thread, in the order of the plan as far
as that is possible. A plan whose steps do not get shorter by that goes back to one thread.
"""

from __future__ import annotations

import heapq
import time
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from queue import SimpleQueue
from typing import Any, final

from headrace.runtime.concurrency.callouts import call_out
from headrace.runtime.execution.plan import Mode, Plan, PlanNode
from headrace.runtime.execution.serial import Execute, run_in_order, run_nodes
from headrace.runtime.execution.step import Step
from headrace.runtime.profiling.timing import LONG_S, RUNS, Timing, saved_s

# What following the graph costs for each node beyond running the plan in its order.
_NODE_S = 3e-6
# After so many runs it shows whether they are shorter.
_TRIAL = 3
# What they must be shorter by, or threads only change turns.
_SHORTER = 0.95

_MODES = (Mode.PLAIN, Mode.STEP, Mode.INVOKES)
# Makes the devices of a plan active in the thread that enters it.
Active = Callable[[Plan], AbstractContextManager[Any]]


@final
class ParallelRuns:
    """Decides for a plan which of its nodes run in parallel, and runs it.

    Attributes:
        long: The indices of these nodes; none while the plan is measured, or where it does not pay.
    """

    def __init__(self, most: int, able: Callable[[PlanNode], bool]) -> None:
        """Decide nothing yet.

        Args:
            most: How many nodes may run at one time.
            able: Whether a node may run on another thread.
        """
        self.long: frozenset[int] = frozenset()
        self._most = most
        self._able = able
        self._timings: dict[int, Timing] | None = {}
        self._runs = 0
        self._serial_s = self._parallel_s = float("inf")
        # The nodes, whose values are let go by count and not in the order of the plan.
        self._nodes: tuple[PlanNode, ...] = ()

    def run(self, plan: Plan, step: Step, execute: Execute, active: Active) -> None:
        """Run a plan in which nothing waits and nothing is dead.

        Args:
            plan: The plan.
            step: The step that it runs in.
            execute: Runs the plans that nodes of it hold.
            active: Makes its devices active.
        """
        timings = self._timings
        began = time.perf_counter()
        if timings is not None:
            self._measure(plan, step, execute, timings)
            self._serial_s = min(self._serial_s, time.perf_counter() - began)
            self._runs += 1
            if self._runs >= RUNS:
                self._timings = None
                self._decide(plan, timings)
        elif not self.long:
            run_in_order(plan, step, execute)
        else:
            _Run(plan, self._nodes, self.long, self._most, step, execute, active).go()
            if self._runs <= RUNS + _TRIAL:
                self._runs += 1
                self._parallel_s = min(self._parallel_s, time.perf_counter() - began)
                if self._runs > RUNS + _TRIAL and self._parallel_s > _SHORTER * self._serial_s:
                    self.long = frozenset()

    def _measure(
        self, plan: Plan, step: Step, execute: Execute, timings: dict[int, Timing]
    ) -> None:
        slots = list(plan.slots)
        for index, node in enumerate(plan.nodes):
            if node.mode in _MODES and self._able(node):
                timing = timings.setdefault(index, Timing())
                timing.measured(run_nodes, (node,), slots, step, plan, execute)
            else:
                run_nodes((node,), slots, step, plan, execute)

    def _decide(self, plan: Plan, timings: dict[int, Timing]) -> None:
        long = {index: timing for index, timing in timings.items() if timing.long}
        if len(long) < 2:
            return
        needs: list[list[int]] = [[] for _ in plan.nodes]
        for index, node in enumerate(plan.nodes):
            for user in node.users:
                needs[user].append(index)
        saved = saved_s(range(len(plan.nodes)), needs.__getitem__, long)
        if saved >= LONG_S / 2 + _NODE_S * len(plan.nodes):
            self._nodes = tuple(replace(node, frees=()) for node in plan.nodes)
            self.long = frozenset(long)


@final
class _Run:
    """One run of a plan, some nodes of which run in parallel."""

    def __init__(
        self,
        plan: Plan,
        nodes: Sequence[PlanNode],
        long: frozenset[int],
        most: int,
        step: Step,
        execute: Execute,
        active: Active,
    ) -> None:
        self._plan = plan
        self._nodes = nodes
        self._long = long
        self._most = most
        self._step = step
        self._execute = execute
        self._active = active
        self._slots = list(plan.slots)
        self._missing = [node.waits for node in nodes]
        self._uses = [0] * len(plan.slots)
        for node in nodes:
            for slot in node.inputs:
                self._uses[slot] += 1
        # In the order of the plan: those for this thread, and those for others.
        self._ready: list[int] = []
        self._held: list[int] = []
        self._running = 0
        # What has ended: an index, and what was raised.
        self._ended: SimpleQueue[tuple[int, BaseException | None]] = SimpleQueue()

    def go(self) -> None:
        """Run all.

        Raises:
            HeadraceError: what a node raised, when no other node runs any more.
        """
        for index, missing in enumerate(self._missing):
            if not missing:
                self._enter(index)
        failure: BaseException | None = None
        try:
            while failure is None and (self._ready or self._held or self._running):
                while self._held and self._running < self._most and not self._is_last():
                    self._start(heapq.heappop(self._held))
                if self._ready:
                    self._here(heapq.heappop(self._ready))
                elif self._held and not self._running:
                    self._here(heapq.heappop(self._held))
                else:
                    failure = self._take()
                while failure is None and self._running and not self._ended.empty():
                    failure = self._take()
        except Exception as error:
            failure = error
        while self._running:
            # Nothing of a step runs on when it has failed.
            later = self._take(follow=False)
            failure = failure or later
        if failure is not None:
            raise failure

    def _is_last(self) -> bool:
        """Whether nothing could run beside a node that is ready."""
        return len(self._held) == 1 and not self._ready and not self._running

    def _enter(self, index: int) -> None:
        heapq.heappush(self._held if index in self._long else self._ready, index)

    def _here(self, index: int) -> None:
        self._compute(index)
        self._follow(index)

    def _start(self, index: int) -> None:
        self._running += 1

        def run() -> None:
            failure: BaseException | None = None
            try:
                with self._active(self._plan):
                    self._compute(index)
            except BaseException as error:
                failure = error
            self._ended.put((index, failure))

        call_out(run)

    def _compute(self, index: int) -> None:
        run_nodes((self._nodes[index],), self._slots, self._step, self._plan, self._execute)

    def _take(self, *, follow: bool = True) -> BaseException | None:
        """Wait for a node that runs on another thread; return what it raised."""
        index, failure = self._ended.get()
        self._running -= 1
        if failure is None and follow:
            self._follow(index)
        return failure

    def _follow(self, index: int) -> None:
        """Let go what nobody needs any more, and go on with what waited for a node."""
        node, uses = self._nodes[index], self._uses
        for slot in node.inputs:
            uses[slot] -= 1
        for slot in (*node.inputs, *node.outputs):
            # What the plan has from the beginning stays, in a list of its own.
            if not uses[slot]:
                self._slots[slot] = None
        for user in node.users:
            self._missing[user] -= 1
            if not self._missing[user]:
                self._enter(user)
