"""Kernels of checks of values."""

from __future__ import annotations

from typing import Any

from headrace.extend import KernelTable
from headrace_cpu.kernels.numeric import Array

KERNELS = KernelTable()


@KERNELS.plain("CheckNumerics")
def check_numerics(xp: Any, x: Array, *, message: str) -> Array:
    """Return ``x``, or raise what is wrong with it."""
    if bool(xp.isfinite(x).all()):
        return x
    found = [label for label, test in (("Inf", xp.isinf), ("NaN", xp.isnan)) if bool(test(x).any())]
    raise ValueError(f"{message}: tensor had {' and '.join(found)} values")
