"""Comparisons of arrays and nested structures of them, with messages that show what differs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

# How many elements that differ a message shows.
_SHOWN = 5

ToArray = Callable[[Any], np.ndarray]


def difference_in_value(
    a: Any, b: Any, rtol: float, atol: float, to_array: ToArray, path: str = ""
) -> str | None:
    """Return where two structures are not close, None where they are.

    Args:
        a: Arrays, numbers or tensors, in lists, tuples and dicts; ``|a - b|`` may be as large as
            ``atol + rtol * |b|``.
        b: Likewise.
        rtol: The relative tolerance.
        atol: The absolute tolerance.
        to_array: Makes arrays of leaves.
        path: Where in the whole structure they are.

    Raises:
        ValueError: if only one of them is a dict, or lists have different lengths.
    """
    a = a._asdict() if hasattr(a, "_asdict") else a
    b = b._asdict() if hasattr(b, "_asdict") else b
    if isinstance(a, Mapping) != isinstance(b, Mapping):
        raise ValueError(f"can't compare a dict with what is none, a{path} with b{path}")
    if isinstance(a, Mapping):
        if set(a) != set(b):
            return f"a{path} has the keys {sorted(a)}, b{path} has {sorted(b)}"
        pairs = [(key, a[key], b[key]) for key in a]
    elif isinstance(a, list | tuple):
        try:
            return _arrays_apart(to_array(a), to_array(b), rtol, atol, path)
        except (ValueError, TypeError):
            if len(a) != len(b):
                raise ValueError(
                    f"a{path} has {len(a)} items, b{path} has {len(b)}: they can't be compared"
                ) from None
        pairs = [(i, x, y) for i, (x, y) in enumerate(zip(a, b, strict=True))]
    else:
        return _arrays_apart(to_array(a), to_array(b), rtol, atol, path)
    found = (
        difference_in_value(x, y, rtol, atol, to_array, f"{path}[{key}]") for key, x, y in pairs
    )
    return next((text for text in found if text is not None), None)


def _arrays_apart(a: np.ndarray, b: np.ndarray, rtol: float, atol: float, path: str) -> str | None:
    if a.shape != b.shape:
        return f"a{path} has shape {list(a.shape)}, b{path} has {list(b.shape)}"
    if np.allclose(a, b, rtol=rtol, atol=atol, equal_nan=True):
        return None
    close = np.isclose(a, b, rtol=rtol, atol=atol, equal_nan=True)
    least = f"a{path} and b{path} are not within {atol:g} + {rtol:g} * |b|"
    return f"{least}: {_shown(a, b, ~close)}"


def difference(a: np.ndarray, b: np.ndarray) -> str | None:
    """Return where two arrays are not equal, None where they are; NaN equals NaN."""
    if a.shape != b.shape:
        return f"shapes {list(a.shape)} and {list(b.shape)} differ; the second holds {_brief(b)}"
    same = np.asarray(a == b)
    if a.dtype.kind in "fV" and b.dtype.kind in "fV":
        same = same | (np.isnan(a) & np.isnan(b))
    return None if same.all() else f"not equal: {_shown(a, b, ~same)}"


def _shown(a: np.ndarray, b: np.ndarray, wrong: np.ndarray) -> str:
    places = np.argwhere(wrong)
    lines = [f"{len(places)} of {a.size} elements differ, dtypes {a.dtype} and {b.dtype}"]
    for place in places[:_SHOWN]:
        index = tuple(int(i) for i in place)
        lines.append(f"  at {list(index)}: {a[index]!r} and {b[index]!r}")
    if len(places) > _SHOWN:
        lines.append(f"  and {len(places) - _SHOWN} more")
    return "\n".join(lines)


def _brief(array: np.ndarray) -> str:
    text = str(array.tolist()) if array.size < 20 else f"{array.size} elements"
    return text if len(text) <= 200 else f"{text[:197]}..."
