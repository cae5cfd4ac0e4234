"""What travels between processes in a step, and what waits there, as traces show it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple


class Flow(NamedTuple):
    """Something that travelled from one process to another in a step.

    Attributes:
        name: What.
        source: The task that sent it.
        sent: When, in nanoseconds of this process's clock.
        destination: The task that received it.
        came: When.
    """

    name: str
    source: str
    sent: int
    destination: str
    came: int


class Span(NamedTuple):
    """Time in which a part of a step waited to run.

    Attributes:
        name: What for.
        task: The task.
        began: When, in nanoseconds of this process's clock.
        ended: Until when.
    """

    name: str
    task: str
    began: int
    ended: int


# So long are the ends of an arrow shown, in microseconds: they need some width to be hit.
_END_US = 1.0


def traffic_events(
    flows: Iterable[Flow], spans: Iterable[Span], start: int, first_process: int
) -> list[dict[str, Any]]:
    """Return what travelled and waited in the form of Chrome's traces: arrows between tracks.

    Args:
        flows: What travelled.
        spans: What waited.
        start: The time of the trace's beginning.
        first_process: The number of the first process that no other track has.
    """
    processes: dict[str, int] = {}

    def track(task: str) -> dict[str, int]:
        return {"pid": processes.setdefault(task, first_process + len(processes)), "tid": 0}

    found: list[dict[str, Any]] = []
    for number, flow in enumerate(flows):
        for task, at, phase in (
            (flow.source, flow.sent, {"ph": "s"}),
            (flow.destination, flow.came, {"ph": "f", "bp": "e"}),
        ):
            about = {"name": flow.name, "cat": "transfer", **track(task)}
            time = (at - start) / 1000
            found.append({**about, "ph": "X", "ts": time, "dur": _END_US})
            found.append({**about, **phase, "id": number, "ts": time})
    for span in spans:
        begin, took = (span.began - start) / 1000, (span.ended - span.began) / 1000
        about = {"name": span.name, "cat": "queue", **track(span.task), "ph": "X"}
        found.append({**about, "ts": begin, "dur": max(took, 0.0)})
    for task, process in processes.items():
        about = {"ph": "M", "pid": process, "tid": 0}
        found.append({**about, "name": "process_name", "args": {"name": f"{task} messages"}})
    return found
