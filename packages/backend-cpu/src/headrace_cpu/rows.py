"""Rows of matrices, picked and added up by native loops where there are many of them.

NumPy takes rows one after the other on one core, and adds rows that are named twice element by
element. The loops here do the same sums in the same order on all threads of the step: each thread
has table rows of its own, so that results do not depend on how many there are. They are made behind
the steps (``native/later.py``), as NumPy needs a part of the time that it takes to compile them.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from textwrap import indent
from typing import Any, TypeAlias

import numpy as np

from headrace_cpu.native.later import MadeLater
from headrace_cpu.native.memory import address
from headrace_cpu.native.source import KernelSource
from headrace_cpu.native.threads import Share, launch, open_mp

Array: TypeAlias = Any

# Where it is less, NumPy is done before a kernel is found.
_FEWEST = 1 << 14
# Bytes of a cache line, which two threads must not write to by turns.
_LINE = 64
# Elements that are worth a thread.
_WORTH_A_THREAD = 1 << 15
_CODES = {np.dtype(name): code for name, code in (("float32", "f32"), ("float64", "f64"))}
_INDICES = {np.dtype(name): code for name, code in (("int32", "i32"), ("int64", "i64"))}
_WORDS = ("number_of", "count_of", "table", "rows", "values", "count", "width", "line")

# Lines of the table are dealt out to threads by turns.
_ADD = """\
me, team = 0, 1
if number_of != 0:
    me, team = ask(number_of), ask(count_of)
for i in range(count):
    row = to_i64(load_I(rows, i, 2))
    turn = row // line
    if turn - turn // team * team != me:
        continue
    put = table + row * width * SIZE
    take = values + i * width * SIZE
    for c in range(width):
        store_T(put, c, load_T(put, c, 1) SIGN load_T(take, c, 0), 1)
"""

_PICK = """\
me, team = 0, 1
if number_of != 0:
    me, team = ask(number_of), ask(count_of)
for i in range(me * count // team, (me + 1) * count // team):
    take = table + to_i64(load_I(rows, i, 2)) * width * SIZE
    put = values + i * width * SIZE
    for c in range(width):
        store_T(put, c, load_T(take, c, 0), 1)
"""


def add(table: Array, rows: Array, values: Array, *, subtract: bool = False) -> bool:
    """Add to rows of a matrix in place, in order, those named twice as often as they are named.

    Args:
        table: [n, width], contiguous.
        rows: [m], integers in [0, n).
        values: [m, width], of the table's dtype.
        subtract: Subtract instead.

    Returns:
        Whether it was done: False where NumPy should do it.
    """
    code = _CODES.get(table.dtype)
    if code is None or values.size < _FEWEST or values.dtype != table.dtype:
        return False
    name = "subtract_rows" if subtract else "add_rows"
    text = _ADD.replace("SIGN", "-" if subtract else "+")
    kernel = _found(name, text, code, table, rows)
    if kernel is None:
        return False
    _run(kernel, table, rows, np.ascontiguousarray(values))
    return True


def pick(table: Array, rows: Array) -> Array | None:
    """Return rows of a matrix, [m, width], or None where NumPy should pick them.

    Args:
        table: [n, width].
        rows: [m], integers in [0, n).
    """
    code = {4: "f32", 8: "f64"}.get(table.dtype.itemsize)
    width = table.shape[1]
    if code is None or table.dtype.hasobject or rows.size * width < _FEWEST or width < 4:
        return None
    kernel = _found("pick_rows", _PICK, code, table, rows)
    if kernel is None:
        return None
    values = np.empty((rows.size, width), table.dtype)
    _run(kernel, table, rows, values)
    return values


def _found(name: str, text: str, code: str, table: Array, rows: Array) -> int | None:
    """Return the address of a kernel for a table and rows, None where there is none yet."""
    index = _INDICES.get(rows.dtype)
    if index is None or not table.flags.c_contiguous:
        return None
    return _kernel(name, text, code, index).address()


def _run(kernel: int, table: Array, rows: Array, values: Array) -> None:
    rows = np.ascontiguousarray(rows)
    count, width = values.shape
    threads = min(Share.allowed(), max(1, values.size // _WORTH_A_THREAD))
    pool = open_mp() if threads > 1 else None
    team = (0, 0)
    if pool is not None:
        team = pool.symbols["omp_get_thread_num"], pool.symbols["omp_get_num_threads"]
    line = max(1, _LINE // max(1, width * table.dtype.itemsize))
    places = map(address, (table, rows, values))
    block = np.array((*team, *places, count, width, line), np.int64)
    launch(kernel, address(block), threads)()


@functools.cache
def _kernel(name: str, text: str, code: str, index: str) -> MadeLater:
    """Return a kernel, which is made when it is first wanted."""
    reads = "".join(f"{word} = word(block, {i})\n" for i, word in enumerate(_WORDS))
    body = reads + text.replace("_T(", f"_{code}(").replace("_I(", f"_{index}(")
    full = f"{name}_{code}_{index}"
    size = {"f32": "4", "f64": "8"}[code]
    source = f"def {full}(block):\n" + indent(body.replace("SIZE", size), "    ")
    return MadeLater(name, lambda: KernelSource(full, source), before=1)


__all__: Sequence[str] = ("add", "pick")
