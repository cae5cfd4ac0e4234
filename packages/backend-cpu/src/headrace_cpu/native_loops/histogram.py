"""Histograms: how often each number occurs, and how many lie in each interval of one width.

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
from headrace_cpu.native_loops.native_loop import (
    Call,
    Job,
    NativeLoop,
    code_of,
    set_status,
    team_for,
)

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
def _histogram(code: str) -> NativeLoop:
    text = _HISTOGRAM.replace("ROWS", str(_ROWS)).replace("CHUNK", str(_CHUNK))
    return NativeLoop("histogram", _WORDS, text, {"T": code}, {"STATUS": set_status()})


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


# The least and the largest of some numbers.
_ENDS = """\
first, last = me * count // team, (me + 1) * count // team
low, high = load_T(values, 0, 0), load_T(values, 0, 0)
for k in range(first, last):
    value = load_T(values, k, 0)
    low, high = minimum(low, value), maximum(high, value)
store_i64(ends, me * 8, to_i64(low), 1)
store_i64(ends, me * 8 + 1, to_i64(high), 1)
"""
_ENDS_WORDS = ("values", "count", "ends")
# Each thread has rows of counts of its own, with one place behind them for what is not counted.
_TALLY = """\
first, last = me * count // team, (me + 1) * count // team
low, high = load_T(values, 0, 0), load_T(values, 0, 0)
for k in range(first, last):
    low, high = minimum(low, load_T(values, k, 0)), maximum(high, load_T(values, k, 0))
wrong = either(to_i64(low) < 0, to_i64(high) == limit)
if wrong:
    STATUS
    first = last
mine, most = counts + me * rows * width * 4, to_T(size)
for at in range(rows * width):
    store_i32(mine, at, to_i32(0), 3)
turn = to_i64(rows > 1) * width
for k in range(first, last - ROWS + 1, ROWS):
    for row in range(ROWS):
        at = turn * row + to_i64(minimum(load_T(values, k + row, 0), most))
        store_i32(mine, at, load_i32(mine, at, 3) + to_i32(1), 3)
