"""Pooling over windows of two sizes, so that images shrink by any ratio.

References:
    Windows and how they are drawn: B. Graham, Fractional max-pooling, arXiv:1412.6071, 2014.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from headrace import dtypes
from headrace.errors import AttributeValueError, DTypeError, ShapeError, shown
from headrace.graph.convert import convert_to_tensor
from headrace.graph.scopes import get_default_graph, name_scope
from headrace.graph.tensor import Tensor
from headrace.ops.array import concat, expand_dims, reshape, shape, transpose
from headrace.ops.constant import constant, one_hot, zeros_like
from headrace.ops.constant import range as range_of
from headrace.ops.conversion import cast
from headrace.ops.cumulative import cumsum
from headrace.ops.elementwise import ceil, floor, less, minimum, select
from headrace.ops.extremes import argmax
from headrace.ops.gather import gather
from headrace.ops.random import random_uniform
from headrace.ops.reduce import reduce_max, reduce_sum
from headrace.ops.sort import argsort
from headrace.ops.stateless import stateless_uniform


class FractionalMaxPool(NamedTuple):
    """What ``fractional_max_pool`` returns.

    Attributes:
        output: [n, oh, ow, c], the maxima.
        row_pooling_sequence: [oh + 1], int64, the row at which each window begins, and the height.
        col_pooling_sequence: [ow + 1], int64, the same of columns.
    """

    output: Tensor
    row_pooling_sequence: Tensor
    col_pooling_sequence: Tensor


class FractionalAvgPool(NamedTuple):
    """What ``fractional_avg_pool`` returns.

    Attributes:
        output: [n, oh, ow, c], the means.
        row_pooling_sequence: [oh + 1], int64, the row at which each window begins, and the height.
        col_pooling_sequence: [ow + 1], int64, the same of columns.
    """

    output: Tensor
    row_pooling_sequence: Tensor
    col_pooling_sequence: Tensor


def fractional_max_pool(
    value: Any,
    pooling_ratio: Sequence[float],
    pseudo_random: bool = False,
    overlapping: bool = False,
    deterministic: bool = False,
    seed: int = 0,
    seed2: int = 0,
    name: str | None = None,
) -> FractionalMaxPool:
    """Take the maxima of windows of images, of sizes such that they shrink by a ratio.

    Args:
        value: [n, h, w, c], float32, float64, int32 or int64.
        pooling_ratio: By how much each axis shrinks: four numbers, 1 for batch and channels, 1 at
            least for the others.
        pseudo_random: Whether the sizes of windows are spread evenly, or in a random order.
        overlapping: Whether windows hold the first row and column of the next ones, too.
        deterministic: Whether all steps take the same windows.
        seed: Seeds the choice of windows, with ``seed2``.
        seed2: See ``seed``.
        name: The name of the operations.

    Returns:
        The maxima [n, h / ratio, w / ratio, c], and where windows begin along both axes.

    Raises:
        ShapeError: if ``value`` has not 4 dimensions.
        DTypeError: if it has another dtype.
        AttributeValueError: for ratios that do not exist.
    """
    with name_scope(name, "FractionalMaxPool"):
        images = _images(value, pooling_ratio)
        rows, columns = _sequences(
            images, pooling_ratio, pseudo_random, deterministic, (seed, seed2)
        )
        windows, inside, _ = _windows(images, rows, columns, overlapping)
        nothing = zeros_like(windows)
        lowest = constant(images.dtype.numpy.type(_least(images)), images.dtype)
        flat = select(inside, windows, nothing + lowest)
        # The gradient goes to the first of equal maxima.
        first = one_hot(argmax(flat, -1), shape(flat)[-1], dtype=images.dtype)
        made = reduce_sum(select(first > 0, windows, nothing), -1)
        return FractionalMaxPool(_sized(made, images, rows, columns), rows, columns)


def fractional_avg_pool(
    value: Any,
    pooling_ratio: Sequence[float],
    pseudo_random: bool = False,
    overlapping: bool = False,
    deterministic: bool = False,
    seed: int = 0,
    seed2: int = 0,
    name: str | None = None,
) -> FractionalAvgPool:
    """Take the means of windows of images, of sizes such that they shrink by a ratio.

    Args:
        value: [n, h, w, c], float32, float64, int32 or int64; means of integers are rounded down.
        pooling_ratio: By how much each axis shrinks: four numbers, 1 for batch and channels, 1 at
            least for the others.
        pseudo_random: Whether the sizes of windows are spread evenly, or in a random order.
        overlapping: Whether windows hold the first row and column of the next ones, too.
        deterministic: Whether all steps take the same windows.
        seed: Seeds the choice of windows, with ``seed2``.
        seed2: See ``seed``.
        name: The name of the operations.

    Returns:
        The means [n, h / ratio, w / ratio, c], and where windows begin along both axes.

    Raises:
        ShapeError: if ``value`` has not 4 dimensions.
        DTypeError: if it has another dtype.
        AttributeValueError: for ratios that do not exist.
    """
    with name_scope(name, "FractionalAvgPool"):
        images = _images(value, pooling_ratio)
        rows, columns = _sequences(
            images, pooling_ratio, pseudo_random, deterministic, (seed, seed2)
        )
        windows, inside, counts = _windows(images, rows, columns, overlapping)
        total = reduce_sum(select(inside, windows, zeros_like(windows)), -1)
        count = cast(counts, images.dtype)
        made = total / count if images.dtype.is_floating else total // count
        return FractionalAvgPool(_sized(made, images, rows, columns), rows, columns)


def _images(value: Any, ratio: Sequence[float]) -> Tensor:
    images = convert_to_tensor(value)
    if images.dtype not in (dtypes.float32, dtypes.float64, dtypes.int32, dtypes.int64):
        raise DTypeError(f"value must be float32, float64, int32 or int64, got {images.dtype}")
    if images.shape.rank not in (None, 4):
        raise ShapeError(f"value must have 4 dimensions, got shape {images.spec.shape}")
    if not isinstance(ratio, list | tuple) or len(ratio) != 4:
        raise AttributeValueError(f"pooling_ratio must be four numbers, got {shown(ratio)}")
    if ratio[0] != 1 or ratio[3] != 1:
        raise AttributeValueError(
            f"only rows and columns are pooled: the first and last pooling_ratio are 1, got "
            f"{shown(ratio)}"
        )
    if min(ratio) < 1:
        raise AttributeValueError(f"pooling_ratio cannot be smaller than 1, got {shown(ratio)}")
    return images


def _least(images: Tensor) -> Any:
    kind = images.dtype.numpy
    if images.dtype.is_floating:
        return float("-inf")
    return -(2 ** (8 * kind.itemsize - 1))


def _sequences(
    images: Tensor,
    ratio: Sequence[float],
    pseudo_random: bool,
    deterministic: bool,
    seeds: tuple[int, int],
) -> tuple[Tensor, Tensor]:
    """Return where windows of rows and columns begin."""
    found = []
    for axis in (1, 2):
        known = None if images.shape.rank is None else images.spec.shape[axis]
        if known is None:
            length: Any = shape(images, out_type=dtypes.int64)[axis]
            exact = cast(length, dtypes.float64) / ratio[axis]
            count: Any = cast(floor(exact), dtypes.int64)
        else:
            length, count = known, int(known / ratio[axis])
            if count < 1:
                raise AttributeValueError(
                    f"pooling_ratio {ratio[axis]} is larger than the size {known} of axis {axis}"
                )
        size = 1 if pseudo_random else count
        drawn = _drawn(size, deterministic, seeds, axis)
        make = _spread if pseudo_random else _shuffled
        sequence = make(length, count, drawn)
        if known is not None:
            sequence.set_shape([count + 1])
        found.append(sequence)
    return found[0], found[1]


def _drawn(size: Any, deterministic: bool, seeds: tuple[int, int], axis: int) -> Tensor:
    """Return random numbers, the same in all steps or others in each."""
    sizes = reshape(convert_to_tensor(size, dtypes.int64 if isinstance(size, int) else None), [1])
    if deterministic:
        # Without seeds, nodes differ from each other.
        given = seeds if any(seeds) else (get_default_graph().version, 0)
        return stateless_uniform(sizes, [given[0] + 7919 * axis, given[1]], dtype=dtypes.float64)
    seed = seeds[0] + 7919 * seeds[1] + axis if any(seeds) else None
    return random_uniform(sizes, dtype=dtypes.float64, seed=seed)


def _spread(length: Any, count: Any, drawn: Tensor) -> Tensor:
    """Return a sequence whose steps are of two sizes, spread evenly from a random start on."""
    size, number = (cast(n, dtypes.float64) for n in (length, count))
    alpha = size / number
    least = floor(alpha)
    # So that neither the first nor the last window is of a third size.
    most = minimum((least + 2) / alpha - 1, (size + 1 - least) / alpha - (number - 1))
    places = cast(range_of(1, cast(count, dtypes.int32)), dtypes.float64)
    inner = cast(ceil(alpha * (places + drawn * most)), dtypes.int64) - 1
    even = cast(range_of(1, cast(count, dtypes.int32)), dtypes.int64) * cast(least, dtypes.int64)
    chosen = select(reshape(least * number >= size, [1]), even, inner)
    return _closed(chosen, length)


def _shuffled(length: Any, count: Any, drawn: Tensor) -> Tensor:
    """Return a sequence whose steps are of two sizes, in a random order."""
    size, number = (cast(n, dtypes.int64) for n in (length, count))
    places = cast(range_of(cast(count, dtypes.int32)), dtypes.int64)
    steps = size // number + cast(less(places, size % number), dtypes.int64)
    return _closed(cumsum(gather(steps, argsort(drawn)))[:-1], length)


def _closed(inner: Tensor, length: Any) -> Tensor:
    ends = [reshape(cast(n, dtypes.int64), [1]) for n in (0, length)]
    return concat([ends[0], inner, ends[1]], 0)


def _windows(
    images: Tensor, rows: Tensor, columns: Tensor, overlapping: bool
) -> tuple[Tensor, Tensor, Tensor]:
    """Return windows [n, oh, ow, c, kh * kw], which elements belong to them, and how many do."""
    down, in_rows, heights = _places(rows, overlapping)
    across, in_columns, widths = _places(columns, overlapping)
    found = gather(gather(images, down, axis=1), across, axis=3)
    # [n, oh, kh, ow, kw, c]
    moved = transpose(found, [0, 1, 3, 5, 2, 4])
    sizes = shape(moved)
    windows = reshape(moved, concat([sizes[:4], [-1]], 0))
    inside = reshape(in_rows, concat([shape(in_rows)[:1], [1, 1], shape(in_rows)[1:], [1]], 0))
    both = inside & reshape(
        in_columns, concat([[1], shape(in_columns)[:1], [1, 1], shape(in_columns)[1:]], 0)
    )
    mask = reshape(both, concat([[1], shape(both)[:2], [1, -1]], 0))
    counts = reshape(heights, [1, -1, 1, 1]) * reshape(widths, [1, 1, -1, 1])
    return windows, mask, counts


def _places(sequence: Tensor, overlapping: bool) -> tuple[Tensor, Tensor, Tensor]:
    """Return the places of the elements of windows, which are in them, and how many are."""
    starts, size = sequence[:-1], sequence[-1]
    ends = minimum(sequence[1:] + (1 if overlapping else 0), size)
    counts = ends - starts
    offsets = cast(range_of(cast(reduce_max(counts), dtypes.int32)), dtypes.int64)
    places = expand_dims(starts, 1) + offsets
    return minimum(places, size - 1), less(places, expand_dims(ends, 1)), counts


def _sized(made: Tensor, images: Tensor, rows: Tensor, columns: Tensor) -> Tensor:
    """Return the result with what is known of its shape."""
    known = images.spec.shape
    if known.rank is not None:
        counts = [None if s.spec.shape[0] is None else s.spec.shape[0] - 1 for s in (rows, columns)]
        made.set_shape([known[0], *counts, known[3]])
    return made
