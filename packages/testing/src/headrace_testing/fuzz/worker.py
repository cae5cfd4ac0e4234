"""A process that makes calls and tells its parent what came of each."""

from __future__ import annotations

import faulthandler
import os
import resource
import sys
from collections.abc import Sequence
from multiprocessing.connection import Connection
from pathlib import Path

from headrace_testing.fuzz.execute import judge
from headrace_testing.fuzz.generate import make_call
from headrace_testing.fuzz.targets import Target

# What a call may allocate beyond what the process has when it starts.
MEMORY = 1 << 30

Job = tuple[str, int]


def limit_memory(extra: int) -> None:
    """Let allocations fail that take this process over what it has now by so many bytes."""
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    size = pages * resource.getpagesize() + extra
    resource.setrlimit(resource.RLIMIT_AS, (size, resource.getrlimit(resource.RLIMIT_AS)[1]))


def work(
    pipe: Connection, targets: dict[str, Target], seed: int, jobs: Sequence[Job], log: str
) -> None:
    """Make calls one after another.

    Sends the number of the job before each call, and the number, the verdict and the call's text
    after it.

    Args:
        pipe: Where the parent listens.
        targets: What can be called, by name.
        seed: The seed of the run.
        jobs: Targets' names, and the numbers of their calls.
        log: A file for what the process says when it crashes.
    """
    stream = Path(log).open("w")  # noqa: SIM115 - open as long as the process runs
    faulthandler.enable(stream)
    # What ops print is not of interest, and would be much.
    quiet = os.open(os.devnull, os.O_WRONLY)
    for number in (1, 2):
        os.dup2(quiet, number)
    sys.stdout = sys.stderr = os.fdopen(quiet, "w")
    limit_memory(MEMORY)
    for i, (name, at) in enumerate(jobs):
        pipe.send(i)
        call = make_call(targets[name], seed, at)
        verdict = judge(call)
        shown = str(call) if verdict.forbidden else ""
        pipe.send((i, verdict.kind, verdict.text, shown))
    pipe.send(None)
    pipe.close()


def warm_up() -> None:
    """Load what kernels load when they are first needed, before memory is limited."""
    import importlib

    for module in ("scipy.special", "scipy.linalg", "headrace_cpu.plugin"):
        try:
            importlib.import_module(module)
        except ImportError:
            continue
