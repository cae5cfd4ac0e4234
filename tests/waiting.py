"""Waiting until something is so."""

from __future__ import annotations

import time
from collections.abc import Callable


def wait_until(condition: Callable[[], object], within_s: float = 30.0) -> None:
    """Wait until a condition holds, and fail where it does not in time."""
    __tracebackhide__ = True
    end = time.monotonic() + within_s
    while not condition():
        assert time.monotonic() < end, f"it is not so after {within_s:g} s"
        time.sleep(0.005)
