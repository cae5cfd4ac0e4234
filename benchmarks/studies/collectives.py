"""What sums over two ranks cost, beside Open MPI and torch's gloo, and training by them.

All participants are in one job of two ranks and take turns; the best round of each counts. A
network is trained by two ranks of one thread, each on half of every batch, and by one process of
two threads on whole ones.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from benchmarks.collectives.program import GLOO, HEADRACE, OPEN_MPI, SIZES
from benchmarks.controller import Progress, RunSettings
from benchmarks.peers import NOT_INSTALLED
from benchmarks.process import ROOT, environment
from benchmarks.studies import Result
from benchmarks.table import figure, row

RANKS = 2
# Microseconds for the least size, and milliseconds for the largest.
ALLOWED_US, ALLOWED_MS = 60.0, 40.0
# How much longer a step may take on ranks than in one process with as many threads.
ALLOWED = 1.15
_TIMEOUT_S = 300.0
_MPI = {
    "OMPI_ALLOW_RUN_AS_ROOT": "1",
    "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
    "OMPI_MCA_mpi_yield_when_idle": "1",
    "PRTE_MCA_rmaps_default_mapping_policy": ":oversubscribe",
}


def run(settings: RunSettings, progress: Progress) -> Result:
    """Measure sums, and then training."""
    mpirun = shutil.which("mpirun", path=str(Path(sys.executable).parent)) or shutil.which("mpirun")
    if mpirun is None:
        return Result(["There is no mpirun."])
    rounds = min(settings.rounds, 5)
    progress("collectives: sums")
    sums = measure(mpirun, "sums", RANKS, 1, rounds)
    names = (HEADRACE, OPEN_MPI, GLOO)
    lines = [row(["bytes", *(f"{name} us" for name in names)]), row(["---:"] * (len(names) + 1))]
    for nbytes in SIZES:
        times = [sums.get(name, {}).get(str(nbytes)) for name in names]
        cells = [NOT_INSTALLED if s is None else figure(s * 1e6) for s in times]
        lines.append(row([f"{nbytes:,}".replace(",", " "), *cells]))
    progress("collectives: lenet on ranks")
    shared = measure(mpirun, "lenet", RANKS, 1, rounds)["step"]
    progress("collectives: lenet in one process")
    alone = measure(mpirun, "lenet", 1, RANKS, rounds)["step"]
    on_ranks = f"`lenet` by {RANKS} ranks of one thread: {figure(shared * 1e3)} ms a step"
    in_one = f"by one process of {RANKS} threads: {figure(alone * 1e3)} ms"
    lines += ["", f"{on_ranks}; {in_one}; ratio {shared / alone:.2f}."]
    least, most = (sums[HEADRACE][str(nbytes)] for nbytes in (SIZES[0], SIZES[-1]))
    good = least * 1e6 <= ALLOWED_US and most * 1e3 <= ALLOWED_MS and shared <= ALLOWED * alone
    return Result(lines, good)


def measure(mpirun: str, what: str, ranks: int, threads: int, rounds: int) -> dict[str, Any]:
    """Run the program on ranks, and return what the first one found."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "found.json")
        arguments = [sys.executable, "-m", "benchmarks.collectives.program", what, str(path)]
        launcher = [mpirun, "-n", str(ranks), "--bind-to", "none"] if ranks > 1 else []
        subprocess.run(
            [*launcher, *arguments, str(rounds)],
            cwd=ROOT,
            env={**environment(threads), **_MPI},
            check=True,
            stdout=subprocess.DEVNULL,
            timeout=_TIMEOUT_S,
        )
        found: dict[str, Any] = json.loads(path.read_text())
    return found
