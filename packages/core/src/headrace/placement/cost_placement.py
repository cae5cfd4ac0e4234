"""Placement by a cost model: a step is done as early as it can be.

The step is simulated: each device does one thing at a time, an operation begins when its device is
free and its inputs are there, and a tensor passes to a device once. Operations go in the order of
how much depends on them, each to the device on which it would end first; operations that must share
a device go with the first of them. That, the devices that the session would choose by itself, and
everything on one device are each improved by moving one group at a time, and the best is taken.

References:
    M. Abadi et al., TensorFlow: Large-scale machine learning on heterogeneous distributed systems,
    2015, section 3.2.1: the greedy simulation with a cost model.
    H. Topcuoglu, S. Hariri, M. Wu, Performance-effective and low-complexity task scheduling for
    heterogeneous computing, IEEE TPDS 13(3), 2002: the order, by "upward rank".
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Final, final

from headrace.device_name import DeviceName
from headrace.graph.operation import Operation
from headrace.graph.tensor import Tensor
from headrace.passes.step_graph import StepGraph
from headrace.placement.costs import CostModel
from headrace.placement.estimates import Estimates
from headrace.placement.place import stands_anywhere
from headrace.runtime.devices.limits import MachineLimits

if TYPE_CHECKING:
    from headrace.placement.place import Machine, Placement

# How many operations are simulated at most to improve a placement: about a second's worth.
_MOST_SIMULATED: Final = 300_000
# What is less than this part of a step's time is no improvement.
_LEAST_GAIN: Final = 1e-6


# Operations that must share a device, and the devices that can run all of them.
Choice = tuple[Sequence[Operation], Sequence[DeviceName]]


@final
class Costs:
    """A cost model on a machine.

    Attributes:
        across_tasks: Whether operations that only compute may run on other tasks.
    """

    def __init__(self, model: CostModel, limits: Callable[[str], MachineLimits | None]) -> None:
        """Take a model.

        Args:
            model: The model.
            limits: Returns what devices of a kind can do, as it was measured; None where it was
                not.
        """
        self.across_tasks = model.across_tasks
        self._model = model
        self._limits = limits

    def place(
        self, step: StepGraph, choices: Sequence[Choice], default: Placement, machine: Machine
    ) -> Placement:
        """Return the devices with which a step ends earliest, as far as a short search tells.

        By the model it never ends later than with ``default``, nor than with everything that may
        be there on one device.

        Args:
            step: The step.
            choices: What may be chosen; all other operations stay where ``default`` has them.
            default: The devices without a model.
            machine: The devices.
        """
        left = [choice for choice in choices if len(set(map(machine.part, choice[1]))) > 1]
        if not left:
            return default
        simulation = Simulation(step, default, self.estimates(step), machine)
        tried = [default, simulation.greedy(left)]
        for device in dict.fromkeys(device for _, devices in left for device in devices):
            there = {op: device for ops, devices in left if device in devices for op in ops}
            tried.append({**default, **there})
        search = _Search(left, simulation)
        return min(map(search.improved, tried), key=simulation.seconds)

    def estimates(self, step: StepGraph) -> Estimates:
        """Return what the operations of a step take."""
        return Estimates(self._model, step.graph.operations, self._limits)


@final
class _Search:
    """Moves single groups as long as the step ends earlier for it."""

    def __init__(self, choices: Sequence[Choice], simulation: Simulation) -> None:
        self._choices = choices
        self._simulation = simulation
        self._left = _MOST_SIMULATED // max(simulation.size, 1)

    def improved(self, placement: Placement) -> Placement:
        """Return the best placement that can be reached by moves each of which is better."""
        best, seconds = placement, self._simulation.seconds(placement)
        while True:
            before = seconds
            for members, devices in self._choices:
                for device in devices:
                    if device == best[members[0]]:
                        continue
                    if not self._left:
                        return best
                    self._left -= 1
                    moved = {**best, **dict.fromkeys(members, device)}
                    found = self._simulation.seconds(moved)
                    if found < seconds * (1 - _LEAST_GAIN):
                        best, seconds = moved, found
            if seconds == before:
                return best


@final
class Simulation:
    """Runs of a step in thought.

    Attributes:
        size: How many operations it has.
    """

    def __init__(
        self,
        step: StepGraph,
        default: Mapping[Operation, DeviceName],
        estimates: Estimates,
        machine: Machine,
    ) -> None:
        """Prepare a step.

        Args:
            step: The step.
            default: Where operations are that nobody chooses.
            estimates: What they take.
            machine: The devices.
        """
        self._estimates = estimates
        self._client = machine.part(machine.client)
        self._part = machine.part
        self._fetches = step.fetches
        self._default = default
        self.size = len(step.graph.operations)
        self._order = self._by_rank(step.graph.operations, default)

    def seconds(self, placement: Mapping[Operation, DeviceName]) -> float:
        """Return how long the step takes."""
        clock = _Clock(self._estimates)
        for op in self._order:
            clock.run(op, self._part(placement[op]))
        return clock.end(self._fetches, self._client)

    def greedy(self, choices: Sequence[Choice]) -> Placement:
        """Return a placement by which each operation in turn ends as early as it can."""
        of = {op: choice for choice in choices for op in choice[0]}
        placement: Placement = {}
        clock = _Clock(self._estimates)
        for op in self._order:
            if op not in of:
                placement[op] = self._default[op]
            elif op not in placement:
                members, devices = of[op]
                rest = [other for other in members if other is not op]
                parts = list(map(self._part, devices))
                # What shares its device will take time there, too.
                ends = [clock.asked(op, p) + self._estimates.total(rest, p) for p in parts]
                device = devices[ends.index(min(ends))]
                placement.update(dict.fromkeys(members, device))
            clock.run(op, self._part(placement[op]))
        return placement

    def _by_rank(
        self, operations: Sequence[Operation], default: Mapping[Operation, DeviceName]
    ) -> list[Operation]:
        """Order operations by the time from their beginning to the end of all that follows."""
        ranks: dict[Operation, float] = dict.fromkeys(operations, 0.0)
        places = {op: i for i, op in enumerate(operations)}
        for op in reversed(operations):
            ranks[op] += self._estimates.seconds(op, self._part(default[op]))
            for before in (*(t.op for t in op.inputs), *op.control_inputs):
                ranks[before] = max(ranks[before], ranks[op])
        # Of equals, what the others need comes first.
        return sorted(operations, key=lambda op: (-ranks[op], places[op]))


@final
class _Clock:
    """Who is busy until when, in one simulated run."""

    def __init__(self, estimates: Estimates) -> None:
        self._estimates = estimates
        self._free: dict[DeviceName, float] = {}
        self._done: dict[Operation, tuple[float, DeviceName]] = {}
        self._arrived: dict[tuple[Tensor, DeviceName], float] = {}

    def run(self, op: Operation, device: DeviceName) -> None:
        """Run an operation on a device."""
        for tensor in op.inputs:
            self._arrived[tensor, device] = self._arrival(tensor, device)
        end = self.asked(op, device)
        self._free[device] = end
        self._done[op] = (end, device)

    def asked(self, op: Operation, device: DeviceName) -> float:
        """Return when an operation would end on a device."""
        begin = self._free.get(device, 0.0)
        for tensor in op.inputs:
            begin = max(begin, self._arrival(tensor, device))
        for before in op.control_inputs:
            begin = max(begin, self._done[before][0])
        return begin + self._estimates.seconds(op, device)

    def end(self, fetches: Sequence[Tensor], client: DeviceName) -> float:
        """Return when everything is done, and what is fetched is there."""
        ends = [done for done, _ in self._done.values()]
        ends += [self._arrival(tensor, client) for tensor in fetches]
        return max(ends, default=0.0)

    def _arrival(self, tensor: Tensor, device: DeviceName) -> float:
        known = self._arrived.get((tensor, device))
        if known is not None:
            return known
        if stands_anywhere(tensor.op):
            return 0.0
        done, source = self._done[tensor.op]
        if source == device:
            return done
        return done + self._estimates.transfer_s(tensor, source, device)
