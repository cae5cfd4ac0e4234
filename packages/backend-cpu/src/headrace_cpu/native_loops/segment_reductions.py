"""Segment reductions: sums, products, largest and smallest of rows by ids; sparse products.

A row of the result is the fold of all rows that have its id, in their order, whatever the number
of threads: a row belongs to one thread. Sorted ids are divided where the id changes; of others,
each thread picks those that are its own. The rows may be picked from a table, and may be
multiplied by a number each, on the way.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Sequence
from math import prod
from textwrap import indent
from typing import Any

import numpy as np

from headrace import Operation, as_dtype
from headrace.extend.records import dataclass
from headrace_cpu.kernels.numeric import narrowed, scalar, widened
from headrace_cpu.native.memory import address
from headrace_cpu.native_loops.native_loop import (
    SIZES,
    Call,
    Job,
    NativeLoop,
    code_of,
    set_status,
    team_for,
)
from headrace_cpu.native_loops.short_rows import EACH_RUN, OTHERWISE, PAIR, SLIM

# As many elements as the plain kernel allows.
_MOST_ELEMENTS = 1 << 29
# Ids that a thread looks at before it works on those that are its own.
_CHUNK = 1024
# Rows narrower than this cost less than finding out whose they are.
_NARROW = 4
# So many rows ahead are asked for.
_AHEAD = 8
# So many rows of one id are folded at once: what is asked for ahead stays in the first cache.
_RUN = 32
# Vectors of a row of the result that are held in registers meanwhile.
_HELD = 4

_FOLD = """\
first, last = me * count // team, (me + 1) * count // team
low, high, mixed, least, most = 0, -1, False, 0, -1
if first < last:
    id = to_i64(load_I(ids, first * STEP, 1))
    low, high = minimum(low, id), maximum(high, id)
for i in range(maximum(first, 1), last):
    id, before = load_I(ids, i * STEP, 1), load_I(ids, i * STEP - STEP, 1)
    low, high = minimum(low, to_i64(id)), maximum(high, to_i64(id))
    mixed = either(mixed, before > id)
if through != 0:
    for i in range(first, last):
        id = to_i64(load_J(through, i * STEP, 2))
        least, most = minimum(least, id), maximum(most, id)
if team > 1:
    store_i64(facts, me * 8, low, 6)
    store_i64(facts, me * 8 + 1, high, 6)
    store_i64(facts, me * 8 + 2, to_i64(mixed), 6)
    store_i64(facts, me * 8 + 3, least, 6)
    store_i64(facts, me * 8 + 4, most, 6)
    wait(barrier)
    for t in range(team):
        low = minimum(low, load_i64(facts, t * 8, 6))
        high = maximum(high, load_i64(facts, t * 8 + 1, 6))
        mixed = either(mixed, load_i64(facts, t * 8 + 2, 6) != 0)
        least = minimum(least, load_i64(facts, t * 8 + 3, 6))
        most = maximum(most, load_i64(facts, t * 8 + 4, 6))
if high >= rows or least < 0 or most >= height or (low < 0 and drops == 0):
    STATUS
