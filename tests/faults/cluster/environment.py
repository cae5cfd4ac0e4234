"""The environment of the jobs into which faults are injected."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path


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
        "OMPI_ALLOW_RUN_AS_ROOT": "1",
        "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
        "OMP_NUM_THREADS": "1",
        # Seconds are promised of a program whose modules Python has compiled before, as those of
        # packages are: each rank that compiles them anew takes twice the time to start.
        "PYTHONPYCACHEPREFIX": str(Path(tempfile.gettempdir()) / f"headrace-pyc-{os.getuid()}"),
        **more,
    }
    environ.pop("PYTHONDONTWRITEBYTECODE", None)
    return environ
