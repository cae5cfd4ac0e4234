"""Parts of a trace from other processes: what was recorded there, as data.

Times of another process are of its own clock; whoever takes a part in says how far that is ahead.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from headrace.records import dataclass
from headrace.runtime.profiling.report import Work
from headrace.runtime.profiling.trace import Event


@dataclass(frozen=True, slots=True, eq=False)
class RecordedInput:
    """A tensor that an operation of another process took."""

    name: str


@dataclass(frozen=True, slots=True, eq=False)
class RecordedOp:
    """An operation of another process, as far as traces tell of it."""

    name: str
    type: str
    site: str
    inputs: tuple[RecordedInput, ...]


class Part(NamedTuple):
    """What was recorded in another process.

    Attributes:
        events: What ran, in the time of this process.
        threads: The names of the threads of ``events``.
    """

    events: list[Event]
    threads: dict[int, str]


def pack_events(events: Iterable[Event]) -> dict[str, Any]:
    """Return what was recorded as data that JSON can hold."""
    names = {t.ident: t.name for t in threading.enumerate()}
    works: dict[int, int] = {}
    threads: dict[int, int] = {}
    described: list[Any] = []
    packed: list[Any] = []
    for work, ident, began, ended, waited, moved in events:
        number = works.setdefault(id(work), len(works))
        if number == len(described):
            described.append(_described(work))
        thread = threads.setdefault(ident, len(threads))
        packed.append([number, thread, began, ended, int(waited), moved])
    return {
        "works": described,
        "threads": [names.get(ident, "ended thread") for ident in threads],
        "events": packed,
    }


def unpack_events(data: Mapping[str, Any], ahead_ns: int, process: int) -> Part:
    """Return what ``pack_events`` packed, in the time of this process.

    Args:
        data: What was packed.
        ahead_ns: How far the other process's clock is ahead of this one's.
        process: A number of the other process above 0, which tells its threads from others.
    """
    works = [_work(fields) for fields in data["works"]]
    # Identities of threads of this process are addresses or small numbers of the system.
    first = -(process << 20)
    events = [
        (works[number], first - thread, began - ahead_ns, ended - ahead_ns, bool(waited), moved)
        for number, thread, began, ended, waited, moved in data["events"]
    ]
    return Part(events, {first - i: str(name) for i, name in enumerate(data["threads"])})


def _described(work: Work) -> list[Any]:
    ops = [[op.name, op.type, str(op.site), [t.name for t in op.inputs]] for op in work.ops]
    return [work.name, ops, work.device, int(work.fused), work.bytes, work.flops]


def _work(fields: list[Any]) -> Work:
    name, ops, device, fused, moved, flops = fields
    made: Any = tuple(
        RecordedOp(op, kind, site, tuple(map(RecordedInput, inputs)))
        for op, kind, site, inputs in ops
    )
    return Work(name, made, device, fused=bool(fused), bytes=moved, flops=flops)
