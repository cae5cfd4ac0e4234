"""Differences that stay, and why: the rows of ``explained.json``.

A row is two expressions, of the program and of the difference, and a reason. Where expressions say
too little, ``holds`` names a function below that looks at the values, or at the axes.
"""

from __future__ import annotations

import ast
import json
import math
import re
from collections.abc import Callable
from pathlib import Path

EXPLAINED = json.loads((Path(__file__).parent / "explained.json").read_text("utf-8"))


def explained(program: str, found: str) -> bool:
    """Whether a difference is one of those that stay, and why is written down."""
    return any(
        re.search(row["program"], program)
        and re.search(row["difference"], found)
        and ("holds" not in row or HOLDS[row["holds"]](program, found))
        for row in EXPLAINED
    )


def _values(found: str) -> list[tuple[float, float]]:
    """Return the elements of two values that differ, ours first; none where something else does."""
    both = re.fullmatch(r"part \d is (\[.*\]), TensorFlow's (\[.*\])", found)
    if both is None:
        return []
    ours, theirs = ([float(x) for x in ast.literal_eval(text)] for text in both.groups())
    return list(zip(ours, theirs, strict=True)) if len(ours) == len(theirs) else []


def _alike(ours: float, theirs: float) -> bool:
    return math.isclose(ours, theirs, rel_tol=1e-3, abs_tol=1e-5) or (
        math.isnan(ours) and math.isnan(theirs)
    )


def _truncated(program: str, found: str) -> bool:
    """Whether ours are TensorFlow's numbers without their fractions."""

    def fits(ours: float, theirs: float) -> bool:
        # A constant divisor is multiplied with, which rounds, and makes NaN of a quotient by 0.
        if not math.isfinite(theirs):
            return _alike(ours, theirs) or (math.isnan(theirs) and math.isinf(ours))
        near = [
            math.trunc(theirs * factor) for factor in (1 - 1e-6, 1, 1 + 1e-6, 1 - 1e-3, 1 + 1e-3)
        ]
        return ours in near

    pairs = _values(found)
    return bool(pairs) and all(fits(*pair) for pair in pairs)


def _rounded_at_one(program: str, found: str) -> bool:
    """Whether ours are those of 1e-7 where TensorFlow's are those of 2^-23, which is near it."""
    pairs = _values(found)
    # Logarithms of the two, and their reciprocals.
    most = 2.0**-23 / 1e-7
    return bool(pairs) and all(
        _alike(ours, theirs) or (theirs != 0 and 1 <= ours / theirs <= most * (1 + 1e-3))
        for ours, theirs in pairs
    )


_RANK = re.compile(r"^x = .*?reshape\(\(([\d, ]*)\)\)")
_AXES = re.compile(r"ax[ie]s=(?:T\.placeholder_with_default\(np\.array\()?\[(-?\d), (-?\d)\]")


def _rank(program: str) -> int:
    found = _RANK.search(program)
    return len(re.findall(r"\d+", found[1])) if found else 0


def _twice(program: str, found: str) -> bool:
    """Whether an axis stands twice, perhaps once from each end."""
    axes, rank = _AXES.search(program), _rank(program)
    return bool(axes and rank and int(axes[1]) % rank == int(axes[2]) % rank)


def _twice_for_all(program: str, found: str) -> bool:
    """Whether an axis stands twice, so that there are as many as the tensor has axes."""
    return _twice(program, found) and _rank(program) == 2


HOLDS: dict[str, Callable[[str, str], bool]] = {
    "an axis twice": _twice,
    "an axis of two, twice": _twice_for_all,
    "ours are truncated": _truncated,
    "ours are of epsilon": _rounded_at_one,
}
