"""Running all samples on one backend with one executor."""

from __future__ import annotations

import json
import platform
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from multiprocessing import get_context
from pathlib import Path
from typing import Any

from headrace_testing.case import cases
from headrace_testing.failure import ConformanceError, SkipCheck
from headrace_testing.matrix.backends import opened
from headrace_testing.sample import Sample
from headrace_testing.samples import SAMPLES

# What differs from device to device; the others are made where all devices are alike.
CHECKS = (
    "forward",
    "scalar",
    "empty",
    "broadcast",
    "layouts",
    "inputs_kept",
    "refused",
    "gradient",
)


@dataclass
class FamilyResult:
    """What came of the samples of one family of ops.

    Attributes:
        passed: How many checks passed.
        refused: Why checks were refused, and how many.
        failed: What failed, by the name of the check.
    """

    passed: int = 0
    refused: dict[str, int] = field(default_factory=dict)
    failed: dict[str, str] = field(default_factory=dict)


@dataclass
class RunResult:
    """What came of a run of all samples.

    Attributes:
        backend: The backend.
        executor: The executor.
        python: The version of Python.
        seconds: How long it took.
        families: The results by family.
    """

    backend: str
    executor: str
    python: str = field(default_factory=lambda: ".".join(platform.python_version_tuple()[:2]))
    seconds: float = 0.0
    families: dict[str, FamilyResult] = field(default_factory=dict)

    def write(self, folder: Path) -> Path:
        """Write the result to a file of its own, and return it."""
        folder.mkdir(parents=True, exist_ok=True)
        words = f"{self.backend} {self.executor} {self.python}".replace(",", "").split()
        file = folder / ("-".join(words) + ".json")
        file.write_text(json.dumps(asdict(self), indent=1, sort_keys=True), encoding="utf-8")
        return file


def read(file: Path) -> RunResult:
    """Read a result back."""
    stored: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))
    families = {name: FamilyResult(**found) for name, found in stored.pop("families").items()}
    return RunResult(**stored, families=families)


def run(
    backend: str, executor: str, workers: int = 1, families: Sequence[str] = ()
) -> RunResult | None:
    """Run the samples; None in a process that only served.

    Args:
        backend: One of ``headrace_testing.matrix.backends``.
        executor: The name of the executor that the environment sets.
        workers: How many processes share the families; 1 on a cluster.
        families: The families to run; all where none is named.
    """
    chosen = list(families or SAMPLES)
    start = time.monotonic()
    result = RunResult(backend, executor)
    if backend == "cpu of another rank":
        with opened(backend) as ready:
            if not ready.ends:
                return None
            # A step that leaves the process costs more: the first sample of each op is run.
            for name in chosen:
                result.families[name] = _family(name, ready.device, first_only=True)
    elif workers == 1:
        with opened(backend) as ready:
            result.families = {name: _family(name, ready.device) for name in chosen}
    else:
        with get_context("spawn").Pool(workers) as pool:
            found = pool.starmap(_apart, [(backend, name) for name in chosen], chunksize=1)
        result.families = dict(zip(chosen, found, strict=True))
    result.seconds = round(time.monotonic() - start, 1)
    return result


def _apart(backend: str, family: str) -> FamilyResult:
    with opened(backend) as ready:
        return _family(family, ready.device)


def _family(name: str, device: str, *, first_only: bool = False) -> FamilyResult:
    rows = list(SAMPLES[name])
    checks: tuple[str, ...] = CHECKS
    if first_only:
        samples = [row for row in rows if isinstance(row, Sample)]
        rows = list({row.op: row for row in reversed(samples)}.values())
        checks = ("forward", "gradient")
    result = FamilyResult()
    for case in cases(rows, device):
        if not case.name.endswith(tuple(f"-{check}" for check in checks)):
            continue
        try:
            case.run()
        except SkipCheck as reason:
            told = _general(str(reason))
            result.refused[told] = result.refused.get(told, 0) + 1
        except ConformanceError as error:
            result.failed[case.name] = str(error)
        except Exception as error:
            result.failed[case.name] = repr(error)
        else:
            result.passed += 1
    return result


def _general(reason: str) -> str:
    """Return a reason without what differs from case to case."""
    return reason.splitlines()[0].partition(" for ")[0]
