"""Cumulative sums and products and linear recurrences along any axis, in the order of the elements.

A sum that waits for the one before takes three cycles an element. So four rows go side by side; of
an axis with many elements behind it, so do these. Each thread has rows or columns of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import Any

import numpy as np

from headrace import Operation
from headrace_cpu.kernels.cumulative import LONG_RECURRENCE
from headrace_cpu.kernels.numeric import axis_index, narrowed, widened
from headrace_cpu.native.memory import address
from headrace_cpu.native_loops.native_loop import Call, Job, NativeLoop, code_of, team_for

# From so many elements behind the axis on, they go side by side.
WIDE = 16
# Columns that a thread has sums of in the nearest cache.
_BLOCK = 1024

# The sum so far is stored a place later where it leaves out the element itself.
_ROWS = """\
rows, whole = outer * inner, length * inner
begin, step = 0, inner
if reverse != 0:
    begin, step = (length - 1) * inner, -inner
first, last = me * rows // team, (me + 1) * rows // team
fours = first + (last - first) // 4 * 4
for r in range(first, fours, 4):
    p0 = begin + r // inner * whole + r - r // inner * inner
    p1 = begin + (r + 1) // inner * whole + r + 1 - (r + 1) // inner * inner
    p2 = begin + (r + 2) // inner * whole + r + 2 - (r + 2) // inner * inner
    p3 = begin + (r + 3) // inner * whole + r + 3 - (r + 3) // inner * inner
    a0, a1, a2, a3 = to_T(ZERO), to_T(ZERO), to_T(ZERO), to_T(ZERO)
    if exclusive != 0:
        store_T(y, p0, to_T(START), 1)
        store_T(y, p1, to_T(START), 1)
        store_T(y, p2, to_T(START), 1)
        store_T(y, p3, to_T(START), 1)
    put = y + exclusive * step * SIZE_T
    for i in range(length - exclusive):
        at = i * step
        a0 = a0 SIGN load_T(x, p0 + at, 0)
        a1 = a1 SIGN load_T(x, p1 + at, 0)
        a2 = a2 SIGN load_T(x, p2 + at, 0)
        a3 = a3 SIGN load_T(x, p3 + at, 0)
        store_T(put, p0 + at, a0, 1)
        store_T(put, p1 + at, a1, 1)
        store_T(put, p2 + at, a2, 1)
        store_T(put, p3 + at, a3, 1)
for r in range(fours, last):
    p0 = begin + r // inner * whole + r - r // inner * inner
    a0 = to_T(ZERO)
    if exclusive != 0:
        store_T(y, p0, to_T(START), 1)
    put = y + exclusive * step * SIZE_T
    for i in range(length - exclusive):
        at = p0 + i * step
        a0 = a0 SIGN load_T(x, at, 0)
        store_T(put, at, a0, 1)
"""

_COLUMNS = """\
sums = sums + me * block_size * SIZE_T
blocks = (inner + block_size - 1) // block_size
begin, step = 0, inner
if reverse != 0:
    begin, step = (length - 1) * inner, -inner
