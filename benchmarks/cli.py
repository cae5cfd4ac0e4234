"""The command line: which workloads to run, and where to write the tables."""

from __future__ import annotations

import argparse
import itertools
import sys
from collections.abc import Sequence
from pathlib import Path

from benchmarks import compare, figures, machine, report, studies
from benchmarks.controller import RunSettings, run_workload
from benchmarks.figures import Figures
from benchmarks.peers import PEERS
from benchmarks.suite import page
from benchmarks.suite.cases import all_cases
from benchmarks.suite.running import run_cases
from benchmarks.workload import Workload, all_workloads
from headrace_cpu.limits import limits

SUITE = "suite"


def parser(names: Sequence[str]) -> argparse.ArgumentParser:
    """Return the parser of the command line.

    Args:
        names: the workloads and studies that run where none is named.
    """
    defaults = RunSettings()
    made = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    made.add_argument(
        "--workloads",
        nargs="+",
        choices=[*names, SUITE, *all_cases()],
        metavar="NAME",
        help=f"{SUITE!r} is all of the suite. Default: all but the suite, or with --compare the "
        f"suite. Of: {', '.join([*names, SUITE, *all_cases()])}",
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
    made.add_argument(
        "--compare",
        metavar="REVISION",
        help="run the workloads with this revision of the repository beside what is here; nothing "
        "else takes part, and a slower step is an error",
    )
    made.add_argument(
        "--limit",
        type=_ratio,
        default=compare.LIMIT,
        help="with --compare: the largest allowed ratio of new to old; default: %(default)s",
    )
    return made


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the workloads asked for; print the tables, and write them where asked.

    Returns:
        0, or 1 if headrace failed in a workload, final losses disagree, or something became
        slower than ``--compare`` allows.
    """
    workloads = all_workloads()
    options = parser([*workloads, *studies.NAMES]).parse_args(arguments)
    settings = RunSettings(rounds=options.rounds, threads=options.threads)
    if options.compare is not None:
        names = _expanded(options.workloads or [SUITE])
        return compare.main(options.compare, names, options.limit, settings, _say)
    status = 0
    _say_missing()
    asked = options.workloads or [*workloads, *studies.NAMES]
    cases = [name for name in _expanded(asked) if name in all_cases()]
    if cases:
        body, succeeded = _suite(cases, settings)
        sys.stdout.write(f"\n## {SUITE}\n\n{body}")
        sys.stdout.flush()
        if options.write is not None:
            _write(options.write, SUITE, body, None)
        status = 0 if succeeded else 1
    for name in asked:
        if name == SUITE or name in all_cases():
            continue
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


def _suite(names: Sequence[str], settings: RunSettings) -> tuple[str, bool]:
    """Run cases of the suite; returns the section of all, and whether all is well."""
    able = limits(settings.threads)
    runs = []
    for run in run_cases(names, settings, _say):
        # A long run that is ended early has told its ratios so far.
        _say(page.said(page.line(run)))
        runs.append(run)
    return page.render(runs, settings, able, machine.describe()), page.succeeded(runs)


def _expanded(names: Sequence[str]) -> list[str]:
    """Return the names, with those of all cases where the suite is named."""
    each = (list(all_cases()) if name == SUITE else [name] for name in names)
    return list(dict.fromkeys(itertools.chain.from_iterable(each)))


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


def _ratio(text: str) -> float:
    """Parse a number of at least one."""
    number = float(text)
    if not 1 <= number < float("inf"):
        raise argparse.ArgumentTypeError(f"expected a number of at least 1, got {text}")
    return number
