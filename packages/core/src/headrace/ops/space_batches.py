"""Functions of images taken on every n-th element, by way of the batch."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from headrace import dtypes
from headrace.arguments import items
from headrace.errors import AttributeValueError, ShapeError, shown
from headrace.graph.convert import convert_to_tensor
from headrace.graph.tensor import Tensor
from headrace.ops.array import concat, shape, stack
from headrace.ops.blocks import (
    batch_to_space_nd,
    required_space_to_batch_paddings,
    space_to_batch_nd,
)
from headrace.ops.constant import known_value


def with_space_to_batch(
    input: Any,
    dilation_rate: Any,
    padding: str,
    op: Callable[[Tensor, int, str], Tensor],
    filter_shape: Any = None,
    spatial_dims: Sequence[int] | None = None,
    data_format: str | None = None,
) -> Tensor:
    """Let a function of images see their elements at distances, as dilated windows do.

    Every n-th element along each axis goes into a batch entry of its own, the function is taken,
    and its result is put together again.

    Args:
        input: [n, ...], the images.
        dilation_rate: [axes], int32, the distance along each axis.
        padding: "VALID" or "SAME".
        op: ``op(images, number of axes, "VALID")``; where all rates are known to be 1, it is called
            with ``input`` and ``padding`` as they are.
        filter_shape: The sizes of the windows that ``op`` takes, for "SAME".
        spatial_dims: The axes of ``input``, ascending; those after the batch (and the channels, for
            layouts that begin with "NC") if None.
        data_format: The layout.

    Returns:
        What ``op`` would return with dilated windows.

    Raises:
        ShapeError: if ``dilation_rate`` is no vector of known length, or ``input`` lacks an axis.
        AttributeValueError: if ``op`` is no function, and for rates, axes or padding that do not
            exist.
    """
    if not callable(op):
        raise AttributeValueError(f"op must be a function, got {shown(op)}")
    images = convert_to_tensor(input)
    rates = convert_to_tensor(dilation_rate, dtypes.int32)
    if rates.shape.rank != 1 or not rates.shape.is_fully_defined():
        raise ShapeError(f"dilation_rate must be a vector of known length, got {rates.spec.shape}")
    count = rates.shape.known[0]
    channels_first = data_format is not None and data_format.startswith("NC")
    first = 2 if channels_first else 1
    if spatial_dims is not None and not isinstance(spatial_dims, list | tuple):
        raise AttributeValueError(f"spatial_dims must be a list of axes, got {shown(spatial_dims)}")
    given = (
        list(range(first, first + count))
        if spatial_dims is None
        else items(spatial_dims, "spatial_dims")
    )
    axes = sorted({int(axis) for axis in given})
    if axes != given or (axes and axes[0] < 1) or len(axes) != count:
        raise AttributeValueError(
            "spatial_dims must be a monotonically increasing sequence of positive integers, one "
            f"for each rate, got {shown(given)}"
        )
    least = axes[-1] + (0 if channels_first else 1) if axes else 1
    if images.shape.rank is not None and images.shape.rank < least:
        raise ShapeError(f"input tensor must have rank {least} at least, got {images.spec.shape}")
    known = known_value(rates)
    if known is not None:
        if np.any(known < 1):
            raise AttributeValueError(f"dilation_rate must be positive, got {known.tolist()}")
        if np.all(known == 1):
            return op(images, count, padding)
    if padding not in ("SAME", "VALID"):
        raise AttributeValueError(f"padding must be 'SAME' or 'VALID', got {shown(padding)}")
    base = None
    if padding == "SAME":
        if filter_shape is None:
            raise AttributeValueError("filter_shape must be specified for SAME padding")
        extra = (convert_to_tensor(filter_shape, dtypes.int32)[:count] - 1) * rates
        base = stack([extra // 2, extra - extra // 2], 1)
    sizes = stack([shape(images)[axis] for axis in axes])
    paddings, crops = required_space_to_batch_paddings(sizes, rates, base)
    wide = [_over(part, axes, fill) for part, fill in ((rates, 1), (paddings, 0), (crops, 0))]
    spread = space_to_batch_nd(images, wide[0], wide[1])
    return batch_to_space_nd(op(spread, count, "VALID"), wide[0], wide[2])


def _over(part: Tensor, axes: Sequence[int], fill: int) -> Tensor:
    """Return what holds for some axes as what holds for all up to the last of them."""
    rest = list(part.shape.known[1:])
    parts, at = [], 1
    for i, axis in enumerate(axes):
        if axis > at:
            parts.append(convert_to_tensor(np.full([axis - at, *rest], fill, np.int32)))
        parts.append(part[i : i + 1])
        at = axis + 1
    return concat(parts, 0)
