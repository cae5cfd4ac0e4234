"""``python -m tests.faults.cluster``: all cells of the matrix of faults on a cluster, and kills.

python -m tests.faults.cluster                          # every cell 3 times, 50 kills of each kind
python -m tests.faults.cluster --times 1 --only "kernel worker"
"""

from __future__ import annotations

import argparse
import random
import sys
import tempfile
from collections import defaultdict
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from .cells import FAULTS, PHASES, ROLES, WITHIN_S, Cell, Ending, cells, run_cell
from .kills import kill_ps, kill_workers


def main(words: Sequence[str] | None = None) -> int:
    """Run them; return 1 where something was not as promised."""
    parser = argparse.ArgumentParser(prog="python -m tests.faults.cluster")
    parser.add_argument("--times", type=int, default=3, help="how often each cell runs")
    parser.add_argument("--only", default="", help="cells with these words in their names")
    parser.add_argument("--jobs", type=int, default=1, help="how many run at a time")
    parser.add_argument("--within", type=float, default=WITHIN_S, help="seconds until the end")
    parser.add_argument("--kills", type=int, default=50, help="of workers, and of the ps")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args(words)
    bad = _matrix(options) if options.times else 0
    for name, kill in (("workers", kill_workers), ("the ps", kill_ps)) if options.kills else ():
        with tempfile.TemporaryDirectory() as folder:
            told = kill(Path(folder), options.kills, options.seed)
        bad += bool(told.wrong)
        print(f"{options.kills} kills of {name}: {told.wrong or told.said}", flush=True)
    return int(bad > 0)


def _matrix(options: argparse.Namespace) -> int:
    wanted = [cell for cell in cells() if options.only in str(cell)] * options.times
    random.Random(options.seed).shuffle(wanted)
    ended: dict[tuple[str, str], list[tuple[Cell, Ending]]] = defaultdict(list)
    bad = 0

    def run(cell: Cell) -> tuple[Cell, Ending]:
        with tempfile.TemporaryDirectory() as folder:
            return cell, run_cell(cell, Path(folder))

    with ThreadPoolExecutor(options.jobs) as pool:
        for cell, ending in pool.map(run, wanted):
            late = not ending.wrong and ending.seconds > options.within
            wrong = ending.wrong or (f"it took {ending.seconds:.1f} s" if late else "")
            bad += bool(wrong)
            ended[cell.phase, cell.role].append((cell, ending))
            line = f"{cell!s:<32} {ending.code:>4} {ending.seconds:6.1f} s  {wrong}"
            print(line, flush=True)
    print(f"\n{'phase':<10}", *(f"{role:>22}" for role in ROLES))
    for phase in PHASES:
        row = []
        for role in ROLES:
            found = ended[phase, role]
            right = sum(not ending.wrong for _, ending in found)
            slowest = max((ending.seconds for _, ending in found), default=0.0)
            row.append(f"{right}/{len(found)}, {slowest:.1f} s".rjust(22))
        print(f"{phase:<10}", *row)
    faults = len({cell.fault for found in ended.values() for cell, _ in found})
    print(f"{len(wanted)} runs, {faults} of {len(FAULTS)} faults; {bad} not as promised")
    return bad


if __name__ == "__main__":
    sys.exit(main())
