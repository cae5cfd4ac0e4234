"""A hash index: many keys of a table are looked up at once, with open addressing.

References:
    D. Knuth, The Art of Computer Programming 3, 2nd ed., 6.4 "Hashing" (linear probing), 1998.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from math import prod
from typing import Any

import numpy as np

from headrace import Operation
from headrace_cpu.native.memory import address
from headrace_cpu.native_loops.native_loop import Call, Job, NativeLoop, set_status, team_for
from headrace_cpu.native_loops.string_hash import READ, hash_text, readable, with_places
from headrace_cpu.tables import Index, LookupTable

_BITS = {1: "u8", 2: "u16", 4: "u32", 8: "u64"}

# What is told of a key: the word by which it is kept, and its hash ``h``.
_STRING = """\
word_ = load_i64(FROM, i, 0)
object = word_
if load_i64(object + TYPE, 0, 1) == kind:
    READ
    HASH
else:
    STATUS
    size, at = 0, object
    h = to_u64(0)
"""
_WHOLE = """\
word_ = load_I(FROM, i, 0)
h = to_u64(to_i64(word_)) * 14029467366897019727
h = h ^ h >> 32
"""
# Whether the key in row ``row - 1`` is the same.
_SAME_STRING = """\
other = load_i64(keys, row - 1, 2)
same = other == word_
if not same:
    same = load_i64(other + SIZE, 0, 1) == size
    theirs, done = other + BYTES, 0
    while same and done + 8 <= size:
        same = fetch_u64(at, done, 1) == fetch_u64(theirs, done, 1)
        done = done + 8
    while same and done < size:
        same = load_u8(at, done, 1) == load_u8(theirs, done, 1)
        done = done + 1
"""
_SAME_WHOLE = "same = load_I(keys, row - 1, 2) == word_\n"

_INDEX = """\
if me == 0:
    for i in range(count):
        KEY
        slot = to_i64(h) & mask
        while load_i32(slots, slot, 3) != 0:
            slot = (slot + 1) & mask
        store_i32(slots, slot, to_i32(i + 1), 3)
"""
_INDEX_WORDS = ("keys", "count", "kind", "slots", "mask")

_FIND = """\
for i in range(me * count // team, (me + 1) * count // team):
    KEY
    slot = to_i64(h) & mask
    row = to_i64(load_i32(slots, slot, 3))
    going = row != 0
    while going:
        SAME
        going = False
        if not same:
            slot = (slot + 1) & mask
            row = to_i64(load_i32(slots, slot, 3))
            going = row != 0
    take = default
    if row != 0:
        take = values + (row - 1) * width * SIZE_T
    for c in range(width):
        store_T(out, i * width + c, load_T(take, c, 4), 5)
"""
_FIND_WORDS = (
    "asked", "count", "kind", "keys", "slots", "mask", "values", "default", "width", "out",
)  # fmt: skip


def _native_loop(
    name: str, words: tuple[str, ...], text: str, source: str, types: Any
) -> NativeLoop:
    strings = "I" not in types
    parts = {
        "KEY": (_STRING if strings else _WHOLE).replace("FROM", source),
        "SAME": _SAME_STRING if strings else _SAME_WHOLE,
        "READ": READ,
        "STATUS": set_status(),
        **hash_text("farm"),
    }
    parts = {word: with_places(part) for word, part in parts.items()}
    return NativeLoop(f"{name}_{'strings' if strings else 'whole'}", words, text, types, parts)


@functools.cache
def _index(types: tuple[tuple[str, str], ...]) -> NativeLoop:
    return _native_loop("index", _INDEX_WORDS, _INDEX, "keys", dict(types))


@functools.cache
def _find(types: tuple[tuple[str, str], ...]) -> NativeLoop:
    return _native_loop("find", _FIND_WORDS, _FIND, "asked", dict(types))


def _find_job(op: Operation) -> Job | None:
    keys, default = op.inputs[1].dtype, op.inputs[2].dtype
    if keys.kind == "string":
        types: tuple[tuple[str, str], ...] = ()
    elif keys.name in ("int32", "int64"):
        types = (("I", f"i{8 * keys.numpy.itemsize}"),)
    else:
        return None
    if default.kind in ("string", "resource", "list") or not readable():
        return None
    size = default.numpy.itemsize
    if size not in _BITS:
        return None

    def run(
        calls: Sequence[Call], threads: int, table: LookupTable, asked: Any, default: Any
    ) -> Any:
        if not isinstance(asked, np.ndarray) or not asked.size:
            return None
        asked, default = np.asarray(asked, order="C"), np.asarray(default, order="C")
        fits = asked.dtype == table.key_dtype.numpy and default.dtype == table.value_dtype.numpy
        if not fits or default.shape != table.value_shape:
            return None
        index = table.index(asked.size)
        if index is None:
            return None
        if index.slots is None:
            slots = _slots(calls[1], index)
            if slots is None:
                return None
            index.slots = slots
        found = np.empty((*asked.shape, *table.value_shape), default.dtype)
        width = prod(table.value_shape)
        status = calls[0](
            team_for(16 * asked.size, threads), address(asked), asked.size, id(bytes),
            address(index.keys), address(index.slots), index.slots.size - 1,
            address(index.values), address(default), width, address(found),
        )  # fmt: skip
        return None if status else found

    return Job((_find((("T", _BITS[size]), *types)), _index(types)), run)


def _slots(call: Call, index: Index) -> Any:
    """Return the slots of an index: the number of a row, from 1 on, where a key is looked for."""
    count = index.keys.size
    slots = np.zeros(1 << (2 * count).bit_length(), np.int32)
    status = call(1, address(index.keys), count, id(bytes), address(slots), slots.size - 1)
    return None if status else slots


JOBS: dict[str, Callable[[Operation], Job | None]] = {"LookupTableFind": _find_job}
