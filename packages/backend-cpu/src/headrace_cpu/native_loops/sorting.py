"""Sorting by the digits of keys (radix sort), and the largest of rows (top k).

Rows are sorted as pairs of key and place, digit by digit from the lowest, by counting: a few
nanoseconds an element, whatever the numbers are, and stable. Short rows are sorted by counting how
many come before each. Where there are fewer rows than threads, all threads sort one row together.

References:
    D. Knuth, The Art of Computer Programming 3, 2nd ed., 5.2 "Internal sorting" (comparison
    counting, distribution counting), 1998.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from math import prod
from typing import Any

import numpy as np

from headrace import Operation
from headrace_cpu.kernels.numeric import narrowed, scalar, widened
from headrace_cpu.native.memory import address, allocate
from headrace_cpu.native_loops.native_loop import SIZES, Call, Job, NativeLoop, code_of, team_for
from headrace_cpu.native_loops.sort_keys import Keys

# Rows up to here are sorted by comparing all with all.
_SHORT = 64
# Digits of rows shorter than this have 8 bits, of others 11: three of them are a float32.
_LONG = 1024

_SORT = """\
alone = 1
if outer < team and length > SHORT:
    alone = 0
first, last = me * outer // team, (me + 1) * outer // team
low, high = 0, length
a = pairs + me * 2 * length * SIZE_P
if alone == 0:
    first, last = 0, outer
    low, high = me * length // team, (me + 1) * length // team
    a = pairs
