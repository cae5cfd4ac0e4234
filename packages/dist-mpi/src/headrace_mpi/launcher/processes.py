"""The processes of a job on this host: found by a variable in their environment, and ended."""

from __future__ import annotations

import contextlib
import os
import signal
import time
from pathlib import Path


def of_job(mark: str) -> list[int]:
    """Return the processes, other than this one, with ``mark`` in their environment.

    Where there is no ``/proc``, none is found.
    """
    wanted = mark.encode()
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if wanted in (folder / "environ").read_bytes().split(b"\0"):
                found.append(int(folder.name))
    return [pid for pid in found if pid != os.getpid()]


def end_all(mark: str, within_s: float = 3.0) -> None:
    """Kill what is left of a job, and wait until it is gone."""
    until = time.monotonic() + within_s
    while (left := of_job(mark)) and time.monotonic() < until:
        for pid in left:
            with contextlib.suppress(OSError):
                os.kill(pid, signal.SIGKILL)
        time.sleep(0.02)
