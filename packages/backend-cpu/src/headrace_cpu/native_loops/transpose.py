"""Transpositions: squares of a matrix are transposed in registers.

Axes that stay together are one. Of what is left, the axis along which the input is contiguous and
the one along which the result is are those of a matrix, and all others lead to many of these. A
square of it is read as vectors along the one, and written as vectors along the other; the last ones
overlap those before. Rows that stay together, and matrices of a few rows or columns, are left to
NumPy.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from math import prod
from typing import Any, NamedTuple

import numpy as np

from headrace import Operation
from headrace_cpu.native.assembly import vector_bytes
from headrace_cpu.native.memory import address
from headrace_cpu.native_loops.native_loop import Call, Job, NativeLoop, team_for

# By bytes of an element: how it is moved.
_BITS = {4: "u32", 8: "u64"}
# Matrices within matrices: their sizes and strides are words of the block.
_OUTER = 3
_FEWEST_LANES = 4
# Fewer elements take as long as calling something does.
_FEWEST = 1 << 10
# From so many on a kernel that reads them in another order takes longer than both.
_MANY = 1 << 14
# Rows of so many bytes NumPy copies as quickly: of [4, 100, 6, 16] float32 in 14 us for 5, of [4,
# 100, 6, 64] in 20 for 18.
_SHORT_ROW = 1 << 8
# By bytes of an element: from so many rows and columns on both together are quicker than a kernel
# that reads in another order. Of [400, 12, 50] float32, times a number, 49 us for 69; of float64 as
# many.
_LEAST = {4: 8, 8: 16}
_NO_NUMBERS = ("string", "resource", "list")

# Where a matrix is, is found once for all of its bands: dividing takes as long as a few squares.
_TURN = """\
bands = (rows + LANES - 1) // LANES
units = n0 * n1 * n2 * bands
first, last = me * units // team, (me + 1) * units // team
for outer in range(first // bands, (last + bands - 1) // bands):
    pair = outer // n2
    i2 = outer - pair * n2
    i0 = pair // n1
    i1 = pair - i0 * n1
    whole = source + i0 * s0 + i1 * s1 + i2 * s2
    turned = target + i0 * t0 + i1 * t1 + i2 * t2
    for band in range(maximum(first - outer * bands, 0), minimum(last - outer * bands, bands)):
        row = minimum(band * LANES, rows - LANES)
        take, put = whole + row * SIZE_T, turned + row * down
        for step in range(0, columns, LANES):
            column = minimum(step, columns - LANES)
            from_, to = take + column * across, put + column * SIZE_T
            SQUARE
"""
_WORDS = (
    *("source", "target", "n0", "n1", "n2", "s0", "s1", "s2", "t0", "t1", "t2"),
    *("rows", "columns", "across", "down"),
)


class Matrices(NamedTuple):
    """Matrices that are transposed, in bytes where these are strides.

    Attributes:
        sizes: How many there are along each outer axis.
        strides: From one to the next in the input.
        steps: The same in the result.
        rows: The size of the axis along which the input is contiguous.
        columns: The size of the axis along which the result is.
        across: From one column to the next in the input.
        down: From one row to the next in the result.
    """

    sizes: tuple[int, ...]
    strides: tuple[int, ...]
    steps: tuple[int, ...]
    rows: int
    columns: int
    across: int
    down: int


def matrices_of(dims: Sequence[int], perm: Sequence[int], size: int) -> Matrices | None:
    """Return the matrices that a transposition is of, None where it moves whole rows or nothing.

    Args:
        dims: The shape of the input.
        perm: Which of its axes each of the result is.
        size: The bytes of an element.
    """
    strides = [size] * len(dims)
    for axis in reversed(range(len(dims) - 1)):
        strides[axis] = strides[axis + 1] * dims[axis + 1]
    # Axes of the result, as sizes and strides in the input; what stays together is one.
    axes: list[tuple[int, int]] = []
    for axis in perm:
        count, stride = dims[axis], strides[axis]
        if count == 1:
            continue
        if axes and axes[-1][1] == count * stride:
            axes[-1] = axes[-1][0] * count, stride
        else:
            axes.append((count, stride))
    if len(axes) < 2 or axes[-1][1] == size or len(axes) > _OUTER + 2:
        return None
    steps = [size] * len(axes)
    for i in reversed(range(len(axes) - 1)):
        steps[i] = steps[i + 1] * axes[i + 1][0]
    place = next(i for i, (_, stride) in enumerate(axes) if stride == size)
    outer = [i for i in range(len(axes) - 1) if i != place]
    return Matrices(
        tuple(axes[i][0] for i in outer),
        tuple(axes[i][1] for i in outer),
        tuple(steps[i] for i in outer),
        axes[place][0],
        *axes[-1],
        steps[place],
    )


def lanes_for(matrices: Matrices, size: int) -> int:
    """Return how many rows and columns the squares have; 0 where there are too few for any."""
    lanes = vector_bytes() // size
    while lanes > min(matrices.rows, matrices.columns):
        lanes //= 2
    return lanes if lanes >= _FEWEST_LANES else 0


def turns_squares(op: Operation) -> bool:
    """Whether an operation transposes a matrix so large that a kernel had better read the result.

    A kernel that reads it in the order of the result takes one element of each cache line at a
    time, and comes back for the next when the line is not there any more.
    """
    if op.type != "Transpose":
        return False
    found = _matrices(op)
    if found is None:
        return False
    matrices, whole = found
    least = _LEAST[op.inputs[0].dtype.numpy.itemsize]
    return min(matrices.rows, matrices.columns) >= least and whole >= _MANY


def moves_elements(op: Operation) -> bool:
    """Whether an operation moves short rows, or transposes matrices without a native loop.

    NumPy takes up to ten times as long for these as a kernel that reads them in another order.
    """
    dims, perm, dtype = op.inputs[0].spec.shape.dims, op.attrs["perm"], op.inputs[0].dtype
    if dims is None or None in dims or dtype.kind in _NO_NUMBERS:
        return False
    shape, size = op.inputs[0].spec.shape.known, dtype.numpy.itemsize
    order = tuple(reversed(range(len(shape)))) if perm is None else tuple(perm)
    found = matrices_of(shape, order, size)
    if found is not None:
        return size not in _BITS or not lanes_for(found, size)
    # What stays in its place at the end is a row.
    kept = len(order)
    while kept and order[kept - 1] == kept - 1:
        kept -= 1
    return 0 < kept < len(order) and prod(shape[kept:]) * size <= _SHORT_ROW


@functools.cache
def _turn_native_loop(size: int, lanes: int) -> NativeLoop:
    code = f"{_BITS[size]}x{lanes}"
    lines = [f"r{i} = load_{code}(from_ + {i} * across, 0, 0)" for i in range(lanes)]
    step = 1
    while step < lanes:
        for i in range(lanes):
            if not i & step:
                one, other = f"r{i}", f"r{i + step}"
                lines.append(
                    f"{one}, {other} = evens_{step}({one}, {other}), odds_{step}({one}, {other})"
                )
        step *= 2
    lines += [f"store_{code}(to + {i} * down, 0, r{i}, 1)" for i in range(lanes)]
    text = _TURN.replace("LANES", str(lanes))
    return NativeLoop(
        f"turn_{lanes}", _WORDS, text, {"T": _BITS[size]}, {"SQUARE": "\n".join(lines)}
    )


def _matrices(op: Operation) -> tuple[Matrices, int] | None:
    """Return what a transposition of a known shape is of, and how many elements it moves."""
    x, perm = op.inputs[0], op.attrs["perm"]
    size, dims = x.dtype.numpy.itemsize, x.spec.shape.dims
    known = dims is not None and None not in dims and x.dtype.kind not in _NO_NUMBERS
    if not known or size not in _BITS:
        return None
    shape = x.spec.shape.known
    order = tuple(reversed(range(len(shape)))) if perm is None else tuple(perm)
    found = matrices_of(shape, order, size) if prod(shape) >= _FEWEST else None
    return None if found is None else (found, prod(shape))


def _turn_job(op: Operation) -> Job | None:
    found = _matrices(op)
    if found is None:
        return None
    matrices, whole = found
    size, shape = op.inputs[0].dtype.numpy.itemsize, op.inputs[0].spec.shape.known
    lanes = lanes_for(matrices, size)
    if not lanes:
        return None
    missing = _OUTER - len(matrices.sizes)
    words = (
        *((1,) * missing + matrices.sizes),
        *((0,) * missing + matrices.strides),
        *((0,) * missing + matrices.steps),
        *matrices[3:],
    )
    perm = op.attrs["perm"]
    made = shape[::-1] if perm is None else tuple(shape[axis] for axis in perm)

    def run(calls: Sequence[Call], threads: int, values: Any) -> Any:
        if values.shape != shape or not values.flags.c_contiguous:
            return None
        out = np.empty(made, values.dtype)
        calls[0](team_for(whole, threads), address(values), address(out), *words)
        return out

    return Job([_turn_native_loop(size, lanes)], run)


JOBS: dict[str, Callable[[Operation], Job | None]] = {"Transpose": _turn_job}