else:
    if fresh != 0:
        for at in range(me * rows * width // team, (me + 1) * rows * width // team):
            store_T(out, at, to_T(START), 3)
        if seen != 0:
            for row in range(me * rows // team, (me + 1) * rows // team):
                store_u8(seen, row, to_u8(0), 7)
        if team > 1:
            wait(barrier)
    wide = width // LANES * LANES
    if team > 1 and mixed and width < NARROW:
        last = count
        if me == 0:
            first = 0
        else:
            first = count
        mixed = False
    elif team > 1 and not mixed:
        SHIFTED
    if width == 1:
        SINGLE
    OTHERWISE
    elif mixed or wide == 0 or not HAS_RUNS:
        MIXED
    else:
        RUNS
    if seen != 0:
        if team > 1:
            wait(barrier)
        for row in range(me * rows // team, (me + 1) * rows // team):
            if load_u8(seen, row, 7) == 0:
                for c in range(width):
                    store_T(out, row * width + c, load_T(none, 0, 9), 3)
"""
# Thread borders go to where the id changes.
_SHIFTED = """\
moving = first > 0
while moving:
    moving = False
    if first < count:
        moving = load_I(ids, first * STEP, 1) == load_I(ids, first * STEP - STEP, 1)
        first = first + to_i64(moving)
moving = True
while moving:
    moving = False
    if last < count:
        moving = load_I(ids, last * STEP, 1) == load_I(ids, last * STEP - STEP, 1)
        last = last + to_i64(moving)
"""
# Rows of one element: a run of one id is folded in a register.
_SINGLE = """\
before, total = -1, to_T(START)
for i in range(first, last):
    id = to_i64(load_I(ids, i * STEP, 1))
    if id != before:
        if before >= 0:
            store_T(out, before, total, 3)
        if id >= 0:
            total = load_T(out, id, 3)
            SEE
        before = id
    from_row = i
    if through != 0:
        from_row = to_i64(load_J(through, i * STEP, 2))
    value = load_T(data, from_row, 4)
    WEIGH
    total = ALONE
if before >= 0:
    store_T(out, before, total, 3)
"""
# One row after the other, into rows of the result that lie anywhere.
_MIXED = """\
listed = both(mixed, team > 1)
mine = lists + me * CHUNK * 4
if listed:
    first, last = 0, count
for start in range(first, last, CHUNK):
    stop = minimum(start + CHUNK, last)
    many = stop - start
    if listed:
        many = 0
        for i in range(start, stop):
            id = to_i64(load_I(ids, i * STEP, 1))
            turn = to_i64(((to_u32(id >> line) * 40503) >> 8) & 65535) * team >> 16
            store_i32(mine, many, to_i32(i), 8)
            many = many + to_i64(both(turn == me, id >= 0))
    for k in range(many):
        i, ahead = start + k, minimum(k + AHEAD, many - 1)
        soon = start + ahead
        if listed:
            i, soon = to_i64(load_i32(mine, k, 8)), to_i64(load_i32(mine, ahead, 8))
        id, later = to_i64(load_I(ids, i * STEP, 1)), to_i64(load_I(ids, soon * STEP, 1))
        from_later = soon
        if through != 0:
            from_later = to_i64(load_J(through, soon * STEP, 2))
        for c in range(0, width * SIZE_T, 64):
            prefetch(out + later * width * SIZE_T + c)
            prefetch(data + from_later * width * SIZE_T + c)
        if id >= 0:
            SEE
            PICK
            put = out + id * width * SIZE_T
            for c in range(0, wide, LANES):
                VECTOR
            REST
"""
# Rows of one id after the other: some vectors of the result stay in registers for a run of them.
_RUNS = f"""\
{EACH_RUN}\
        blocks = wide // BLOCK * BLOCK
        for c in range(0, blocks, BLOCK):
            HELD
            for i in range(start, stop):
                PICK
                FOLDED
            KEPT
        for c in range(blocks, wide, LANES):
            total = load_V(put, c, 3)
            for i in range(start, stop):
                PICK
                value = load_V(take, c, 4)
                SPREAD
                total = FOLD
            store_V(put, c, total, 3)
        if wide < width:
            for i in range(start, stop):
                PICK
                REST
    start = stop
"""
_FETCH = """\
if through != 0:
    later = to_i64(load_J(through, minimum(i + AHEAD, count - 1) * STEP, 2)) * width * SIZE_T
    for c in range(0, width * SIZE_T, 64):
        prefetch(data + later + c)
"""
_PICK = """\
from_row = i
if through != 0:
    from_row = to_i64(load_J(through, i * STEP, 2))
take = data + from_row * width * SIZE_T
WEIGHT
"""
_REST = """\
c = wide
HALVES
for c in range(c, width):
    total, value = load_T(put, c, 3), load_T(take, c, 4)
    WEIGH
    store_T(put, c, FOLD, 3)
"""
_VECTOR = """\
total, value = load_V(put, c, 3), load_V(take, c, 4)
SPREAD
store_V(put, c, FOLD, 3)
"""
_HALF = """\
if width - c >= {lanes}:
    total, value = load_{code}(put, c, 3), load_{code}(take, c, 4)
    SPREAD
    store_{code}(put, c, FOLD, 3)
    c = c + {lanes}
"""
FOLD_WORDS = (
    "out", "rows", "width", "ids", "count", "through", "height", "data", "weights", "drops",
    "line", "facts", "lists", "seen", "none", "fresh",
)  # fmt: skip
# Of what waits for the one before, where no vectors are made.
_ALONE = {"largest": "larger(total, value)", "smallest": "smaller(total, value)"}
_FOLDS = {
    "sum": "total + value",
    "product": "total * value",
    "largest": "largest(total, value)",
    "smallest": "smallest(total, value)",
    "difference": "total - value",
    "quotient": "total / value",
    "last": "value",
}


def _start(fold: str, code: str) -> str:
    """Return what a fold begins with, so that what is folded first comes out as it is."""
    if fold not in ("largest", "smallest"):
        return "1" if fold == "product" else "0"
    sign = "-" if fold == "largest" else ""
    if code[0] == "f":
        return f"{sign}1e999"
    bits = 8 * SIZES[code]
    if code[0] == "u":
        return "0" if sign else "-1"
    return str(-(1 << bits - 1) if sign else (1 << bits - 1) - 1)


@functools.cache
def fold_native_loop(
    fold: str,
    code: str,
    index: str,
    through: str,
    step: int,
    weighted: bool,
    runs: bool = True,
    slim: bool = False,
) -> NativeLoop:
    """Return the native loop of a fold.

    Args:
        fold: "sum", "product", "largest" or "smallest"; for rows that are changed in place also
            "difference", "quotient" and "last".
        code: The dtype of the rows.
        index: The dtype of the ids.
        through: The dtype of the numbers by which rows are picked from a table.
        step: How many elements the ids lie apart, and those numbers, too.
        weighted: Whether rows are multiplied by a number each.
        runs: Whether it has a loop of its own for sorted ids. It takes a third of the time that the
            native loop takes to compile, and rows that are changed in place seldom come in order.
        slim: Whether that loop is for rows shorter than a vector, too; others are slower with it.
    """
    lanes = 64 // SIZES[code]
    halves = [_HALF.format(code=f"{code}x{n}", lanes=n) for n in (lanes // 2, lanes // 4)]
    spread = "value = spread_{0}(weight) * value" if weighted else "value = value"
    tail = "".join(
        half.replace("SPREAD", spread.format(f"{code}x{n}"))
        for half, n in zip(halves, (lanes // 2, lanes // 4), strict=True)
    )
    pairs = [
        PAIR.format(code=f"{code}x{n}", lanes=n).replace("SPREAD", spread.format(f"{code}x{n}"))
        for n in (lanes // 2, lanes // 4)
    ]
    vector = spread.format(f"{code}x{lanes}")
    held = [(f"held_{n}", f"c + {n * lanes}") for n in range(_HELD)]
    folded_ = [
        f"total, value = {name}, load_V(take, {at}, 4)\n{vector}\n{name} = FOLD"
        for name, at in held
    ]
    weigh = "value = weight * value" if weighted else "value = value"
    marks = code[0] == "f" and fold in ("largest", "smallest")
    parts = {
        "SHIFTED": _SHIFTED, "SINGLE": _SINGLE, "MIXED": _MIXED,
        "RUNS": _RUNS if runs else "last = last",
        "SLIM": SLIM,
        "HALF_ROWS": pairs[0], "QUARTER_ROWS": pairs[1],
        "FETCH": _FETCH, "PICK": _PICK, "REST": _REST.replace("HALVES\n", tail),
        "HELD": "\n".join(f"{name} = load_V(put, {at}, 3)" for name, at in held),
        "FOLDED": "\n".join(folded_),
        "KEPT": "\n".join(f"store_V(put, {at}, {name}, 3)" for name, at in held),
        "WEIGHT": "weight = load_T(weights, i, 5)" if weighted else "weight = to_T(1)",
        "VECTOR": _VECTOR,
        "SPREAD": vector,
        "WEIGH": "weight = load_T(weights, i, 5)\nvalue = weight * value" if weighted else weigh,
        "SEE": "if seen != 0:\n    store_u8(seen, id, to_u8(1), 7)" if marks else "seen = seen",
        "STATUS": set_status(),
    }  # fmt: skip
    fold_text = _FOLD.replace("    OTHERWISE\n", indent(OTHERWISE, "    ") if slim else "")
    text = NativeLoop("", (), fold_text, parts=parts).written()
    for name, number in (
        ("STEP", step), ("CHUNK", _CHUNK), ("NARROW", _NARROW), ("AHEAD", _AHEAD), ("RUN", _RUN),
        ("HAS_RUNS", runs), ("BLOCK", _HELD * lanes), ("LANES", lanes),
        ("FEWEST", lanes // 4),
        ("ALONE", _ALONE.get(fold, _FOLDS[fold])), ("FOLD", _FOLDS[fold]),
        ("START", _start(fold, code)),
    ):  # fmt: skip
        text = re.sub(rf"\b{name}\b", str(number), text)
    name = f"fold_{fold}{'_weighted' * weighted}{'_runs' * runs}{'_slim' * slim}_{step}"
    types = {"T": code, "V": f"{code}x{lanes}", "I": index, "J": through}
    return NativeLoop(name, FOLD_WORDS, text, types)


@dataclass(slots=True)
class Folding:
    """What is folded.

    Attributes:
        ids: Which row of the result each belongs to; other elements may lie between them.
        count: How many there are.
        rows: The rows, or the table that they are picked from; [height, width].
        through: Which row of the table is picked for each, None where they are in order.
        weights: What each is multiplied by, None where nothing is.
        drops: Whether rows with negative ids are left out; otherwise nothing is done.
    """

    ids: Any
    count: int
    rows: Any
    through: Any = None
    weights: Any = None
    drops: bool = False


def lists_for(row_bytes: int, team: int) -> tuple[int, int, int]:
    """Return what a native loop of a fold needs besides the rows.

    Args:
        row_bytes: The bytes of a row.
        team: How many threads run it.

    Returns:
        The logarithm of how many rows a cache line has, the bytes that threads tell one another
        facts in, and the bytes of their lists of rows.
    """
    line = max(0, (64 // max(1, row_bytes)).bit_length() - 1)
    return line, 64 * team, 4 * _CHUNK * team


def folded(
    call: Call,
    threads: int,
    folding: Folding,
    result: Any,
    *,
    none: Any = None,
    fresh: bool = True,
) -> bool:
    """Fold rows by their ids into a result of [rows, width].

    Args:
        call: The native loop.
        threads: How many threads there are.
        folding: What is folded.
        result: What is filled, wholly.
        none: What stands in rows of nothing, an array of one element, where that is not what the
            fold begins with.
        fresh: Whether the result begins anew; otherwise its rows are folded with the others.

    Returns:
        Whether all ids were in range; nothing was done where not.
    """
    f, (rows, width) = folding, result.shape
    team = team_for(f.count * (width + 1) + result.size // 8 * fresh, threads)
    line = facts = lists = 0
    if team > 1:
        line, *sizes = lists_for(width * result.itemsize, team)
        told, listed = (np.empty(size, np.uint8) for size in sizes)
        facts, lists = address(told), address(listed)
    seen = None if none is None else np.empty(rows, np.uint8)
    status = call(
        team, address(result), rows, width, address(f.ids), f.count,
        0 if f.through is None else address(f.through), f.rows.shape[0] if f.rows.ndim else 1,
        address(f.rows), 0 if f.weights is None else address(f.weights), int(f.drops), line,
        facts, lists, 0 if seen is None else address(seen),
        0 if none is None else address(none), int(fresh),
    )  # fmt: skip
    return not status


def _wide(dtype: Any, *, complexes: bool = False) -> Any:
    """Return the dtype in which a dtype is folded, None where there is none."""
    if dtype.kind == "complex":
        return np.dtype(f"float{4 * dtype.numpy.itemsize}") if complexes else None
    half = dtype.kind == "float" and dtype.numpy.itemsize == 2
    return np.dtype(np.float32) if half else dtype.numpy


@dataclass(frozen=True, slots=True)
class Folds:
    """How a native loop folds what an operation folds by ids.

    Attributes:
        fold: What the native loop calls the fold.
        wide: The dtype in which it folds.
        code: The code of that dtype.
        size: The bytes of an element.
        none: What stands in rows of nothing, an array of one element; None where that is what the
            fold begins with.
        same: Whether elements are folded as they are, without being converted or taken apart.
        most: So many elements may the result have.
    """

    fold: str
    wide: Any
    code: str
    size: int
    none: Any
    same: bool
    most: int = _MOST_ELEMENTS


def _folds(fold: str, op: Operation) -> Folds | None:
    dtype = op.inputs[0].dtype
    wide = _wide(dtype, complexes=fold == "sum")
    code = None if wide is None else code_of(wide)
    if code is None or code == "b8":
        return None
    none = None
    if code[0] == "f" and fold in ("largest", "smallest"):
        limits = as_dtype(dtype)
        none = np.array([limits.min if fold == "largest" else limits.max], wide)
    return Folds(fold, wide, code, wide.itemsize, none, wide == dtype.numpy)


# How operations fold rows into new ones, None for those of dtypes that native loops do not know.
SEGMENTS: dict[str, Callable[[Operation], Folds | None]] = {
    "UnsortedSegmentSum": functools.partial(_folds, "sum"),
    "UnsortedSegmentProd": functools.partial(_folds, "product"),
    "UnsortedSegmentMax": functools.partial(_folds, "largest"),
    "UnsortedSegmentMin": functools.partial(_folds, "smallest"),
}


def _segment_job(op: Operation) -> Job | None:
    folds, index = SEGMENTS[op.type](op), code_of(op.inputs[1].dtype.numpy)
    if folds is None or index is None:
        return None
    wide, none = folds.wide, folds.none
    complexes = op.inputs[0].dtype.kind == "complex"

    def run(calls: Sequence[Call], threads: int, data: Any, ids: Any, number: Any) -> Any:
        count = int(scalar(number, "num_segments"))
        lead = ids.ndim
        row_shape = data.shape[lead:]
        width = prod(row_shape)
        fits = count >= 0 and data.shape[:lead] == ids.shape
        if not fits or not ids.size or not width or not 0 < count * width <= _MOST_ELEMENTS:
            return None
        rows = np.ascontiguousarray(widened(data)).reshape((ids.size, width))
        result = np.empty((count, width), rows.dtype)
        # A complex number is two numbers; of others a view would be the same array again.
        parts, sums = (rows.view(wide), result.view(wide)) if complexes else (rows, result)
        folding = Folding(np.ascontiguousarray(ids), ids.size, parts, drops=True)
        if not folded(calls[0], threads, folding, sums, none=none):
            return None
        return narrowed(result, data.dtype).reshape((count, *row_shape))

    slim = is_slim(op, 64 // folds.size)
    return Job((fold_native_loop(folds.fold, folds.code, index, "i32", 1, False, slim=slim),), run)


def is_slim(op: Operation, lanes: int) -> bool:
    """Whether the rows of segments are known to be shorter than a vector, and not much shorter."""
    dims, lead = op.inputs[0].spec.shape.dims, op.inputs[1].spec.shape.rank
    if dims is None or lead is None or None in dims[lead:]:
        return False
    return lanes // 4 <= prod(d for d in dims[lead:] if d is not None) < lanes


def _product_job(op: Operation) -> Job | None:
    dtype = op.inputs[1].dtype
    wide = _wide(dtype)
    code = None if wide is None else code_of(wide)
    if code is None or code == "b8" or op.inputs[0].dtype.numpy != np.int64:
        return None
    adjoint_a, adjoint_b = op.attrs["adjoint_a"], op.attrs["adjoint_b"]

    def run(
        calls: Sequence[Call], threads: int, indices: Any, values: Any, shape: Any, b: Any
    ) -> Any:
        if indices.ndim != 2 or indices.shape[1] != 2 or b.ndim != 2 or shape.size != 2:
            return None
        count = indices.shape[0]
        dims = [int(d) for d in shape.tolist()]
        if adjoint_a:
            dims.reverse()
        b = np.ascontiguousarray(widened(b.T if adjoint_b else b))
        rows, width = dims[0], b.shape[1]
        fits = values.shape == (count,) and b.shape[0] == dims[1] and min(dims) >= 0
        # A matrix of few elements whose product would be huge is refused by the plain kernel.
        small = rows * width <= max(1 << 24, 16 * (count + b.size))
        if not fits or not small or not count or not b.size or not rows or count >= 1 << 31:
            return None
        indices = np.ascontiguousarray(indices)
        weights = np.ascontiguousarray(widened(values))
        rows_of, columns_of = indices.reshape(-1), indices.reshape(-1)[1:]
        if adjoint_a:
            rows_of, columns_of = columns_of, rows_of
        result = np.empty((rows, width), b.dtype)
        folding = Folding(rows_of, count, b, columns_of, weights)
        if not folded(calls[0], threads, folding, result):
            return None
        return narrowed(result, values.dtype)

    return Job((fold_native_loop("sum", code, "i64", "i64", 2, True),), run)


def _scatter_job(fold: str, op: Operation) -> Job | None:
    content = op.inputs[0].spec.content
    code = None if content is None else code_of(content.dtype.numpy)
    index = code_of(op.inputs[1].dtype.numpy)
    if code is None or index is None or code == "b8" or op.inputs[2].spec.rank == 0:
        return None

    def run(calls: Sequence[Call], threads: int, cell: Any, indices: Any, updates: Any) -> Any:
        if not updates.size or not updates.ndim:
            return None
        new, old = cell.take()
        done = False
        try:
            shape = new.shape
            if shape and updates.shape == (*indices.shape, *shape[1:]):
                table = new.reshape((shape[0], -1))
                rows = np.ascontiguousarray(updates).reshape((indices.size, table.shape[1]))
                folding = Folding(np.ascontiguousarray(indices), indices.size, rows)
                done = folded(calls[0], threads, folding, table, fresh=False)
        finally:
            cell.give(new if done else old)
        return new if done else None

    return Job((fold_native_loop(fold, code, index, "i32", 1, False, runs=False),), run)


JOBS: dict[str, Callable[[Operation], Job | None]] = {
    **dict.fromkeys(SEGMENTS, _segment_job),
    "SparseTensorDenseMatMul": _product_job,
    "ScatterAddVariable": functools.partial(_scatter_job, "sum"),
    "ScatterSubVariable": functools.partial(_scatter_job, "difference"),
    "ScatterMinVariable": functools.partial(_scatter_job, "smallest"),
    "ScatterMaxVariable": functools.partial(_scatter_job, "largest"),
    "ScatterUpdateVariable": functools.partial(_scatter_job, "last"),
}
