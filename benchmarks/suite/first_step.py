"""The new process of the study of first steps: builds a workload, times its steps, prints them.

python -m benchmarks.suite.first_step WORKLOAD THREADS
"""

from __future__ import annotations

import json
import sys
import time

from benchmarks.networks import headrace as networks
from benchmarks.networks.tasks import TASKS
from benchmarks.participant import Request, StepLoop
from benchmarks.suite import headrace as suite

_STEPS = 8


def main(words: list[str]) -> None:
    """Time the first steps of a case of the suite, or of a network, and print seconds as JSON."""
    workload, threads = words
    request = Request("headrace", "Session.run", int(threads), workload)
    loop = networks.build(request) if workload in TASKS else suite.build(request).loop
    if not isinstance(loop, StepLoop):
        raise TypeError(f"expected steps, got {type(loop).__name__}")
    seconds = []
    for i in range(_STEPS):
        begin = time.perf_counter()
        loop.step(*loop.feeds[i % len(loop.feeds)])
        loop.finish()
        seconds.append(time.perf_counter() - begin)
    sys.stdout.write(f"\n{json.dumps(seconds)}\n")


if __name__ == "__main__":
    main(sys.argv[1:])
