"""The machine on which a run was made, in words."""

from __future__ import annotations

import datetime
import os
import platform
from pathlib import Path

from benchmarks.peers import HEADRACE, PEERS


def describe() -> str:
    """Return date, processor, memory, system, Python and Headrace's parts in one line."""
    today = datetime.datetime.now(datetime.UTC).date().isoformat()
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    system = f"{platform.system()} {platform.machine()}"
    parts = [
        today,
        f"{processor()}, {cores} cores, {memory_gib():.0f} GiB",
        system,
        f"Python {platform.python_version()}",
        f"Headrace with {PEERS[HEADRACE].parts_in_words()}",
    ]
    return "; ".join(parts)


def processor() -> str:
    """Return the processor's name as far as the system tells it."""
    cpuinfo = Path("/proc/cpuinfo")
    if cpuinfo.exists():
        for line in cpuinfo.read_text().splitlines():
            key, _, value = line.partition(":")
            if key.strip() == "model name":
                return value.strip()
    return platform.processor() or platform.machine()


def memory_gib() -> float:
    """Return the size of the machine's memory in GiB."""
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
