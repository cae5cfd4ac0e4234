"""Layers of quantized tensors, composed of ops on the integers that are levels."""

from __future__ import annotations

from typing import Any, NamedTuple

from headrace import dtypes
from headrace.dtypes import DType, as_dtype
from headrace.errors import AttributeValueError, DTypeError, shown
from headrace.graph.convert import convert_to_tensor
from headrace.graph.naming import names_result
from headrace.graph.scopes import name_scope
from headrace.graph.tensor import Tensor
from headrace.ops.clip import clip_by_value
from headrace.ops.conversion import bitcast, cast
from headrace.ops.convolution import conv2d
from headrace.ops.elementwise import maximum, minimum, multiply, realdiv, subtract
from headrace.ops.identity import identity
from headrace.ops.pooling import avg_pool, max_pool
from headrace.ops.quantized import as_float32, check_quantized, check_range, quantized_level_op
from headrace.ops.windows import per_axis


class QuantizedWindows(NamedTuple):
    """What quantized pools and convolutions return: levels and their range."""

    output: Tensor
    min_output: Tensor
    max_output: Tensor


class QuantizedActivations(NamedTuple):
    """What ``nn.quantized_relu_x`` returns: levels and their range."""

    activations: Tensor
    min_activations: Tensor
    max_activations: Tensor


def _levels(value: Any, label: str) -> Tensor:
    tensor = convert_to_tensor(value)
    check_quantized(tensor.dtype, label)
    return tensor


def _end(value: Any, label: str) -> Tensor:
    end = convert_to_tensor(value, preferred_dtype=dtypes.float32)
    if end.dtype != dtypes.float32:
        raise DTypeError(f"{label} must be float32, got {end.dtype}")
    check_range((end.spec, label))
    return end


@names_result
def quantized_relu_x(
    features: Any,
    max_value: Any,
    min_features: Any,
    max_features: Any,
    out_type: Any = dtypes.quint8,
    name: str | None = None,
) -> QuantizedActivations:
    """Limit levels to those from that of 0 to that of a number.

    Args:
        features: [...], quantized.
        max_value: [], float32, the number.
        min_features: [], float32, the lower end of the range.
        max_features: [], float32, the upper end.
        out_type: The dtype of ``features``.
        name: The name of the operations.

    Returns:
        ``activations``, [...], and ``min_activations`` and ``max_activations``, the same range.

    Raises:
        DTypeError: if ``features`` are not quantized, or ``out_type`` is another dtype.
        ShapeError: if an end of the range is no scalar.
    """
    with name_scope(name, "QuantizedReluX"):
        x = _levels(features, "features")
        if as_dtype(out_type) != x.dtype:
            raise DTypeError(f"out_type must be {x.dtype}, that of features, got {shown(out_type)}")
        low, high = _end(min_features, "min_features"), _end(max_features, "max_features")
        stored = x.dtype.storage
        least, most = (
            clip_by_value(quantized_level_op(end, low, high, x.dtype), stored.min, stored.max)
            for end in (as_float32(0.0), _end(max_value, "max_value"))
        )
        integers = bitcast(x, stored)
        found = minimum(maximum(integers, cast(least, stored)), cast(most, stored))
        return QuantizedActivations(bitcast(found, x.dtype), identity(low), identity(high))


def _check_padding(padding: Any) -> None:
    if padding not in ("SAME", "VALID"):
        raise AttributeValueError(f"padding must be 'SAME' or 'VALID', got {shown(padding)}")


@names_result
def quantized_avg_pool(
    input: Any,
    min_input: Any,
    max_input: Any,
    ksize: Any,
    strides: Any,
    padding: str,
    name: str | None = None,
) -> QuantizedWindows:
    """Take the mean level of each window of images, without its fraction.

    Args:
        input: [n, h, w, c], quantized.
        min_input: [], float32, the lower end of the range.
        max_input: [], float32, the upper end.
        ksize: [4], the sizes of windows; 1 for images and channels.
        strides: [4], their steps.
        padding: "SAME", of which windows have what is inside of the image, or "VALID".
        name: The name of the operations.

    Returns:
        ``output``, [n, oh, ow, c], and ``min_output`` and ``max_output``, the same range.

    Raises:
        AttributeValueError: for windows, steps or a padding that do not exist.
        DTypeError: if ``input`` is not quantized.
        ShapeError: if it has not 4 dimensions, or an end of the range is no scalar.
    """
    with name_scope(name, "QuantizedAvgPool"):
        x = _levels(input, "input")
        ends = _end(min_input, "min_input"), _end(max_input, "max_input")
        _check_padding(padding)
        # Sums of levels are whole numbers that float64 holds, and so are means that are.
        means = avg_pool(cast(x, dtypes.float64), ksize, strides, padding)
        return QuantizedWindows(cast(means, x.dtype), identity(ends[0]), identity(ends[1]))


