"""How much faster steps are when the slowest workers are not waited for.

    python examples/backup_workers.py
    python examples/backup_workers.py --one-slow

Workers are threads with sessions of their own, which share variables. What a worker computes takes
no time to speak of; instead it sleeps, so that the machine does not matter. A batch takes 20 ms,
plus an exponential delay of 5 ms in the mean, and one in twenty takes ten times as long. For each
number of backup workers the table says how long a step took, and what became of the gradients.

With --one-slow every batch takes 20 ms, and those of one worker ten times as long.

J. Chen et al., "Revisiting Distributed Synchronous SGD", 2016, https://arxiv.org/abs/1604.00981,
has such a curve in figure 5.
"""

from __future__ import annotations

import argparse
import random
import threading
import time
from collections.abc import Callable
from typing import Any, NamedTuple

import headrace as hr

BASE_SECS = 0.02
MEAN_DELAY_SECS = 0.005
ONE_IN = 20
TIMES = 10

# From a worker and its random numbers: how long its next batch takes, in seconds.
Batch = Callable[[int, random.Random], float]


class Measured(NamedTuple):
    """What a run took.

    Attributes:
        step_secs: Mean time of a step.
        applied: How many gradients were applied.
        dropped: How many were refused.
        stale: How many were applied that were computed for another step.
    """

    step_secs: float
    applied: int
    dropped: int
    stale: int


def sometimes_slow(worker: int, draw: random.Random) -> float:
    """Return how long a batch takes where any worker may be slow."""
    seconds = BASE_SECS + draw.expovariate(1 / MEAN_DELAY_SECS)
    return seconds * (TIMES if draw.randrange(ONE_IN) == 0 else 1)


def even(worker: int, draw: random.Random) -> float:
    """Return how long a batch takes where none is slow."""
    return BASE_SECS


def last_is_slow(workers: int) -> Batch:
    """Return how long batches take where those of the last worker take ten times as long."""
    return lambda worker, draw: BASE_SECS * (TIMES if worker == workers - 1 else 1)


def measured(workers: int, backup: int, steps: int, batch: Batch) -> Measured:
    """Train with some workers, of which a step leaves out some.

    Args:
        workers: How many there are.
        backup: How many a step leaves out.
        steps: How many steps to train; the first five are not timed.
        batch: How long batches take.
    """
    name = f"backup_{workers}_{backup}_{batch.__qualname__}"
    sessions = []
    for worker in range(workers):
        with hr.Graph().as_default(), hr.container(name):
            step = hr.train.get_or_create_global_step()
            total = hr.Variable(0.0, name="total")
            optimizer = hr.train.SyncReplicasOptimizer(
                hr.train.GradientDescentOptimizer(1.0),
                workers - backup,
                workers,
                replica_index=worker,
            )
            # The gradient is how many steps it is too old: 0, unless a stale one is applied.
            began = hr.placeholder(hr.int64, [])
            gradient = hr.where(hr.equal(began, step), 0.0, 1.0)
            train = optimizer.apply_gradients([(gradient, total)], step)
            counters = optimizer.counters()
            session = hr.train.MonitoredTrainingSession(
                is_chief=worker == 0,
                hooks=[optimizer.make_session_run_hook(worker == 0, num_tokens=0)],
            )
            sessions.append((session, train, began, counters, total))
    reached: list[dict[int, float]] = [{} for _ in sessions]

    def work(worker: int) -> None:
        session, train, began, *_ = sessions[worker]
        draw = random.Random(worker)
        now = 0
        while now < steps:
            time.sleep(batch(worker, draw))
            now = int(session.run(train, {began: now}))
            reached[worker].setdefault(now, time.monotonic())

    threads = [threading.Thread(target=work, args=(worker,)) for worker in range(workers)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    chief, _, _, counters, total = sessions[0]
    applied, dropped, wrong = chief.run([counters.applied, counters.dropped, total])
    for session, *_ in reversed(sessions):
        session.close()
    first, last = (min(r[s] for r in reached if s in r) for s in (min(5, steps - 1), steps))
    seconds = (last - first) / (steps - min(5, steps - 1))
    return Measured(seconds, int(applied), int(dropped), round(-float(wrong) * (workers - backup)))


def table(rows: list[tuple[str, Measured]], compared: float) -> None:
    """Print what was measured, step times also relative to one."""
    print("| | ms per step | relative | applied | dropped | stale applied |")
    print("|---|---:|---:|---:|---:|---:|")
    for label, m in rows:
        ms, relative = m.step_secs * 1e3, m.step_secs / compared
        print(f"| {label} | {ms:.1f} | {relative:.2f} | {m.applied} | {m.dropped} | {m.stale} |")


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--workers", type=int, default=6)
    parser.add_argument("--steps", type=int, default=100)
    parser.add_argument("--one-slow", action="store_true", help="compare with one slow worker of 4")
    args = parser.parse_args()
    rows: list[Any]
    if args.one_slow:
        rows = [
            ("4 workers, none slow", measured(4, 0, args.steps, even)),
            ("one slow, no backup", measured(4, 0, max(args.steps // 5, 6), last_is_slow(4))),
            ("one slow, one backup", measured(4, 1, args.steps, last_is_slow(4))),
        ]
    else:
        rows = [
            (f"{backup} backup of {args.workers}", measured(args.workers, backup, args.steps, b))
            for backup, b in ((n, sometimes_slow) for n in range(4))
        ]
    table(rows, rows[0][1].step_secs)


if __name__ == "__main__":
    main()
