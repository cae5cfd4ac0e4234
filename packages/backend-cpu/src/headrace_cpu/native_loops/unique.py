"""Distinct elements in the order in which they come, in one pass over a hash table.

Whole numbers that lie close together are places in the table; others are found by hashing, in a
table that grows with what it holds.

References:
    D. Knuth, The Art of Computer Programming 3, 2nd ed., 6.4 "Hashing" (multiplicative hashing,
    linear probing), 1998.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from headrace import Operation
from headrace_cpu.kernels.numeric import narrowed, widened
from headrace_cpu.native.memory import address, allocate
from headrace_cpu.native_loops.native_loop import SIZES, Call, Job, NativeLoop, code_of
from headrace_cpu.native_loops.sort_keys import Keys

# Slots of the first table.
_SLOTS = 1 << 11
# So far may numbers lie apart that are places in a table, for each of them.
_SPREAD = 4

# A slot holds the number of an element, counted from 1, and in hash tables its key above that.
_UNIQUE = """\
count = 0
CLOSE
if far:
    slots, mask = FIRST, FIRST - 1
    shift = to_u64(64 - FIRST_BITS)
    for s in range(slots):
        store_P(table, s, to_P(0), 3)
    for i in range(size):
        value = load_T(x, i, 0)
        KEY
        place = to_i64((to_u64(key) * to_u64(MULTIPLIER)) >> shift)
        wanted = to_P(key) << SHIFT
        slot = load_P(table, place, 3)
        while ORDINARY and slot != 0 and (slot >> SHIFT << SHIFT) != wanted:
            place = (place + 1) & mask
            slot = load_P(table, place, 3)
        id = to_i64(slot & to_P(LOW))
        if not ORDINARY or slot == 0:
            store_T(found, count, value, 1)
            if counts != 0:
                store_O(counts, count, to_O(0), 4)
            count = count + 1
            id = count
            if ORDINARY:
                store_P(table, place, wanted | to_P(id), 3)
            if count * 2 > slots:
                slots = slots * 4
                mask, shift = slots - 1, shift - 2
                for s in range(slots):
                    store_P(table, s, to_P(0), 3)
                for n in range(count):
                    value = load_T(found, n, 1)
                    KEY
                    if ORDINARY:
                        place = to_i64((to_u64(key) * to_u64(MULTIPLIER)) >> shift)
                        while load_P(table, place, 3) != 0:
                            place = (place + 1) & mask
                        store_P(table, place, to_P(key) << SHIFT | to_P(n + 1), 3)
        if places != 0:
            store_O(places, i, to_O(id - 1), 2)
        if counts != 0:
            store_O(counts, id - 1, load_O(counts, id - 1, 4) + 1, 4)
store_i64(answer, 0, count, 5)
"""
_CLOSE = """\
least, most = load_T(x, 0, 0), load_T(x, 0, 0)
for i in range(size):
    value = load_T(x, i, 0)
    least, most = minimum(least, value), maximum(most, value)
far = to_u64(most) - to_u64(least) >= to_u64(room)
if not far:
    for s in range(to_i64(to_u64(most) - to_u64(least)) + 1):
        store_i32(table, s, to_i32(0), 3)
    for i in range(size):
        value = load_T(x, i, 0)
        place = to_i64(to_u64(value) - to_u64(least))
        seen = to_i64(load_i32(table, place, 3))
        store_T(found, count, value, 1)
        fresh = seen == 0
        count = count + to_i64(fresh)
        id = chosen(fresh, count, seen)
        store_i32(table, place, to_i32(id), 3)
        if places != 0:
            store_O(places, i, to_O(id - 1), 2)
        if counts != 0:
            before = chosen(fresh, to_O(0), load_O(counts, id - 1, 4))
            store_O(counts, id - 1, before + 1, 4)
"""
_WORDS = ("x", "size", "found", "places", "counts", "table", "room", "answer")


@functools.cache
def unique_native_loop(code: str, out: str) -> NativeLoop:
    """Return the native loop for elements of a dtype, and places of one."""
    keys = Keys(code)
    whole = code[0] != "f"
    text = _UNIQUE.replace("MULTIPLIER", str(0x9E3779B97F4A7C15 - (1 << 64)))
    # NaN equals nothing, and is always new.
    text = text.replace("ORDINARY", "True" if whole else "value == value")
    text = text.replace("FIRST_BITS", str(_SLOTS.bit_length() - 1)).replace("FIRST", str(_SLOTS))
    text = text.replace("SHIFT", str(keys.shift)).replace("LOW", str((1 << 32) - 1))
    parts = {"KEY": keys.text, "CLOSE": _CLOSE if whole else "far = True"}
    return NativeLoop("unique", _WORDS, text, {"T": code, "O": out, "P": keys.pair}, parts)


def table_for(size: int) -> tuple[int, int]:
    """Return how many slots the table has for so many elements, and how far apart those may lie."""
    return max(_SLOTS, 4 << (2 * size).bit_length()), max(_SPREAD * size, 1 << 16)


def _job(op: Operation, wanted: Sequence[bool] = (True, True, True)) -> Job | None:
    dtype, kind = op.inputs[0].dtype, op.attrs["out_idx"].numpy
    half = dtype.kind == "float" and dtype.numpy.itemsize == 2
    if dtype.kind == "string":
        return None
    code = code_of(np.float32 if half else np.uint8 if dtype.kind == "bool" else dtype.numpy)
    out = code_of(kind)
    if code is None or out is None:
        return None
    keys = Keys(code)

    def run(calls: Sequence[Call], threads: int, x: Any) -> Any:
        size = x.size
        if x.ndim != 1 or not size or size >= 1 << 31:
            return None
        wide = np.ascontiguousarray(widened(x))
        slots, room = table_for(size)
        table = allocate(slots * SIZES[keys.pair])
        found = np.empty(size, wide.dtype)
        places = np.empty(size, kind) if wanted[1] else None
        counts = np.empty(size, kind) if wanted[2] else None
        answer = np.empty(1, np.int64)
        calls[0](
            1, address(wide), size, address(found), 0 if places is None else address(places),
            0 if counts is None else address(counts), address(table),
            min(room, table.size // 4), address(answer),
        )  # fmt: skip
        many = answer.item()
        others = None if counts is None else counts[:many].copy()
        return narrowed(found[:many].copy(), x.dtype), places, others

    def only(wanted: Sequence[bool]) -> Job:
        made = _job(op, wanted)
        assert made is not None
        return made

    return Job((unique_native_loop(code, out),), run, only)


JOBS: dict[str, Callable[[Operation], Job | None]] = {"Unique": _job}
