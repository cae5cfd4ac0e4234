"""Plans by Gaussian elimination with exchanges of rows: solutions, inverses and determinants.

References:
    G. H. Golub, C. F. Van Loan, Matrix Computations, fourth edition, 2013, 3.4 (partial pivoting)
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from math import prod
from typing import Any

import numpy as np

from headrace_cpu.lapack.library import loaded_lapack
from headrace_cpu.lapack.plan import Draft, Plan, Reports
from headrace_cpu.lapack.table import Place
from headrace_cpu.native.memory import Array

# Columns that are worked on together, for which functions want room.
_TOGETHER = 64
# Sizes from which on plans of determinants are worth it: of some matrices, and of one.
_SMALL, _MANY, _MIDDLE = 24, 8, 100
# Products of numbers whose exponents add up to less than this neither overflow nor lose digits.
_SAFE_EXPONENTS = 1000
# So many numbers between a half and one have a product that does not underflow.
_FACTORS = 512


def _drafted(
    n: int, count: int, dtype: np.dtype[Any], outputs: int, inputs: int = 1
) -> Draft | None:
    lapack = loaded_lapack()
    if lapack is None:
        return None
    draft = Draft(lapack, dtype, inputs, outputs)
    draft.look(n, n, count)
    return draft


def _eliminated(draft: Draft, matrix: Place, n: int, count: int) -> tuple[Place, Place]:
    """Let a plan decompose matrices where they are.

    Returns:
        Where the exchanges are, and where as many calls that follow may report failures.
    """
    pivots = draft.report("more", (count, n), np.int64 if draft.lapack.wide else np.int32)
    failures = draft.failures(2 * count)
    draft.table.call("getrf", n, n, matrix, n, pivots, failures, times=count)
    return pivots, failures + count * 8


@functools.lru_cache(maxsize=256)
def inverse(batch: tuple[int, ...], n: int, dtype: np.dtype[Any], *, adjoint: bool) -> Plan | None:
    """Return the plan of inverses, transposed where ``adjoint``; None where there is no LAPACK."""
    count = prod(batch)
    draft = _drafted(n, count, dtype, 1)
    if draft is None:
        return None
    size, table = draft.size, draft.table
    given, made = draft.input(0, n * n * size), draft.output(0, n * n * size)
    if adjoint:
        table.call("omatcopy", "C", "T", n, n, 1.0, given, n, made, n, times=count)
    else:
        table.call("lacpy", "A", n, n, given, n, made, n, times=count)
    table.border()
    pivots, failures = _eliminated(draft, made, n, count)
    table.border()
    work = draft.own(n * _TOGETHER * size)
    table.call("getri", n, made, n, pivots, work, n * _TOGETHER, failures, times=count)
    return draft.plan([(*batch, n, n)], count * 2 * n**3)


@functools.lru_cache(maxsize=256)
def solution(
    batch: tuple[int, ...], n: int, k: int, dtype: np.dtype[Any], *, adjoint: bool
) -> Plan | None:
    """Return the plan of equations with ``k`` right sides; None where there is no LAPACK."""
    count = prod(batch)
    draft = _drafted(n, count, dtype, 1, inputs=2)
    if draft is None:
        return None
    size, table = draft.size, draft.table
    given, side = draft.input(0, n * n * size), draft.input(1, n * k * size)
    made = draft.output(0, n * k * size)
    matrix = draft.scratch(count * n * n * size, n * n * size)
    # One side lies in memory as Fortran wants it.
    turned = made if k == 1 else draft.scratch(count * n * k * size, n * k * size)
    table.call("lacpy", "A", n, n, given, n, matrix, n, times=count)
    if k == 1:
        table.call("lacpy", "A", n, 1, side, n, turned, n, times=count)
    else:
        table.call("omatcopy", "C", "T", k, n, 1.0, side, k, turned, n, times=count)
    table.border()
    pivots, failures = _eliminated(draft, matrix, n, count)
    table.border()
    # What Fortran sees is the transpose.
    table.call(
        *("getrs", "N" if adjoint else "T", n, k, matrix, n, pivots, turned, n, failures),
        times=count,
    )
    if k > 1:
        table.border()
        table.call("omatcopy", "C", "T", n, k, 1.0, turned, n, made, k, times=count)
    return draft.plan([(*batch, n, k)], count * (2 * n**3 / 3 + 2 * n * n * k))


@functools.lru_cache(maxsize=256)
def determinant(
    batch: tuple[int, ...], n: int, dtype: np.dtype[Any], *, logarithm: bool
) -> Plan | None:
    """Return the plan of determinants, or of their signs and logarithms.

    Matrices that are not invertible count as failures. Where there is little to eliminate NumPy is
    done sooner than Python has looked at what LAPACK left; then there is no plan.
    """
    count = prod(batch)
    if n < _SMALL or (n < _MIDDLE and count < _MANY):
        return None
    draft = _drafted(n, count, dtype, 2 if logarithm else 1)
    if draft is None:
        return None
    size, table = draft.size, draft.table
    given = draft.input(0, n * n * size)
    matrix = draft.scratch(count * n * n * size, n * n * size)
    table.call("lacpy", "A", n, n, given, n, matrix, n, times=count)
    table.border()
    _eliminated(draft, matrix, n, count)
    table.border()
    diagonal = draft.report("more", (count, n))
    table.call("copy", n, matrix, n + 1, diagonal, 1, times=count)
    outputs = [batch, batch] if logarithm else [batch]
    finish = _signs_and_logarithms if logarithm else _determinants
    return draft.plan(outputs, count * 2 * n**3 / 3, finish)


def _exchanges(pivots: Array) -> Array:
    """Return -1 where rows were exchanged an odd number of times, else 1."""
    odd = np.count_nonzero(pivots != np.arange(1, pivots.shape[1] + 1), axis=1) & 1
    return np.asarray(1.0 - 2.0 * odd)


def _determinants(reports: Reports, outputs: Sequence[Array]) -> None:
    pivots, diagonal = reports.more
    (out,) = outputs
    wide = diagonal.astype(np.float64)
    _, exponents = np.frexp(wide)
    if np.abs(exponents).sum(1).max() < _SAFE_EXPONENTS:
        found = wide.prod(1)
    else:
        found = _product(wide)
    with np.errstate(all="ignore"):
        out.reshape(-1)[...] = found * _exchanges(pivots)


def _product(rows: Array) -> Array:
    """Return the products of rows, whatever happens on the way."""
    parts, exponents = np.frexp(rows)
    total = exponents.sum(1)
    while parts.shape[1] > 1:
        starts = range(0, parts.shape[1], _FACTORS)
        joined = np.stack([parts[:, s : s + _FACTORS].prod(1) for s in starts], axis=1)
        parts, exponents = np.frexp(joined)
        total = total + exponents.sum(1)
    with np.errstate(all="ignore"):
        return np.asarray(np.ldexp(parts[:, 0], total))


def _signs_and_logarithms(reports: Reports, outputs: Sequence[Array]) -> None:
    pivots, diagonal = reports.more
    signs, logarithms = (each.reshape(-1) for each in outputs)
    signs[...] = np.sign(diagonal).prod(1) * _exchanges(pivots)
    logarithms[...] = np.log(np.abs(diagonal)).sum(1, dtype=np.float64)
