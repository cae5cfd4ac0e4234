"""Histograms: how many numbers lie in each of some intervals of one width.

The intervals of some numbers are computed first, in vectors, and then counted: in four rows of
counts in turn, as a count that was just stored is not read again at once.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from headrace import Operation
from headrace_cpu.kernels.numeric import scalar
from headrace_cpu.native.memory import address
from headrace_cpu.sweeps.sweep import Call, Job, Sweep, code_of, set_status, team_for

_CHUNK = 1024
# Rows of counts for each thread.
_ROWS = 4
# More intervals are left to the plain kernel.
_MOST = 1 << 16

_HISTOGRAM = """\
first, last = me * count // team, (me + 1) * count // team
low, step, top = load_f64(limits, 0, 0), load_f64(limits, 1, 0), load_f64(limits, 2, 0)
mine, found = counts + me * ROWS * bins * 4, places + me * CHUNK * 4
wrong = False
for start in range(first, last, CHUNK):
    many = minimum(CHUNK, last - start)
    from_ = values + start * SIZE_T
    for k in range(many):
        value = to_f64(load_T(from_, k, 1))
        wrong = either(wrong, value != value)
        place = floor(divide(maximum(value, low) - low, step))
        store_i32(found, k, to_i32(minimum(maximum(place, to_f64(0)), top)), 2)
    if not wrong:
        for k in range(0, many - ROWS + 1, ROWS):
            for row in range(ROWS):
                at = row * bins + to_i64(load_i32(found, k + row, 2))
                store_i32(mine, at, load_i32(mine, at, 3) + to_i32(1), 3)
        for k in range(many // ROWS * ROWS, many):
            at = to_i64(load_i32(found, k, 2))
            store_i32(mine, at, load_i32(mine, at, 3) + to_i32(1), 3)
if wrong:
    STATUS
"""
_WORDS = ("values", "count", "limits", "bins", "counts", "places")


@functools.cache
def _histogram(code: str) -> Sweep:
    text = _HISTOGRAM.replace("ROWS", str(_ROWS)).replace("CHUNK", str(_CHUNK))
    return Sweep("histogram", _WORDS, text, {"T": code}, {"STATUS": set_status()})


def _histogram_job(op: Operation) -> Job | None:
    code, dtype = code_of(op.inputs[0].dtype.numpy), op.attrs["dtype"].numpy
    if code in (None, "b8"):
        return None
    assert code is not None

    def run(calls: Sequence[Call], threads: int, values: Any, limits: Any, number: Any) -> Any:
        bins = int(scalar(number, "nbins"))
        if not values.size or values.size >= 1 << 31 or not 0 < bins <= _MOST or limits.size != 2:
            return None
        low, high = (float(end) for end in limits.astype(np.float64).tolist())
        if not (np.isfinite([low, high]).all() and low < high):
            return None
        values = np.ascontiguousarray(values)
        team = team_for(values.size, threads)
        numbers = np.array([low, (high - low) / bins, bins - 1])
        counts = np.zeros((team * _ROWS, bins), np.int32)
        places = np.empty(team * _CHUNK, np.int32)
        status = calls[0](
            team, address(values), values.size, address(numbers), bins, address(counts),
            address(places),
        )  # fmt: skip
        return None if status else counts.sum(0).astype(dtype)

    return Job((_histogram(code),), run)


JOBS: dict[str, Callable[[Operation], Job | None]] = {"HistogramFixedWidth": _histogram_job}
