"""Explaining a step: what its plan is going to do, found without running it.

Kernels depend on shapes. Those of the feeds are followed through the plan, as far as they tell the
others; where they do not, a part is shown as it was compiled last.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from headrace.device_name import DeviceName
from headrace.errors import HeadraceError, listing
from headrace.graph.graph import Graph
from headrace.graph.operation import Operation
from headrace.graph.spec import TensorSpec
from headrace.graph.tensor import Tensor
from headrace.passes.rewrites import Rewrite
from headrace.plugins.ownership import Replacement
from headrace.runtime.builtin import ARGUMENTS, RESULTS
from headrace.runtime.control_flow.invocations import runner_of
from headrace.runtime.control_flow.rotation import rotated_loop
from headrace.runtime.control_flow.trip_count import trip_count_of, without_counters
from headrace.runtime.devices.capabilities import DescribedProgram, PlannedProgram
from headrace.runtime.devices.device import HostArray
from headrace.runtime.execution.plan import Mode, Plan, PlanNode
from headrace.runtime.planning.overlap import overlapped_loop
from headrace.runtime.profiling.report import Work, plain_work
from headrace.session.explanation import Explanation, Part, Placed, Transfer
from headrace.session.feeds import binder, feed_parts, feed_tensors
from headrace.shapes import Shape

_UNKNOWN = (
    "not compiled yet: the shapes of what comes in are not known; pass feed_dict, or run it once"
)
Sizes = tuple[int, ...] | None


def asked_values(feed_dict: Mapping[Any, Any], graph: Graph) -> dict[Tensor, HostArray | None]:
    """Return the values of the tensors in a ``feed_dict``, None where its value is None."""
    values: dict[Tensor, HostArray | None] = {}
    for feed, value in feed_dict.items():
        tensors = feed_tensors(feed, graph)
        count = len(tensors)
        parts = [None] * count if value is None else feed_parts(feed, value, count)
        for tensor, part in zip(tensors, parts, strict=True):
            values[tensor] = None if part is None else binder(tensor)(part)
    return values


def known_shape(tensor: Tensor, value: HostArray | None) -> Sizes:
    """Return the shape of what is fed for a tensor, None where neither tells it."""
    if value is not None:
        return tuple(value.shape)
    return tuple(tensor.shape.known) if tensor.shape.is_fully_defined() else None


def explain_step(
    plan: Plan | None,
    feeds: Mapping[Tensor, Sizes],
    placement: Mapping[Operation, tuple[str, str]],
    rewrites: tuple[Rewrite, ...] = (),
    replacements: Sequence[Replacement] = (),
    transfers: tuple[Transfer, ...] = (),
) -> Explanation:
    """Return what a plan is going to do.

    Args:
        plan: The plan of this process, None where it takes no part.
        feeds: The fed tensors in order, with the shapes of their values where they are known.
        placement: For each operation of the step its device, and why it is there.
        rewrites: What passes of plugins did to the whole step.
        replacements: What plugins replace, in all programs.
        transfers: What moves between devices.
    """
    groups: dict[tuple[str, str], list[str]] = {}
    for op, (device, reason) in placement.items():
        groups.setdefault((device, reason), []).append(op.origin or op.name)
    here = {str(node.op.device_name) for node in plan.nodes} if plan is not None else set()
    tasks = {_task(device) for device in here}
    others = sorted({_task(device) for device, _ in groups} - tasks) if here else []
    return Explanation(
        tuple(_Walk(plan, list(feeds.values()), "").parts) if plan is not None else (),
        tuple(Placed(*key, tuple(names)) for key, names in groups.items()),
        {tensor.name: shape for tensor, shape in feeds.items()},
        tuple(others),
        rewrites,
        tuple(map(str, _of_step(plan, placement, replacements))),
        transfers,
    )


def _of_step(
    plan: Plan | None,
    placement: Mapping[Operation, tuple[str, str]],
    replacements: Sequence[Replacement],
) -> list[Replacement]:
    """Return the replacements of kernels and kinds of devices that a step uses."""
    used = {(op.type, DeviceName.parse(device).kind) for op, (device, _) in placement.items()}
    plans = [] if plan is None else [plan]
    while plans:
        for node in plans.pop().nodes:
            used.update((op.type, op.device_name.kind) for op in node.ops)
            plans += node.inner
            if node.region is not None and node.region.holds:
                held = [op for op in node.region.operations if op.type == "While"]
                plans += [inner for op in held for inner in node.region.inner(op)]
    keys = {*used, *(kind for _, kind in used)}
    return [found for found in replacements if found.key in keys]


def _devices(works: Sequence[Work], first: str) -> str:
    """Return the devices on which pieces of work run, ``first`` where there are none."""
    return listing(sorted({work.device for work in works if work.device} or {first}))


def _task(device: str) -> str:
    return device.rpartition("/device")[0]


class _Walk:
    """One plan, followed from its feeds to its results.

    Attributes:
        parts: What it does.
        results: The shapes of what it hands back, by index, where they are known.
    """

    def __init__(self, plan: Plan, feeds: Sequence[Sizes], prefix: str) -> None:
        self.parts: list[Part] = []
        self.results: dict[int, Sizes] = {}
        self._feeds = feeds
        self._prefix = prefix
        self._shapes: dict[int, Sizes] = {
            slot: tuple(value.shape)
            for slot, value in enumerate(plan.slots)
            if isinstance(getattr(value, "shape", None), tuple)
        }
        before: dict[int, list[str]] = {}
        for index, node in enumerate(plan.nodes):
            part = self._follow(node, tuple(before.get(index, ())))
            if part is None:
                continue
            self.parts.append(part)
            for user in node.users:
                before.setdefault(user, []).append(part.number)

    def _follow(self, node: PlanNode, after: tuple[str, ...]) -> Part | None:
        number = f"{self._prefix}{len(self.parts) + 1}"
        if node.region is not None:
            part = self._region(node, number, after)
            return part if node.region.operations else None
        op = node.op
        if op.type in ARGUMENTS:
            self._shapes[node.outputs[0]] = self._feed(op.attrs["index"])
            return None
        if op.type in RESULTS:
            self.results[op.attrs["index"]] = self._shapes.get(node.inputs[0])
            return None
        return self._operation(node, number, after)

    def _feed(self, index: int) -> Sizes:
        return self._feeds[index] if index < len(self._feeds) else None

    # -- regions

    def _region(self, node: PlanNode, number: str, after: tuple[str, ...]) -> Part:
        region = node.region
        assert region is not None
        given = [self._feed(i) for i in region.feeds]
        given += [self._shapes.get(slot) for slot in node.inputs]
        device, line = str(node.op.device_name), str(node.op.site)
        title = _count(len(region.operations), "operation")
        program = region.expected(given)
        if program is None:
            works = tuple(plain_work(op, str(op.device_name)) for op in region.operations)
            device = _devices(works, device)
            return Part(number, title, device, after, works=works, line=line, note=_UNKNOWN)
        if isinstance(program, PlannedProgram):
            inner = _Walk(program.plan, given, f"{number}.")
            self._take(node, [inner.results.get(i) for i in range(program.plan.fetches)])
            note = "cut where shapes depend on data"
            told, parts = tuple(region.history()), tuple(inner.parts)
            return Part(
                number, title, device, after, line=line, note=note, compiled=told, inside=parts
            )
        report = compiled = None
        inside: tuple[Part, ...] = ()
        if isinstance(program, DescribedProgram):
            report, compiled = program.describe(), program.region
            self._take(node, [_sizes(t.spec) for t in compiled.outputs])
            held = [op for op in compiled.graph.operations if op.type == "While"]
            inside = tuple(
                self._holder(op, region.inner(op), [_sizes(t.spec) for t in op.inputs], where)[0]
                for op, where in zip(held, _numbers(number), strict=False)
            )
        works = report.works if report is not None else ()
        compiled_when = [report.compiled] if report is not None and report.compiled else []
        return Part(
            number,
            title + _kernels(sum(work.fused for work in works), len(works)),
            _devices(works, device),
            after,
            works=works,
            report=report,
            rewrites=compiled.rewrites if compiled is not None else (),
            line=line,
            compiled=(*region.history(), *compiled_when),
            inside=inside,
        )

    def _take(self, node: PlanNode, shapes: Sequence[Sizes]) -> None:
        """Note the shapes that a region yields: fetches first, then what others take."""
        assert node.region is not None
        fetches = node.region.fetches
        self.results.update(zip(fetches, shapes, strict=False))
        self._shapes.update(zip(node.outputs, shapes[len(fetches) :], strict=False))

    # -- operations by themselves

    def _operation(self, node: PlanNode, number: str, after: tuple[str, ...]) -> Part:
        op, device = node.op, str(node.op.device_name)
        given = [self._shapes.get(slot) for slot in node.inputs]
        waits = node.mode in (Mode.BLOCKING, Mode.CALLS_OUT)
        if node.inner:
            part, yielded = self._holder(op, node.inner, given, number)
            part = replace(part, after=after, waits=waits)
        else:
            title, yielded = f"{op.type} {op.name!r}", _inferred(op, given)
            works = (plain_work(op, device, node.provider.project),)
            part = Part(number, title, device, after, waits=waits, works=works, line=str(op.site))
        self._shapes.update(zip(node.outputs, yielded, strict=False))
        return part

    def _holder(
        self, op: Operation, plans: Sequence[Plan], given: Sequence[Sizes], number: str
    ) -> tuple[Part, list[Sizes]]:
        """Return the part of an operation that holds functions, and the shapes of its outputs."""
        inside: list[Part] = []
        yielded = self._functions(op, plans, given, number, inside)
        return Part(
            number,
            f"{op.type} {op.name!r}",
            str(op.device_name),
            line=str(op.site),
            inside=tuple(inside),
            rounds=_rounds(op, plans) if op.type == "While" else "",
        ), yielded

    def _functions(
        self,
        op: Operation,
        plans: Sequence[Plan],
        given: Sequence[Sizes],
        number: str,
        inside: list[Part],
    ) -> list[Sizes]:
        """Follow the functions that an operation holds; return the shapes of its outputs."""
        walks = []
        for plan, (name, feeds) in zip(plans, _arguments(op, given), strict=True):
            walk = _Walk(plan, feeds, f"{number}.{name}")
            walks.append(walk)
            inside += walk.parts
        if op.type == "While":
            # The shapes of the first round: a loop may change them, but for those of counters.
            (_, body), first = walks, given[: op.arity[0]]
            apart = without_counters(op)
            others = range(len(first)) if apart is None else apart.others
            after = {i: body.results.get(place) for place, i in enumerate(others)}
            same = [after.get(i, shape) == shape for i, shape in enumerate(first)]
        else:
            first = [walks[0].results.get(i) for i in range(len(op.outputs))]
            same = [all(w.results.get(i) == shape for w in walks) for i, shape in enumerate(first)]
        static = [_sizes(t.spec) for t in op.outputs]
        return [
            shape if i < len(first) and same[i] and (shape := first[i]) is not None else static[i]
            for i in range(len(static))
        ]


def _rounds(op: Operation, plans: Sequence[Plan]) -> str:
    """Return how the rounds of a loop run."""
    asked, counted = rotated_loop(op) is not None, trip_count_of(op) is not None
    cond, body = plans
    apart = without_counters(op)
    variables = op.arity[0] if apart is None else len(apart.others)
    loop = None if asked else overlapped_loop(op, cond, body, variables, counted=counted)
    if loop is not None:
        return f"runs up to {loop.most} rounds beside each other"
    if not counted and not asked:
        return "runs round by round: its condition is asked before each"
    return runner_of(op, body, apart, asks=asked).told()


def _numbers(number: str) -> Iterator[str]:
    """Return the numbers of the parts inside of one."""
    return (f"{number}.{i}" for i in itertools.count(1))


def _arguments(op: Operation, given: Sequence[Sizes]) -> list[tuple[str, Sequence[Sizes]]]:
    """Return the functions of an operation: the prefix of their parts, the arguments' shapes."""
    if op.type == "If":
        end = 1 + op.arity[1]
        return [("then.", given[1:end]), ("else.", given[end:])]
    if op.type == "While":
        count, of_cond, _ = op.arity
        start = count + of_cond
        if rotated_loop(op) is not None:
            return [("while.", given[:start]), ("body.", given)]
        apart = without_counters(op)
        taken = range(count) if apart is None else (*apart.others, *apart.read)
        return [("while.", given[:start]), ("body.", [*(given[i] for i in taken), *given[start:]])]
    return [("", given)]


def _inferred(op: Operation, given: Sequence[Sizes]) -> list[Sizes]:
    specs = [
        t.spec
        if shape is None or t.dtype.kind in ("resource", "list")
        else TensorSpec(t.dtype, Shape(shape), content=t.spec.content)
        for t, shape in zip(op.inputs, given, strict=True)
    ]
    try:
        found, _ = op.schema.output_specs(specs, op.arity, op.attrs)
    except HeadraceError:
        found = tuple(t.spec for t in op.outputs)
    return [_sizes(spec) for spec in found]


def _sizes(spec: TensorSpec) -> Sizes:
    return tuple(spec.shape.known) if spec.shape.is_fully_defined() else None


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}{'s' if number != 1 else ''}"


def _kernels(fused: int, works: int) -> str:
    if not works:
        return ", nothing to compute"
    alone = works - fused
    by = f", {alone} by {'themselves' if alone > 1 else 'itself'}" if alone else ""
    return (f" in {_count(fused, 'kernel')}" if fused else "") + by
