"""Jobs of small programs, each with a hard time limit, and proof that nothing of them is left."""

from __future__ import annotations

import os
import textwrap
import time
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import pytest

if TYPE_CHECKING:
    from tests.conftest import MpiRun


class Ended(NamedTuple):
    """How a job went."""

    code: int
    out: str
    err: str
    seconds: float


RunProgram = Callable[..., Ended]

OPENING = """
import sys, threading, time
import numpy as np
from headrace.extend.runtime import Wakeup
from headrace_mpi.transport.transport import Transport
from headrace_mpi.transport.wire import Frame, Kind
from headrace_mpi.world import get_world

world = get_world(start_deadline_s=20)
transport = Transport(world.comm, world.fail)
world.at_close(transport.close)

def say(text):
    sys.stdout.write(f"rank {world.rank}: {text}\\n")
    sys.stdout.flush()
"""


def processes_of(mark: str) -> list[str]:
    """Command lines of all processes with ``mark`` in their environment."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            if mark.encode() in (folder / "environ").read_bytes():
                found.append((folder / "cmdline").read_bytes().replace(b"\0", b" ").decode())
        except OSError:
            continue
    return found


@pytest.fixture
def run_program(mpirun: MpiRun, tmp_path: Path) -> RunProgram:
    """Run a program's source on the ranks of a job, and check that no process of it stays."""

    def run(
        size: int,
        source: str,
        *,
        timeout_s: float = 40.0,
        before: str = "",
        as_module: bool = False,
        opening: str = OPENING,
        env: dict[str, str] | None = None,
    ) -> Ended:
        path = tmp_path / "program.py"
        path.write_text(before + opening + textwrap.dedent(source))
        mark = f"HEADRACE_TEST_JOB={uuid.uuid4().hex}"
        name, value = mark.split("=")
        how = ["-m", "program"] if as_module else [str(path)]
        # What compiling says depends on who came first.
        environ = {name: value, "HEADRACE_QUIET": "1", **(env or {})}
        if as_module:
            paths = [str(tmp_path), os.environ.get("PYTHONPATH", "")]
            environ["PYTHONPATH"] = os.pathsep.join(filter(None, paths))
        begin = time.monotonic()
        done = mpirun(size, *how, timeout_s=timeout_s, env=environ)
        seconds = time.monotonic() - begin
        deadline = time.monotonic() + 3
        while (left := processes_of(mark)) and time.monotonic() < deadline:
            time.sleep(0.05)
        assert not left, f"left over: {left}"
        return Ended(done.returncode, done.stdout, done.stderr, seconds)

    return run
