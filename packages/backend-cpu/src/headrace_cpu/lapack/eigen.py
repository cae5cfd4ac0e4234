"""Plans of eigenvalues and eigenvectors of symmetric matrices, by divide and conquer.

References:
    M. Gu, S. C. Eisenstat, A divide-and-conquer algorithm for the symmetric tridiagonal
    eigenproblem, SIAM Journal on Matrix Analysis and Applications 16, 1995
"""

from __future__ import annotations

import functools
from math import prod
from typing import Any

import numpy as np

from headrace_cpu.lapack.library import loaded_lapack
from headrace_cpu.lapack.plan import Draft, Plan

# Columns that are brought to tridiagonal form together, for which the function wants room.
_TOGETHER = 64


@functools.lru_cache(maxsize=256)
def symmetric(
    batch: tuple[int, ...], n: int, dtype: np.dtype[Any], *, vectors: bool
) -> Plan | None:
    """Return the plan for symmetric matrices, of which the lower triangles are looked at.

    Args:
        batch: How many matrices there are.
        n: Their size.
        dtype: Theirs.
        vectors: Whether eigenvectors are wanted, too.

    Returns:
        None where there is no LAPACK.
    """
    lapack = loaded_lapack()
    if lapack is None:
        return None
    count = prod(batch)
    draft = Draft(lapack, dtype, 1, 2 if vectors else 1)
    size, table = draft.size, draft.table
    given, values = draft.input(0, n * n * size), draft.output(0, n * size)
    draft.look(n, n, count, lower=True)
    # Turned round, so that all is done in NumPy's order, and vectors have its signs.
    matrix = draft.scratch(count * n * n * size, n * n * size)
    table.call("omatcopy", "C", "T", n, n, 1.0, given, n, matrix, n, times=count)
    table.border()
    floats = 1 + 6 * n + 2 * n * n if vectors else 1 + (2 + _TOGETHER) * n
    wholes = 3 + 5 * n if vectors else 1
    work, more = draft.own(floats * size), draft.own(wholes * 8)
    table.call(
        *("syevd", "V" if vectors else "N", "L", n, matrix, n, values),
        *(work, floats, more, wholes, draft.failures(count)),
        times=count,
    )
    if vectors:
        # Fortran's columns are rows here.
        table.border()
        made = draft.output(1, n * n * size)
        table.call("omatcopy", "C", "T", n, n, 1.0, matrix, n, made, n, times=count)
    shapes = [(*batch, n), (*batch, n, n)] if vectors else [(*batch, n)]
    return draft.plan(shapes, count * n**3 * (9 if vectors else 4 / 3))
