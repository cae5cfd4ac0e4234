"""``python -m headrace.testing.fuzz``: call ops of core at random.

The exit code is 0 where no call had a forbidden outcome, 1 where one had, and 2 for arguments
that are refused.
"""

from __future__ import annotations

import argparse
import sys

from headrace.errors import HeadraceError
from headrace_testing.fuzz.campaign import Report, fuzz, processors
from headrace_testing.fuzz.execute import judge
from headrace_testing.fuzz.generate import make_call
from headrace_testing.fuzz.report import summary
from headrace_testing.fuzz.targets import Target, core_targets


def main(arguments: list[str] | None = None) -> int:
    """Run the command, and return its exit code."""
    parser = argparse.ArgumentParser(prog="python -m headrace.testing.fuzz", description=__doc__)
    parser.add_argument("--calls", type=int, default=10000, help="how many calls (10000)")
    parser.add_argument("--seed", type=int, default=1, help="the seed of all calls (1)")
    parser.add_argument("--op", action="append", help="only this op, or hr.function; repeatable")
    parser.add_argument("--at", type=int, help="make this one call of one op, and show it")
    parser.add_argument("--workers", type=int, default=processors(), help="number of processes")
    parser.add_argument("--shown", type=int, default=3, help="calls shown of an op and outcome")
    options = parser.parse_args(arguments)
    targets, skipped = core_targets()
    if options.op:
        chosen = [name.removeprefix("headrace.") for name in options.op]
        unknown = [name for name in chosen if name not in targets]
        if unknown:
            print("\n".join(f"{n}: {skipped.get(n, 'no such op')}" for n in unknown))
            return 2
        targets, skipped = {name: targets[name] for name in chosen}, {}
    if options.at is not None:
        return _one(targets, options.seed, options.at)
    report = fuzz(
        targets,
        options.calls,
        seed=options.seed,
        workers=max(1, options.workers),
        progress=_progress,
    )
    print(summary(report, skipped, shown=options.shown))
    return 1 if report.forbidden else 0


def _one(targets: dict[str, Target], seed: int, number: int) -> int:
    worst = 0
    for target in targets.values():
        call = make_call(target, seed, number)
        print(call, flush=True)
        verdict = judge(call)
        print(f"{verdict.kind}: {verdict.text}" if verdict.text else verdict.kind)
        worst |= verdict.forbidden
    return worst


def _progress(report: Report) -> None:
    total = report.outcomes.total()
    print(f"{total} calls, {report.forbidden} forbidden", file=sys.stderr, flush=True)


if __name__ == "__main__":
    try:
        sys.exit(main())
    except HeadraceError as error:
        print(error, file=sys.stderr)
        sys.exit(2)
