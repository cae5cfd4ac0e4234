"""Starts a new process for every round, with its caches on disk empty or as they were."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from dataclasses import dataclass, field
from pathlib import Path

from benchmarks.participant import Participant, Request, Sample
from benchmarks.workloads.first_step import FIRST_FIVE, WARM

# The folders in which libraries keep what they have compiled, and what makes JAX keep all of it.
CACHES = ("HEADRACE_CACHE", "TORCHINDUCTOR_CACHE_DIR", "JAX_COMPILATION_CACHE_DIR")
_KEEP_ALL = {
    "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0",
    "JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES": "-1",
}
# First steps are measured as users see them, with kernels compiled behind them.
_BEHIND = {"HEADRACE_COMPILE_WAIT": "0"}


@dataclass
class FreshSteps:
    """A participant whose round is the first steps of a new process.

    Attributes:
        request: whose steps.
        kept: the folder of caches that last from round to round.
        last_loss: the loss after the last round's steps.
    """

    request: Request
    kept: tempfile.TemporaryDirectory[str] = field(default_factory=tempfile.TemporaryDirectory)
    last_loss: float | None = None

    def round(self) -> Sample:
        """Run the first steps in a new process."""
        if self.request.variant.endswith(WARM):
            return self._run(Path(self.kept.name))
        with tempfile.TemporaryDirectory() as empty:
            return self._run(Path(empty))

    def loss(self) -> float | None:
        """Return the loss after the last round."""
        return self.last_loss

    def _run(self, folder: Path) -> Sample:
        """Start the process and read what it measured."""
        command = [sys.executable, "-m", "benchmarks.workloads.first_step.probe"]
        command += [self.request.peer, self.request.variant, str(self.request.threads)]
        caches = {name: str(folder / name.lower()) for name in CACHES}
        done = subprocess.run(
            command,
            capture_output=True,
            encoding="utf-8",
            env={**os.environ, **_KEEP_ALL, **_BEHIND, **caches},
        )
        if done.returncode != 0:
            said = done.stderr.strip().splitlines()
            raise RuntimeError(said[-1] if said else f"exit code {done.returncode}")
        measured = json.loads(done.stdout.splitlines()[-1])
        self.last_loss = measured["loss"]
        times = {FIRST_FIVE: measured["first_five"]}
        return Sample(measured["first"], measured["peak"], measured["over_imports"], times)


def build(request: Request) -> Participant:
    """Set up the rounds of one participant."""
    return FreshSteps(request)
