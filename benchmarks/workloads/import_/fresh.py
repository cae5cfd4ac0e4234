"""Imports a library in a new interpreter each round."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import dataclass

from benchmarks.participant import Participant, Request, Sample
from benchmarks.peers import PEERS

# Runs in the new interpreter, and imports nothing that a library might have to import itself.
# What the peak grows by during the import is what it costs: numpy is the same for all.
PROBE = """
import sys, resource, time
import numpy
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
start = time.perf_counter()
__import__(sys.argv[1])
seconds = time.perf_counter() - start
after = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
sys.stdout.write(f"\\n{seconds!r} {after - before}\\n")
"""

# The unit in which the system counts memory there.
_MEMORY_UNIT = 1 if sys.platform == "darwin" else 1024


@dataclass(frozen=True)
class FreshImport:
    """A participant whose round is one import.

    Attributes:
        module: what to import.
    """

    module: str

    def round(self) -> Sample:
        """Import the module in a new interpreter."""
        done = subprocess.run(
            [sys.executable, "-c", PROBE, self.module],
            stdout=subprocess.PIPE,
            check=True,
            encoding="utf-8",
        )
        seconds, memory = done.stdout.splitlines()[-1].split()
        return Sample(float(seconds), int(memory) * _MEMORY_UNIT)

    def loss(self) -> None:
        """Return None: an import has no loss."""
        return


def build(request: Request) -> Participant:
    """Import the peer's own module, the first of those it needs."""
    return FreshImport(PEERS[request.peer].needs[0])
