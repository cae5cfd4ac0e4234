"""One process of a job."""

from __future__ import annotations

import importlib
import json
import sys
from pathlib import Path

from benchmarks.server_jobs.timing import Job


def main(participant: str, described: str) -> None:
    """Play a part of a job.

    Args:
        participant: The module that has the program, as ``benchmarks.null_step.mpi``.
        described: The job, in JSON.
    """
    job = Job(**json.loads(described))
    play = importlib.import_module(participant).play
    play(job._replace(folder=Path(job.folder)))


if __name__ == "__main__":
    main(*sys.argv[1:])