for k in range(first + (last - first) // ROWS * ROWS, last):
    at = to_i64(minimum(load_T(values, k, 0), most))
    store_i32(mine, at, load_i32(mine, at, 3) + to_i32(1), 3)
if team > 1:
    wait(barrier)
for at in range(me * size // team, (me + 1) * size // team):
    total = to_i32(0)
    for row in range(team * rows):
        total = total + load_i32(counts, row * width + at, 3)
    store_O(out, at, to_O(total), 4)
"""
_TALLY_WORDS = ("values", "count", "limit", "size", "width", "rows", "counts", "out")
# More numbers are counted in one row, by one thread: rows would leave the caches.
_MOST_ROWS = 1 << 14
_MOST_NUMBERS = 1 << 24


@functools.cache
def _ends(code: str) -> NativeLoop:
    return NativeLoop("ends", _ENDS_WORDS, _ENDS, {"T": code})


@functools.cache
def _tally(code: str, counted: str) -> NativeLoop:
    text = _TALLY.replace("ROWS", str(_ROWS))
    types, parts = {"T": code, "O": counted}, {"STATUS": set_status()}
    return NativeLoop("tally", _TALLY_WORDS, text, types, parts)


def _found_ends(call: Call, threads: int, numbers: Any) -> tuple[int, int]:
    """Return the least and the largest of some numbers, contiguous ones."""
    team = team_for(numbers.size // 8, threads)
    ends = np.empty((team, 8), np.int64)
    call(team, address(numbers), numbers.size, address(ends))
    if team == 1:
        return ends.item(0), ends.item(1)
    return int(ends[:, 0].min()), int(ends[:, 1].max())


def _size_job(op: Operation) -> Job | None:
    code = code_of(op.inputs[0].dtype.numpy)
    assert code is not None
    limit = int(op.inputs[0].dtype.max)

    def run(calls: Sequence[Call], threads: int, numbers: Any) -> Any:
        if not numbers.size:
            return None
        low, high = _found_ends(calls[0], threads, np.ascontiguousarray(numbers))
        if low < 0 or high == limit:
            return None
        return np.array(high + 1, numbers.dtype)

    return Job((_ends(code),), run)


def _bincount_job(op: Operation) -> Job | None:
    code, dtype = code_of(op.inputs[0].dtype.numpy), op.attrs["dtype"].numpy
    counted = code_of(dtype)
    assert code is not None
    assert counted is not None
    limit = int(op.inputs[0].dtype.max)

    def run(calls: Sequence[Call], threads: int, numbers: Any, least: Any, most: Any) -> Any:
        count = numbers.size
        if not 0 < count < 1 << 31 or least.ndim or most.ndim:
            return None
        numbers = np.ascontiguousarray(numbers)
        size, lowest = most.item(), least.item()
        if lowest < size:
            high = _found_ends(calls[0], threads, numbers)[1]
            size = min(max(high + 1, lowest), size)
        if not 0 < size <= _MOST_NUMBERS:
            return None
        rows, team = 1, 1
        if size <= _MOST_ROWS and size * _ROWS <= count:
            rows, team = _ROWS, team_for(count // 2, threads)
        # Rows do not begin at one place of the cache.
        width = size + 17
        counts, out = np.empty(team * rows * width, np.int32), np.empty(size, dtype)
        wrong = calls[1](
            team, address(numbers), count, limit, size, width, rows, address(counts), address(out)
        )
        return None if wrong else out

    return Job((_ends(code), _tally(code, counted)), run)


# Whether numbers ascend from 0 on.
_ASCENDING = """\
wrong = load_T(ids, 0, 0) < to_T(0)
for k in range(maximum(me * count // team, 1), (me + 1) * count // team):
    wrong = either(wrong, load_T(ids, k, 0) < load_T(ids, k - 1, 0))
if wrong:
    STATUS
"""


@functools.cache
def _ascending(code: str) -> NativeLoop:
    return NativeLoop(
        "ascending", ("ids", "count"), _ASCENDING, {"T": code}, {"STATUS": set_status()}
    )


def _segments_job(op: Operation) -> Job | None:
    code, limit = code_of(op.inputs[0].dtype.numpy), int(op.inputs[0].dtype.max)
    assert code is not None

    def run(calls: Sequence[Call], threads: int, ids: Any, number: Any = None) -> Any:
        if ids.ndim != 1 or not ids.size:
            return None
        ids = np.ascontiguousarray(ids)
        if calls[0](team_for(ids.size // 8, threads), address(ids), ids.size):
            return None
        last = ids.item(-1)
        count = last + 1 if number is None else int(scalar(number, "num_segments"))
        return np.array(count, ids.dtype) if last < count <= limit else None

    return Job((_ascending(code),), run)


# Cells of a matrix, counted row by row.
_CELLS = """\
wrong = False
for k in range(me * count // team, (me + 1) * count // team):
    row, column = to_i64(load_R(labels, k, 0)), to_i64(load_C(predictions, k, 1))
    wrong = either(wrong, to_u64(row) >= to_u64(size))
    wrong = either(wrong, to_u64(column) >= to_u64(size))
    store_i64(cells, k, row * size + column, 2)
if wrong:
    STATUS
"""
_CELLS_WORDS = ("labels", "predictions", "count", "size", "cells")


@functools.cache
def _cells(rows: str, columns: str) -> NativeLoop:
    parts = {"STATUS": set_status()}
    return NativeLoop("cells", _CELLS_WORDS, _CELLS, {"R": rows, "C": columns}, parts)


def _cells_job(op: Operation) -> Job | None:
    rows, columns = (code_of(each.dtype.numpy) for each in op.inputs[:2])
    assert rows is not None
    assert columns is not None

    def run(calls: Sequence[Call], threads: int, labels: Any, found: Any, number: Any) -> Any:
        count, size = labels.size, int(scalar(number, "num_classes"))
        if labels.ndim != 1 or found.shape != labels.shape or not 0 <= size < 1 << 31:
            return None
        labels, found = np.ascontiguousarray(labels), np.ascontiguousarray(found)
        cells, team = np.empty(count, np.int64), team_for(count, threads)
        wrong = calls[0](team, address(labels), address(found), count, size, address(cells))
        return None if wrong else cells

    return Job((_cells(rows, columns),), run)


JOBS: dict[str, Callable[[Operation], Job | None]] = {
    "HistogramFixedWidth": _histogram_job,
    "BincountSize": _size_job,
    "Bincount": _bincount_job,
    "ConfusionCells": _cells_job,
    "SegmentCount": _segments_job,
}
