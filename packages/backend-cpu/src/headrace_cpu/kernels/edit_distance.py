"""The kernel of distances between sequences."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from headrace.extend import KernelTable
from headrace_cpu.kernels.numeric import Array, check_shape, check_size, extents

KERNELS = KernelTable()


@KERNELS.plain("EditDistance")
def edit_distance(
    xp: Any,
    hypothesis_indices: Array,
    hypothesis_values: Array,
    hypothesis_shape: Array,
    truth_indices: Array,
    truth_values: Array,
    truth_shape: Array,
    *,
    normalize: bool,
) -> Array:
    """Return the distance of each pair of sequences."""
    ours, theirs = extents(hypothesis_shape), extents(truth_shape)
    if len(ours) != len(theirs) or not ours:
        raise ValueError(
            f"hypothesis and truth must have one rank above 0, got shapes {list(ours)} and "
            f"{list(theirs)}"
        )
    dims = tuple(max(a, b) for a, b in zip(ours[:-1], theirs[:-1], strict=True))
    check_size(dims)
    hypotheses = _sequences(hypothesis_indices, hypothesis_values, dims, len(ours))
    truths = _sequences(truth_indices, truth_values, dims, len(ours))
    distances = np.zeros((math.prod(dims),), np.float32)
    none = np.empty((0,), hypothesis_values.dtype)
    for place in {**hypotheses, **truths}:
        given, truth = hypotheses.get(place, none), truths.get(place, none)
        distance = float(_levenshtein(given, truth))
        if normalize:
            distance = distance / len(truth) if len(truth) else math.inf
        distances[place] = distance
    return xp.asarray(distances.reshape(dims))


def _sequences(indices: Array, values: Array, dims: tuple[int, ...], rank: int) -> dict[int, Array]:
    """Return the elements of each sequence, by the number of the sequence.

    Raises:
        ValueError: if indices and values do not match.
        IndexError: if a sequence lies outside ``dims``.
    """
    check_shape(values, (indices.shape[0] if indices.ndim else 0,), "values")
    check_shape(indices, (values.shape[0], rank), "indices")
    lead = np.asarray(indices[:, :-1], np.int64)
    if lead.size and ((lead < 0) | (lead >= np.array(dims, np.int64))).any():
        raise IndexError(f"indices of sequences must lie within {list(dims)}")
    places = np.zeros((values.shape[0],), np.int64)
    for axis, size in enumerate(dims):
        places = places * size + lead[:, axis]
    order = np.argsort(places, kind="stable")
    numbers, starts = np.unique(places[order], return_index=True)
    parts = np.split(values[order], starts[1:])
    return dict(zip(numbers.tolist(), parts, strict=False))


def _levenshtein(given: Array, truth: Array) -> int:
    """Return the number of edits between two sequences.

    By rows of the table of distances between beginnings (Wagner and Fischer, The string-to-string
    correction problem, 1974). Deletions along a row are a running minimum.
    """
    places = np.arange(len(truth) + 1)
    row = places
    for count, element in enumerate(given, 1):
        best = np.minimum(row[1:] + 1, row[:-1] + (truth != element))
        best = np.concatenate([[count], best])
        row = np.minimum.accumulate(best - places) + places
    return int(row[-1])
