"""``python -m tests.soak``: 100000 steps and 1000 sessions with queues and checkpoints.

What the process holds is written down ten times on the way: memory, threads, descriptors. It may
grow while it warms up, in the first fifth, and not after that: ``nox -s soak`` fails if it does.
"""

from __future__ import annotations

import argparse
import gc
import os
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

import headrace as hr

SAMPLES = 10
_WARM = 2
# What memory may differ by from sample to sample: the allocator keeps what it likes.
_SLACK_MB = 8.0


class Holding(NamedTuple):
    """What a process holds."""

    memory_mb: float
    threads: int
    descriptors: int


def holding() -> Holding:
    """Return what this process holds now."""
    gc.collect()
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    memory = pages * os.sysconf("SC_PAGE_SIZE") / 2**20
    return Holding(memory, threading.active_count(), len(list(Path("/proc/self/fd").iterdir())))


def grown(samples: Sequence[Holding]) -> list[str]:
    """Return what has grown since the process was warm."""
    warm, last = samples[_WARM - 1], samples[-1]
    faults = []
    if last.memory_mb > warm.memory_mb + _SLACK_MB:
        faults.append(f"memory grew from {warm.memory_mb:.0f} to {last.memory_mb:.0f} MB")
    if last.threads > warm.threads:
        faults.append(f"threads grew from {warm.threads} to {last.threads}")
    if last.descriptors > warm.descriptors:
        faults.append(f"descriptors grew from {warm.descriptors} to {last.descriptors}")
    return faults


def model() -> tuple[hr.QueueBase, hr.Tensor, hr.Operation, hr.Tensor]:
    """Build a small model that is trained from a queue; return queue, input, fill and step."""
    x = hr.placeholder(hr.float32, [16, 8], name="x")
    queue = hr.FIFOQueue(20, [hr.float32], shapes=[[16, 8]])
    fill = queue.enqueue(x)
    hidden = hr.layers.dense(queue.dequeue(), 16, activation=hr.nn.relu)
    loss = hr.reduce_mean(hr.square(hr.layers.dense(hidden, 4)))
    step = hr.train.create_global_step()
    with hr.control_dependencies([hr.train.AdamOptimizer(0.01).minimize(loss, step)]):
        done = hr.identity(loss)
    return queue, x, fill, done


def steps(count: int) -> list[Holding]:
    """Train for ``count`` steps from a queue, and save every hundredth part of them."""
    samples = []
    batch = np.random.default_rng(0).normal(size=(16, 8)).astype(np.float32)
    with tempfile.TemporaryDirectory() as folder, hr.Graph().as_default(), hr.Session() as session:
        _, x, fill, done = model()
        saver = hr.train.Saver(max_to_keep=2)
        session.run(hr.global_variables_initializer())
        for i in range(1, count + 1):
            session.run(fill, {x: batch})
            session.run(done)
            if i % max(1, count // 100) == 0:
                saver.save(session, f"{folder}/model", i)
            if i % (count // SAMPLES) == 0:
                samples.append(holding())
    return samples


def sessions(count: int) -> list[Holding]:
    """Make ``count`` graphs and sessions that train from a queue, save and restore."""
    samples = []
    batch = np.ones((16, 8), np.float32)
    with tempfile.TemporaryDirectory() as folder:
        for i in range(1, count + 1):
            with hr.Graph().as_default(), hr.Session() as session:
                queue, x, fill, done = model()
                saver = hr.train.Saver(max_to_keep=1)
                session.run(hr.global_variables_initializer())
                for _ in range(3):
                    session.run(fill, {x: batch})
                    session.run(done)
                path = saver.save(session, f"{folder}/model", i)
                saver.restore(session, path)
                session.run(queue.close())
            if i % (count // SAMPLES) == 0:
                samples.append(holding())
    return samples


def main(words: Sequence[str] | None = None) -> int:
    """Run both; return 1 where something grew."""
    parser = argparse.ArgumentParser(prog="python -m tests.soak")
    parser.add_argument("--steps", type=int, default=100_000)
    parser.add_argument("--sessions", type=int, default=1000)
    options = parser.parse_args(words)
    parts: list[tuple[str, Callable[[int], list[Holding]], int]] = [
        ("steps", steps, options.steps),
        ("sessions", sessions, options.sessions),
    ]
    bad = False
    for name, run, count in (part for part in parts if part[2] >= SAMPLES):
        started = time.monotonic()
        samples = run(count)
        print(f"{count} {name} in {time.monotonic() - started:.0f} s")
        for i, sample in enumerate(samples, 1):
            print(
                f"  after {i * count // SAMPLES:>6}: {sample.memory_mb:7.1f} MB, "
                f"{sample.threads} threads, {sample.descriptors} descriptors"
            )
        faults = grown(samples)
        print(*(f"  {fault}" for fault in faults or ["nothing grew"]), sep="\n", flush=True)
        bad = bad or bool(faults)
    return int(bad)


if __name__ == "__main__":
    sys.exit(main())
