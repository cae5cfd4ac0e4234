"""Batches: requests that one step answers, joined along the first axis and split again."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import TypeAlias

import numpy as np

from headrace_serve.models.signature import Array, Arrays, Signature

# What became of a request: its outputs, or the error of its step.
Result: TypeAlias = "dict[str, Array] | Exception"


def rows_of(inputs: Arrays) -> int | None:
    """Return the size of the first axis that all inputs share, None where they do not."""
    sizes = {len(array) if array.ndim else None for array in inputs.values()}
    return sizes.pop() if len(sizes) == 1 else None


def key_of(inputs: Arrays) -> Hashable:
    """Return what requests have in common that can be joined: all sizes but the first."""
    return tuple((name, inputs[name].shape[1:]) for name in sorted(inputs))


def run_alone(signature: Signature, inputs: dict[str, Array]) -> Result:
    """Return what the signature makes of one request."""
    try:
        outputs = signature.call(inputs)
        return {name: np.asarray(outputs[name]) for name in signature.outputs}
    except Exception as error:
        # Whatever a model raises is the answer to this request, and to no other.
        return error


def run_each(signature: Signature, requests: Sequence[dict[str, Array]]) -> list[Result]:
    """Return what the signature makes of each request by itself."""
    return [run_alone(signature, inputs) for inputs in requests]


def run_joined(
    signature: Signature, requests: Sequence[dict[str, Array]], *, pad_to: int = 0
) -> list[dict[str, Array]] | None:
    """Answer requests by one step.

    Args:
        signature: Takes batches.
        requests: Their inputs, of the same shapes but for the first axes.
        pad_to: The most rows up to which the step is filled, to a power of two; 0 for none.

    Returns:
        The outputs of each; None where the step failed or its outputs have other rows than its
        inputs, so that nobody can say whose they are.
    """
    sizes = [len(next(iter(inputs.values()))) for inputs in requests]
    rows = sum(sizes)
    padded = max(rows, min(pad_to, 1 << max(0, rows - 1).bit_length())) if rows else 0
    joined = {
        name: _joined([inputs[name] for inputs in requests], padded - rows)
        for name in signature.inputs
    }
    outputs = run_alone(signature, joined)
    if isinstance(outputs, Exception):
        return None
    if any(a.ndim == 0 or len(a) != padded for a in outputs.values()):
        return None
    ends = np.cumsum(sizes)
    parts = {name: np.split(array, ends) for name, array in outputs.items()}
    return [{name: parts[name][index] for name in parts} for index in range(len(sizes))]


def _joined(arrays: list[Array], more: int) -> Array:
    """Return arrays one after the other, and the last row so many times more."""
    joined = np.concatenate(arrays)
    return np.concatenate([joined, np.repeat(joined[-1:], more, axis=0)]) if more else joined


def agree(joined: Sequence[Result], alone: Sequence[Result]) -> bool:
    """Whether requests got the same answers together as one by one, up to rounding."""
    return all(_same(one, other) for one, other in zip(joined, alone, strict=True))


def _same(one: Result, other: Result) -> bool:
    if isinstance(one, Exception) or isinstance(other, Exception):
        return False
    return all(_close(one[name], other[name]) for name in one)


def _close(one: Array, other: Array) -> bool:
    if one.shape != other.shape:
        return False
    if one.dtype.kind not in "fcV":
        return bool(np.array_equal(one, other))
    if one.dtype.kind == "V":
        one, other = one.astype(np.float32), other.astype(np.float32)
    # Steps of several sizes round differently; rows that depend on others differ by far more.
    tolerance = 1e-3 if one.dtype.itemsize >= 4 and other.dtype.kind != "V" else 3e-2
    finite = np.abs(other[np.isfinite(other)])
    scale = float(finite.max()) if finite.size else 0.0
    return bool(np.allclose(one, other, rtol=tolerance, atol=tolerance * scale, equal_nan=True))
