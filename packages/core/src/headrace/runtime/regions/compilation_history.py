"""Compilation histories of regions: for which shapes they were compiled, when, and why again."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

# So many of the latest times are told one by one.
_LATEST = 3


def told(history: Sequence[tuple[tuple[Any, ...], float]], names: Sequence[str]) -> list[str]:
    """Return a line for each time that a region was compiled, the latest ones.

    Args:
        history: The shapes of the inputs whose shapes vary, ``("any",)`` where they were too many,
            and the seconds since the step was prepared.
        names: The names of these inputs.
    """
    if not names:
        return []
    lines = []
    left = max(0, len(history) - _LATEST)
    if left:
        lines.append(f"planned for {left} other combination{'s' * (left > 1)} of shapes before")
    for number, (shapes, seconds) in enumerate(history[left:], left):
        when = f"{seconds:.1f} s after the step was prepared"
        if shapes == ("any",):
            lines.append(
                f"planned once more, {when}, without shapes: more combinations came than are "
                "planned one by one"
            )
            continue
        given = dict(zip(names, shapes, strict=True))
        if not number:
            lines.append(f"planned for {_listed(given)}, {when}")
            continue
        before = [known for known, _ in history[:number] if len(known) == len(names)]
        new = {
            name: shape
            for i, (name, shape) in enumerate(given.items())
            if all(known[i] != shape for known in before)
        }
        why = f"{_listed(new)} had not come" if new else f"{_listed(given)} had not come together"
        lines.append(f"planned again, {when}: {why} before")
    return lines


def _listed(shapes: dict[str, Any]) -> str:
    return ", ".join(
        f"{name} {'of any shape' if shape is None else list(shape)}"
        for name, shape in shapes.items()
    )
