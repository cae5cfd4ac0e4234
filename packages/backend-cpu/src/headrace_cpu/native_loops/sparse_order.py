"""The order of sparse elements, by a counting sort of indices, from the last axis on.

A pass counts how often each number occurs along an axis, or each of some of its bits, and puts
every element behind those of smaller numbers and those before it with the same (Knuth, "The Art of
Computer Programming", volume 3, section 5.2.5). What is in order already, as most programs hold
it, is only looked at, and so is the axis that a transposed matrix was in the order of.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from headrace import Operation
from headrace_cpu.native.memory import address
from headrace_cpu.native_loops.native_loop import Call, Job, NativeLoop, set_status

# A table of more counters than this leaves the first cache.
_MOST_BITS = 13
_FEWEST_BITS = 8

# An axis is in order where no element has a smaller number than the one before it.
_PASS = """\
size = mask + 1
for k in range(size + 1):
    store_i64(counts, k, 0, 3)
wrong, last, ascends = False, 0, True
for i in range(count):
    place = i
    if source != 0:
        place = load_i64(source, i, 1)
    value = load_i64(indices, place * rank + axis, 0)
    wrong = either(wrong, to_u64(value) >= to_u64(limit))
    ascends, last = both(ascends, value >= last), value
    digit = ((value >> shift) & mask) + 1
    store_i64(counts, digit, load_i64(counts, digit, 3) + 1, 3)
if wrong:
    STATUS
elif ascends:
    ORDERED
else:
    total = 0
    for k in range(size):
        total = total + load_i64(counts, k, 3)
        store_i64(counts, k, total, 3)
    for i in range(count):
        place = i
        if source != 0:
            place = load_i64(source, i, 1)
        digit = (load_i64(indices, place * rank + axis, 0) >> shift) & mask
        before = load_i64(counts, digit, 3)
        store_i64(counts, digit, before + 1, 3)
        store_i64(target, before, place, 2)
"""
_WORDS = (
    *("indices", "count", "rank", "axis", "limit", "shift", "mask", "source", "target", "counts"),
)
_WRONG, _ORDERED = 1, 2


@functools.cache
def _pass_native_loop() -> NativeLoop:
    parts = {"STATUS": set_status(_WRONG), "ORDERED": set_status(_ORDERED)}
    return NativeLoop("order_axis", _WORDS, _PASS, parts=parts)


def digits_of(size: int, count: int) -> tuple[int, int]:
    """Return in how many passes numbers below ``size`` are counted, and the bits of each.

    Args:
        size: The size of an axis.
        count: How many elements there are: counters that stay 0 cost as much.
    """
    bits = max(1, (size - 1).bit_length())
    most = min(_MOST_BITS, max(_FEWEST_BITS, count.bit_length()))
    passes = -(-bits // most)
    return passes, -(-bits // passes)


def _order_job(op: Operation) -> Job | None:
    def run(calls: Sequence[Call], threads: int, indices: Any, dense_shape: Any) -> Any:
        dims = dense_shape.tolist() if dense_shape.ndim == 1 else ()
        count = len(indices) if indices.ndim == 2 else 0
        if not count or indices.shape[1] != len(dims) or indices.dtype != np.int64:
            return None
        indices = np.ascontiguousarray(indices)
        source, target = None, np.empty(count, np.int64)
        free = None
        for axis in reversed(range(len(dims))):
            passes, bits = digits_of(dims[axis], count)
            counts = np.empty((1 << bits) + 1, np.int64)
            for turn in range(passes):
                status = calls[0](
                    1, address(indices), count, len(dims), axis, dims[axis], turn * bits,
                    (1 << bits) - 1, 0 if source is None else address(source), address(target),
                    address(counts),
                )  # fmt: skip
                if status == _WRONG:
                    return None
                if status == _ORDERED:
                    break
                free, source = source, target
                target = np.empty(count, np.int64) if free is None else free
        return np.arange(count) if source is None else source

    return Job((_pass_native_loop(),), run)


JOBS: dict[str, Callable[[Operation], Job | None]] = {"SparseOrder": _order_job}
