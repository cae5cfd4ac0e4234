"""``python -m tests.hostile``: runs the campaigns, and prints what came of each.

python -m tests.hostile                       # all, as nox -s hostile does
python -m tests.hostile idx --cases 1000      # some of one
python -m tests.hostile idx --cases 1000 --first 1000  # the next
python -m tests.hostile idx --case 17         # one again, in this process
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
from collections.abc import Sequence

from .campaign import MEMORY_BYTES, SECONDS, run, run_case
from .campaigns import CAMPAIGNS

_SHOWN = 20


def main(words: Sequence[str] | None = None) -> int:
    """Run campaigns; return 1 where something forbidden happened."""
    names = {campaign.name: campaign for campaign in CAMPAIGNS}
    parser = argparse.ArgumentParser(prog="python -m tests.hostile")
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"of {', '.join(names)}")
    parser.add_argument("--cases", type=int, help="at most so many of each")
    parser.add_argument("--first", type=int, default=0, help="begin with the case of this number")
    parser.add_argument("--case", type=int, help="run one case again, in this process")
    parser.add_argument("--without", action="append", default=[], choices=names, metavar="NAME")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args(words)
    unknown = [name for name in options.names if name not in names]
    if unknown:
        parser.error(f"there is no campaign {unknown[0]!r}; expected one of {', '.join(names)}")
    chosen = [names[name] for name in options.names] or list(CAMPAIGNS)
    if options.case is not None:
        with tempfile.TemporaryDirectory() as folder:
            os.chdir(folder)
            print(run_case(chosen[0], options.case, options.seed))
        return 0
    print(f"at most {SECONDS:g} s and {MEMORY_BYTES >> 20} MB beyond what the process has, each")
    print(f"{'campaign':<20}   cases  accepted  refused forbidden  slowest")
    total = 0
    for campaign in (c for c in chosen if c.name not in options.without):
        count = min(options.cases or campaign.cases, campaign.cases)
        started = time.monotonic()
        outcome = run(campaign, count, options.seed, options.first)
        counts = [outcome.counts[key] for key in ("accepted", "refused", "forbidden")]
        total += counts[-1]
        row = f"{campaign.name:<20} {count:>7} {counts[0]:>9} {counts[1]:>8} {counts[2]:>9}"
        took = time.monotonic() - started
        print(f"{row} {outcome.slowest:>6.2f} s   {campaign.says}, {took:.0f} s", flush=True)
        kinds: dict[str, list[int]] = {}
        for number, fault in outcome.forbidden:
            # Faults at one place of the source are of one kind.
            kinds.setdefault(fault.partition("\n")[2] or fault, [number]).append(number)
        for numbers in list(kinds.values())[:_SHOWN]:
            first = dict(outcome.forbidden)[numbers[0]]
            print(f"  case {numbers[0]} and {len(numbers) - 2} like it: {first}")
    print("no forbidden outcome" if not total else f"{total} forbidden outcomes")
    return int(total > 0)


if __name__ == "__main__":
    sys.exit(main())
