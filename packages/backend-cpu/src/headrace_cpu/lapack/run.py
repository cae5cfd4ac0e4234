"""Running plans on arrays, call by call on the calling thread: for plain kernels."""

from __future__ import annotations

import functools
from collections.abc import Sequence

import numpy as np

from headrace_cpu.lapack.plan import Plan
from headrace_cpu.lapack.table import Table
from headrace_cpu.native.memory import Array, address, allocate


def computed(plan: Plan, inputs: Sequence[Array]) -> list[Array] | None:
    """Return the results of a plan, None where it failed.

    Args:
        plan: The plan.
        inputs: The matrices, of its dtype.
    """
    given = [np.ascontiguousarray(x) for x in inputs]
    outputs = [np.empty(shape, plan.dtype) for shape in plan.outputs]
    scratch = allocate(plan.scratch(1))
    bases = (0, *map(address, (*given, *outputs)), address(scratch))
    return outputs if follow(plan, bases, outputs) else None


def follow(plan: Plan, bases: Sequence[int], outputs: Sequence[Array]) -> bool:
    """Make the calls of a plan on the calling thread; return whether nothing failed."""
    reports = plan.views(bases[-1])
    if reports.failures is not None:
        reports.failures.fill(0)
    blas = plan.table.lapack.blas

    def run(table: Table) -> None:
        blas.alone(functools.partial(table.run, bases))()

    if plan.before is not None:
        run(plan.before)
        if not reports.sound():
            return False
    run(plan.table)
    if not reports.done():
        return False
    if plan.finish is not None:
        plan.finish(reports, outputs)
    return True
