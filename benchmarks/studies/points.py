"""The points at which cost is measured, and the measurement of each in a process of its own."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from dataclasses import asdict, dataclass

from benchmarks.process import ROOT, environment


class PointError(Exception):
    """A point's process failed; the text has its last line."""


@dataclass(frozen=True)
class Point:
    """One program of a certain size.

    Attributes:
        peer: "headrace" or "tensorflow".
        variant: how its session runs.
        varied: "batch", "width", "depth", "nodes", or the optimizer of a table.
        value: how large that is, or how many rows the table has.
        threads: threads to compute with.
    """

    peer: str
    variant: str
    varied: str
    value: int
    threads: int


@dataclass(frozen=True)
class Cost:
    """What a point costs.

    Attributes:
        nodes: operations in the graph.
        flops: floating-point operations of the products of one step.
        build_s: time to build the graph, in seconds.
        first_s: time of the first step, which is planned in it, in seconds.
        step_s: median time of a later step, in seconds.
        memory_bytes: peak resident memory over that after the imports, in bytes.
    """

    nodes: int
    flops: float
    build_s: float
    first_s: float
    step_s: float
    memory_bytes: int


def measure(point: Point, timeout_s: float) -> Cost:
    """Measure a point in a new process whose cache of kernels is empty.

    Raises:
        PointError: if the process fails or takes too long.
    """
    command = [sys.executable, "-m", "benchmarks.studies.probe", json.dumps(asdict(point))]
    with tempfile.TemporaryDirectory() as cache:
        try:
            done = subprocess.run(
                command,
                capture_output=True,
                check=True,
                cwd=ROOT,
                encoding="utf-8",
                env={**environment(point.threads), "HEADRACE_CACHE": cache},
                timeout=timeout_s,
            )
        except subprocess.TimeoutExpired:
            raise PointError(f"no answer within {timeout_s:g} s") from None
        except subprocess.CalledProcessError as error:
            said = str(error.stderr).strip().splitlines()
            raise PointError(said[-1] if said else f"exit code {error.returncode}") from None
    return Cost(**json.loads(done.stdout.splitlines()[-1]))
