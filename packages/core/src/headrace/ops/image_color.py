"""The functions that change the colors and the dtype of images."""

from __future__ import annotations

from typing import Any

import numpy as np

from headrace import dtypes
from headrace.arguments import real
from headrace.dtypes import DType, as_dtype
from headrace.errors import AttributeValueError, DTypeError, ShapeError, shown, told
from headrace.graph.convert import convert_to_tensor
from headrace.graph.naming import names_result
from headrace.graph.scopes import name_scope
from headrace.graph.tensor import Tensor
from headrace.ops.arguments import as_floats, as_scalar
from headrace.ops.array import expand_dims, identity, rank, reshape, shape
from headrace.ops.complex import abs_ as absolute
from headrace.ops.constant import fill, shape_of
from headrace.ops.conversion import cast, saturate_cast
from headrace.ops.elementwise import (
    equal,
    floordiv,
    floormod,
    greater,
    greater_equal,
    less,
    maximum,
    minimum,
    power,
    select,
    square,
)
from headrace.ops.identity import ensure_shape
from headrace.ops.joining import concat, stack, tile
from headrace.ops.linalg import matmul
from headrace.ops.random import random_uniform
from headrace.ops.reduce import reduce_max, reduce_mean, reduce_min, reduce_sum
from headrace.ops.report import holding
from headrace.ops.transcendental import rsqrt, sqrt


@names_result
def convert_image_dtype(
    image: Any, dtype: Any, saturate: bool = False, name: str | None = None
) -> Tensor:
    """Convert images to a dtype, scaled: integers fill their range, floats are in [0, 1].

    Args:
        image: [...], a real number.
        dtype: The dtype of the result.
        saturate: Whether values out of range become the nearest in range.
        name: The name of the operations.

    Returns:
        [...], ``dtype``.

    Raises:
        DTypeError: if a dtype is neither integer nor floating.
    """
    tensor, wanted = convert_to_tensor(image), as_dtype(dtype)
    for kind in (tensor.dtype, wanted):
        if not (kind.is_integer or kind.is_floating):
            raise DTypeError(f"convert_image_dtype: expected integers or floats, got {kind}")
    source = tensor.dtype
    if source == wanted:
        return identity(tensor, name=name)
    with name_scope(name, "convert_image"):
        if source.is_integer and wanted.is_integer:
            return _between_integers(tensor, wanted, saturate)
        found: Tensor
        if source.is_floating and wanted.is_floating:
            found = cast(tensor, wanted)
        elif source.is_integer:
            found = cast(tensor, wanted) * (1.0 / source.max)
        else:
            scaled = tensor * (wanted.max + 0.5)
            found = saturate_cast(scaled, wanted) if saturate else cast(scaled, wanted)
        return found


