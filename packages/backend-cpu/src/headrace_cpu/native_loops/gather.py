"""Gather: rows picked by indices, along any axis, and by tuples of indices.

Elements are moved as bits of their size, whatever they are.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Sequence
from math import prod
from typing import Any

import numpy as np

from headrace import Operation
from headrace_cpu.kernels.numeric import axis_index
from headrace_cpu.native.memory import address
from headrace_cpu.native_loops.native_loop import (
    Call,
    Job,
    NativeLoop,
    code_of,
    set_status,
    team_for,
)

# So many rows ahead are asked for.
_AHEAD = 8
_BITS = {1: "u8", 2: "u16", 4: "u32", 8: "u64"}

_PICK = """\
wrong = False
for unit in range(me * outer * parts // team, (me + 1) * outer * parts // team):
    o = unit // parts
    part = unit - o * parts
    first, last = part * count // parts, (part + 1) * count // parts
    source = table + o * height * width * SIZE_T
    target = out + o * count * width * SIZE_T
    which = ids + o // shared * count * SIZE_I
    if width == 1:
        for i in range(first, last):
            at = to_i64(load_I(which, i, 1))
            inside = to_u64(at) < to_u64(height)
            wrong = either(wrong, not inside)
            store_T(target, i, load_T(source, where(inside, at, 0), 0), 2)
    else:
        for i in range(first, last):
            at = to_i64(load_I(which, i, 1))
            inside = to_u64(at) < to_u64(height)
            wrong = either(wrong, not inside)
            later = to_i64(load_I(which, minimum(i + AHEAD, count - 1), 1)) * width * SIZE_T
            for c in range(0, width * SIZE_T, 64):
                prefetch(source + later + c)
            take, put = source + where(inside, at, 0) * width * SIZE_T, target + i * width * SIZE_T
            if width >= LANES:
                for c in range(0, width - LANES, LANES):
                    store_V(put, c, load_V(take, c, 0), 2)
                store_V(put, width - LANES, load_V(take, width - LANES, 0), 2)
            elif width >= HALF:
                store_W(put, 0, load_W(take, 0, 0), 2)
                store_W(put, width - HALF, load_W(take, width - HALF, 0), 2)
            elif width >= QUARTER:
                store_X(put, 0, load_X(take, 0, 0), 2)
                store_X(put, width - QUARTER, load_X(take, width - QUARTER, 0), 2)
            else:
                for c in range(width):
                    store_T(put, c, load_T(take, c, 0), 2)
if wrong:
    STATUS
"""
_WORDS = ("table", "out", "ids", "outer", "parts", "shared", "height", "count", "width")


@functools.cache
def pick_native_loop(size: int, index: str) -> NativeLoop:
    """Return the native loop that picks rows of elements of so many bytes by indices of a dtype."""
    code, lanes = _BITS[size], 64 // size
    text = _PICK.replace("LANES", str(lanes)).replace("HALF", str(lanes // 2))
    text = text.replace("QUARTER", str(lanes // 4)).replace("AHEAD", str(_AHEAD))
    vectors = {"V": f"{code}x{lanes}", "W": f"{code}x{lanes // 2}", "X": f"{code}x{lanes // 4}"}
    types = {"T": code, "I": index, **vectors}
    return NativeLoop("pick", _WORDS, text, types, {"STATUS": set_status()})


# Tuples so long are taken apart without a loop.
_SHORT = 4
# Tuples of indices as numbers of rows: along each axis as many as lie behind it.
_FLATTEN = """\
wrong = False
for i in range(me * count // team, (me + 1) * count // team):
    row = 0
    for axis in range(depth):
        at, size = to_i64(load_I(indices, i * depth + axis, 0)), load_i64(sizes, axis, 1)
        wrong = either(wrong, to_u64(at) >= to_u64(size))
        row = row * size + at
    store_i64(rows, i, row, 2)
if wrong:
    STATUS
"""
_FLATTEN_WORDS = ("indices", "sizes", "rows", "count", "depth")


@functools.cache
def flatten_native_loop(index: str, depth: int | None) -> NativeLoop:
    """Return the native loop that makes numbers of rows of tuples of indices of a dtype.

    Args:
        index: The code of the dtype.
        depth: How long the tuples are, None where that is not known: short ones become vectors.
    """
    parts = {"STATUS": set_status()}
    name, text = "flatten", _FLATTEN
    if depth is not None and depth <= _SHORT:
        name, text = f"flatten_{depth}", re.sub(r"\bdepth\b", str(depth), text)
    return NativeLoop(name, _FLATTEN_WORDS, text, {"I": index}, parts)


def flattened(call: Call, threads: int, indices: Any, dims: Sequence[int]) -> Any:
    """Return the numbers of rows that tuples of indices name, None where one is out of range.

    Args:
        call: The native loop.
        threads: How many threads there are.
        indices: [..., depth].
        dims: The sizes of the axes, those that are indexed first.
    """
    depth = indices.shape[-1]
    if depth > len(dims):
        return None
    indices = np.ascontiguousarray(indices)
    if depth == 1:
        # Whoever uses them looks whether they are in range.
        return indices.reshape(-1)
    count = prod(indices.shape[:-1])
    rows, sizes = np.empty(count, np.int64), np.array(dims[:depth], np.int64)
    team = team_for(2 * count, threads)
    status = call(team, address(indices), address(sizes), address(rows), count, depth)
    return None if status else rows


def parts_for(size: int, count: int, outer: int, threads: int) -> tuple[int, int]:
    """Return how many threads pick rows, and in how many parts those of each table are picked.

    Args:
        size: The bytes of the result.
        count: How many rows are picked of each table.
        outer: How many tables there are.
        threads: How many threads there are.
    """
    team = team_for(size // 8 + 2 * count * outer, threads)
    return team, 1 if outer >= 4 * team else team


def picked(
    call: Call, threads: int, table: Any, ids: Any, shape: tuple[int, ...], sizes: Sequence[int]
) -> Any:
    """Return rows of a table, None where an index is out of range.

    Args:
        call: The native loop.
        threads: How many threads there are.
        table: The table, contiguous.
        ids: Which rows, contiguous.
        shape: The shape of the result.
        sizes: How many tables there are, how many of them share ids, the rows of each, how many are
            picked of each, and the elements of a row.
    """
    outer, shared, height, count, width = sizes
    result = np.empty(shape, table.dtype)
    size = table.itemsize
    if size == 16:
        size, width = 8, 2 * width
    team, parts = parts_for(result.nbytes, count, outer, threads)
    status = call(
        team, address(table), address(result), address(ids), outer, parts, shared, height, count,
        width,
    )  # fmt: skip
    return None if status else result


def bits_of(op: Operation) -> int | None:
    """Return the bytes as which the elements of an operation's first input are moved."""
    if op.inputs[0].dtype.kind in ("string", "resource", "list"):
        return None
    size = op.inputs[0].dtype.numpy.itemsize
    return {1: 1, 2: 2, 4: 4, 8: 8, 16: 8}.get(size)


def _gather_job(op: Operation) -> Job | None:
    size, index = bits_of(op), code_of(op.inputs[1].dtype.numpy)
    if size is None or index is None:
        return None
    axis, lead = op.attrs["axis"], op.attrs["batch_dims"]

    def run(calls: Sequence[Call], threads: int, params: Any, indices: Any) -> Any:
        at = axis_index(axis, params.ndim)
        if not indices.size or not params.size or not indices.ndim or at < lead:
            return None
        if not params.flags.c_contiguous or indices.shape[:lead] != params.shape[:lead]:
            return None
        between = prod(params.shape[lead:at])
        outer = prod(params.shape[:lead]) * between
        width, count = prod(params.shape[at + 1 :]), prod(indices.shape[lead:])
        shape = (*params.shape[:at], *indices.shape[lead:], *params.shape[at + 1 :])
        shared = between if lead else outer
        sizes = (outer, shared, params.shape[at], count, width)
        return picked(calls[0], threads, params, np.ascontiguousarray(indices), shape, sizes)

    return Job((pick_native_loop(size, index),), run)


def _gather_nd_job(op: Operation) -> Job | None:
    size, index = bits_of(op), code_of(op.inputs[1].dtype.numpy)
    depth = op.inputs[1].spec.shape.dims and op.inputs[1].spec.shape[-1]
    if size is None or index is None or not depth:
        return None
    single = depth == 1

    def run(calls: Sequence[Call], threads: int, params: Any, indices: Any) -> Any:
        if not indices.size or not params.size or not params.flags.c_contiguous:
            return None
        rows = flattened(calls[-1], threads, indices, params.shape)
        if rows is None:
            return None
        depth = indices.shape[-1]
        shape = (*indices.shape[:-1], *params.shape[depth:])
        height, width = prod(params.shape[:depth]), prod(params.shape[depth:])
        sizes = (1, 1, height, rows.size, width)
        return picked(calls[0], threads, params, rows, shape, sizes)

    if single:
        return Job((pick_native_loop(size, index),), run)
    return Job((pick_native_loop(size, "i64"), flatten_native_loop(index, depth)), run)


def _reverse_sequence_job(op: Operation) -> Job | None:
    size = bits_of(op)
    if size is None or code_of(op.inputs[1].dtype.numpy) is None:
        return None
    seq_axis, batch_axis = op.attrs["seq_axis"], op.attrs["batch_axis"]

    def run(calls: Sequence[Call], threads: int, x: Any, lengths: Any) -> Any:
        if x.ndim < 2 or not x.size or not x.flags.c_contiguous:
            return None
        seq, batch = axis_index(seq_axis, x.ndim), axis_index(batch_axis, x.ndim)
        # Other axes come behind: rows are then what moves.
        if {seq, batch} != {0, 1} or lengths.shape != (x.shape[batch],):
            return None
        steps, count = x.shape[seq], x.shape[batch]
        if lengths.min() < 0 or lengths.max() > steps:
            return None
        places = np.arange(steps)
        last = lengths.astype(np.int64)[:, None] - 1
        order = np.where(places <= last, last - places, places)
        if seq:
            order += np.arange(0, count * steps, steps)[:, None]
        else:
            order = np.ascontiguousarray(order.T) * count + np.arange(count)
        width = prod(x.shape[2:])
        sizes = (1, 1, count * steps, count * steps, width)
        return picked(calls[0], threads, x, np.ascontiguousarray(order), x.shape, sizes)

    return Job((pick_native_loop(size, "i64"),), run)


JOBS: dict[str, Callable[[Operation], Job | None]] = {
    "Gather": _gather_job,
    "GatherNd": _gather_nd_job,
    "ReverseSequence": _reverse_sequence_job,
}