@names_result
def quantized_max_pool(
    input: Any,
    min_input: Any,
    max_input: Any,
    ksize: Any,
    strides: Any,
    padding: str,
    name: str | None = None,
) -> QuantizedWindows:
    """Take the highest level of each window of images.

    Args:
        input: [n, h, w, c], quantized.
        min_input: [], float32, the lower end of the range.
        max_input: [], float32, the upper end.
        ksize: [4], the sizes of windows, as for ``nn.max_pool``.
        strides: [4], their steps.
        padding: "SAME", of which windows have what is inside of the image, or "VALID".
        name: The name of the operations.

    Returns:
        ``output``, [n, oh, ow, c], and ``min_output`` and ``max_output``, the same range.

    Raises:
        AttributeValueError: for windows, steps or a padding that do not exist.
        DTypeError: if ``input`` is not quantized.
        ShapeError: if it has not 4 dimensions, or an end of the range is no scalar.
    """
    with name_scope(name, "QuantizedMaxPool"):
        x = _levels(input, "input")
        ends = _end(min_input, "min_input"), _end(max_input, "max_input")
        _check_padding(padding)
        highest = max_pool(bitcast(x, x.dtype.storage), ksize, strides, padding)
        return QuantizedWindows(bitcast(highest, x.dtype), identity(ends[0]), identity(ends[1]))


def _from_zero(levels: Tensor, low: Tensor, high: Tensor) -> Tensor:
    """Return how far levels are from that of 0, whole numbers in float64."""
    zero = cast(quantized_level_op(as_float32(0.0), low, high, levels.dtype), dtypes.float64)
    distances: Tensor = subtract(cast(levels, dtypes.float64), zero)
    return distances


def _unit(low: Tensor, high: Tensor, dtype: DType) -> Tensor:
    """Return the distance of levels."""
    steps = float(dtype.storage.max - dtype.storage.min)
    unit: Tensor = realdiv(subtract(high, low), as_float32(steps))
    return unit


@names_result
def quantized_conv2d(
    input: Any,
    filter: Any,
    min_input: Any,
    max_input: Any,
    min_filter: Any,
    max_filter: Any,
    strides: Any,
    padding: str,
    out_type: Any = dtypes.qint32,
    dilations: Any = (1, 1, 1, 1),
    name: str | None = None,
) -> QuantizedWindows:
    """Convolve levels of images with levels of filters.

    Args:
        input: [n, h, w, c], quantized, of 8 bits.
        filter: [fh, fw, c, out], quantized, of 8 bits.
        min_input: [], float32, the lower end of the range of ``input``.
        max_input: [], float32, its upper end.
        min_filter: [], float32, the lower end of the range of ``filter``.
        max_filter: [], float32, its upper end.
        strides: [4], the steps, 1 for images and channels.
        padding: "SAME", where images have zeros around them, or "VALID".
        out_type: ``qint32``.
        dilations: [4], the distances of filter elements.
        name: The name of the operations.

    Returns:
        ``output``, [n, oh, ow, out], qint32: sums of products of the distances of levels from those
        of 0; and ``min_output`` and ``max_output``, [], float32, the range that it is of.

    Raises:
        AttributeValueError: for strides, a padding or dilations that do not exist.
        DTypeError: for other dtypes.
        ShapeError: if shapes do not fit, or an end of a range is no scalar.
    """
    with name_scope(name, "QuantizedConv2D"):
        images, weights = _levels(input, "input"), _levels(filter, "filter")
        for tensor, label in ((images, "input"), (weights, "filter")):
            if tensor.dtype.itemsize != 1:
                raise DTypeError(f"{label} must be qint8 or quint8, got {tensor.dtype}")
        if as_dtype(out_type) != dtypes.qint32:
            raise DTypeError(f"out_type must be qint32, got {shown(out_type)}")
        _check_padding(padding)
        ends = _end(min_input, "min_input"), _end(max_input, "max_input")
        others = _end(min_filter, "min_filter"), _end(max_filter, "max_filter")
        sums = conv2d(
            _from_zero(images, *ends),
            _from_zero(weights, *others),
            per_axis(strides, "NHWC", "strides"),
            padding,
            dilations=dilations,
        )
        # Sums that 32 bits do not hold wrap around.
        found = cast(cast(sums, dtypes.int64), dtypes.qint32)
        unit = multiply(_unit(*ends, images.dtype), _unit(*others, weights.dtype))
        low, high = (
            multiply(unit, as_float32(float(level)))
            for level in (dtypes.int32.min, dtypes.int32.max)
        )
        return QuantizedWindows(found, low, high)
