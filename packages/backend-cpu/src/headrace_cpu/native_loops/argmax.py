"""Argmax and argmin along an axis: the first of equals, and never NaN.

Along the last axis, an element and its place are one number, with the element above the place
turned around, so that a fold keeps the largest of numbers that are all different, in vectors. Of 64
bits, the extreme is found first, and its first place afterwards. Along other axes, what lies
behind the axis goes side by side.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from math import prod
from typing import Any

import numpy as np

from headrace import Operation
from headrace_cpu.kernels.numeric import axis_index, widened
from headrace_cpu.native.memory import address
from headrace_cpu.native_loops.native_loop import SIZES, Call, Job, NativeLoop, code_of, team_for

# Longer rows are left to NumPy, which compares without making numbers: from so many elements of
# 32-bit floats on, which it looks through for NaN first, and of others.
_LONG = {"f32": 1024, "f64": 64, "i64": 64, "u64": 64}
_LONG_OTHERS = 96
# Columns whose best a thread has in the nearest cache.
BLOCK = 1024
_OTHERS = (1 << 32) - 1

_PAIRS = """\
for r in range(me * outer // team, (me + 1) * outer // team):
    row = x + r * length * SIZE_T
    best = to_i64(-1) << 63
    for k in range(length):
        value = load_T(row, k, 0)
        KEY
        best = maximum(best, (to_i64(key) << 32) | (OTHERS - k))
    store_O(out, r, to_O(OTHERS - (best & OTHERS)), 1)
"""
_TWICE = """\
for r in range(me * outer // team, (me + 1) * outer // team):
    row = x + r * length * SIZE_T
    best, at = to_i64(-1) << 63, length
    for k in range(length):
        value = load_T(row, k, 0)
        KEY
        best = maximum(best, key)
    for k in range(length):
        value = load_T(row, k, 0)
        KEY
        at = minimum(at, where(key == best, k, length))
    store_O(out, r, to_O(at), 1)
"""
_COLUMNS = """\
blocks = (inner + BLOCK - 1) // BLOCK
best, found = bests + me * BLOCK * SIZE_T, places + me * BLOCK * 4
for unit in range(me * outer * blocks // team, (me + 1) * outer * blocks // team):
    column = (unit - unit // blocks * blocks) * BLOCK
    width = minimum(BLOCK, inner - column)
    row = x + (unit // blocks * length * inner + column) * SIZE_T
    for c in range(width):
        store_T(best, c, to_T(START), 2)
        store_i32(found, c, to_i32(0), 3)
    for k in range(length):
        for c in range(width):
            value, old = load_T(row, k * inner + c, 0), load_T(best, c, 2)
            better = value SIGN old
            store_T(best, c, where(better, value, old), 2)
            store_i32(found, c, where(better, to_i32(k), load_i32(found, c, 3)), 3)
    target = unit // blocks * inner + column
    for c in range(width):
        store_O(out, target + c, to_O(load_i32(found, c, 3)), 1)
"""
_WORDS = ("x", "out", "outer", "length", "inner")


def _start(code: str, *, largest: bool) -> str:
    """Return what is never better than anything."""
    sign = "-" if largest else ""
    if code[0] == "f":
        return f"{sign}1e999"
    bits = 8 * SIZES[code]
    if code[0] == "u":
        return "0" if sign else "-1"
    return str(-(1 << bits - 1) if sign else (1 << bits - 1) - 1)


def _key(code: str, *, largest: bool) -> str:
    """Return statements that make ``key`` of ``value``, a signed number in the order of values."""
    wide = SIZES[code] == 8
    signed = "i64" if wide else "i32"
    turned = "" if largest else "key = invert(key)\n"
    if code[0] == "f":
        lowest = _start(code, largest=largest)
        others = (1 << 8 * SIZES[code] - 1) - 1
        return (
            f"value = where(value == value, value, to_{code}({lowest})) + to_{code}(0.0)\n"
            f"key = bits_{signed}(value)\n"
            f"key = key ^ ((key >> {8 * SIZES[code] - 1}) & {others})\n{turned}"
        )
    if wide and code[0] == "u":
        return f"key = bits_i64(value ^ (to_u64(1) << 63))\n{turned}"
    offset = f" - {1 << 31}" if code == "u32" else ""
    return f"key = to_i64(value){offset}\n{turned}"


@functools.cache
def native_loops_of(code: str, found: str, *, largest: bool) -> tuple[NativeLoop, NativeLoop]:
    """Return the native loops for nothing and for something behind the axis."""
    name = "largest" if largest else "smallest"
    types, start = {"T": code, "O": found}, _start(code, largest=largest)
    parts = {"KEY": _key(code, largest=largest)}
    rows = (_TWICE if SIZES[code] == 8 else _PAIRS).replace("OTHERS", str(_OTHERS))
    columns = _COLUMNS.replace("BLOCK", str(BLOCK)).replace("START", start)
    columns = columns.replace("SIGN", ">" if largest else "<")
    return (
        NativeLoop(f"{name}_of_rows", _WORDS, rows, types, parts),
        NativeLoop(f"{name}_of_columns", (*_WORDS, "bests", "places"), columns, types),
    )


def longest(code: str | None) -> int:
    """Return how long rows are at most that are not left to NumPy."""
    return _LONG.get(code or "", _LONG_OTHERS)


def _job(op: Operation, *, largest: bool) -> Job | None:
    dtype, axis = op.inputs[0].dtype, op.attrs["axis"]
    half = dtype.kind == "float" and dtype.numpy.itemsize == 2
    code = code_of(np.float32 if half else dtype.numpy)
    kind = op.attrs["output_type"].numpy
    found = code_of(kind)
    if code in (None, "b8") or found not in ("i32", "i64"):
        return None
    assert code is not None
    most = longest(code)

    def run(calls: Sequence[Call], threads: int, x: Any) -> Any:
        if not x.ndim or not x.size or x.size >= 1 << 31:
            return None
        at = axis_index(0 if axis is None else axis, x.ndim)
        outer, length, inner = prod(x.shape[:at]), x.shape[at], prod(x.shape[at + 1 :])
        team = team_for(x.size // 2, threads)
        if inner == 1 and length > most and team == 1:
            return None
        wide = np.ascontiguousarray(widened(x))
        result = np.empty(x.shape[:at] + x.shape[at + 1 :], kind)
        sizes = (address(wide), address(result), outer, length, inner)
        if inner == 1:
            calls[0](team, *sizes)
        else:
            bests, places = np.empty(BLOCK * team, wide.dtype), np.empty(BLOCK * team, np.int32)
            calls[1](team, *sizes, address(bests), address(places))
        return result

    return Job(native_loops_of(code, found, largest=largest), run)


JOBS: dict[str, Callable[[Operation], Job | None]] = {
    "ArgMax": functools.partial(_job, largest=True),
    "ArgMin": functools.partial(_job, largest=False),
}