def _between_integers(tensor: Tensor, wanted: DType, saturate: bool) -> Tensor:
    narrow, wide = int(tensor.dtype.max), int(wanted.max)
    convert = saturate_cast if saturate else cast
    if narrow > wide:
        return convert(floordiv(tensor, (narrow + 1) // (wide + 1)), wanted)
    return convert(tensor, wanted) * ((wide + 1) // (narrow + 1))


def float_image(image: Any, *, least: int = 3, label: str = "image") -> tuple[Tensor, DType]:
    """Return images as floats, and the dtype that they had.

    Raises:
        ShapeError: if they have fewer than ``least`` dimensions.
    """
    tensor = convert_to_tensor(image)
    if tensor.shape.rank is not None and tensor.shape.rank < least:
        raise ShapeError(
            f"{label} must have {told(least)} dimensions at least, got {tensor.spec.shape}"
        )
    if tensor.dtype in (dtypes.float16, dtypes.float32):
        return tensor, tensor.dtype
    return convert_image_dtype(tensor, dtypes.float32), tensor.dtype


def _three_channels(tensor: Tensor, label: str = "image", least: int = 1) -> Tensor:
    """Return images, which a step checks to have 3 channels where that is not known.

    Args:
        tensor: The images.
        label: What messages call them.
        least: The least rank.

    Raises:
        ShapeError: if they are known to have other channels.
    """
    dims = tensor.spec.shape.dims
    if dims is None:
        sizes = shape(tensor)
        message = [f"{label} must have 3 channels last, got shape", sizes]
        tensor = holding(tensor, greater(rank(tensor), least - 1), message)
        return holding(tensor, equal(sizes[-1], 3), message)
    if not dims or dims[-1] not in (None, 3):
        raise ShapeError(f"{label} must have 3 channels last, got shape {tensor.spec.shape}")
    return ensure_shape(tensor, [*dims[:-1], 3]) if dims[-1] is None else tensor


def per_image_standardization(image: Any) -> Tensor:
    """Scale each image to mean 0 and variance 1.

    Args:
        image: [..., h, w, c], a real number. Others than float16 and float32 are converted to
            float32 as by ``convert_image_dtype``, and back.

    Returns:
        ``(x - mean) / max(deviation, 1 / sqrt(elements))``, the dtype of ``image``.

    Raises:
        ShapeError: if it has fewer than 3 dimensions.
    """
    with name_scope(None, "per_image_standardization"):
        given = convert_to_tensor(image)
        if given.shape.rank is not None and given.shape.rank < 3:
            raise ShapeError(f"image must have 3 dimensions at least, got {given.spec.shape}")
        kept = given.dtype in (dtypes.float16, dtypes.float32)
        tensor: Tensor = given if kept else convert_image_dtype(given, dtypes.float32)
        sizes = shape(tensor)
        count = tensor.spec.shape[-3:].num_elements() if tensor.shape.rank is not None else None
        least: Any
        if count is None:
            least = rsqrt(cast(sizes[-1] * sizes[-2] * sizes[-3], tensor.dtype))
        else:
            least = 1 / max(count, 1) ** 0.5
        axes = [-1, -2, -3]
        moved = tensor - reduce_mean(tensor, axes, keepdims=True)
        deviation = sqrt(reduce_mean(square(moved), axes, keepdims=True))
        scaled: Tensor = moved / maximum(deviation, least)
        return scaled if kept else convert_image_dtype(scaled, given.dtype, saturate=True)


def adjust_brightness(image: Any, delta: Any) -> Tensor:
    """Add a number to all pixels.

    Args:
        image: [...], a real number; integers are scaled to [0, 1] and back, without wrapping.
        delta: [], what is added on the scale of [0, 1].

    Returns:
        The shape and dtype of ``image``.
    """
    with name_scope(None, "adjust_brightness"):
        tensor, kind = float_image(image, least=0)
        shift = cast(convert_to_tensor(delta, preferred_dtype=tensor.dtype), tensor.dtype)
        return convert_image_dtype(tensor + shift, kind, saturate=True)


def adjust_contrast(images: Any, contrast_factor: Any) -> Tensor:
    """Scale the distance of each pixel from the mean of its channel.

    Args:
        images: [..., h, w, c], a real number; integers are scaled to [0, 1] and back.
        contrast_factor: [], the factor.

    Returns:
        ``(x - mean) * contrast_factor + mean``, the dtype of ``images``.

    Raises:
        ShapeError: if they have fewer than 3 dimensions, or ``contrast_factor`` has any.
    """
    with name_scope(None, "adjust_contrast"):
        tensor, kind = float_image(images, label="images")
        factor = as_scalar(contrast_factor, tensor.dtype, "contrast_factor")
        mean = reduce_mean(tensor, [-3, -2], keepdims=True)
        return convert_image_dtype((tensor - mean) * factor + mean, kind, saturate=True)


def adjust_gamma(image: Any, gamma: Any = 1, gain: Any = 1) -> Tensor:
    """Raise all pixels to a power: ``gain * image ** gamma``.

    Args:
        image: [...], a real number; integers are scaled to [0, 1] and back.
        gamma: The power, >= 0.
        gain: The factor.

    Returns:
        The shape and dtype of ``image``.

    Raises:
        AttributeValueError: if ``gamma`` is negative; a tensor raises when it runs.
    """
    if isinstance(gamma, int | float) and gamma < 0:
        raise AttributeValueError(f"gamma must be >= 0, got {told(gamma)}")
    with name_scope(None, "adjust_gamma"):
        tensor, kind = float_image(image, least=0)
        exponent = cast(convert_to_tensor(gamma, preferred_dtype=tensor.dtype), tensor.dtype)
        if not isinstance(gamma, int | float):
            told_by_step = ["gamma must be >= 0, got", exponent]
            exponent = holding(exponent, greater_equal(reduce_min(exponent), 0), told_by_step)
        factor = cast(convert_to_tensor(gain, preferred_dtype=tensor.dtype), tensor.dtype)
        return convert_image_dtype(factor * power(tensor, exponent), kind, saturate=True)


@names_result
def rgb_to_hsv(images: Any, name: str | None = None) -> Tensor:
    """Convert red, green and blue to hue, saturation and value.

    Args:
        images: [..., 3], floating, in [0, 1].
        name: The name of the operations.

    Returns:
        [..., 3], all in [0, 1], the dtype of ``images``.

    Raises:
        ShapeError: if there are not 3 channels.
        DTypeError: if ``images`` are not floating.

    References:
        A. R. Smith, Color gamut transform pairs, 1978, https://doi.org/10.1145/965139.807361
    """
    with name_scope(name, "RGBToHSV"):
        tensor = as_floats(images)
        _floats(tensor, "rgb_to_hsv")
        tensor = _three_channels(tensor, "images")
        red, green, blue = tensor[..., 0], tensor[..., 1], tensor[..., 2]
        value = reduce_max(tensor, -1)
        spread = value - reduce_min(tensor, -1)
        colored = greater(spread, 0)
        # Divisors are 1 where there is nothing to divide, so that gradients stay finite.
        step = 1 / (6 * select(colored, spread, 1))
        bright = greater(value, 0)
        saturation = select(bright, spread / select(bright, value, 1), 0)
        hue = select(
            equal(red, value),
            step * (green - blue),
            select(
                equal(green, value),
                step * (blue - red) + 2 / 6,
                step * (red - green) + 4 / 6,
            ),
        )
        hue = select(colored, hue, 0)
        hue = select(less(hue, 0), hue + 1, hue)
        return stack([hue, saturation, value], -1)


def _floats(tensor: Tensor, function: str) -> None:
    if not tensor.dtype.is_floating:
        raise DTypeError(f"{function}: images must be floating, got {tensor.dtype}")


@names_result
def hsv_to_rgb(images: Any, name: str | None = None) -> Tensor:
    """Convert hue, saturation and value to red, green and blue.

    Args:
        images: [..., 3], floating, in [0, 1].
        name: The name of the operations.

    Returns:
        [..., 3], the dtype of ``images``.

    Raises:
        ShapeError: if there are not 3 channels.
        DTypeError: if ``images`` are not floating.
    """
    with name_scope(name, "HSVToRGB"):
        tensor = as_floats(images)
        _floats(tensor, "hsv_to_rgb")
        tensor = _three_channels(tensor, "images")
        hue, saturation, value = tensor[..., 0] * 6, tensor[..., 1], tensor[..., 2]

        def clipped(x: Tensor) -> Tensor:
            return minimum(maximum(x, 0), 1)

        shares = (
            clipped(absolute(hue - 3) - 1),
            clipped(2 - absolute(hue - 2)),
            clipped(2 - absolute(hue - 4)),
        )
        return stack([(1 - saturation + saturation * share) * value for share in shares], -1)


def adjust_hue(image: Any, delta: Any, name: str | None = None) -> Tensor:
    """Turn the hue of images.

    Args:
        image: [..., 3], red, green and blue; integers are scaled to [0, 1] and back.
        delta: [], in [-1, 1]: by how much, where 1 is a full turn.
        name: The name of the operations.

    Returns:
        The shape and dtype of ``image``.

    Raises:
        ShapeError: if there are not 3 channels, or less than 3 dimensions.
    """
    with name_scope(name, "adjust_hue"):
        tensor, kind = _single(image)
        hsv = rgb_to_hsv(tensor)
        shift = as_scalar(delta, dtypes.float32, "delta")
        hue = floormod(hsv[..., 0] + shift, 1)
        shifted = hsv_to_rgb(stack([hue, hsv[..., 1], hsv[..., 2]], -1))
        return convert_image_dtype(shifted, kind)


def _single(image: Any) -> tuple[Tensor, DType]:
    """Return images of 3 channels as float32, in which hues are precise, and their dtype."""
    tensor, kind = float_image(image)
    tensor = _three_channels(tensor, least=3)
    return cast(tensor, dtypes.float32), kind


def adjust_saturation(image: Any, saturation_factor: Any, name: str | None = None) -> Tensor:
    """Scale the saturation of images.

    Args:
        image: [..., 3], red, green and blue; integers are scaled to [0, 1] and back.
        saturation_factor: [], the factor; saturations above 1 are cut to 1.
        name: The name of the operations.

    Returns:
        The shape and dtype of ``image``.

    Raises:
        ShapeError: if there are not 3 channels, or less than 3 dimensions.
    """
    with name_scope(name, "adjust_saturation"):
        tensor, kind = _single(image)
        hsv = rgb_to_hsv(tensor)
        factor = as_scalar(saturation_factor, dtypes.float32, "saturation_factor")
        saturation = minimum(maximum(hsv[..., 1] * factor, 0), 1)
        changed = hsv_to_rgb(stack([hsv[..., 0], saturation, hsv[..., 2]], -1))
        return convert_image_dtype(changed, kind)


def random_brightness(image: Any, max_delta: float, seed: int | None = None) -> Tensor:
    """Add one random number to all pixels.

    Args:
        image: As for ``adjust_brightness``.
        max_delta: The number is in [-max_delta, max_delta).
        seed: Seeds this op's stream, together with the graph's seed.

    Returns:
        The shape and dtype of ``image``.

    Raises:
        AttributeValueError: if ``max_delta`` is negative.
    """
    if real(max_delta, "max_delta") < 0:
        raise AttributeValueError(f"max_delta must be >= 0, got {told(max_delta)}")
    return adjust_brightness(image, random_uniform([], -max_delta, max_delta, seed=seed))


def _bounds(lower: float, upper: float) -> None:
    if not 0 <= real(lower, "lower") < real(upper, "upper"):
        raise AttributeValueError(
            f"bounds must be 0 <= lower < upper, got {shown(lower)} and {shown(upper)}"
        )


def random_contrast(image: Any, lower: float, upper: float, seed: int | None = None) -> Tensor:
    """Scale the contrast by one random factor.

    Args:
        image: As for ``adjust_contrast``.
        lower: The least factor, >= 0.
        upper: The factor's upper bound.
        seed: Seeds this op's stream, together with the graph's seed.

    Returns:
        The shape and dtype of ``image``.

    Raises:
        AttributeValueError: if the bounds are not ``0 <= lower < upper``.
    """
    _bounds(lower, upper)
    return adjust_contrast(image, random_uniform([], lower, upper, seed=seed))


def random_hue(image: Any, max_delta: float, seed: int | None = None) -> Tensor:
    """Turn the hue by one random number.

    Args:
        image: As for ``adjust_hue``.
        max_delta: In [0, 0.5]; the number is in [-max_delta, max_delta).
        seed: Seeds this op's stream, together with the graph's seed.

    Returns:
        The shape and dtype of ``image``.

    Raises:
        AttributeValueError: if ``max_delta`` is out of range.
    """
    if not 0 <= real(max_delta, "max_delta") <= 0.5:
        raise AttributeValueError(f"max_delta must be in [0, 0.5], got {told(max_delta)}")
    return adjust_hue(image, random_uniform([], -max_delta, max_delta, seed=seed))


def random_saturation(image: Any, lower: float, upper: float, seed: int | None = None) -> Tensor:
    """Scale the saturation by one random factor.

    Args:
        image: As for ``adjust_saturation``.
        lower: The least factor, >= 0.
        upper: The factor's upper bound.
        seed: Seeds this op's stream, together with the graph's seed.

    Returns:
        The shape and dtype of ``image``.

    Raises:
        AttributeValueError: if the bounds are not ``0 <= lower < upper``.
    """
    _bounds(lower, upper)
    return adjust_saturation(image, random_uniform([], lower, upper, seed=seed))


@names_result
def rgb_to_grayscale(images: Any, name: str | None = None) -> Tensor:
    """Convert red, green and blue to brightness.

    Args:
        images: [..., 3], a real number; integers are scaled to [0, 1] and back.
        name: The name of the operations.

    Returns:
        [..., 1], the dtype of ``images``.

    Raises:
        ShapeError: if there are not 3 channels.
    """
    with name_scope(name, "rgb_to_grayscale"):
        tensor = _three_channels(convert_to_tensor(images), "images")
        wide = convert_image_dtype(tensor, dtypes.float32)
        gray = reduce_sum(
            wide * convert_to_tensor(np.array([0.2989, 0.587, 0.114], np.float32)), -1
        )
        return convert_image_dtype(expand_dims(gray, -1), tensor.dtype)


def grayscale_to_rgb(images: Any, name: str | None = None) -> Tensor:
    """Repeat the one channel of images three times.

    Args:
        images: [..., h, w, 1], any dtype.
        name: The name of the operations.

    Returns:
        [..., h, w, 3], the dtype of ``images``.

    Raises:
        ShapeError: if there is not one channel, or the rank is less than 3.
    """
    with name_scope(name, "grayscale_to_rgb"):
        tensor = convert_to_tensor(images)
        dims = tensor.spec.shape.dims
        if dims is None:
            axes, sizes = rank(tensor), shape(tensor)
            message = ["images must have 3 dimensions at least, and 1 channel last, got", sizes]
            tensor = holding(tensor, greater(axes, 2), message)
            tensor = holding(tensor, equal(sizes[-1], 1), message)
            return tile(tensor, concat([fill(reshape(axes - 1, [1]), 1), [3]], 0))
        if len(dims) < 3 or dims[-1] not in (None, 1):
            raise ShapeError(
                "images must have 3 dimensions at least, and 1 channel last, got shape "
                f"{tensor.spec.shape}"
            )
        if dims[-1] is None:
            tensor = ensure_shape(tensor, [*dims[:-1], 1])
        return tile(tensor, [1] * (len(dims) - 1) + [3])


# Rows are red, green and blue; the standards are those of NTSC and of ITU-R BT.601.
_YIQ = [
    [0.299, 0.59590059, 0.2115],
    [0.587, -0.27455667, -0.52273617],
    [0.114, -0.32134392, 0.31119955],
]
_FROM_YIQ = [
    [1, 1, 1],
    [0.95598634, -0.27201283, -1.10674021],
    [0.6208248, -0.64720424, 1.70423049],
]
_YUV = [
    [0.299, -0.14714119, 0.61497538],
    [0.587, -0.28886916, -0.51496512],
    [0.114, 0.43601035, -0.10001026],
]
_FROM_YUV = [[1, 1, 1], [0, -0.394642334, 2.03206185], [1.13988303, -0.58062185, 0]]


def _mixed(images: Any, matrix: Any, name: str) -> Tensor:
    with name_scope(None, name):
        tensor = convert_to_tensor(images)
        _floats(tensor, name)
        tensor = _three_channels(tensor, "images")
        weights = convert_to_tensor(np.array(matrix).astype(tensor.dtype.numpy))
        return reshape(matmul(reshape(tensor, [-1, 3]), weights), shape_of(tensor))


def rgb_to_yiq(images: Any) -> Tensor:
    """Convert red, green and blue to the color space of NTSC.

    Args:
        images: [..., 3], floating.

    Returns:
        [..., 3], the dtype of ``images``.

    Raises:
        ShapeError: if there are not 3 channels.
        DTypeError: if ``images`` are not floating.
    """
    return _mixed(images, _YIQ, "rgb_to_yiq")


def yiq_to_rgb(images: Any) -> Tensor:
    """Convert the color space of NTSC to red, green and blue.

    Args:
        images: [..., 3], floating.

    Returns:
        [..., 3], the dtype of ``images``.

    Raises:
        ShapeError: if there are not 3 channels.
        DTypeError: if ``images`` are not floating.
    """
    return _mixed(images, _FROM_YIQ, "yiq_to_rgb")


def rgb_to_yuv(images: Any) -> Tensor:
    """Convert red, green and blue to brightness and two differences of colors.

    Args:
        images: [..., 3], floating.

    Returns:
        [..., 3], the dtype of ``images``.

    Raises:
        ShapeError: if there are not 3 channels.
        DTypeError: if ``images`` are not floating.
    """
    return _mixed(images, _YUV, "rgb_to_yuv")


def yuv_to_rgb(images: Any) -> Tensor:
    """Convert brightness and two differences of colors to red, green and blue.

    Args:
        images: [..., 3], floating.

    Returns:
        [..., 3], the dtype of ``images``.

    Raises:
        ShapeError: if there are not 3 channels.
        DTypeError: if ``images`` are not floating.
    """
    return _mixed(images, _FROM_YUV, "yuv_to_rgb")
