"""``python -m headrace_testing.matrix``: run the samples on a backend, and tell of all runs.

``run`` makes one run and writes its result to a folder; ``table`` prints the table of a folder's
results and, with ``--write FILE``, makes the page of the documentation. The exit code is 1 where
something failed, 2 where a backend cannot be had.
"""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path

from headrace_testing.matrix.backends import ENVIRONMENTS, EXECUTORS, why_not
from headrace_testing.matrix.run import read, run
from headrace_testing.matrix.table import failed, page, table


def main(arguments: list[str] | None = None) -> int:
    """Run the command, and return its exit code."""
    parser = argparse.ArgumentParser(prog="python -m headrace_testing.matrix", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    running = commands.add_parser("run", help="run the samples on one backend")
    running.add_argument("--backend", default="cpu", help="a backend, or a kind of devices")
    running.add_argument("--executor", default="compiled", help="plain, compiled, ... at once")
    running.add_argument("--workers", type=int, default=1, help="number of processes")
    running.add_argument("--family", action="append", default=[], help="only this family of ops")
    running.add_argument("--folder", type=Path, required=True, help="where results are written")
    telling = commands.add_parser("table", help="print the table of results")
    telling.add_argument("--folder", type=Path, required=True, help="where results lie")
    telling.add_argument("--write", type=Path, help="the page to make")
    options = parser.parse_args(arguments)
    return _run(options) if options.command == "run" else _tell(options)


def _run(options: argparse.Namespace) -> int:

    if options.executor not in EXECUTORS:
        print(f"--executor must be one of {', '.join(EXECUTORS)}, got {options.executor!r}")
        return 2
    # Settings are read when the first session is made, here and in the workers.
    os.environ.update({**EXECUTORS[options.executor], **ENVIRONMENTS.get(options.backend, {})})
    reason = why_not(options.backend)
    if reason:
        print(f"{options.backend}: not run, {reason}")
        return 2

    result = run(options.backend, options.executor, options.workers, options.family)
    if result is None:
        return 0
    result.write(options.folder)
    failures = failed([result])
    passed = sum(family.passed for family in result.families.values())
    refused = sum(sum(family.refused.values()) for family in result.families.values())
    print("\n".join(failures))
    print(
        f"{result.backend}, {result.executor}, Python {result.python}: {passed} passed, "
        f"{refused} refused, {len(failures)} failed in {result.seconds:g} s"
    )
    return 1 if failures else 0


def _tell(options: argparse.Namespace) -> int:

    runs = [read(file) for file in sorted(options.folder.glob("*.json"))]
    if not runs:
        print(f"there are no results in {options.folder}")
        return 2
    print("\n".join(table(runs)))
    if options.write:
        options.write.write_text(page(runs), encoding="utf-8")
    return 1 if failed(runs) else 0


if __name__ == "__main__":
    sys.exit(main())
