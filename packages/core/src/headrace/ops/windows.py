"""Where windows lie over images of one, two or three dimensions: what ops and kernels share."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any

from headrace.arguments import items
from headrace.errors import AttributeValueError, ShapeError, shown
from headrace.graph.attributes import as_text
from headrace.graph.spec import TensorSpec
from headrace.shapes import Dim, Shape

# The spatial axes of each layout.
LAYOUTS = {
    "NWC": (1,),
    "NCW": (2,),
    "NHWC": (1, 2),
    "NCHW": (2, 3),
    "NDHWC": (1, 2, 3),
    "NCDHW": (2, 3, 4),
}
CHANNELS_LAST = {1: "NWC", 2: "NHWC", 3: "NDHWC"}
CHANNELS_FIRST = {1: "NCW", 2: "NCHW", 3: "NCDHW"}

# "SAME", "VALID", or what is added before and after each spatial axis.
Padding = str | Sequence[Sequence[int]]


def spatial_axes(data_format: Any, count: int = 2) -> tuple[int, ...]:
    """Return the spatial axes of a layout.

    Args:
        data_format: The layout.
        count: How many spatial axes it must have.

    Raises:
        AttributeValueError: if it is no layout with that many.
    """
    choices = (CHANNELS_LAST[count], CHANNELS_FIRST[count])
    if data_format not in choices:
        raise AttributeValueError(
            f"data_format must be {choices[0]!r} or {choices[1]!r}, got {shown(data_format)}"
        )
    return LAYOUTS[data_format]


def channel_axis(data_format: str) -> int:
    """Return the axis of the channels in a layout."""
    return 1 if data_format.startswith("NC") else len(data_format) - 1


def laid_out_shape(batch: Dim, sizes: Sequence[Dim], channels: Dim, data_format: str) -> Shape:
    """Return the shape of images in a layout."""
    if data_format.startswith("NC"):
        return Shape([batch, channels, *sizes])
    return Shape([batch, *sizes, channels])


def window_padding(
    size: int, window: int, stride: int, dilation: int, padding: str | Sequence[int]
) -> tuple[int, int, int]:
    """Return the output size and the padding before and after, along one axis.

    "VALID" takes only windows that lie inside; "SAME" pads as evenly as it can, the odd element
    after, so that the output has ``ceil(size / stride)`` elements. Two numbers are the padding.
    """
    reach = (window - 1) * dilation + 1
    if padding == "SAME":
        out = -(-size // stride)
        total = max(0, (out - 1) * stride + reach - size) if out else 0
        return out, total // 2, total - total // 2
    before, after = (0, 0) if isinstance(padding, str) else padding
    return max(0, (size + before + after - reach) // stride + 1), before, after


def padding_of(padding: Padding, axis: int) -> str | Sequence[int]:
    """Return the padding of one spatial axis."""
    return padding if isinstance(padding, str) else padding[axis]


def out_dim(
    size: Dim, window: Dim, stride: int, dilation: int, padding: str | Sequence[int]
) -> Dim:
    """Return the output size along one axis, None where it is not known.

    Raises:
        ShapeError: if the window does not fit.
    """
    if size is None or (window is None and padding != "SAME"):
        return None
    covered = 1 if window is None else window
    reach = (covered - 1) * dilation + 1
    room = size if isinstance(padding, str) else size + sum(padding)
    if padding != "SAME" and room < reach:
        raise ShapeError(f"a window that reaches over {reach} does not fit into {room} elements")
    return window_padding(size, covered, stride, dilation, padding)[0]


def per_axis(values: Any, data_format: str, label: str) -> tuple[int, ...]:
    """Return one number for each spatial axis of a layout.

    Args:
        values: One number, one for each spatial axis, or one for each axis of the layout.
        data_format: The layout.
        label: What the numbers are, for messages.

    Raises:
        AttributeValueError: for anything else, for numbers below 1, and for others than 1 along
            batch and channels.
    """
    axes = LAYOUTS[data_format]
    try:
        listed = items(values, label, _MOST) if _many(values) else [values]
        given = tuple(operator.index(v) for v in listed)
    except TypeError:
        raise AttributeValueError(f"{label} must be integers, got {shown(values)}") from None
    if len(given) == 1:
        given = given * len(axes)
    if len(given) == len(data_format) and len(given) != len(axes):
        if any(v != 1 for i, v in enumerate(given) if i not in axes):
            raise AttributeValueError(
                f"{label} must be 1 along batch and channels, got {list(given)} for {data_format}"
            )
        given = tuple(given[axis] for axis in axes)
    if len(given) != len(axes) or min(given) < 1:
        counts = ", ".join(map(str, sorted({1, len(axes)})))
        raise AttributeValueError(
            f"{label} must be {counts} or {len(data_format)} integers >= 1, got {shown(values)}"
        )
    return given


# More axes than arrays have, which the messages about too many of them tell.
_MOST = 1000


def _many(values: Any) -> bool:
    return hasattr(values, "__len__") or hasattr(values, "__iter__")


def _pair(pair: Any) -> list[Any]:
    return items(pair, "a pair of padding")


def checked_padding(padding: Any, data_format: str) -> Padding:
    """Return padding as ops have it.

    Args:
        padding: "SAME" or "VALID" in any case, or a pair of numbers for each axis of the layout.
        data_format: The layout.

    Raises:
        AttributeValueError: for anything else.
    """
    padding = as_text(padding)
    if isinstance(padding, str):
        if padding.upper() not in ("SAME", "VALID"):
            raise AttributeValueError(f"padding must be 'SAME' or 'VALID', got {shown(padding)}")
        return padding.upper()
    axes = LAYOUTS[data_format]
    try:
        pairs = tuple(tuple(map(operator.index, _pair(pair))) for pair in items(padding, "padding"))
    except TypeError:
        raise AttributeValueError(
            f"padding must be 'SAME', 'VALID' or a list of pairs of integers, got {shown(padding)}"
        ) from None
    if len(pairs) == len(data_format):
        if any(any(pair) for i, pair in enumerate(pairs) if i not in axes):
            raise AttributeValueError(
                f"padding must be 0 along batch and channels, got {shown(padding)} for "
                f"{data_format}"
            )
        pairs = tuple(pairs[axis] for axis in axes)
    if len(pairs) != len(axes) or any(len(p) != 2 or min(p) < 0 for p in pairs):
        raise AttributeValueError(
            f"padding must be 'SAME', 'VALID' or {len(data_format)} pairs of integers >= 0, "
            f"got {shown(padding)}"
        )
    return pairs


def check_geometry(
    data_format: str, padding: Padding, count: int | None = None, **numbers: Sequence[int]
) -> tuple[int, ...]:
    """Check the attributes of an op on windows, and return its spatial axes.

    Args:
        data_format: The layout.
        padding: The padding.
        count: How many spatial axes there must be; any number from 1 to 3 if None.
        **numbers: Lists with one number >= 1 for each spatial axis.

    Raises:
        AttributeValueError: if they do not fit together.
    """
    if count is not None:
        spatial_axes(data_format, count)
    elif data_format not in LAYOUTS:
        raise AttributeValueError(
            f"data_format must be one of {list(LAYOUTS)}, got {shown(data_format)}"
        )
    axes = LAYOUTS[data_format]
    for label, values in numbers.items():
        if len(values) != len(axes) or min(values) < 1:
            raise AttributeValueError(
                f"{label} must be {len(axes)} integers >= 1 for {data_format}, got {list(values)}"
            )
    if checked_padding(padding, data_format) != padding:
        raise AttributeValueError(
            f"padding must be 'SAME', 'VALID' or {len(axes)} pairs, got {shown(padding)}"
        )
    return axes


def check_images(x: TensorSpec, data_format: str, label: str) -> Sequence[Dim]:
    """Return the dimensions of images, as far as they are known.

    Raises:
        ShapeError: if they have another rank than the layout.
    """
    if x.rank not in (None, len(data_format)):
        raise ShapeError(
            f"{label} must have {len(data_format)} dimensions, got shape {x.shape}; they are "
            f"{' '.join(data_format)}, and hr.expand_dims and hr.reshape add axes"
        )
    return x.shape.dims if x.shape.dims is not None else (None,) * len(data_format)
