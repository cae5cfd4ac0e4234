"""Kernels that cross the features of rows.

Hashes are joined by TensorFlow's ``FingerprintCat64``, so that both give the same numbers.
"""

from __future__ import annotations

import math
from typing import Any, TypeAlias

import numpy as np

from headrace.extend import KernelTable
from headrace_cpu.kernels.numeric import Array, check_rank
from headrace_cpu.kernels.text import filled
from headrace_cpu.kernels.text_hash import Words, fingerprint, hashes

KERNELS = KernelTable()

# More would take gigabytes for their indices alone.
_MOST_CROSSES = 10**9
_FACTOR = np.uint64(0xC6A4A7935BD1E995)
_SHIFT = np.uint64(47)

# The features of a tensor in one row, where those of each row start, and how many there are.
_Column: TypeAlias = "tuple[Array, Array, Array]"
# The features of a tensor, and which of them each cross has.
_Picked: TypeAlias = "tuple[Array, Array]"


def _sparse_column(indices: Array, values: Array, shape: Array, label: str) -> _Column:
    check_rank(indices, 2, f"indices of {label}")
    check_rank(values, 1, f"values of {label}")
    if indices.shape[1] != 2 or shape.shape != (2,):
        raise ValueError(
            f"{label} must have 2 dimensions, got indices of shape {list(indices.shape)} and a "
            f"shape of {list(shape.shape)}"
        )
    if len(indices) != len(values):
        raise ValueError(f"{label} has {len(values)} values for {len(indices)} indices")
    places, count = indices[:, 0].astype(np.int64), int(shape[0])
    if count < 0:
        raise ValueError(f"{label} cannot have {count} rows")
    if count > _MOST_CROSSES:
        raise ValueError(f"{label} has {count} rows, at most {_MOST_CROSSES} are crossed")
    if places.size and (places.min() < 0 or places.max() >= count):
        raise ValueError(f"rows of {label} must be from 0 to {count - 1}, got {places.tolist()}")
    if (places[1:] < places[:-1]).any():
        raise ValueError(
            f"the indices of {label} are not in order of their rows; hr.sparse.reorder brings "
            "them in order"
        )
    ends = np.searchsorted(places, np.arange(count + 1))
    return values, ends[:-1], np.diff(ends)


def _dense_column(values: Array, label: str) -> _Column:
    check_rank(values, 2, label)
    rows, columns = values.shape
    return values.reshape(-1), np.arange(rows) * columns, np.full(rows, columns)


def _columns(
    indices: list[Array], values: list[Array], shapes: list[Array], dense: list[Array]
) -> list[_Column]:
    columns: list[_Column] = []
    labels = []
    for i, parts in enumerate(zip(indices, values, shapes, strict=True)):
        labels.append(f"sparse tensor {i}")
        columns.append(_sparse_column(*parts, labels[-1]))
    for i, tensor in enumerate(dense):
        labels.append(f"dense tensor {i}")
        columns.append(_dense_column(tensor, labels[-1]))
    for label, (_, starts, _counts) in zip(labels, columns, strict=True):
        if len(starts) != len(columns[0][1]):
            raise ValueError(
                "inputs must have the same number of rows, got "
                f"{len(columns[0][1])}, and {len(starts)} in {label}"
            )
    return columns


@KERNELS.plain("SparseCross")
def sparse_cross(
    xp: Any,
    indices: list[Array],
    values: list[Array],
    shapes: list[Array],
    dense_inputs: list[Array],
    *,
    hashed_output: bool,
    num_buckets: int,
    hash_key: int,
) -> tuple[Array, Array, Array]:
    """Cross the features of each row: the last tensor's change fastest."""
    columns = _columns(indices, values, shapes, dense_inputs)
    rows = len(columns[0][1]) if columns else 0
    # In Python's integers, which do not wrap around.
    many = sum(map(math.prod, zip(*(counts.tolist() for _, _, counts in columns), strict=True)))
    if many > _MOST_CROSSES:
        raise ValueError(
            f"there are {many} crosses of the features, at most {_MOST_CROSSES} are made"
        )
    crosses = np.ones(rows, np.int64)
    for _, _, counts in columns:
        crosses *= counts
    row = np.repeat(np.arange(rows), crosses)
    within = np.arange(len(row)) - np.repeat(np.cumsum(crosses) - crosses, crosses)
    picked: list[_Picked] = []
    rest = within
    for features, starts, counts in reversed(columns):
        rest, chosen = np.divmod(rest, counts[row])
        picked.append((features, starts[row] + chosen))
    picked.reverse()
    if hashed_output:
        found = _hashed(picked, len(row), num_buckets, hash_key)
    else:
        found = _joined(picked, len(row))
    whole = np.array([rows, crosses.max(initial=0)], np.int64)
    return np.stack([row, within], axis=1).astype(np.int64), found, whole


def _joined(picked: list[_Picked], count: int) -> Array:
    """Return what each cross picks from each tensor, with separators."""
    texts = [np.array(_texts(features), object)[places].tolist() for features, places in picked]
    return filled(map(b"_X_".join, zip(*texts, strict=True)), (count,))


def _texts(features: Array) -> list[bytes]:
    if features.dtype == object:
        strings: list[bytes] = features.tolist()
        return strings
    return [b"%d" % number for number in features.tolist()]


def _hashed(picked: list[_Picked], count: int, num_buckets: int, hash_key: int) -> Array:
    """Return the hash of each cross, a remainder."""
    found = np.full(count, hash_key & 0xFFFFFFFFFFFFFFFF, np.uint64)
    for features, places in picked:
        words = hashes(features, fingerprint) if features.dtype == object else features
        found = _with(found, words.astype(np.int64).view(np.uint64)[places])
    return (found % np.uint64(num_buckets or 2**63 - 1)).astype(np.int64)


def _mixed(x: Words) -> Words:
    return x ^ (x >> _SHIFT)


def _with(found: Words, word: Words) -> Words:
    """Return the hash of two words."""
    joined = (found ^ _FACTOR) ^ (_mixed(word * _FACTOR) * _FACTOR)
    return _mixed(_mixed(joined * _FACTOR) * _FACTOR)
