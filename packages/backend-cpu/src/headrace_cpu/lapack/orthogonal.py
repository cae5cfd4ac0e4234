"""Plans of decompositions with orthogonal matrices: QR by reflections, and singular values.

References:
    G. H. Golub, C. F. Van Loan, Matrix Computations, fourth edition, 2013, 5.2 (QR)
    M. Gu, S. C. Eisenstat, A divide-and-conquer algorithm for the bidiagonal SVD, SIAM Journal on
    Matrix Analysis and Applications 16, 1995
"""

from __future__ import annotations

import functools
from math import prod
from typing import Any

import numpy as np

from headrace_cpu.lapack.library import loaded_lapack
from headrace_cpu.lapack.plan import Draft, Plan

# Columns that are worked on together, for which functions want room.
_TOGETHER = 64


@functools.lru_cache(maxsize=256)
def qr(batch: tuple[int, ...], m: int, n: int, dtype: np.dtype[Any], *, full: bool) -> Plan | None:
    """Return the plan of QR decompositions.

    Args:
        batch: How many matrices there are.
        m: Their rows.
        n: Their columns.
        dtype: Theirs.
        full: Whether the orthogonal matrices are square.

    Returns:
        None where there is no LAPACK.
    """
    lapack = loaded_lapack()
    if lapack is None:
        return None
    count, k = prod(batch), min(m, n)
    p = m if full else k
    draft = Draft(lapack, dtype, 1, 2)
    size, table = draft.size, draft.table
    given = draft.input(0, m * n * size)
    q, r = draft.output(0, m * p * size), draft.output(1, p * n * size)
    draft.look(m, n, count)
    room = m * max(n, p) * size
    matrix = draft.scratch(count * room, room)
    factors = draft.scratch(count * k * size, k * size)
    floats = max(n, p) * _TOGETHER
    work = draft.own(floats * size)
    failures = draft.failures(2 * count)
    table.call("omatcopy", "C", "T", n, m, 1.0, given, n, matrix, m, times=count)
    table.border()
    table.call("geqrf", m, n, matrix, m, factors, work, floats, failures, times=count)
    table.border()
    table.call("omatcopy", "C", "T", p, n, 1.0, matrix, m, r, n, times=count)
    table.border()
    if p > 1:
        # What is below the diagonal holds the reflections.
        table.call("laset", "U", n, p - 1, 0.0, 0.0, r + n * size, n, times=count)
    again = failures + count * 8
    table.call("orgqr", m, p, k, matrix, m, factors, work, floats, again, times=count)
    table.border()
    table.call("omatcopy", "C", "T", m, p, 1.0, matrix, m, q, p, times=count)
    flops = 2 * k * k * (max(m, n) - k / 3) + 2 * k * k * (m - k / 3)
    return draft.plan([(*batch, m, p), (*batch, p, n)], count * flops)


@functools.lru_cache(maxsize=256)
def singular(
    batch: tuple[int, ...], m: int, n: int, dtype: np.dtype[Any], *, full: bool, vectors: bool
) -> Plan | None:
    """Return the plan of singular values, the largest first, and vectors.

    Args:
        batch: How many matrices there are.
        m: Their rows.
        n: Their columns.
        dtype: Theirs.
        full: Whether the matrices of vectors are square.
        vectors: Whether they are wanted.

    Returns:
        None where there is no LAPACK.
    """
    lapack = loaded_lapack()
    if lapack is None:
        return None
    count, k, longer = prod(batch), min(m, n), max(m, n)
    p, q = (m, n) if full else (k, k)
    draft = Draft(lapack, dtype, 1, 3 if vectors else 1)
    size, table = draft.size, draft.table
    given, values = draft.input(0, m * n * size), draft.output(0, k * size)
    draft.look(m, n, count)
    matrix = draft.scratch(count * m * n * size, m * n * size)
    table.call("omatcopy", "C", "T", n, m, 1.0, given, n, matrix, m, times=count)
    table.border()
    # As much as LAPACK's guide names for the ways of long matrices, in blocks.
    floats = 4 * k * k + 7 * k + _TOGETHER * (longer + 3 * k) + longer
    work, wholes = draft.own(floats * size), draft.own(8 * k * 8)
    job = ("A" if full else "S") if vectors else "N"
    turned, other = draft.own(size), draft.own(size)
    if vectors:
        turned = draft.scratch(count * m * p * size, m * p * size)
        # The transpose of Fortran's matrix of ``v`` is the one that C sees.
        other = draft.output(2, n * q * size)
    table.call(
        *("gesdd", job, m, n, matrix, m, values, turned, m, other, q),
        *(work, floats, wholes, draft.failures(count)),
        times=count,
    )
    shapes = [(*batch, k)]
    if vectors:
        table.border()
        left = draft.output(1, m * p * size)
        table.call("omatcopy", "C", "T", m, p, 1.0, turned, m, left, p, times=count)
        shapes += [(*batch, m, p), (*batch, n, q)]
    return draft.plan(shapes, count * k * k * longer * (14 if vectors else 4))
