"""Plans of products of many matrices, a call of BLAS for each, shared out among threads."""

from __future__ import annotations

import functools
from math import prod
from typing import Any

import numpy as np

from headrace_cpu.lapack.library import loaded_lapack
from headrace_cpu.lapack.plan import Draft, Plan
from headrace_cpu.lapack.triangles import step_of


@functools.lru_cache(maxsize=256)
def products(
    left: tuple[int, ...],
    right: tuple[int, ...],
    dtype: np.dtype[Any],
    *,
    transpose_a: bool,
    transpose_b: bool,
) -> Plan | None:
    """Return the plan of products of matrices, batches of which are broadcast.

    Args:
        left: The shape of those from the left.
        right: The shape of those from the right.
        dtype: Of all.
        transpose_a: As in the op.
        transpose_b: As in the op.

    Returns:
        None where there is no LAPACK, or batches are broadcast in several ways.
    """
    lapack = loaded_lapack()
    if lapack is None:
        return None
    batch = np.broadcast_shapes(left[:-2], right[:-2])
    draft = Draft(lapack, dtype, 2, 1)
    size, count = draft.size, prod(batch)
    m, inner = reversed(left[-2:]) if transpose_a else left[-2:]
    n = right[-2] if transpose_b else right[-1]
    of_left = step_of(left[:-2], batch, m * inner * size)
    of_right = step_of(right[:-2], batch, n * inner * size)
    if of_left is None or of_right is None:
        return None
    a, b, c = draft.input(0, of_left), draft.input(1, of_right), draft.output(0, m * n * size)
    # Fortran sees the transposes: the product of the right one's with the left one's.
    draft.table.call(
        *("gemm", "T" if transpose_b else "N", "T" if transpose_a else "N", n, m, inner, 1.0),
        *(b, right[-1], a, left[-1], 0.0, c, n),
        times=count,
    )
    return draft.plan([(*batch, m, n)], 2 * count * m * n * inner)
