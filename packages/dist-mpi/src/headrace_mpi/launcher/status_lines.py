"""Status lines of a rank to the launcher: that it is there, which task it has, and how it leaves.

``python -m headrace run`` needs it, for the exit code of ``mpirun`` does not tell: it is 0 where a
rank was killed in a job that tolerates faults, and that of any rank where several leave at once.
A note is a line of the rank's standard error, the one way to the launcher that there is on every
host. It begins with a token that the launcher chose, who takes it out of what it shows.
"""

from __future__ import annotations

import contextlib
import io
import os
import sys
from pathlib import Path

from headrace_mpi.settings import LAUNCH

MARK = "\x1e"
# How the files of Open MPI's shared memory are called.
SEGMENTS = "/dev/shm/sm_segment."


def tell(note: str) -> None:
    """Tell the launcher something, where ``python -m headrace run`` started this process.

    Args:
        note: ``"here"``, ``"plays worker:1"``, ``"lost 2"``, ``"saves"``, ``"left 0"``, or
            ``"uses FILE"``.
    """
    token = LAUNCH.read()
    if token:
        with contextlib.suppress(OSError):
            # In one piece, so that nothing of another thread comes between.
            os.write(2, f"{MARK}{token} {note}\n".encode())


def tell_segments() -> None:
    """Tell the launcher which shared memory this process uses; a job that is killed leaves it."""
    with contextlib.suppress(OSError):
        lines = Path("/proc/self/maps").read_text().splitlines()
        paths = {line[line.index(SEGMENTS) :] for line in lines if SEGMENTS in line}
        for path in sorted(paths):
            tell(f"uses {path}")


def write_whole_lines() -> None:
    """Let what this rank prints leave it line by line, where ``run`` started this process.

    Python passes on each piece of a line by itself where ``PYTHONUNBUFFERED`` is set, and mpirun
    may mark the pieces of several ranks with one rank.
    """
    if LAUNCH.read():
        for stream in (sys.stdout, sys.stderr):
            if isinstance(stream, io.TextIOWrapper):
                stream.reconfigure(line_buffering=True, write_through=False)
