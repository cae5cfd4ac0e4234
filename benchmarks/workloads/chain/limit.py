"""One pass over memory: three arrays are read, and a fourth is written.

Sums stand for the formula. They go from block to block, so that a block's first sum is still in
the cache when the second one needs it, and every thread has its share of the blocks.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import numpy as np

from benchmarks.participant import Participant, Request, StepLoop
from benchmarks.workloads.chain import data

BLOCK = 1 << 15


def build(request: Request) -> Participant:
    """Set up the arrays, and a thread for each share of them."""
    a, b, c = data.arrays()
    result = np.empty_like(a)
    pool = ThreadPoolExecutor(request.threads)
    share = data.COUNT // request.threads

    def add(number: int) -> None:
        for start in range(number * share, (number + 1) * share, BLOCK):
            block = slice(start, start + BLOCK)
            np.add(a[block], b[block], out=result[block])
            np.add(result[block], c[block], out=result[block])

    def step() -> None:
        list(pool.map(add, range(request.threads)))

    return StepLoop(step, data.feeds(), lead_in=data.LEAD_IN)
