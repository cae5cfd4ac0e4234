"""Describing a program: what it does, for explanations, traces and profiles."""

from __future__ import annotations

from collections.abc import Container, Sequence
from itertools import accumulate

from headrace.extend.devices import (
    Buffer,
    ProgramReport,
    Region,
    Work,
    plain_work,
)
from headrace_cpu.program.lifetimes import Places
from headrace_cpu.program.schedule import Item
from headrace_cpu.program.values import Home, Values, size_of


def works_of(region: Region, items: Sequence[Item], values: Values) -> dict[Item, Work]:
    """Return the work of each item that takes time; views and no-ops take none."""
    found: dict[Item, Work] = {}
    for item in items:
        instruction, device = item.instruction, str(item.ops[-1].device_name)
        if instruction is not None:
            found[item] = Work(
                instruction.name,
                item.ops,
                device,
                fused=True,
                bytes=instruction.moved(),
                flops=instruction.flops() or None,
                package=instruction.package,
            )
        elif not values.is_view(item) and item.op.type != "NoOp":
            found[item] = plain_work(item.op, device, region.package(item.op))
    return found


def describe(
    region: Region,
    items: Sequence[Item],
    values: Values,
    places: Places,
    source: str,
    compiled: str = "",
) -> ProgramReport:
    """Return what a program does, with sources; ``compiled`` says when its kernels were made."""
    works = []
    found = works_of(region, items, values)
    for item, work in found.items():
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
            package=work.package,
        )
        works.append(sourced)
    results = dict.fromkeys(values.root(t) for t in region.outputs)
    made = sum(size_of(root) for root in results if values.home[root] is Home.RESULT)
    return ProgramReport(
        tuple(works),
        source,
        places.layout.size,
        places.layout.needed,
        made,
        _buffers(items, found, places),
        compiled,
    )


def _buffers(items: Sequence[Item], working: Container[Item], places: Places) -> tuple[Buffer, ...]:
    """Return what lies in the arena; times count the items that do work."""
    names: dict[int, list[str]] = {}
    for tensor, number in places.tensors.items():
        names.setdefault(number, []).append(tensor.name)
    scratch = set(places.scratch.values())
    for instruction, number in places.scratch.items():
        names[number] = [f"scratch memory of {instruction.name}"]
    # How many items that do work there are up to each one.
    done = list(accumulate(int(item in working) for item in items))
    return tuple(
        Buffer(
            ", ".join(names[number]),
            places.layout.offsets[number],
            life.size,
            done[life.first] - 1,
            done[life.last] - 1,
            number in scratch,
        )
        for number, life in places.lifetimes.items()
    )
