"""Plans of triangular matrices: Cholesky decompositions, and equations solved by substitution.

Matrices in C's order are the transposes of what Fortran sees: a lower triangle is an upper one
there, and a solution from the left one from the right. Large matrices are cut into blocks and their
right sides into columns, always in the same way, so that results do not depend on threads.

References:
    G. H. Golub, C. F. Van Loan, Matrix Computations, fourth edition, 2013, 4.2.9 (by blocks)
"""

from __future__ import annotations

import functools
import itertools
from math import prod
from typing import Any

import numpy as np

from headrace_cpu.lapack.library import loaded_lapack
from headrace_cpu.lapack.plan import Draft, Plan
from headrace_cpu.lapack.table import Place

# Matrices from this size on are decomposed by blocks, of this size.
_BLOCKED_FROM, _BLOCK = 256, 128
# Into how many parts the work on one matrix is cut, and how many columns are a part at least.
_PARTS, _FEWEST_COLUMNS = 8, 96
# A batch of so many matrices needs no parts of one.
_MANY = 8


def cuts(length: int, most: int = _PARTS) -> list[int]:
    """Return where parts of some columns begin, and where the last one ends."""
    parts = max(1, min(most, length // _FEWEST_COLUMNS))
    grain = 16 if length >= 16 * parts else 1
    return [length // grain * i // parts * grain for i in range(parts)] + [length]


@functools.lru_cache(maxsize=256)
def cholesky(batch: tuple[int, ...], n: int, dtype: np.dtype[Any]) -> Plan | None:
    """Return the plan of Cholesky decompositions, None where there is no LAPACK."""
    lapack = loaded_lapack()
    if lapack is None:
        return None
    count, draft = prod(batch), Draft(lapack, dtype, 1, 1)
    size, whole = draft.size, n * n * draft.size
    table = draft.table
    given, made = draft.input(0, whole), draft.output(0, whole)
    diagonal = draft.report("finite", (count, n))
    parts = 1 if count >= _MANY else 2
    bounds = [n * i // parts for i in range(parts + 1)]
    for low, high in itertools.pairwise(bounds):
        # What Fortran sees as columns: a rectangle, and the triangle below it.
        here = n * low * size
        if low:
            table.call("lacpy", "A", low, high - low, given + here, n, made + here, n, times=count)
        corner = here + low * size
        width = high - low
        table.call("lacpy", "U", width, width, given + corner, n, made + corner, n, times=count)
    table.border()
    if n > 1:
        below = made + size
        table.call("laset", "L", n - 1, n - 1, 0.0, 0.0, below, n, times=count)
    if n >= _BLOCKED_FROM and count < _MANY:
        _by_blocks(draft, made, count, n)
    else:
        failures = draft.failures(count)
        table.call("potrf", "U", n, made, n, failures, times=count)
    table.call("copy", n, made, n + 1, diagonal, 1, times=count)
    return draft.plan([(*batch, n, n)], count * n**3 / 3)


def _by_blocks(draft: Draft, made: Place, count: int, n: int) -> None:
    """Decompose matrices block by block, each followed by all that it changes."""
    table, size = draft.table, draft.size
    steps = -(-n // _BLOCK)
    failures = draft.failures(count * steps)
    table.border()
    for step, first in enumerate(range(0, n, _BLOCK)):
        width = min(_BLOCK, n - first)
        behind = first + width
        rest = n - behind
        corner = made + (first * n + first) * size
        failed = failures + step * count * 8
        table.call("potrf", "U", width, corner, n, failed, times=count)
        table.border()
        if not rest:
            break
        # Columns behind the block, whose rows are those of the block.
        for low, high in _pairs(cuts(rest)):
            row = made + ((behind + low) * n + first) * size
            table.call(
                *("trsm", "L", "U", "T", "N", width, high - low, 1.0, corner, n, row, n),
                times=count,
            )
        table.border()
        for low, high in _pairs(_even(rest)):
            row = made + ((behind + low) * n + first) * size
            square = made + ((behind + low) * n + behind + low) * size
            if low:
                start = made + (behind * n + first) * size
                above = made + ((behind + low) * n + behind) * size
                table.call(
                    *("gemm", "T", "N", low, high - low, width, -1.0, start, n, row, n),
                    *(1.0, above, n),
                    times=count,
                )
            table.call(
                *("syrk", "U", "T", high - low, width, -1.0, row, n, 1.0, square, n), times=count
            )
        table.border()


def _pairs(bounds: list[int]) -> list[tuple[int, int]]:
    return [(a, b) for a, b in itertools.pairwise(bounds) if a < b]


def _even(length: int) -> list[int]:
    """Return cuts of the columns of a triangle into parts of about the same area."""
    parts = max(1, min(_PARTS, length // _FEWEST_COLUMNS))
    return [round(length * (i / parts) ** 0.5) // 16 * 16 for i in range(parts)] + [length]


def agree(matrix: tuple[int, ...], sides: tuple[int, ...]) -> bool:
    """Whether shapes are those of equations: square matrices, right sides of as many rows."""
    if matrix[-1] != matrix[-2] or matrix[-1] != sides[-2]:
        return False
    pairs = zip(matrix[-3::-1], sides[-3::-1], strict=False)
    return all(m == n or 1 in (m, n) for m, n in pairs)


def step_of(batch: tuple[int, ...], whole: tuple[int, ...], size: int) -> int | None:
    """Return the step from matrix to matrix of a batch that is broadcast to another."""
    trimmed = batch
    while trimmed and trimmed[0] == 1:
        trimmed = trimmed[1:]
    if not trimmed:
        return 0
    return size if batch == whole or trimmed == whole else None


@functools.lru_cache(maxsize=256)
def triangular(
    matrices: tuple[int, ...],
    sides: tuple[int, ...],
    dtype: np.dtype[Any],
    *,
    lower: bool,
    adjoint: bool,
) -> Plan | None:
    """Return the plan of equations with triangular matrices.

    Args:
        matrices: [..., n, n].
        sides: The shape of the right sides, [..., n, k].
        dtype: Of all.
        lower: As in the op.
        adjoint: As in the op.

    Returns:
        None where there is no LAPACK, or batches are broadcast in several ways.
    """
    lapack = loaded_lapack()
    if lapack is None:
        return None
    n, k = sides[-2:]
    batch = np.broadcast_shapes(matrices[:-2], sides[:-2])
    draft = Draft(lapack, dtype, 2, 1)
    size, count = draft.size, prod(batch)
    of_matrix = step_of(matrices[:-2], batch, n * n * size)
    of_side = step_of(sides[:-2], batch, n * k * size)
    if of_matrix is None or of_side is None:
        return None
    if count == 1:
        of_matrix = of_side = 0
    matrix, side = draft.input(0, of_matrix), draft.input(1, of_side)
    made = draft.output(0, n * k * size)
    single = of_matrix == 0
    diagonal = draft.report("nonzero", (1 if single else count, n))
    draft.table.call("copy", n, matrix, n + 1, diagonal, 1, times=1 if single else count)
    triangle, turned = "U" if lower else "L", "T" if adjoint else "N"
    bounds = cuts(k) if count < _MANY else [0, k]
    for low, high in _pairs(bounds):
        skip = low * size
        table = draft.table
        table.call("lacpy", "A", high - low, n, side + skip, k, made + skip, k, times=count)
    draft.table.border()
    if k == 1:
        other = "N" if adjoint else "T"
        draft.table.call("trsv", triangle, other, "N", n, matrix, n, made, 1, times=count)
    else:
        for low, high in _pairs(bounds):
            here = made + low * size
            draft.table.call(
                *("trsm", "R", triangle, turned, "N", high - low, n, 1.0, matrix, n, here, k),
                times=count,
            )
    return draft.plan([(*batch, n, k)], count * n * n * k)
