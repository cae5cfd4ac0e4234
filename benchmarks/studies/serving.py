"""Requests per second of ``headrace serve``, beside a plain ASGI server around NumPy.

Two dense layers, 64 to 256 to 10, are asked by 16 clients without pause. Each server has a process
of its own, the clients share one, and the servers take turns; the best round of each counts. The
plain server is uvicorn with the same HTTP parser and twenty lines that check nothing.
"""

from __future__ import annotations

import subprocess
import sys

from benchmarks.controller import Progress, RunSettings
from benchmarks.process import ROOT, environment
from benchmarks.serving.client import CLIENTS, Load, load
from benchmarks.serving.servers import PARTICIPANTS
from benchmarks.studies import Result
from benchmarks.table import figure, row

ROWS = (1, 16)
REQUESTS = 4000
_HEAD = ("rows", "server", "requests a second", "rows a second", "median ms", "99 % ms", "wrong")
_TIMEOUT_S = 60


def run(settings: RunSettings, progress: Progress) -> Result:
    """Measure the servers in turn."""
    best: dict[tuple[int, str], Load] = {}
    wrong = 0
    for _ in range(min(settings.rounds, 3)):
        for rows in ROWS:
            for participant in PARTICIPANTS:
                progress(f"serving: {participant}, {rows} rows")
                found = measure(participant, REQUESTS, rows, settings.threads)
                known = best.get((rows, participant))
                wrong += found.wrong
                if known is None or found.requests_s > known.requests_s:
                    best[rows, participant] = found
    lines = [row(_HEAD), row(["---:", "---", *["---:"] * (len(_HEAD) - 2)])]
    for (rows, participant), found in best.items():
        rates = [figure(found.requests_s), figure(found.requests_s * rows)]
        times = [figure(seconds * 1e3) for seconds in (found.median_s, found.p99_s)]
        lines.append(row([str(rows), participant, *rates, *times, str(found.wrong)]))
    lines += ["", f"{CLIENTS} clients, {REQUESTS} requests in each round."]
    return Result(lines, succeeded=not wrong)


def measure(participant: str, requests: int, rows: int, threads: int) -> Load:
    """Start a server, ask it, and end it."""
    with subprocess.Popen(
        [sys.executable, "-m", "benchmarks.serving.servers", participant],
        cwd=ROOT,
        env=environment(threads),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            port = int(process.stdout.readline())
            # What is compiled is compiled, and what is imported late is imported.
            load(port, max(CLIENTS, requests // 10), rows)
            found = load(port, requests, rows)
            process.stdin.close()
            process.wait(_TIMEOUT_S)
        finally:
            process.kill()
    return found
