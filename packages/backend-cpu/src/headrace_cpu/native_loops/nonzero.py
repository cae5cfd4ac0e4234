"""Indices of the elements that are true or not zero, found 64 at a time.

Most programs look for few elements among many. So whole words of marks are passed over, and the
lowest bit of each of the others says where the next one is. NumPy counts them first.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from math import prod
from typing import Any

import numpy as np

from headrace import Operation
from headrace_cpu.native.memory import address
from headrace_cpu.native_loops.native_loop import Call, Job, NativeLoop, team_for

# So many axes have a native loop.
_MOST_AXES = 6
# Elements of work that finding one is worth.
_EACH = 8

_FIND = """\
first, last = me * outer // team, (me + 1) * outer // team
to = load_i64(starts, me, 3)
lead = leads + me * 8 * RANK
for row in range(first, last):
    rest = row
    for axis in range(RANK - 1):
        size = load_i64(sizes, RANK - 2 - axis, 4)
        store_i64(lead, RANK - 2 - axis, rest - rest // size * size, 2)
        rest = rest // size
    source = x + row * length
    whole = length // 64 * 64
    for at in range(0, whole, 64):
        marks = above_u8(source, at, to_u8(0), 0)
        while marks != 0:
            for axis in range(RANK - 1):
                store_i64(found, to * RANK + axis, load_i64(lead, axis, 2), 1)
            store_i64(found, to * RANK + RANK - 1, at + to_i64(trailing(marks)), 1)
            marks = marks & (marks - 1)
            to = to + 1
    for at in range(whole, length):
        if load_u8(source, at, 0) != 0:
            for axis in range(RANK - 1):
                store_i64(found, to * RANK + axis, load_i64(lead, axis, 2), 1)
            store_i64(found, to * RANK + RANK - 1, at, 1)
            to = to + 1
"""
_WORDS = ("x", "found", "outer", "length", "sizes", "leads", "starts")


@functools.cache
def _native_loop(rank: int) -> NativeLoop:
    return NativeLoop(f"find_{rank}", _WORDS, _FIND.replace("RANK", str(rank)))


def _job(op: Operation) -> Job | None:
    rank = op.inputs[0].spec.rank
    if not rank or rank > _MOST_AXES or op.inputs[0].dtype.kind == "string":
        return None

    def run(calls: Sequence[Call], threads: int, condition: Any) -> Any:
        if condition.ndim != rank or not condition.size:
            return None
        marks = np.ascontiguousarray(condition if condition.dtype == bool else condition != 0)
        *lead, length = marks.shape
        outer = prod(lead)
        rows = marks.reshape(outer, length)
        count = int(np.count_nonzero(marks))
        team = min(team_for(marks.size // 16 + _EACH * count, threads), outer)
        starts = np.zeros(team, np.int64)
        for part in range(1, team):
            share = rows[(part - 1) * outer // team : part * outer // team]
            starts[part] = starts[part - 1] + np.count_nonzero(share)
        found = np.empty((count, rank), np.int64)
        sizes, leads = np.array([*lead, 0], np.int64), np.empty(rank * team, np.int64)
        calls[0](
            team, address(marks), address(found), outer, length, address(sizes), address(leads),
            address(starts),
        )  # fmt: skip
        return found

    return Job((_native_loop(rank),), run)


JOBS: dict[str, Callable[[Operation], Job | None]] = {"Where": _job}
