"""Variables on parameter servers: what shards cost, and networks on a server and in one process.

Tables are looked up by as many rows whatever their size; a variable that steps move whole is
measured in each number of shards, beside the number that Headrace suggests; what each server sends
is counted. Networks of four layers and eight variables are trained by a worker and a server, each
of one thread, beside one process of one thread: the server only adds to what the worker does.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from benchmarks.controller import Progress, RunSettings
from benchmarks.process import ROOT, environment
from benchmarks.shards.program import DIM, LAYERS, ROWS, STRATEGIES, TAKEN, WHOLE, WHOLE_DIM
from benchmarks.studies import Result
from benchmarks.table import figure, row

SERVERS = 2
# A step on the larger table in terms of one on the smaller; the most that a server sends, in terms
# of the least; how far what is suggested may be from the quickest number of shards.
ALLOWED_LONGER, ALLOWED_MORE, ALLOWED_OFF = 1.2, 1.1, 1
_TIMEOUT_S = 300.0
_MPI = {
    "OMPI_ALLOW_RUN_AS_ROOT": "1",
    "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
    "OMPI_MCA_mpi_yield_when_idle": "1",
    "PRTE_MCA_rmaps_default_mapping_policy": ":oversubscribe",
}


def run(settings: RunSettings, progress: Progress) -> Result:
    """Measure all parts in turn."""
    mpirun = shutil.which("mpirun", path=str(Path(sys.executable).parent)) or shutil.which("mpirun")
    if mpirun is None:
        return Result(["There is no mpirun."])
    rounds = min(settings.rounds, 5)
    progress("shards: lookups")
    lines, good = _lookups(measure(mpirun, "lookups", 1 + SERVERS, rounds)[0])
    progress("shards: traffic")
    sent = [told["sent"] for told in measure(mpirun, "traffic", 1 + SERVERS, rounds)[1]]
    more = max(sent) / min(sent)
    good &= more <= ALLOWED_MORE
    lines += ["", f"The server that sends most sends {more:.3f} times as many bytes as the other."]
    progress("shards: a variable in shards")
    divided, close = _whole(measure(mpirun, "whole", 1 + SERVERS, rounds)[0])
    progress("shards: networks")
    on_ranks, _ = measure(mpirun, "network", 2, rounds)
    alone, _ = measure(mpirun, "network", 1, rounds)
    return Result([*lines, "", *divided, "", *_networks(on_ranks, alone)], good and close)


def _lookups(found: dict[str, float]) -> tuple[list[str], bool]:
    head = (f"{TAKEN} rows of {DIM}", *(f"us with {rows} rows" for rows in ROWS), "ratio")
    lines, good = [row(head), row(["---", *["---:"] * 3])], True
    for strategy in STRATEGIES:
        small, large = (found[f"{strategy} {rows}"] for rows in ROWS)
        lines.append(
            row([strategy, figure(small * 1e6), figure(large * 1e6), f"{large / small:.2f}"])
        )
        good &= large <= ALLOWED_LONGER * small
    return lines, good


def _whole(found: dict[str, Any]) -> tuple[list[str], bool]:
    counts = list(next(iter(found.values()))["seconds"])
    lines = [
        row(["bytes", *(f"ms in {count}" for count in counts), "quickest", "suggested"]),
        row(["---:"] * (len(counts) + 3)),
    ]
    good = True
    for rows in WHOLE:
        times = found[str(rows)]["seconds"]
        best = min(times, key=times.__getitem__)
        suggested = found[str(rows)]["suggested"]
        good &= abs(int(best) - suggested) <= ALLOWED_OFF
        cells = [figure(times[count] * 1e3) for count in counts]
        lines.append(row([str(4 * rows * WHOLE_DIM), *cells, best, str(suggested)]))
    return lines, good


def _networks(on_ranks: dict[str, Any], alone: dict[str, Any]) -> list[str]:
    head = ("batch", "layers", "us on ranks", "CPU us of the worker", "us in one process", "ratio")
    lines = [row(head), row(["---:", "---", *["---:"] * 4])]
    for batch, sizes in LAYERS.items():
        here, there = alone[str(batch)], on_ranks[str(batch)]
        cells = [figure(s * 1e6) for s in (there["seconds"], there["cpu"], here["seconds"])]
        ratio = f"{there['seconds'] / here['seconds']:.2f}"
        lines.append(row([str(batch), "-".join(map(str, sizes)), *cells, ratio]))
    return lines


def measure(
    mpirun: str, part: str, ranks: int, rounds: int
) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """Run a part; return what the worker found, and what each server did."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "found.json")
        arguments = [sys.executable, "-m", "benchmarks.shards.program", part, str(path)]
        launcher = [mpirun, "-n", str(ranks), "--bind-to", "none"] if ranks > 1 else []
        subprocess.run(
            [*launcher, *arguments, str(rounds)],
            cwd=ROOT,
            env={**environment(1), **_MPI},
            check=True,
            stdout=subprocess.DEVNULL,
            timeout=_TIMEOUT_S,
        )
        servers = [json.loads(p.read_text()) for p in sorted(Path(folder).glob("found.json.ps*"))]
        return json.loads(path.read_text()), servers
