"""Groups of sparse elements that agree along some axes, where they come in order.

Programs hold sparse tensors in the order of rows, and group them by the first axes, as reductions
along the others do: what belongs together lies together then. All else is left to the plain kernel,
which sorts.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from headrace import Operation
from headrace_cpu.kernels.numeric import axis_index
from headrace_cpu.native.memory import address
from headrace_cpu.native_loops.native_loop import Call, Job, NativeLoop, set_status

_MOST_AXES = 6

_GROUP = """\
many, wrong = 0, False
last = indices
for i in range(count):
    here = indices + i * rank * 8
    order = to_i64(i == 0)
    for k in range(KEPT):
        axis = load_i64(axes, k, 3)
        one, other = load_i64(here, axis, 0), load_i64(last, axis, 0)
        order = where(order == 0, to_i64(one > other) - to_i64(one < other), order)
    wrong = either(wrong, order < 0)
    if order > 0:
        for k in range(KEPT):
            store_i64(found, many * KEPT + k, load_i64(here, load_i64(axes, k, 3), 0), 2)
        many = many + 1
    store_i64(group, i, many - 1, 1)
    last = here
store_i64(answer, 0, many, 4)
if wrong:
    STATUS
"""
_WORDS = ("indices", "count", "rank", "axes", "group", "found", "answer")


@functools.cache
def _native_loop(kept: int) -> NativeLoop:
    text = _GROUP.replace("KEPT", str(kept))
    return NativeLoop(f"group_{kept}", _WORDS, text, parts={"STATUS": set_status()})


def _job(op: Operation) -> Job | None:
    dims = op.inputs[0].spec.shape.dims
    rank = None if dims is None or len(dims) != 2 else dims[1]
    axes, keepdims = op.attrs["axes"], op.attrs["keepdims"]
    if rank is None or axes is None or not 0 < rank <= _MOST_AXES:
        return None
    try:
        chosen = {axis_index(axis, rank) for axis in axes}
    except ValueError:
        return None
    kept = [axis for axis in range(rank) if axis not in chosen]
    if not kept:
        return None
    places = np.array(kept, np.int64)

    def run(calls: Sequence[Call], threads: int, indices: Any, dense_shape: Any) -> Any:
        count = len(indices) if indices.ndim else 0
        if indices.shape != (count, rank) or not count or dense_shape.shape != (rank,):
            return None
        if indices.dtype != np.int64:
            return None
        indices = np.ascontiguousarray(indices)
        group, found = np.empty(count, np.int64), np.empty((count, len(kept)), np.int64)
        answer = np.empty(1, np.int64)
        status = calls[0](
            1, address(indices), count, rank, address(places), address(group), address(found),
            address(answer),
        )  # fmt: skip
        if status:
            return None
        rows = found[: answer.item()].copy()
        if keepdims:
            whole = np.zeros((len(rows), rank), np.int64)
            whole[:, kept] = rows
            rows = whole
        dims = dense_shape.tolist()
        left = [1 if i in chosen else d for i, d in enumerate(dims) if keepdims or i not in chosen]
        return rows, group, np.array(left, np.int64)

    return Job((_native_loop(len(kept)),), run)


JOBS: dict[str, Callable[[Operation], Job | None]] = {"SparseGroup": _job}
