"""The new process: builds `lenet` with one library, times its first steps, and prints them."""

from __future__ import annotations

import importlib
import json
import sys
import time
from dataclasses import replace

from benchmarks.memory import METER
from benchmarks.participant import Request, StepLoop
from benchmarks.workloads.first_step import COLD, FIVE, WARM


def main(arguments: list[str]) -> None:
    """Time the steps of ``peer variant threads``."""
    peer, variant, threads = arguments
    module = importlib.import_module(f"benchmarks.networks.{peer}")
    METER.note_imports()
    plain = variant.removesuffix(COLD).removesuffix(WARM).removesuffix(", ")
    built = module.build(Request(peer, plain, int(threads), "lenet"))
    if not isinstance(built, StepLoop):
        raise TypeError(f"expected a participant that runs steps, got {type(built).__name__}")
    steps = replace(built, feeds=built.feeds[:FIVE], lead_in=0)
    start = time.perf_counter()
    ends = []
    for feed in steps.feeds:
        steps.step(*feed)
        steps.finish()
        ends.append(time.perf_counter() - start)
    measured = {
        "first": ends[0],
        "first_five": ends[-1],
        "peak": METER.peak(),
        "over_imports": METER.over_imports(),
        "loss": steps.loss(),
    }
    sys.stdout.write(f"\n{json.dumps(measured)}\n")


if __name__ == "__main__":
    main(sys.argv[1:])
