"""Figures of a run as data, in a JSON file beside the document that holds the tables.

The file maps the name of a workload to what was measured, on which machine and when, and to its
participants in the order of the table: times in seconds, memory in bytes. Charts are drawn from it.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from benchmarks.controller import Outcome, Run, RunSettings
from benchmarks.statistics import summarise
from benchmarks.workload import Workload

Figures = dict[str, Any]


def figures(workload: Workload, run: Run, settings: RunSettings, machine: str) -> Figures:
    """Return the figures of a run.

    Args:
        workload: what was run.
        run: what came of it.
        settings: how it was run.
        machine: date and machine, in words; the date comes first.
    """
    return {
        "measured": workload.measured,
        "date": machine.split(";")[0],
        "machine": machine,
        "rounds": workload.rounds_of(settings.rounds),
        "threads": settings.threads,
        "others": run.others,
        "participants": [_participant(outcome) for outcome in run.outcomes],
    }


def _participant(outcome: Outcome) -> Figures:
    """Return the figures of one participant, or why it has none."""
    found: Figures = {
        "label": outcome.entry.label,
        "library": outcome.entry.peer,
        "role": outcome.entry.role.value,
        "version": outcome.version,
    }
    if not outcome.samples:
        return {**found, "trouble": outcome.trouble or "no rounds"}
    summary = summarise([sample.seconds for sample in outcome.samples])
    found["median"], found["min"], found["max"] = summary.median, summary.low, summary.high
    found["memory"] = max(sample.memory_bytes for sample in outcome.samples)
    if outcome.loss is not None:
        found["loss"] = outcome.loss
    return found


def read(path: Path) -> dict[str, Figures]:
    """Return the figures in a file, by workload; none where there is no file yet."""
    if not path.exists():
        return {}
    found: dict[str, Figures] = json.loads(path.read_text(encoding="utf-8"))
    return found


def write(path: Path, name: str, made: Figures) -> None:
    """Replace the figures of one workload in a file, which need not exist yet."""
    text = json.dumps({**read(path), name: made}, indent=1, ensure_ascii=False)
    path.write_text(text + "\n", encoding="utf-8")
