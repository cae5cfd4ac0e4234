"""What a run measures of Headrace besides workloads: how cost grows, and whether it drifts.

Each study is a module with a function ``run(settings, progress) -> Result``.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from dataclasses import dataclass

from benchmarks.controller import Progress, RunSettings

NAMES = (
    "first-steps",
    "growth",
    "updates",
    "records",
    "pipelines",
    "recomputation",
    "monitoring",
    "serving",
    "collectives",
    "null-step",
    "ps-train",
    "shards",
    "drift",
)


@dataclass(frozen=True)
class Result:
    """What came of a study.

    Attributes:
        lines: Markdown for the document.
        succeeded: False if something is wrong with Headrace.
    """

    lines: list[str]
    succeeded: bool = True


def study(name: str) -> Callable[[RunSettings, Progress], Result]:
    """Return the function that runs a study."""
    run: Callable[[RunSettings, Progress], Result]
    run = importlib.import_module(f"{__name__}.{name.replace('-', '_')}").run
    return run
