"""A stand-in for ``cupyx.scipy.special``: SciPy underneath, with the functions that CuPy has."""

from __future__ import annotations

from typing import Any

from headrace_cuda.testing.module import scipy_function


def __getattr__(name: str) -> Any:
    """Return a function for device arrays."""
    return scipy_function("special", name)