for unit in range(me * outer * blocks // team, (me + 1) * outer * blocks // team):
    column = (unit - unit // blocks * blocks) * block_size
    width = minimum(block_size, inner - column)
    place = begin + unit // blocks * length * inner + column
    for c in range(width):
        store_T(sums, c, to_T(ZERO), 2)
    if exclusive != 0:
        for c in range(width):
            store_T(y, place + c, to_T(START), 1)
    put = y + exclusive * step * SIZE_T
    for i in range(length - exclusive):
        at = place + i * step
        for c in range(width):
            total = load_T(sums, c, 2) SIGN load_T(x, at + c, 0)
            store_T(sums, c, total, 2)
            store_T(put, at + c, total, 1)
"""
_WORDS = ("x", "y", "outer", "length", "inner", "exclusive", "reverse")


# Each element is a term and the one before times a factor; the first is a term alone.
_RECURRENCE_ROWS = """\
rows, whole = outer * inner, length * inner
begin, step = 0, inner
if reverse != 0:
    begin, step = (length - 1) * inner, -inner
first, last = me * rows // team, (me + 1) * rows // team
fours = first + (last - first) // 4 * 4
for r in range(first, fours, 4):
    p0 = begin + r // inner * whole + r - r // inner * inner
    p1 = begin + (r + 1) // inner * whole + r + 1 - (r + 1) // inner * inner
    p2 = begin + (r + 2) // inner * whole + r + 2 - (r + 2) // inner * inner
    p3 = begin + (r + 3) // inner * whole + r + 3 - (r + 3) // inner * inner
    a0, a1 = load_T(terms, p0, 1), load_T(terms, p1, 1)
    a2, a3 = load_T(terms, p2, 1), load_T(terms, p3, 1)
    store_T(y, p0, a0, 2)
    store_T(y, p1, a1, 2)
    store_T(y, p2, a2, 2)
    store_T(y, p3, a3, 2)
    for i in range(1, length):
        at = i * step
        a0 = load_T(factors, p0 + at, 0) * a0 + load_T(terms, p0 + at, 1)
        a1 = load_T(factors, p1 + at, 0) * a1 + load_T(terms, p1 + at, 1)
        a2 = load_T(factors, p2 + at, 0) * a2 + load_T(terms, p2 + at, 1)
        a3 = load_T(factors, p3 + at, 0) * a3 + load_T(terms, p3 + at, 1)
        store_T(y, p0 + at, a0, 2)
        store_T(y, p1 + at, a1, 2)
        store_T(y, p2 + at, a2, 2)
        store_T(y, p3 + at, a3, 2)
for r in range(fours, last):
    p0 = begin + r // inner * whole + r - r // inner * inner
    a0 = load_T(terms, p0, 1)
    store_T(y, p0, a0, 2)
    for i in range(1, length):
        at = p0 + i * step
        a0 = load_T(factors, at, 0) * a0 + load_T(terms, at, 1)
        store_T(y, at, a0, 2)
"""
_RECURRENCE_COLUMNS = """\
sums = sums + me * block_size * SIZE_T
blocks = (inner + block_size - 1) // block_size
begin, step = 0, inner
if reverse != 0:
    begin, step = (length - 1) * inner, -inner
for unit in range(me * outer * blocks // team, (me + 1) * outer * blocks // team):
    column = (unit - unit // blocks * blocks) * block_size
    width = minimum(block_size, inner - column)
    place = begin + unit // blocks * length * inner + column
    for c in range(width):
        value = load_T(terms, place + c, 1)
        store_T(sums, c, value, 3)
        store_T(y, place + c, value, 2)
    for i in range(1, length):
        at = place + i * step
        for c in range(width):
            value = load_T(factors, at + c, 0) * load_T(sums, c, 3) + load_T(terms, at + c, 1)
            store_T(sums, c, value, 3)
            store_T(y, at + c, value, 2)
"""
_RECURRENCE_WORDS = ("factors", "terms", "y", "outer", "length", "inner", "reverse")


def native_loops_of(op: str, code: str) -> tuple[NativeLoop, NativeLoop]:
    """Return the native loops for few and for many elements behind the axis."""
    sign, zero, start = ("+", "-0.0", "0") if op == "Cumsum" else ("*", "1.0", "1")
    if code[0] != "f":
        zero = start

    def text(body: str) -> str:
        return body.replace("SIGN", sign).replace("ZERO", zero).replace("START", start)

    name = op.lower()
    return (
        NativeLoop(f"{name}_rows", _WORDS, text(_ROWS), {"T": code}),
        NativeLoop(f"{name}_columns", (*_WORDS, "sums", "block_size"), text(_COLUMNS), {"T": code}),
    )


def block_for(inner: int, team: int) -> int:
    """Return how many columns a thread takes at once."""
    return min(_BLOCK, -(-inner // (16 * team)) * 16)


def _job(op: Operation) -> Job | None:
    dtype = op.inputs[0].dtype
    half = dtype.kind == "float" and dtype.numpy.itemsize == 2
    code = code_of(np.float32 if half else dtype.numpy)
    if code is None or code == "b8":
        return None
    exclusive, reverse = int(op.attrs["exclusive"]), int(op.attrs["reverse"])
    axis = op.attrs["axis"]

    def run(calls: Sequence[Call], threads: int, x: Any) -> Any:
        at = axis_index(axis, x.ndim)
        if not x.size:
            return None
        wide = np.ascontiguousarray(widened(x))
        outer, inner = prod(x.shape[:at]), prod(x.shape[at + 1 :])
        result = np.empty(x.shape, wide.dtype)
        sizes = (address(wide), address(result), outer, x.shape[at], inner, exclusive, reverse)
        team = team_for(x.size, threads)
        if inner < WIDE:
            calls[0](team, *sizes)
        else:
            block = block_for(inner, team)
            sums = np.empty(block * team, wide.dtype)
            calls[1](team, *sizes, address(sums), block)
        return narrowed(result, x.dtype)

    return Job(native_loops_of(op.type, code), run)


def _recurrence_job(op: Operation) -> Job | None:
    dtype = op.inputs[0].dtype
    half = dtype.kind == "float" and dtype.numpy.itemsize == 2
    code = code_of(np.float32 if half else dtype.numpy)
    if code is None or code == "b8":
        return None
    axis, reverse = op.attrs["axis"], int(op.attrs["reverse"])

    def run(calls: Sequence[Call], threads: int, factors: Any, terms: Any) -> Any:
        at = axis_index(axis, factors.ndim)
        if not factors.size or factors.shape != terms.shape:
            return None
        shape, length = factors.shape, factors.shape[at]
        outer, inner = prod(shape[:at]), prod(shape[at + 1 :])
        # The plain kernel composes steps of long rows in another order, unless they are many.
        if length > LONG_RECURRENCE and factors.size // length < LONG_RECURRENCE:
            return None
        wide = [np.ascontiguousarray(widened(each)) for each in (factors, terms)]
        result = np.empty(shape, wide[0].dtype)
        sizes = (*map(address, (*wide, result)), outer, length, inner, reverse)
        team = team_for(factors.size, threads)
        if inner < WIDE:
            calls[0](team, *sizes)
        else:
            block = block_for(inner, team)
            sums = np.empty(block * team, result.dtype)
            calls[1](team, *sizes, address(sums), block)
        return narrowed(result, factors.dtype)

    types, words = {"T": code}, _RECURRENCE_WORDS
    columns = NativeLoop(
        "recurrence_columns", (*words, "sums", "block_size"), _RECURRENCE_COLUMNS, types
    )
    return Job((NativeLoop("recurrence_rows", words, _RECURRENCE_ROWS, types), columns), run)


JOBS: dict[str, Callable[[Operation], Job | None]] = {
    "Cumsum": _job,
    "Cumprod": _job,
    "LinearRecurrence": _recurrence_job,
}
