"""Plans of triangular matrices: Cholesky decompositions, and equations solved by substitution.

Matrices in C's order are the transposes of what Fortran sees: a lower triangle is an upper one
there, and a solution from the left one from the right. Large matrices are halved and their right
sides cut into columns, always in the same way, so that results do not depend on threads.

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
from headrace_cpu.lapack.substitution import substitute
from headrace_cpu.lapack.table import Place
from headrace_cpu.lapack.turning import turn

# Matrices from this size on are halved until they are blocks, of this size at most.
_HALVED_FROM, _BLOCK = 80, 64
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
    if n >= _HALVED_FROM:
        _by_halves(draft, given, made, n, count)
    else:
        table.call("lacpy", "U", n, n, given, n, made, n, times=count)
        table.border()
        failures = draft.failures(count)
        table.call("potrf", "U", n, made, n, failures, times=count)
    if n > 1:
        below = made + size
        table.call("laset", "L", n - 1, n - 1, 0.0, 0.0, below, n, times=count)
    table.call("copy", n, made, n + 1, diagonal, 1, times=count)
    return draft.plan([(*batch, n, n)], count * n**3 / 3)


def _by_halves(draft: Draft, given: Place, made: Place, n: int, count: int) -> None:
    """Decompose matrices by halves, turned round: so the rows of a half lie beside one another."""
    table, size = draft.table, draft.size
    turned = draft.scratch(count * n * n * size, n * n * size)

    def whole(source: Place, target: Place) -> None:
        for low, high in _pairs(cuts(n)) if count < _MANY else [(0, n)]:
            columns, rows = source + low * n * size, target + low * size
            turn(table, n, high - low, (columns, n), (rows, n), times=count)
        table.border()

    whole(given, turned)
    _Halves(draft, turned, n, count).decompose(0, n)
    whole(turned, made)


class _Halves:
    """Lower triangles, in Fortran's order, that are decomposed where they are."""

    def __init__(self, draft: Draft, matrix: Place, n: int, count: int) -> None:
        self._table, self._size = draft.table, draft.size
        self._matrix, self._n, self._count = matrix, n, count
        blocks = -(-n // _BLOCK)
        self._failures = [draft.failures(count * blocks) + i * count * 8 for i in range(blocks)]

    def _at(self, row: int, column: int) -> Place:
        return self._matrix + (row + column * self._n) * self._size

    def decompose(self, first: int, last: int) -> None:
        """Decompose a square on the diagonal."""
        n, table, width = self._n, self._table, last - first
        corner = self._at(first, first)
        if width <= _BLOCK:
            failed = self._failures[first // _BLOCK]
            table.call("potrf", "L", width, corner, n, failed, times=self._count)
            table.border()
            return
        middle = first + -(-width // (2 * _BLOCK)) * _BLOCK
        self.decompose(first, middle)
        for low, high in self._parts(cuts(last - middle)):
            substitute(
                *(table, middle - first, high - low),
                *((corner, n), (self._at(middle + low, first), n)),
                upper=False,
                transposed=True,
                times=self._count,
            )
        table.border()
        self._subtract(first, middle, last)
        table.border()
        self.decompose(middle, last)

    def _parts(self, bounds: list[int]) -> list[tuple[int, int]]:
        return _pairs(bounds) if self._count < _MANY else [(bounds[0], bounds[-1])]

    def _subtract(self, first: int, middle: int, last: int) -> None:
        """Subtract from the second half's square the product of what is left of it."""
        n, inner = self._n, middle - first
        for low, high in self._parts(_even(last - middle)):
            rows = self._at(middle + low, first)
            if low:
                self._table.call(
                    *("gemm", "N", "T", high - low, low, inner, -1.0, rows, n),
                    *(self._at(middle, first), n, 1.0, self._at(middle + low, middle), n),
                    times=self._count,
                )
            square = self._at(middle + low, middle + low)
            self._table.call(
                *("syrk", "L", "N", high - low, inner, -1.0, rows, n, 1.0, square, n),
                times=self._count,
            )


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
    bounds = cuts(k) if count < _MANY else [0, k]
    for low, high in _pairs(bounds):
        skip = low * size
        table = draft.table
        table.call("lacpy", "A", high - low, n, side + skip, k, made + skip, k, times=count)
    draft.table.border()
    if k == 1:
        other = "N" if adjoint else "T"
        triangle = "U" if lower else "L"
        draft.table.call("trsv", triangle, other, "N", n, matrix, n, made, 1, times=count)
    else:
        for low, high in _pairs(bounds):
            here = made + low * size
            substitute(
                *(draft.table, n, high - low, (matrix, n), (here, k)),
                upper=lower,
                transposed=adjoint,
                times=count,
            )
    return draft.plan([(*batch, n, k)], count * n * n * k)
