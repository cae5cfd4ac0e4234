"""Why operations are where they are: what decided in ``place``, for explanations."""

from __future__ import annotations

from collections.abc import Mapping

from headrace.device_name import DeviceName
from headrace.graph.operation import Operation
from headrace.passes.step_graph import StepGraph
from headrace.placement.colocation import Handles, groups
from headrace.placement.estimates import Estimates
from headrace.placement.place import (
    Machine,
    Placement,
    follows_input,
    lacking,
    possible_devices,
)
from headrace.runtime.profiling.report import duration


def placement_reasons(
    step: StepGraph, placement: Placement, machine: Machine, pinned: Mapping[str, DeviceName]
) -> dict[Operation, str]:
    """Return for every operation of a placed step what decided on its device.

    Args:
        step: The step.
        placement: The devices.
        machine: What there was to choose from.
        pinned: Devices of state placed by earlier steps.
    """
    together = groups(step.graph.operations, (), Handles.of(machine, pinned))
    estimates = None if machine.costs is None else machine.costs.estimates(step)
    feeds = {feed.op for feed in step.feeds}
    return {
        op: "feeds come in there"
        if op in feeds
        else _reason(op, together[op], placement[op], machine, pinned, placement, estimates)
        for op in step.graph.operations
    }


def _reason(
    op: Operation,
    members: list[Operation],
    device: DeviceName,
    machine: Machine,
    pinned: Mapping[str, DeviceName],
    placement: Placement,
    estimates: Estimates | None,
) -> str:
    found = None if machine.assignment is None else machine.assignment.of(members)
    if machine.assignment is not None and found is not None:
        rule, asked = found
        return f"{machine.assignment.policy.source} says so: {rule} -> {str(asked) or 'any device'}"
    asked = op.device_name
    if asked != DeviceName() and asked.matches(device):
        return f"asked for: {asked}"
    for other in members:
        if other.device_name != DeviceName() and other.device_name.matches(device):
            return f"shares a device with {other.name!r}, which asks for {other.device_name}"
    if asked != DeviceName():
        return f"asked for: {asked}, which is not there or cannot run it"
    if len(machine.devices) == 1:
        return "the only device"
    for other in members:
        if other.name in pinned and not other.schema.inputs:
            return f"the state {other.name!r} lives there since an earlier step"
    if estimates is not None:
        told = _by_cost(members, device, machine, pinned, estimates)
        if told:
            return told
    if all(map(follows_input, members)):
        beside = {placement[t.op] for other in members for t in other.inputs if t.op in placement}
        if device in beside:
            return "where its input is: moving it would take longer than the work"
    return _of_kernels(members, device, machine)


def _by_cost(
    members: list[Operation],
    device: DeviceName,
    machine: Machine,
    pinned: Mapping[str, DeviceName],
    estimates: Estimates,
) -> str:
    """Return what operations take where they are, and least elsewhere; empty without a choice."""
    across = machine.costs is not None and machine.costs.across_tasks
    possible = possible_devices(members, machine, {}, pinned, across)
    here = machine.part(device)
    times = {d: estimates.total(members, d) for d in possible if machine.part(d) != here}
    if not any(times.values()):
        return ""
    other = min(times, key=lambda d: times[d])
    there = duration(estimates.total(members, device))
    return f"by cost: {there} there, {duration(times[other])} on {other}"


def _of_kernels(members: list[Operation], device: DeviceName, machine: Machine) -> str:
    """Return whether the fastest kind of device was taken, or why not."""
    kinds = {d.kind or "" for d in machine.devices if d.task_name == device.task_name}
    chosen = machine.priorities.get(device.kind or "", 0)
    for kind in sorted(kinds, key=lambda k: -machine.priorities.get(k, 0)):
        if machine.priorities.get(kind, 0) <= chosen:
            break
        other = next(d for d in machine.devices if d.kind == kind)
        without = lacking(members, other, machine)
        if without:
            return f"{kind} devices have no kernel for {without[0].type} {without[0].name!r}"
    return "the default: the fastest device that has kernels"
