"""The environment of the jobs into which faults are injected."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

from tests.mpi_environment import AS_ROOT


def of_job(folder: Path, **more: str) -> dict[str, str]:
    """Return the environment of a job.

    Args:
        folder: Where its ranks leave their flight records.
        **more: Further variables.
    """
    environ = {
        **os.environ,
        "HEADRACE_QUIET": "1",
        "HEADRACE_FLIGHT": str(folder / "flight"),
        **AS_ROOT,
        "OMP_NUM_THREADS": "1",
        # Seconds are promised of a program whose modules Python has compiled before, as those of
        # packages are: each rank that compiles them anew takes twice the time to start.
        "PYTHONPYCACHEPREFIX": str(Path(tempfile.gettempdir()) / f"headrace-pyc-{os.getuid()}"),
        **more,
    }
    environ.pop("PYTHONDONTWRITEBYTECODE", None)
    return environ
