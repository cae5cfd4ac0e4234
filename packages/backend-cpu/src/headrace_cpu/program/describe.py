"""Describing a program: what it does, for explanations, traces and profiles."""

from __future__ import annotations

from collections.abc import Sequence

from headrace.runtime.report import ProgramReport, Work, bytes_of, plain_work
from headrace.runtime.segment import Segment
from headrace_cpu.program.lifetimes import Places
from headrace_cpu.program.schedule import Item
from headrace_cpu.program.values import Home, Values, size_of


def works_of(segment: Segment, items: Sequence[Item], values: Values) -> dict[Item, Work]:
    """Return the work of each item that takes time; views and no-ops take none."""
    device = next((str(op.device_name) for item in items for op in item.ops), "")
    found: dict[Item, Work] = {}
    for item in items:
        instruction = item.instruction
        if instruction is not None:
            updated = bytes_of(instruction.updates)
            read = (t for t in instruction.reads if t not in instruction.spare)
            found[item] = Work(
                instruction.name,
                item.ops,
                device,
                fused=True,
                bytes=bytes_of((*read, *instruction.writes)) + 2 * updated,
                flops=instruction.flops() or None,
            )
        elif not values.is_view(item) and item.op.type != "NoOp":
            found[item] = plain_work(item.op, device)
    return found


def describe(
    segment: Segment, items: Sequence[Item], values: Values, places: Places, source: str
) -> ProgramReport:
    """Return what a program does, with sources."""
    works = []
    for item, work in works_of(segment, items, values).items():
        if item.instruction is None:
            works.append(work)
            continue
        sourced = Work(
            work.name,
            work.ops,
            work.device,
            fused=True,
            bytes=work.bytes,
            flops=work.flops,
            source=item.instruction.source(),
        )
        works.append(sourced)
    results = dict.fromkeys(values.root(t) for t in segment.outputs)
    made = sum(size_of(root) for root in results if values.home[root] is Home.RESULT)
    return ProgramReport(tuple(works), source, places.layout.size, places.layout.needed, made)
