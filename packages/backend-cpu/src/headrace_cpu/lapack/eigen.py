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
from headrace_cpu.lapack.table import Table


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
    size = draft.size
    given, values = draft.input(0, n * n * size), draft.output(0, n * size)
    # A product with ones shows what is not finite. What Fortran sees is the transpose: the upper
    # triangle.
    probes = draft.report("probes", (count, n))
    ones = draft.scratch(n * size)
    before = draft.before = Table(lapack, dtype)
    before.call("laset", "A", n, 1, 1.0, 1.0, ones, n)
    before.border()
    before.call("symv", "U", n, 1.0, given, n, ones, 1, 0.0, probes, 1, times=count)
    matrix = draft.scratch(count * n * n * size, n * n * size)
    floats = 1 + 6 * n + 2 * n * n if vectors else 2 * n + 1
    wholes = 3 + 5 * n if vectors else 1
    work, more = draft.own(floats * size), draft.own(wholes * 8)
    failures = draft.failures(count)
    table = draft.table
    table.call("lacpy", "U", n, n, given, n, matrix, n, times=count)
    table.border()
    table.call(
        *("syevd", "V" if vectors else "N", "U", n, matrix, n, values),
        *(work, floats, more, wholes, failures),
        times=count,
    )
    if vectors:
        # Fortran's columns are rows here.
        table.border()
        made = draft.output(1, n * n * size)
        table.call("omatcopy", "C", "T", n, n, 1.0, matrix, n, made, n, times=count)
    shapes = [(*batch, n), (*batch, n, n)] if vectors else [(*batch, n)]
    return draft.plan(shapes, count * n**3 * (9 if vectors else 4 / 3))
