"""The command line: which workloads to run, and where to write the tables."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from benchmarks import figures, machine, report, studies
from benchmarks.controller import RunSettings, run_workload
from benchmarks.figures import Figures
from benchmarks.peers import PEERS
from benchmarks.workload import Workload, all_workloads


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
        "--write",
        type=Path,
        metavar="FILE",
        help="replace the sections of this document, and the figures (.json) and charts (.svg) "
        "beside it",
    )
    return made


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the workloads asked for; print the tables, and write them where asked.

    Returns:
        0, or 1 if headrace failed in a workload or final losses disagree.
    """
    workloads = all_workloads()
    options = parser([*workloads, *studies.NAMES]).parse_args(arguments)
    settings = RunSettings(rounds=options.rounds, threads=options.threads)
    status = 0
    _say_missing()
    for name in options.workloads:
        made: Figures | None = None
        if name in workloads:
            body, made, succeeded = _workload(workloads[name], settings)
        else:
            body, succeeded = _study(name, settings)
        sys.stdout.write(f"\n## {name}\n\n{body}")
        sys.stdout.flush()
        if options.write is not None:
            _write(options.write, name, body, made)
        if not succeeded:
            status = 1
    _say_missing()
    return status


def _workload(workload: Workload, settings: RunSettings) -> tuple[str, Figures, bool]:
    """Run a workload; returns its section, its figures, and whether all is well."""
    run = run_workload(workload, settings, _say)
    where = machine.describe()
    body = report.render(workload, run, settings, where)
    made = figures.figures(workload, run, settings, where)
    return body, made, report.succeeded(workload, run.outcomes)


def _study(name: str, settings: RunSettings) -> tuple[str, bool]:
    """Run a study; returns its section, and whether all is well."""
    result = studies.study(name)(settings, _say)
    head = [f"{machine.describe()}.", f"Each row in a new process; {settings.threads} threads.", ""]
    return "\n".join([*head, *result.lines]) + "\n", result.succeeded


def _say_missing() -> None:
    """Tell the user which peers will have no figures."""
    missing = [peer.title for peer in PEERS.values() if not peer.installed()]
    if missing:
        _say(f"NOT INSTALLED, and without figures: {', '.join(missing)}")


def _write(path: Path, name: str, body: str, made: Figures | None) -> None:
    """Replace one section of a document, which need not exist yet, and its figures and charts."""
    document = path.read_text(encoding="utf-8") if path.exists() else "# Benchmarks\n"
    path.write_text(report.replace_section(document, name, body), encoding="utf-8")
    if made is not None:
        data = path.with_suffix(".json")
        figures.write(data, name, made)
        # Drawing needs Headrace, whose absence the tables can tell.
        from benchmarks import chart

        chart.draw(data)


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
