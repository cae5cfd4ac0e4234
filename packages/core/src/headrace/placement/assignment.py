"""Applying a placement policy to a program: the device for which each of its operations asks.

What is decided depends on the program's graph alone, in the order in which it was built, and not
on the steps that are run. So all processes that run one program put shared variables in the same
places, and a variable stays where it is when the graph grows.
"""

from __future__ import annotations

import threading
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import final

from headrace.device_name import DeviceName
from headrace.errors import NoDeviceError, PlacementError, ResourceExhaustedError, listing, shorten
from headrace.graph.function import functions_in, functions_within
from headrace.graph.graph import Graph
from headrace.graph.operation import Operation
from headrace.passes.step_graph import Rewriter, StepGraph
from headrace.placement.colocation import groups
from headrace.placement.place import Machine
from headrace.placement.policy import PlacementPolicy, PlacementRule
from headrace.runtime.profiling.report import amount


@final
class Assignment:
    """A policy on one program's graph."""

    def __init__(self, policy: PlacementPolicy, graph: Graph) -> None:
        """Decide nothing yet.

        Args:
            policy: The policy.
            graph: The program's graph, which may grow.
        """
        self.policy = policy
        self._graph = graph
        self._size = -1
        self._chosen: dict[str, tuple[PlacementRule, DeviceName]] = {}
        self._used: dict[DeviceName, int] = {}
        self._lock = threading.Lock()

    def apply(self, step: StepGraph, machine: Machine) -> StepGraph:
        """Return a step whose operations ask for the devices of the policy.

        Raises:
            NoDeviceError: if the policy names a device that is not there.
            PlacementError: if a rule matches no operation of the program.
            ResourceExhaustedError: if no device of a rule has room for a variable.
        """
        with self._lock:
            if self._size != len(self._graph):
                self._decide(machine)
                self._size = len(self._graph)
        rewriter = Rewriter("placement policy")
        together = groups(step.graph.operations, _holders(step.graph.operations))
        changed = False
        for op in step.graph.operations:
            found = self.of(together[op])
            device = op.device_name if found is None else _asked(op, found[1])
            changed |= device != op.device_name
            rewriter.copy(op, device)
        return rewriter.finish(step) if changed else step

    def of(self, members: Sequence[Operation]) -> tuple[PlacementRule, DeviceName] | None:
        """Return the rule for operations that share a device, and which of its devices it is."""
        # What state says counts for all that use it.
        ordered = sorted(members, key=lambda op: not _yields_handle(op))
        known = [self._chosen[op.name] for op in ordered if op.name in self._chosen]
        if known:
            return known[0]
        rule = self.policy.rule_of(op.name for op in members)
        return None if rule is None else (rule, rule.devices[0])

    def _decide(self, machine: Machine) -> None:
        self._check(machine)
        operations = self._graph.operations
        together = groups(operations, _holders(operations))
        seen: set[int] = set()
        for op in operations:
            members = together[op]
            if id(members) in seen:
                continue
            seen.add(id(members))
            rule = self.policy.rule_of(member.name for member in members)
            if rule is None:
                continue
            fixed = next((self._chosen[m.name] for m in members if m.name in self._chosen), None)
            chosen = fixed or (rule, self._device(rule, members))
            self._chosen.update((m.name, chosen) for m in members if m.name not in self._chosen)

    def _device(self, rule: PlacementRule, members: Sequence[Operation]) -> DeviceName:
        """Return the device of a rule for operations that share one, by the room that it has."""
        size = sum(map(state_bytes, members))
        if not size or len(rule.devices) == 1:
            return rule.devices[0]
        limits = {device: self.policy.limit_of(device) for device in rule.devices}
        room = [
            device
            for device, limit in limits.items()
            if limit is None or self._has(device) + size <= limit
        ]
        if not room:
            state = next(op for op in members if _yields_handle(op))
            used = {device: self._has(device) for device in limits}
            raise _no_room(self.policy, state, size, used, limits)
        device = min(room, key=self._has)
        self._used[device] = self._has(device) + size
        return device

    def _has(self, device: DeviceName) -> int:
        return self._used.get(device, 0)

    def _check(self, machine: Machine) -> None:
        """Refuse rules and limits that are about nothing."""
        source, named = self.policy.source, []
        if not machine.soft:
            named += [(device, str(rule)) for rule in self.policy.rules for device in rule.devices]
        named += [(device, "memory") for device, _ in self.policy.memory]
        for device, where in named:
            if not any(device.matches(there) for there in machine.devices):
                hint = machine.hints.get(device.kind or "")
                lines = [
                    f"{source} names device {str(device)!r} ({where}), which is not there",
                    *([f"  {hint}"] if hint else []),
                    f"  devices: {listing(map(str, machine.devices))}",
                ]
                raise NoDeviceError(shorten(lines))
        names = [op.name for op in self._graph.operations]
        for rule in self.policy.rules:
            if rule.optional or any(map(rule.matches, names)):
                continue
            inside = [op.name for f in functions_in(self._graph) for op in f.operations]
            why = (
                "it is inside a function, a condition or a loop, whose operations go where the "
                "model asks"
                if any(map(rule.matches, inside))
                else f"the graph has {listing((name for name in names), 6)}"
            )
            raise PlacementError(
                f"{source}: no operation is named {rule}: {why}\n"
                "  correct the pattern, or say optional = true where there may be none"
            )

    def check_memory(self, pinned: Mapping[str, DeviceName], new: Collection[str]) -> None:
        """Refuse state beyond what the policy lets devices hold.

        Args:
            pinned: The devices of all state, by the names of handles.
            new: Which of it was not there before.

        Raises:
            ResourceExhaustedError: if the new state has no room.
        """
        held: dict[DeviceName, int] = {}
        operations = {op.name: op for op in self._graph.operations if op.name in pinned}
        for name, device in sorted(pinned.items(), key=lambda pair: pair[0] in new):
            op = operations.get(name)
            size = 0 if op is None else state_bytes(op)
            limit = self.policy.limit_of(device)
            before = held.get(device, 0)
            if op is not None and size and limit is not None and before + size > limit:
                raise _no_room(self.policy, op, size, {device: before}, {device: limit})
            held[device] = before + size


def state_bytes(op: Operation) -> int:
    """Return the bytes of the variable that an operation makes, as far as its shape tells."""
    total = 0
    for tensor in op.outputs:
        content = tensor.spec.content
        if tensor.dtype.kind == "resource" and content is not None:
            total += (content.shape.num_elements() or 0) * content.dtype.numpy.itemsize
    return total


def _no_room(
    policy: PlacementPolicy,
    op: Operation,
    size: int,
    used: Mapping[DeviceName, int],
    limits: Mapping[DeviceName, int | None],
) -> ResourceExhaustedError:
    lines = [f"{policy.source}: no device has room for {op.name!r} of {amount(size, 'B')}"]
    for device, before in used.items():
        limit = limits[device]
        most = "" if limit is None else f", which may hold {amount(limit, 'B')}"
        lines.append(f"  {amount(before, 'B')} of variables are on {device}{most}")
    lines += [f"  at {op.site}", "  raise the limit, or put variables on other devices"]
    return ResourceExhaustedError(shorten(lines))


def _asked(op: Operation, device: DeviceName) -> DeviceName:
    return DeviceName() if device == DeviceName() else op.device_name.merged(device)


def _yields_handle(op: Operation) -> bool:
    return any(t.dtype.kind == "resource" for t in op.outputs)


def _holders(operations: Iterable[Operation]) -> list[Operation]:
    """Return the operations that hold functions, which may use state of several devices."""
    return [op for op in operations if functions_within(op)]
