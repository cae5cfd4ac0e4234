"""How a check says that it failed, and why."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from headrace.errors import shorten
from headrace_testing.sample import Row


class ConformanceError(AssertionError):
    """An op that does not do what a row of its table says."""


class SkipCheck(Exception):  # noqa: N818 - not an error: the check does not apply here
    """A check that cannot be made here; says why."""


def fail(
    row: Row, device: str, case: str, problem: str, values: Sequence[Any] = ()
) -> ConformanceError:
    """Return the error for a row that failed.

    Args:
        row: The sample or reject row.
        device: Where it ran.
        case: Which dtype, layout or route.
        problem: What is wrong: expected, got, largest error.
        values: The inputs, to be shown where they are few.
    """
    inputs = ", ".join(str(maker) for maker in row.inputs)
    attrs = ", ".join(f"{name}={_brief(value)}" for name, value in row.attrs.items())
    lines = [
        f"{row.name} on {device}, {case}: {problem}",
        f"  row: {row.where}, {row.op}({inputs}{'; ' if attrs else ''}{attrs})",
    ]
    lines += [f"  input {i}: {_brief(value)}" for i, value in enumerate(values)]
    return ConformanceError(shorten(lines, 24))


def _brief(value: Any) -> str:
    if isinstance(value, np.ndarray):
        text = np.array2string(value, separator=", ", threshold=16, edgeitems=2, precision=6)
        return f"{value.dtype}{list(value.shape)} {' '.join(text.split())}"
    if isinstance(value, list):
        return f"[{', '.join(_brief(v) for v in value)}]"
    return str(value)
