"""A process that is killed while it writes checkpoints never costs the latest committed one."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.children import run_program

if TYPE_CHECKING:
    from pathlib import Path

# One process imports everything and then forks each victim: trials take milliseconds, not seconds.
SCRIPT = """
import os, random, signal, sys, time
from pathlib import Path
import h5py
import numpy as np
from headrace_train.checkpoint import CheckpointReader, latest_checkpoint, write_checkpoint
from headrace_train.checkpoint.paths import file_of
from headrace_train.saver.commit import commit, in_folder
from headrace_train.saver.retention import Policy, Retention

folder, trials, seed = Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])

def tensors(step):
    return {f"layer{i}/w": np.full(20_000, step + i, np.float32) for i in range(8)} | {
        "layer0/w/slot": np.full(10, step), "words": np.array([b"%d" % step, b""], object)}

def save_once(retention, prefix, step):
    with in_folder(prefix):
        commit(
            retention, prefix, lambda: write_checkpoint(file_of(prefix), tensors(step), step=step)
        )

def write_for_ever(step, pipe):
    retention = Retention(Policy(3, 10_000.0))
    while True:
        # Half of the trials rewrite one file, half leave a series behind.
        prefix = str(folder / (f"model-{step}" if trial % 2 else "model"))
        save_once(retention, prefix, step)
        os.write(pipe, step.to_bytes(8, "little"))
        step += 1

# What the victims do is done here before, with all that is imported, to know how long it takes.
for _ in range(2):
    start = time.perf_counter()
    save_once(Retention(Policy(3, 10_000.0)), str(folder / "warm" / "model"), 0)
    took = time.perf_counter() - start
random.seed(seed)
committed = -1
torn = 0
for trial in range(trials):
    receive, send = os.pipe()
    victim = os.fork()
    if victim == 0:
        write_for_ever(committed + 1, send)
    os.close(send)
    if trial % 3 == 0:
        # On a busy machine, too, some come as far as to save.
        committed = int.from_bytes(os.read(receive, 8), "little")
    time.sleep(random.uniform(0, 3 * took))
    os.kill(victim, signal.SIGKILL)
    os.waitpid(victim, 0)
    while report := os.read(receive, 8):
        committed = int.from_bytes(report, "little")
    os.close(receive)
    torn += len(list(folder.glob(".*.tmp")))
    for left in folder.glob(".*.tmp"):
        left.unlink()
    latest = latest_checkpoint(folder)
    if latest is None:
        assert committed == -1, f"trial {trial}: step {committed} was committed and is lost"
        continue
    with CheckpointReader(latest) as reader:
        step = reader.step
        # A kill may fall between the commit and its report.
        assert step in (committed, committed + 1), (trial, step, committed)
        found, expected = reader.read(), tensors(step)
    assert list(found) == list(expected)
    for name in expected:
        np.testing.assert_array_equal(found[name], expected[name])
    committed = step
    # Three stay; one more is left by a kill before a deletion, and one is being written.
    assert len(list(folder.glob("*.h5"))) <= 5
print(f"{trials} trials, {committed} committed, {torn} interrupted")
"""


def run_trials(folder: Path, trials: int, timeout_s: float) -> tuple[int, int]:
    done = run_program(SCRIPT, folder, trials, "20", timeout_s=timeout_s)
    words = done.stdout.split()
    assert words[0] == str(trials)
    return int(words[2]), int(words[4])


def test_committed_checkpoints_survive_kills(tmp_path: Path) -> None:
    committed, interrupted = run_trials(tmp_path, 30, timeout_s=50)
    assert committed > 5, "the victims were killed before they wrote anything"
    assert interrupted > 0, "no kill fell into a write"


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_committed_checkpoints_survive_many_kills(tmp_path: Path) -> None:
    run_trials(tmp_path, 500, timeout_s=280)
