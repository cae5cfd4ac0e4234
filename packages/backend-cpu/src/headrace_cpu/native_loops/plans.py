"""Which operations have plans: how native loops compute them where all shapes are known."""

from __future__ import annotations

import functools
from dataclasses import replace
from math import prod
from typing import Any

import numpy as np

from headrace import Operation, Tensor
from headrace.extend.devices import bytes_of
from headrace_cpu.kernels.numeric import axis_index
from headrace_cpu.native.threads import open_mp
from headrace_cpu.native_loops.axis_plans import LEFT, scan_plan, search_plan
from headrace_cpu.native_loops.gather import (
    bits_of,
    flatten_native_loop,
    parts_for,
    pick_native_loop,
)
from headrace_cpu.native_loops.instruction import BoundNativeLoop, Plan, Planner, Step
from headrace_cpu.native_loops.native_loop import SIZES, NativeLoop, code_of, team_for
from headrace_cpu.native_loops.segment_reductions import (
    SEGMENTS,
    fold_native_loop,
    is_slim,
    lists_for,
)
from headrace_cpu.native_loops.sort_keys import Keys
from headrace_cpu.native_loops.unique import table_for, unique_native_loop
from headrace_cpu.program.instruction import ALIGNMENT, Instruction
from headrace_cpu.program.matching import Candidate

_MOST_ELEMENTS = 1 << 29
# Results of more bytes are left to nodes outside of loops: some microseconds of Python are a small
# part of these, and where each step has another shape, and a program for it, all of them go through
# the same memory.
_LARGE = 1 << 19


def _gather_plan(op: Operation, threads: int) -> Plan | None:
    params, indices = op.inputs[:2]
    size, index = bits_of(op), code_of(indices.dtype.numpy)
    shape, places = params.shape.known, indices.shape.known
    axis, lead = axis_index(op.attrs["axis"], len(shape)), op.attrs["batch_dims"]
    if size is None or index is None or lead or not places or not prod(shape) * prod(places):
        return None
    outer, count, width = prod(shape[:axis]), prod(places), prod(shape[axis + 1 :])
    picking = _picking(op, size, index, (outer, outer, shape[axis], count, width), threads)
    return Plan([picking], moved=_picked(op))


def _gather_nd_plan(op: Operation, threads: int) -> Plan | None:
    params, indices = op.inputs[:2]
    size, index = bits_of(op), code_of(indices.dtype.numpy)
    shape, places = params.shape.known, indices.shape.known
    depth = places[-1] if places else 0
    if size is None or index is None or not depth or not prod(shape) * prod(places):
        return None
    if depth > len(shape):
        return None
    height, width, count = prod(shape[:depth]), prod(shape[depth:]), prod(places[:-1])
    sizes = (1, 1, height, count, width)
    if depth == 1:
        return Plan([_picking(op, size, index, sizes, threads)], moved=_picked(op))
    flat, room = _flattening(indices, shape, threads)
    picking = _picking(op, size, "i64", sizes, threads, {"ids": 0})
    return Plan([flat, picking], room, moved=_picked(op))


def _picked(op: Operation) -> int:
    """Return the bytes of indices, of the rows that they pick, and of the result."""
    return bytes_of((op.inputs[1], op.outputs[0], op.outputs[0]))


def _picking(
    op: Operation, size: int, index: str, sizes: tuple[int, ...], threads: int,
    scratch: dict[str, int] | None = None,
) -> Step:  # fmt: skip
    """Return the native loop that picks rows by indices, or by numbers in scratch memory."""
    params, indices = op.inputs[:2]
    outer, shared, height, count, width = sizes
    itemsize = params.dtype.numpy.itemsize
    width *= itemsize // size
    team, parts = parts_for(outer * count * width * size, count, outer, threads)
    numbers = {"outer": outer, "parts": parts, "shared": shared, "height": height, "count": count,
               "width": width}  # fmt: skip
    tensors = {"table": params, "out": op.outputs[0]}
    if scratch is None:
        tensors["ids"] = indices
    return Step(pick_native_loop(size, index), team, numbers, tensors, scratch or {})


def _flattening(indices: Tensor, shape: tuple[int, ...], threads: int) -> tuple[Step, int]:
    """Return the loop that makes numbers of rows of tuples in scratch memory, and its bytes."""
    places, index = indices.shape.known, code_of(indices.dtype.numpy)
    assert index is not None
    depth, count = places[-1], prod(places[:-1])
    step = Step(
        flatten_native_loop(index, depth),
        team_for(2 * count, threads),
        {"count": count, "depth": depth},
        {"indices": indices},
        {"rows": 0},
        {"sizes": np.array(shape[:depth], np.int64)},
    )
    return step, _aligned(8 * count)


