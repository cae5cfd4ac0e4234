"""One process of a job that runs null steps."""

from __future__ import annotations

import importlib
import json
import sys
from pathlib import Path

from benchmarks.null_step.timing import Job


def main(participant: str, described: str) -> None:
    """Play a part of a job, which is described in JSON."""
    job = Job(**json.loads(described))
    play = importlib.import_module(f"benchmarks.null_step.{participant}").play
    play(job._replace(folder=Path(job.folder)))


if __name__ == "__main__":
    main(*sys.argv[1:])
