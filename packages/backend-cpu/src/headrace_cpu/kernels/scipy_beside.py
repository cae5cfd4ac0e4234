"""SciPy for the array module at hand."""

from __future__ import annotations

import functools
import importlib
from typing import Any

import numpy as np


def scipy_module(xp: Any, name: str) -> Any:
    """Return SciPy's module for arrays of ``xp``: ``scipy.special``, or CuPy's twin of it.

    It is imported when a kernel first needs it: importing SciPy takes longer than Headrace.

    Args:
        xp: NumPy, or a module like CuPy, which has a module ``cupyx.scipy`` beside it.
        name: As in ``"special"``.
    """
    return _imported("scipy" if xp is np else f"{xp.__name__}x.scipy", name)


@functools.cache
def _imported(package: str, name: str) -> Any:
    return importlib.import_module(f"{package}.{name}")