b = a + length * SIZE_P
digits = 1 << bits
own = counts + me * 2 * digits * 8
offsets = own + digits * 8
for row in range(first, last):
    source = x + row * length * SIZE_T
    put_values = values + row * length * SIZE_T
    put_places = places + row * length * 4
    if length <= SHORT:
        for i in range(length):
            value = load_T(source, i, 0)
            KEY
            if descending != 0:
                key = key ^ to_K(-1)
            store_K(a, i, key, 2)
        for i in range(length):
            mine = load_K(a, i, 2)
            rank = to_i32(0)
            for j in range(length):
                other = load_K(a, j, 2)
                before = either(other < mine, both(other == mine, to_i32(j) < to_i32(i)))
                rank = rank + to_i32(before)
            to = to_i64(rank)
            if places != 0:
                store_i32(put_places, to, to_i32(i), 1)
            if values != 0:
                store_T(put_values, to, load_T(source, i, 0), 3)
        continue
    for i in range(low, high):
        value = load_T(source, i, 0)
        KEY
        if descending != 0:
            key = key ^ to_K(-1)
        store_P(a, i, (to_P(key) << SHIFT) | to_P(i), 2)
    here, there = a, b
    for turn in range((BITS + bits - 1) // bits):
        shift = to_P(SHIFT + turn * bits)
        mask = digits - 1
        for d in range(digits):
            store_i64(own, d, 0, 4)
        for i in range(low, high):
            d = to_i64(load_P(here, i, 2) >> shift) & mask
            store_i64(own, d, load_i64(own, d, 4) + 1, 4)
        if alone == 0:
            wait(barrier)
        zeroth = to_i64(load_P(here, 0, 2) >> shift) & mask
        same, total = 0, 0
        if alone != 0:
            same = load_i64(own, zeroth, 4)
            for d in range(digits):
                store_i64(offsets, d, total, 4)
                total = total + load_i64(own, d, 4)
        else:
            for t in range(team):
                same = same + load_i64(counts + t * 2 * digits * 8, zeroth, 4)
            for d in range(digits):
                for t in range(team):
                    if t == me:
                        store_i64(offsets, d, total, 4)
                    total = total + load_i64(counts + t * 2 * digits * 8, d, 4)
        if same != length:
            for i in range(low, high):
                pair = load_P(here, i, 2)
                d = to_i64(pair >> shift) & mask
                to = load_i64(offsets, d, 4)
                store_i64(offsets, d, to + 1, 4)
                store_P(there, to, pair, 2)
            here, there = there, here
        if alone == 0:
            wait(barrier)
    for i in range(low, high):
        at = to_i64(load_P(here, i, 2)) & 4294967295
        if places != 0:
            store_i32(put_places, i, to_i32(at), 1)
        if values != 0:
            store_T(put_values, i, load_T(source, at, 0), 3)
    if alone == 0:
        wait(barrier)
"""
_SORT_WORDS = (
    "x", "outer", "length", "values", "places", "descending", "bits", "pairs", "counts",
)  # fmt: skip


@functools.cache
def _sort(code: str) -> NativeLoop:
    keys = Keys(code)
    text = _numbers(_SORT, keys)
    types = {"T": code, "K": keys.key, "P": keys.pair}
    return NativeLoop("sort", _SORT_WORDS, text, types, {"KEY": keys.text})


def _numbers(text: str, keys: Keys) -> str:
    for name, number in (("SHORT", _SHORT), ("SHIFT", keys.shift), ("BITS", keys.bits)):
        text = text.replace(name, str(number))
    return text


def _wide_code(op: Operation) -> str | None:
    """Return the code of the dtype in which an operation's first input is ordered."""
    dtype = op.inputs[0].dtype
    half = dtype.kind == "float" and dtype.numpy.itemsize == 2
    return code_of(np.float32 if half else dtype.numpy)


def _sort_job(op: Operation) -> Job | None:
    code = _wide_code(op)
    if code is None:
        return None
    keys, descending = Keys(code), int(op.attrs["descending"])

    def run(calls: Sequence[Call], threads: int, values: Any, *, wanted: Any = (True, True)) -> Any:
        if not values.ndim or not values.size or values.shape[-1] >= 1 << 31:
            return None
        wide = np.ascontiguousarray(widened(values))
        length = wide.shape[-1]
        outer = wide.size // length
        team = team_for(8 * wide.size, threads)
        bits = 8 if length < _LONG or keys.bits < 32 else 11
        pairs = allocate(2 * length * SIZES[keys.pair] * team)
        counts = np.empty(2 * team << bits, np.int64)
        ordered = np.empty(wide.shape, wide.dtype) if wanted[0] else None
        places = np.empty(wide.shape, np.int32) if wanted[1] else None
        calls[0](
            team, address(wide), outer, length,
            0 if ordered is None else address(ordered), 0 if places is None else address(places),
            descending, bits, address(pairs), address(counts),
        )  # fmt: skip
        return None if ordered is None else narrowed(ordered, values.dtype), places

    def only(wanted: Sequence[bool]) -> Job:
        if wanted[1]:
            return Job((_sort(code),), functools.partial(run, wanted=wanted))
        return Job((), functools.partial(_sorted_values, descending=bool(descending)))

    return Job((_sort(code),), run, only)


def _sorted_values(calls: Sequence[Call], threads: int, values: Any, *, descending: bool) -> Any:
    """Return sorted values alone, by NumPy, whose vectors are quicker than counting."""
    if not values.ndim:
        return None
    wide = widened(values)
    ordered = np.sort(wide, -1, kind="stable" if wide.dtype.itemsize < 4 else None)
    if descending:
        ordered = np.ascontiguousarray(ordered[..., ::-1])
    return narrowed(ordered, values.dtype), None


# So few are kept in order as they come; of more, twice as many are collected and half is dropped.
_FEW = 24

# ``some`` holds the largest so far, or what may be among them; ``least`` is the last of them, and
# what is not larger than its element, ``edge``, is passed over, 64 elements at a time.
_TOP = """\
alone = 1
if outer < team:
    alone = 0
first, last = me * outer // team, (me + 1) * outer // team
low, high = 0, length
if alone == 0:
    first, last = 0, outer
    low, high = me * length // team, (me + 1) * length // team
tally = counts + team * 8 + me * 256 * 8
size = room * 2 + 1
some = pairs + (me * size + 1) * SIZE_P
rest = some + room * SIZE_P
for row in range(first, last):
    source = x + row * length * SIZE_T
    count, full = 0, False
    least, edge = to_P(0), load_T(source, 0, 0)
    at = low
    while at < high:
        marks = to_u64(-1)
        if at + 64 > high:
            marks = (to_u64(1) << to_u64(high - at)) - 1
        elif full:
            marks = above_T(source, at, edge, 0)
        if marks != 0:
            while marks != 0:
                i = at + to_i64(trailing(marks))
                marks = marks & (marks - 1)
                value = load_T(source, i, 0)
                KEY
                pair = (to_P(key) << SHIFT) | to_P(OTHERS - i)
                if wanted <= FEW:
                    if pair > least:
                        to = minimum(count, wanted - 1)
                        while to > 0 and load_P(some, to - 1, 2) < pair:
                            store_P(some, to, load_P(some, to - 1, 2), 2)
                            to = to - 1
                        store_P(some, to, pair, 2)
                        count = minimum(count + 1, wanted)
                        if count == wanted:
                            least = load_P(some, wanted - 1, 2)
                            full = True
                else:
                    store_P(some, count, pair, 2)
                    count = count + to_i64(pair > least)
            if wanted > FEW and count + 64 > room:
                SELECT
                least = load_P(some, 0, 2)
                for i in range(1, wanted):
                    least = minimum(least, load_P(some, i, 2))
                full = True
            if full:
                edge = load_T(source, OTHERS - to_i64(least & to_P(OTHERS)), 0)
        at = at + 64
    if alone == 0:
        if count > wanted:
            SELECT
        store_i64(counts, me, count, 3)
        wait(barrier)
        if me == 0:
            for t in range(1, team):
                more = load_i64(counts, t, 3)
                others = pairs + (t * size + 1) * SIZE_P
                for i in range(more):
                    store_P(some, count + i, load_P(others, i, 2), 2)
                count = count + more
    if alone != 0 or me == 0:
        if count > wanted:
            SELECT
        ARRANGE
        for i in range(wanted):
            at = OTHERS - to_i64(load_P(some, i, 2) & to_P(OTHERS))
            store_i32(places + row * wanted * 4, i, to_i32(at), 1)
            store_T(values + row * wanted * SIZE_T, i, load_T(source, at, 0), 4)
    if alone == 0:
        wait(barrier)
"""
# Brings the largest pairs to the front, in some order: those with larger digits than the one at
# the border are among them, and those with that digit are told apart by further digits.
_SELECT = """\
done, here, left = 0, some, count
while done < wanted:
    one, differs = load_P(here, 0, 2), to_P(0)
    for i in range(left):
        differs = differs | (load_P(here, i, 2) ^ one)
    if left == wanted - done:
        differs = to_P(0)
    below = maximum(8 * SIZE_P - to_i64(leading(differs)) - 8, 0)
    shift = to_P(below)
    for d in range(256):
        store_i64(tally, d, 0, 3)
    for i in range(left):
        d = to_i64((load_P(here, i, 2) >> shift) & to_P(255))
        store_i64(tally, d, load_i64(tally, d, 3) + 1, 3)
    border, more = 255, load_i64(tally, 255, 3)
    while done + more < wanted:
        border = border - 1
        more = more + load_i64(tally, border, 3)
    if differs == 0:
        border = -1
    taken, kept = done, 0
    for i in range(left):
        pair = load_P(here, i, 2)
        d = to_i64((pair >> shift) & to_P(255))
        store_P(some, taken, pair, 2)
        taken = taken + to_i64(d > border)
        store_P(rest, kept, pair, 2)
        kept = kept + to_i64(d == border)
    done, here, left = taken, rest, kept
count = wanted
"""
# Sorts pairs, the largest first: a few by counting how many come before, others by digits.
_ARRANGE = """\
free = rest
if wanted <= SHORT:
    for i in range(wanted):
        pair = load_P(some, i, 2)
        rank = 0
        for j in range(wanted):
            rank = rank + to_i64(load_P(some, j, 2) > pair)
        store_P(free, rank, pair, 2)
    for i in range(wanted):
        store_P(some, i, load_P(free, i, 2), 2)
else:
    here = some
    for turn in range(SIZE_P):
        shift = to_P(8 * turn)
        for d in range(256):
            store_i64(tally, d, 0, 3)
        for i in range(wanted):
            d = 255 - to_i64((load_P(here, i, 2) >> shift) & to_P(255))
            store_i64(tally, d, load_i64(tally, d, 3) + 1, 3)
        d = 255 - to_i64((load_P(here, 0, 2) >> shift) & to_P(255))
        if load_i64(tally, d, 3) != wanted:
            total = 0
            for d in range(256):
                number = load_i64(tally, d, 3)
                store_i64(tally, d, total, 3)
                total = total + number
            for i in range(wanted):
                pair = load_P(here, i, 2)
                d = 255 - to_i64((pair >> shift) & to_P(255))
                to = load_i64(tally, d, 3)
                store_i64(tally, d, to + 1, 3)
                store_P(free, to, pair, 2)
            here, free = free, here
    if here != some:
        for i in range(wanted):
            store_P(some, i, load_P(here, i, 2), 2)
"""
_TOP_WORDS = (
    "x", "outer", "length", "wanted", "values", "places", "room", "pairs", "counts",
)  # fmt: skip


@functools.cache
def _top(code: str) -> NativeLoop:
    keys = Keys(code)
    text = _numbers(_TOP, keys).replace("FEW", str(_FEW))
    text = text.replace("OTHERS", str((1 << 32) - 1))
    parts = {"KEY": keys.text, "SELECT": _SELECT, "ARRANGE": _numbers(_ARRANGE, keys)}
    return NativeLoop("top", _TOP_WORDS, text, {"T": code, "P": keys.pair}, parts)


def _top_job(op: Operation) -> Job | None:
    code = _wide_code(op)
    if code is None or code == "b8":
        return None
    keys = Keys(code)

    def run(calls: Sequence[Call], threads: int, x: Any, k: Any) -> Any:
        wanted = int(scalar(k, "k"))
        if not x.ndim or not x.size or not 1 < wanted <= x.shape[-1] < 1 << 31:
            return None
        wide = np.ascontiguousarray(widened(x))
        length = wide.shape[-1]
        outer = wide.size // length
        team = team_for(wide.size, threads)
        # Three times as many as are wanted, so that each choice among them drops most; of a row
        # that is divided, the first thread takes those of all others in the end.
        room = max(2, team) * wanted + wanted + 128
        pairs = allocate((2 * room + 1) * SIZES[keys.pair] * team)
        counts = np.empty(team * 257, np.int64)
        shape = (*wide.shape[:-1], wanted)
        values, places = np.empty(shape, wide.dtype), np.empty(shape, np.int32)
        calls[0](
            team, address(wide), outer, length, wanted, address(values), address(places), room,
            address(pairs), address(counts),
        )  # fmt: skip
        return narrowed(values, x.dtype), places

    return Job((_top(code),), run)


# So many searches go side by side, so that their loads do not wait for one another.
_SEARCHES = 32

_SEARCH = """\
steps, rest = 0, length
while rest > 0:
    steps, rest = steps + 1, rest >> 1
lows = scratch + me * 2 * SEARCHES * 4
highs = lows + SEARCHES * 4
blocks = (columns + SEARCHES - 1) // SEARCHES
for unit in range(me * rows * blocks // team, (me + 1) * rows * blocks // team):
    row = unit // blocks
    column = (unit - row * blocks) * SEARCHES
    width = minimum(SEARCHES, columns - column)
    base = sequence + row * length * SIZE_T
    at = row * columns + column
    for i in range(width):
        store_i32(lows, i, to_i32(0), 3)
        store_i32(highs, i, to_i32(length), 4)
    for step in range(steps):
        for i in range(width):
            value = load_T(values, at + i, 0)
            low, high = load_i32(lows, i, 3), load_i32(highs, i, 4)
            middle = (low + high) >> 1
            found = load_T(base, to_i64(minimum(middle, to_i32(length - 1))), 1)
            behind = both(BEHIND, middle < high)
            store_i32(lows, i, where(behind, middle + 1, low), 3)
            store_i32(highs, i, where(behind, high, middle), 4)
    for i in range(width):
        store_O(places, at + i, to_O(load_i32(lows, i, 3)), 2)
"""
_SEARCH_WORDS = ("sequence", "values", "rows", "columns", "length", "places", "scratch")
_BEHIND = {"left": "found < value", "right": "not value < found"}


@functools.cache
def _search(code: str, out: str, side: str) -> NativeLoop:
    text = _SEARCH.replace("BEHIND", _BEHIND[side]).replace("SEARCHES", str(_SEARCHES))
    return NativeLoop(f"search_{side}", _SEARCH_WORDS, text, {"T": code, "O": out})


def _search_job(op: Operation) -> Job | None:
    code, out = code_of(op.inputs[0].dtype.numpy), op.attrs["out_type"].numpy
    if code is None or code == "b8":
        return None

    def run(calls: Sequence[Call], threads: int, sequence: Any, values: Any) -> Any:
        lead = sequence.shape[:-1]
        length = sequence.shape[-1] if sequence.ndim else 0
        if not 0 < length < 1 << 31 or not values.size or values.shape[:-1] != lead:
            return None
        sequence, values = np.ascontiguousarray(sequence), np.ascontiguousarray(values)
        places = np.empty(values.shape, out)
        columns = values.shape[-1]
        team = team_for(values.size * length.bit_length(), threads)
        scratch = np.empty(2 * _SEARCHES * team, np.int32)
        calls[0](
            team, address(sequence), address(values), prod(lead), columns, length, address(places),
            address(scratch),
        )  # fmt: skip
        return places

    return Job((_search(code, code_of(out) or "", op.attrs["side"]),), run)


_IN_TOP = """\
for row in range(me * rows // team, (me + 1) * rows // team):
    source = predictions + row * classes * SIZE_T
    target = to_i64(load_I(targets, row, 1))
    known = target >= 0 and target < classes
    edge = load_T(source, where(known, target, 0), 0)
    larger, odd = to_i32(0), to_i32(0)
    for c in range(classes):
        value = load_T(source, c, 0)
        larger = larger + to_i32(value > edge)
        odd = odd + to_i32(value - value != to_T(0.0))
    found = known and odd == 0 and to_i64(larger) < wanted
    store_b8(result, row, found, 2)
"""
_IN_TOP_WORDS = ("predictions", "targets", "rows", "classes", "wanted", "result")


@functools.cache
def _in_top(code: str, index: str) -> NativeLoop:
    return NativeLoop("in_top", _IN_TOP_WORDS, _IN_TOP, {"T": code, "I": index})


def _in_top_job(op: Operation) -> Job | None:
    code, index = _wide_code(op), code_of(op.inputs[1].dtype.numpy)
    if code is None or index is None:
        return None

    def run(calls: Sequence[Call], threads: int, predictions: Any, targets: Any, k: Any) -> Any:
        wanted = int(scalar(k, "k"))
        if predictions.ndim != 2 or not predictions.size or targets.shape != predictions.shape[:1]:
            return None
        wide, targets = np.ascontiguousarray(widened(predictions)), np.ascontiguousarray(targets)
        rows, classes = wide.shape
        result = np.empty(rows, bool)
        team = team_for(wide.size, threads)
        calls[0](team, address(wide), address(targets), rows, classes, wanted, address(result))
        return result

    return Job((_in_top(code, index),), run)


JOBS: dict[str, Callable[[Operation], Job | None]] = {
    "Sort": _sort_job,
    "TopK": _top_job,
    "SearchSorted": _search_job,
    "InTopK": _in_top_job,
}