def _segment_plan(op: Operation, threads: int) -> Plan | None:
    data, ids, number = op.inputs
    folds, index = SEGMENTS[op.type](op), code_of(ids.dtype.numpy)
    if folds is None or not folds.same or index is None or number.spec.value is None:
        return None
    shape, lead = data.shape.known, ids.shape.rank or 0
    count, width = prod(ids.shape.known), prod(shape[lead:])
    rows = op.outputs[0].shape.known[0]
    if not count * width * rows or rows * width > folds.most or shape[:lead] != ids.shape.known:
        return None
    native_loop = fold_native_loop(
        folds.fold, folds.code, index, "i32", 1, False, slim=is_slim(op, 64 // folds.size)
    )
    tensors = {"out": op.outputs[0], "ids": ids, "data": data}
    return _folding(
        native_loop, tensors, (rows, width, count, folds.size), threads, folds.none, drops=1
    )


def _scatter_plan(op: Operation, threads: int) -> Plan | None:
    indices, updates, _ = op.inputs
    code, index = code_of(updates.dtype.numpy), code_of(indices.dtype.numpy)
    shape, places = op.outputs[0].shape.known, indices.shape.known
    depth = places[-1] if places else 0
    if code in (None, "b8") or index is None or not 0 < depth <= len(shape):
        return None
    assert code is not None
    rows, width, count = prod(shape[:depth]), prod(shape[depth:]), prod(places[:-1])
    fits = updates.shape.known == (*places[:-1], *shape[depth:])
    if not fits or not rows * width * count or rows * width > _MOST_ELEMENTS:
        return None
    tensors = {"out": op.outputs[0], "data": updates}
    sizes = (rows, width, count, updates.dtype.numpy.itemsize)
    if depth == 1:
        native_loop = fold_native_loop("sum", code, index, "i32", 1, False, runs=False)
        return _folding(native_loop, {**tensors, "ids": indices}, sizes, threads)
    flat, room = _flattening(indices, shape, threads)
    native_loop = fold_native_loop("sum", code, "i64", "i32", 1, False, runs=False)
    fold = _folding(native_loop, tensors, sizes, threads, scratch={"ids": 0}, first=room)
    return Plan([flat, *fold.steps], fold.scratch, fold.flops)


def _update_plan(fold: str, op: Operation, threads: int) -> Plan | None:
    handle, indices, updates = op.inputs
    content = handle.spec.content
    assert content is not None
    code, index = code_of(content.dtype.numpy), code_of(indices.dtype.numpy)
    shape = content.shape.known
    if code in (None, "b8") or index is None or not shape or content.dtype != updates.dtype:
        return None
    assert code is not None
    count, width = prod(indices.shape.known), prod(shape[1:])
    fits = updates.shape.known == (*indices.shape.known, *shape[1:])
    if not fits or not count * width * shape[0]:
        return None
    native_loop = fold_native_loop(fold, code, index, "i32", 1, False, runs=False)
    tensors = {"out": handle, "ids": indices, "data": updates}
    sizes = (shape[0], width, count, content.dtype.numpy.itemsize)
    # Of the variable, as much as of the updates is read and written.
    moved = bytes_of((indices, updates, updates, updates))
    return replace(_folding(native_loop, tensors, sizes, threads, fresh=0), moved=moved)


def _product_plan(op: Operation, threads: int) -> Plan | None:
    """Return how a sparse matrix is multiplied with a dense one."""
    indices, values, shape, b = op.inputs
    code = code_of(values.dtype.numpy)
    if code in (None, "b8") or shape.spec.value is None or op.attrs["adjoint_b"]:
        return None
    assert code is not None
    dims = [int(d) for d in shape.spec.value]
    turned = op.attrs["adjoint_a"]
    height, width = b.shape.known
    count = prod(values.shape.known)
    rows = op.outputs[0].shape.known[0]
    fits = indices.shape.known == (count, 2) and indices.dtype.numpy == np.int64
    fits = fits and dims == [*((height, rows) if turned else (rows, height))]
    if not fits or not count * height * width * rows or count >= 1 << 31:
        return None
    if rows * width > max(1 << 24, 16 * (count + height * width)):
        return None
    native_loop = fold_native_loop("sum", code, "i64", "i64", 2, True)
    tensors = {"out": op.outputs[0], "ids": indices, "through": indices, "data": b,
               "weights": values}  # fmt: skip
    plan = _folding(native_loop, tensors, (rows, width, count, SIZES[code]), threads)
    (step,) = plan.steps
    offsets = {"ids": 8 * turned, "through": 8 * (not turned)}
    numbers = {**step.numbers, "height": height}
    # Of each element of the matrix, a row is read.
    moved = bytes_of((indices, values, op.outputs[0])) + count * width * SIZES[code]
    step = replace(step, numbers=numbers, offsets=offsets)
    return replace(plan, steps=[step], flops=2 * count * width, moved=moved)


def _folding(
    native_loop: NativeLoop, tensors: dict[str, Tensor], sizes: tuple[int, int, int, int],
    threads: int,
    none: Any = None, *, drops: int = 0, fresh: int = 1, scratch: dict[str, int] | None = None,
    first: int = 0,
) -> Plan:  # fmt: skip
    """Return the plan of one fold of rows by ids.

    Args:
        native_loop: The fold.
        tensors: Its words that are tensors.
        sizes: The rows of the result, their elements, how many rows are folded, and the bytes of an
            element.
        threads: How many threads there are.
        none: What stands in rows of nothing, an array of one element.
        drops: Whether rows with negative ids are left out.
        fresh: Whether the result begins anew.
        scratch: Words in scratch memory that others fill.
        first: The bytes of scratch memory that others use.
    """
    rows, width, count, size = sizes
    team = team_for(count * (width + 1) + rows * width // 8 * fresh, threads)
    line, facts, lists = lists_for(width * size, team)
    seen = _aligned(facts + lists)
    numbers = {"rows": rows, "width": width, "count": count, "height": count, "drops": drops,
               "line": line, "fresh": fresh}  # fmt: skip
    places = {**(scratch or {}), "facts": first, "lists": first + facts}
    arrays = {}
    room = first + seen
    if none is not None:
        places["seen"], arrays["none"] = first + seen, none
        room += rows
    step = Step(native_loop, team, numbers, tensors, places, arrays)
    return Plan([step], room, count * width if tensors["data"].dtype.is_floating else 0)


def _unique_plan(op: Operation, threads: int) -> Plan | None:
    """Return how places of distinct elements are found, where nothing reads the elements."""
    (x,), places = op.inputs, op.outputs[1]
    code, out = code_of(x.dtype.numpy), code_of(places.dtype.numpy)
    if code in (None, "b8") or out is None or len(x.shape.known) != 1:
        return None
    assert code is not None
    size = prod(x.shape.known)
    if not 0 < size < _MOST_ELEMENTS:
        return None
    slots, room = table_for(size)
    table = slots * SIZES[Keys(code).pair]
    found = _aligned(size * SIZES[code])
    step = Step(
        unique_native_loop(code, out),
        1,
        {"size": size, "room": min(room, table // 4)},
        {"x": x, "places": places},
        {"table": 0, "found": _aligned(table), "answer": _aligned(table) + found},
    )
    return Plan([step], _aligned(table) + found + 8, output=1)


def _aligned(size: int) -> int:
    return -(-size // ALIGNMENT) * ALIGNMENT


PLANS: dict[str, Planner] = {
    "Gather": _gather_plan,
    "GatherNd": _gather_nd_plan,
    **dict.fromkeys(SEGMENTS, _segment_plan),
    "ScatterNd": _scatter_plan,
    "Unique": _unique_plan,
    "ArgMax": search_plan,
    "ArgMin": search_plan,
    "Cumprod": scan_plan,
    "Cumsum": scan_plan,
    "SparseTensorDenseMatMul": _product_plan,
    "ScatterAddVariable": functools.partial(_update_plan, "sum"),
    "ScatterSubVariable": functools.partial(_update_plan, "difference"),
    "ScatterMinVariable": functools.partial(_update_plan, "smallest"),
    "ScatterMaxVariable": functools.partial(_update_plan, "largest"),
    "ScatterUpdateVariable": functools.partial(_update_plan, "last"),
}


def make(candidate: Candidate) -> Instruction | None:
    """Return the instruction; None where native loops do not compute the operation."""
    op, settings = candidate.op, candidate.settings
    if not settings.keen and not op.schema.changes and bytes_of(op.outputs) > _LARGE:
        return None
    threads = settings.threads if open_mp() is not None else 1
    left = LEFT.get(op.type)
    if left is not None and not settings.keen and left(op, threads):
        return None
    plan = PLANS[op.type](op, threads)
    return None if plan is None else BoundNativeLoop(op, plan)
