"""What the update of a few rows of a table costs, as the table grows."""

from __future__ import annotations

import math

from benchmarks.controller import Progress, RunSettings
from benchmarks.peers import HEADRACE, NOT_INSTALLED, PEERS
from benchmarks.studies import Result
from benchmarks.studies.points import Point, PointError, measure
from benchmarks.studies.programs import OPTIMIZERS
from benchmarks.table import figure, row

ROWS = (10_000, 1_000_000)
# How much longer a step may take where it touches named rows only.
ALLOWED = 1.3
# These move all rows, by TensorFlow's definition.
ALL_ROWS = frozenset({"AdamOptimizer"})
TIMEOUT_S = 120.0


def run(settings: RunSettings, progress: Progress) -> Result:
    """Measure each optimizer with both tables in turns, each time in a new process."""
    head = ("participant", "optimizer", *(f"us with {rows} rows" for rows in ROWS), "ratio")
    lines = [row(head), row(["---", "---"] + ["---:"] * (len(head) - 2))]
    slow: list[str] = []
    for optimizer in OPTIMIZERS:
        for peer in (HEADRACE, "tensorflow"):
            name = f"{PEERS[peer].title}, {optimizer}"
            if not PEERS[peer].installed():
                lines.append(row([PEERS[peer].title, optimizer, NOT_INSTALLED, "", ""]))
                continue
            points = [
                Point(peer, "Session.run", optimizer, rows, settings.threads) for rows in ROWS
            ]
            times = [math.inf] * len(points)
            try:
                # In turns: a busy moment of the machine must not fall to one size alone.
                for number in range(settings.rounds):
                    progress(f"updates: {name}, round {number + 1} of {settings.rounds}")
                    found = [measure(point, TIMEOUT_S).step_s for point in points]
                    times = [min(pair) for pair in zip(times, found, strict=True)]
            except PointError as error:
                lines.append(row([PEERS[peer].title, optimizer, f"failed: {error}", "", ""]))
                slow += [name] * (peer == HEADRACE)
                continue
            ratio = times[1] / times[0]
            if peer == HEADRACE and optimizer not in ALL_ROWS and ratio > ALLOWED:
                slow.append(name)
            cells = [figure(seconds * 1e6) for seconds in times]
            lines.append(row([PEERS[peer].title, optimizer, *cells, f"{ratio:.2f}"]))
    told = f"**Not within {ALLOWED}**: {', '.join(slow)}." if slow else f"All within {ALLOWED}."
    note = f"The least of {settings.rounds} processes' median step."
    return Result([note, "", *lines, "", told], not slow)
