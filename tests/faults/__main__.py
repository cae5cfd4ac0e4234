"""``python -m tests.faults``: kills during saves, and signals in every phase.

python -m tests.faults                        # 500 kills, 10 instants of each signal and phase
python -m tests.faults --kills 50 --instants 1
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from tests.train.test_checkpoint_kill import SCRIPT

from .signals import PHASES, SIGNALS, instants, interrupted, lengths


def main(words: Sequence[str] | None = None) -> int:
    """Do so; return 1 where something was lost, or did not end."""
    parser = argparse.ArgumentParser(prog="python -m tests.faults")
    parser.add_argument("--kills", type=int, default=500, help="kill -9 during saves")
    parser.add_argument("--instants", type=int, default=10, help="of each signal in each phase")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args(words)
    bad = 0
    if options.kills:
        print(f"kill -9 during saves: {_kills(options.kills, options.seed)}", flush=True)
    if options.instants:
        bad = _signals(options.instants, options.seed)
    return int(bad > 0)


def _kills(trials: int, seed: int) -> str:
    with tempfile.TemporaryDirectory() as folder:
        done = subprocess.run(
            [sys.executable, "-c", SCRIPT, folder, str(trials), str(seed)],
            stdout=subprocess.PIPE,
            text=True,
            check=True,
        )
    return done.stdout.strip()


def _signals(count: int, seed: int) -> int:
    with tempfile.TemporaryDirectory() as folder:
        times = lengths(Path(folder))
    print(f"{'phase':<12} {'signal':<8} {'sent':>5} {'late':>5} {'faults':>6}   slowest end")
    bad = 0
    for phase in PHASES:
        for number in SIGNALS:
            late, slowest, faults = 0, 0.0, []
            for after in instants(f"{seed} {phase} {number}", times[phase], count):
                with tempfile.TemporaryDirectory() as folder:
                    ending = interrupted(Path(folder), phase, number, after)
                late += ending.late
                slowest = max(slowest, ending.seconds)
                if ending.fault:
                    faults.append(f"  {after:.3f} s after the phase began: {ending.fault}")
            bad += len(faults)
            row = f"{phase:<12} {number.name:<8} {count:>5} {late:>5} {len(faults):>6}"
            print(f"{row}   {slowest:.2f} s", *faults, sep="\n" if faults else "", flush=True)
    return bad


if __name__ == "__main__":
    sys.exit(main())
