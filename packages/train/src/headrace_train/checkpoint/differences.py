"""By how much two tensors differ, in words."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray


def difference(old: NDArray[Any], new: NDArray[Any]) -> str:
    """Say how two arrays of one dtype and shape differ.

    Returns:
        How many elements differ, and for numbers the largest difference, absolute and in relation
        to the larger of both; empty if all bits are equal.
    """
    if old.dtype.hasobject:
        changed = np.array([a != b for a, b in zip(old.flat, new.flat, strict=True)], bool)
    else:
        changed = (_bits(old) != _bits(new)).any(axis=1)
    count = int(np.count_nonzero(changed))
    if not count:
        return ""
    what = f"{count} of {old.size} elements differ"
    if old.dtype.hasobject or old.dtype == np.bool_:
        return what
    wide = np.complex128 if old.dtype.kind == "c" else np.longdouble
    first, second = old.ravel()[changed].astype(wide), new.ravel()[changed].astype(wide)
    finite = np.isfinite(first) & np.isfinite(second)
    odd = count - int(np.count_nonzero(finite))
    if odd:
        what += f", {odd} of them in what is not finite"
    if odd == count:
        return what
    first, second = first[finite], second[finite]
    apart = np.abs(first - second)
    scale = np.maximum(np.abs(first), np.abs(second))
    relative = np.divide(apart, scale, out=np.zeros_like(apart), where=scale > 0)
    return f"{what}, by up to {float(apart.max()):.6g} (relative {float(relative.max()):.3g})"


def _bits(array: NDArray[Any]) -> NDArray[Any]:
    """Return the bytes of each element, a row for each."""
    flat = np.ascontiguousarray(array).reshape(-1)
    return flat.view(np.uint8).reshape(flat.size, array.dtype.itemsize)
