"""The command line: which workloads to run, and where to write the tables."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from benchmarks import machine, report
from benchmarks.controller import RunSettings, run_workload
from benchmarks.workload import all_workloads


def parser(names: Sequence[str]) -> argparse.ArgumentParser:
    """Return the parser of the command line."""
    defaults = RunSettings()
    made = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    made.add_argument(
        "--workloads", nargs="+", choices=names, default=list(names), help="default: all"
    )
    made.add_argument(
        "--rounds", type=_positive, default=defaults.rounds, help="default: %(default)s"
    )
    made.add_argument(
        "--threads", type=_positive, default=defaults.threads, help="default: %(default)s"
    )
    made.add_argument(
        "--write", type=Path, metavar="FILE", help="replace the sections of this document"
    )
    return made


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the workloads asked for; print the tables, and write them where asked.

    Returns:
        0, or 1 if headrace failed in a workload or final losses disagree.
    """
    workloads = all_workloads()
    options = parser(list(workloads)).parse_args(arguments)
    settings = RunSettings(rounds=options.rounds, threads=options.threads)
    status = 0
    for name in options.workloads:
        workload = workloads[name]
        run = run_workload(workload, settings, _say)
        body = report.render(workload, run, settings, machine.describe())
        sys.stdout.write(f"\n## {name}\n\n{body}")
        sys.stdout.flush()
        if options.write is not None:
            _write(options.write, name, body)
        if not report.succeeded(workload, run.outcomes):
            status = 1
    return status


def _write(path: Path, name: str, body: str) -> None:
    """Replace one section of a document, which need not exist yet."""
    document = path.read_text(encoding="utf-8") if path.exists() else "# Benchmarks\n"
    path.write_text(report.replace_section(document, name, body), encoding="utf-8")


def _say(line: str) -> None:
    """Tell the user how far the run is."""
    sys.stderr.write(line + "\n")
    sys.stderr.flush()


def _positive(text: str) -> int:
    """Parse a whole number above zero."""
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError(f"expected a whole number above 0, got {text}")
    return number
