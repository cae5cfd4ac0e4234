"""Normalizations and dropout, built of other ops."""

from __future__ import annotations

import numbers
from collections.abc import Sequence
from typing import Any

from headrace import dtypes
from headrace.arguments import real, whole
from headrace.errors import AttributeValueError, DTypeError, ShapeError, shown, told
from headrace.graph.convert import as_tensor, convert_to_tensor
from headrace.graph.naming import names_result
from headrace.graph.scopes import get_default_graph, name_scope
from headrace.graph.tensor import Tensor
from headrace.ops.arguments import as_floats
from headrace.ops.array import rank as rank_of
from headrace.ops.array import reshape, shape
from headrace.ops.complex import abs_ as absolute
from headrace.ops.constant import range as range_of
from headrace.ops.constant import shape_of
from headrace.ops.conversion import cast
from headrace.ops.convolution import given
from headrace.ops.elementwise import add, greater, greater_equal, less_equal, maximum, power, square
from headrace.ops.identity import ensure_shape
from headrace.ops.linalg import matmul
from headrace.ops.random import random_uniform
from headrace.ops.reduce import reduce_mean, reduce_sum
from headrace.ops.report import holding
from headrace.ops.transcendental import rsqrt
from headrace.ops.windows import LAYOUTS, channel_axis

# The smallest epsilon of fused_batch_norm, as in TensorFlow, whose GPU library asks for it.
_LEAST_EPSILON = 1.001e-5


def batch_normalization(
    x: Any,
    mean: Any,
    variance: Any,
    offset: Any,
    scale: Any,
    variance_epsilon: Any,
    name: str | None = None,
) -> Tensor:
    """Normalize with given moments: ``scale * (x - mean) / sqrt(variance + epsilon) + offset``.

    Args:
        x: [...], floating.
        mean: The mean; broadcasts against ``x``.
        variance: The variance; broadcasts against ``x``.
        offset: Broadcasts against ``x``; 0 if None.
        scale: Broadcasts against ``x``; 1 if None.
        variance_epsilon: A small number, which keeps from dividing by 0.
        name: The name of the operations.

    Returns:
        The shape and dtype of ``x``.

    Raises:
        ShapeError: if shapes do not broadcast.
        DTypeError: if ``x`` is not floating.
    """
    with name_scope(name, "batchnorm"):
        tensor = convert_to_tensor(x)
        spread = convert_to_tensor(variance, preferred_dtype=tensor.dtype)
        # The operations are called as TensorFlow's, whatever their order.
        factor = rsqrt(add(spread, variance_epsilon, name="add"))
        if scale is not None:
            factor = factor * scale
        # In this order, two broadcasts over x are enough.
        shift = -mean * factor if isinstance(mean, Tensor) else factor * _negative(mean)
        if offset is not None:
            shift = add(shift, offset, name="sub")
        scaled = tensor * cast(factor, tensor.dtype)
        found: Tensor = add(scaled, cast(shift, tensor.dtype), name="add_1")
        return found


def _negative(value: Any) -> Any:
    return -convert_to_tensor(value)


def batch_norm_with_global_normalization(
    t: Any = None,
    m: Any = None,
    v: Any = None,
    beta: Any = None,
    gamma: Any = None,
    variance_epsilon: Any = None,
    scale_after_normalization: bool | None = None,
    name: str | None = None,
    input: Any = None,
    mean: Any = None,
    variance: Any = None,
) -> Tensor:
    """Normalize images with given moments of each channel.

    Args:
        t: [n, h, w, c], floating.
        m: [c], the means.
        v: [c], the variances.
        beta: [c], what is added.
        gamma: [c], what is multiplied with, if ``scale_after_normalization``.
        variance_epsilon: A small number, which keeps from dividing by 0.
        scale_after_normalization: Whether ``gamma`` is used.
        name: The name of the operations.
        input: The same as ``t``.
        mean: The same as ``m``.
        variance: The same as ``v``.

    Returns:
        The shape and dtype of ``t``.

    Raises:
        AttributeValueError: if an argument is missing.
    """
    function = "nn.batch_norm_with_global_normalization"
    return batch_normalization(
        given(function, "t", t, input),
        given(function, "m", m, mean),
        given(function, "v", v, variance),
        beta,
        gamma if scale_after_normalization else None,
        given(function, "variance_epsilon", variance_epsilon),
        name,
    )


def fused_batch_norm(
    x: Any,
    scale: Any,
    offset: Any,
    mean: Any = None,
    variance: Any = None,
    epsilon: float = 0.001,
    data_format: str = "NHWC",
    is_training: bool = True,
    name: str | None = None,
    exponential_avg_factor: float = 1.0,
) -> tuple[Tensor, Tensor, Tensor]:
    """Normalize images with the moments of the batch, or with given ones.

    Args:
        x: [n, h, w, c], floating ([n, c, h, w] for "NCHW"; volumes for "NDHWC" and "NCDHW").
            Moments of 16-bit floats are computed in float32.
        scale: [c], floating.
        offset: [c], floating.
        mean: [c], the mean to use; in training the running mean, or None.
        variance: [c], the variance to use; in training the running variance, or None.
        epsilon: A small number, which keeps from dividing by 0; at least 1.001e-5 is used.
        data_format: "NHWC", "NCHW", "NDHWC" or "NCDHW".
        is_training: Whether the moments are those of the batch.
        name: The name of the operations.
        exponential_avg_factor: In training, how much of the batch's moments the moments that are
            returned have; the rest is of ``mean`` and ``variance``.

    Returns:
        The normalized images, the mean [c], and the variance [c]. In training the moments are
        those of the batch, the variance times n / (n - 1), as an estimate of the population's;
        otherwise those that were given.

    Raises:
        ShapeError: if shapes do not fit.
        AttributeValueError: if moments are missing, or the layout does not exist.
        DTypeError: if ``x`` is not floating.
    """
    if data_format not in LAYOUTS:
        raise AttributeValueError(
            f"data_format must be one of {list(LAYOUTS)}, got {shown(data_format)}"
        )
    if not is_training and (mean is None or variance is None):
        raise AttributeValueError("fused_batch_norm: give mean and variance, or is_training=True")
    if not 0 <= real(exponential_avg_factor, "exponential_avg_factor") <= 1:
        raise AttributeValueError(
            f"exponential_avg_factor must be in [0, 1], got {told(exponential_avg_factor)}"
        )
    if exponential_avg_factor != 1 and is_training and (mean is None or variance is None):
        raise AttributeValueError("exponential_avg_factor below 1 needs mean and variance")
    with name_scope(name, "FusedBatchNormV3") as scope:
        graph, before = get_default_graph(), get_default_graph().version
        tensor = convert_to_tensor(x)
        if not tensor.dtype.is_floating:
            raise DTypeError(f"fused_batch_norm: x must be floating, got {tensor.dtype}")
        rank, axis = len(data_format), channel_axis(data_format)
        if tensor.shape.rank not in (None, rank):
            raise ShapeError(
                f"fused_batch_norm: x must have {rank} dimensions, got {tensor.spec.shape}"
            )
        wide = dtypes.float32 if tensor.dtype.itemsize == 2 else tensor.dtype
        images = cast(tensor, wide)
        channels = images.spec.shape[axis]

        def vector(value: Any, label: str) -> Tensor:
            found: Tensor = cast(convert_to_tensor(value, preferred_dtype=wide), wide)
            if not found.shape.is_compatible_with([channels]):
                raise ShapeError(
                    f"fused_batch_norm: {label} must have shape [{channels}] for x "
                    f"{tensor.spec.shape}, "
                    f"got {found.spec.shape}"
                )
            return found

        factors, offsets = vector(scale, "scale"), vector(offset, "offset")
        least = max(_LEAST_EPSILON, epsilon)
        folded = [a for a in range(rank) if a != axis]

        def spread(value: Tensor) -> Tensor:
            return value if axis == rank - 1 else reshape(value, [-1] + [1] * (rank - 2))

        if is_training:
            center = reduce_mean(images, folded)
            moved = images - spread(center)
            scatter = reduce_mean(square(moved), folded)
            known = [images.spec.shape[a] for a in folded]
            count = _count(images, folded, known, wide)
            running = (center, scatter * count)
            if exponential_avg_factor != 1:
                rest = 1 - exponential_avg_factor
                running = (
                    vector(mean, "mean") * rest + running[0] * exponential_avg_factor,
                    vector(variance, "variance") * rest + running[1] * exponential_avg_factor,
                )
            moments = running
        else:
            center, scatter = vector(mean, "mean"), vector(variance, "variance")
            moved = images - spread(center)
            moments = (center, scatter)
        result = moved * spread(rsqrt(scatter + least) * factors) + spread(offsets)
        normalized: Tensor = cast(result, tensor.dtype)
        graph.rename(normalized.op, scope.rstrip("/"), before)
        return normalized, moments[0], moments[1]


def _count(images: Tensor, folded: Sequence[int], known: Sequence[int | None], wide: Any) -> Any:
    """Return n / (n - 1) for the number of elements of each channel, 1 if there is but one."""
    if None not in known:
        n = 1
        for size in known:
            n *= size or 0
        return n / max(n - 1, 1)
    sizes = shape(images)
    total = cast(sizes[folded[0]], wide)
    for axis in folded[1:]:
        total = total * cast(sizes[axis], wide)
    return total / maximum(total - 1, 1)


def layer_norm(
    x: Any,
    scale: Any = None,
    offset: Any = None,
    axis: Any = -1,
    epsilon: float = 1e-12,
    name: str | None = None,
) -> Tensor:
    """Normalize each example by the mean and variance of its own elements.

    Args:
        x: [...], floating. Moments of 16-bit floats are computed in float32.
        scale: Broadcasts against ``x``, usually of the shape of the normalized axes; 1 if None.
        offset: As ``scale``; 0 if None.
        axis: The axis, or the list of axes, over which moments are taken.
        epsilon: A small number that is added to the variance.
        name: The name of the operations.

    Returns:
        The shape and dtype of ``x``.

    Raises:
        ShapeError: if ``x`` has no such axis, or shapes do not broadcast.
        DTypeError: if ``x`` is not floating.

    References:
        J. L. Ba, J. R. Kiros, G. E. Hinton, Layer normalization, 2016,
        https://arxiv.org/abs/1607.06450
    """
    with name_scope(name, "layer_norm"):
        tensor = convert_to_tensor(x)
        if not tensor.dtype.is_floating:
            raise DTypeError(f"layer_norm: x must be floating, got {tensor.dtype}")
        wide = cast(tensor, dtypes.float32) if tensor.dtype.itemsize == 2 else tensor
        moved = wide - reduce_mean(wide, axis, keepdims=True)
        factor = rsqrt(reduce_mean(square(moved), axis, keepdims=True) + epsilon)
        if scale is not None:
            factor = factor * cast(convert_to_tensor(scale, preferred_dtype=wide.dtype), wide.dtype)
        result = moved * factor
        if offset is not None:
            result = result + cast(
                convert_to_tensor(offset, preferred_dtype=wide.dtype), wide.dtype
            )
        found: Tensor = cast(result, tensor.dtype)
        return found


@names_result
def l2_normalize(
    x: Any, axis: Any = None, epsilon: float = 1e-12, name: str | None = None, dim: Any = None
) -> Tensor:
    """Divide by the Euclidean norm: ``x / sqrt(max(sum(x**2), epsilon))``.

    Args:
        x: [...], floating.
        axis: The axis or axes of one vector; all if None.
        epsilon: The least square of a norm to divide by.
        name: The name of the operations.
        dim: The same as ``axis``.

    Returns:
        The shape and dtype of ``x``.

    Raises:
        AttributeValueError: if both ``axis`` and ``dim`` are given.
    """
    if axis is not None and dim is not None:
        raise AttributeValueError("l2_normalize: give axis or dim, not both")
    with name_scope(name, "l2_normalize"):
        tensor = convert_to_tensor(x)
        total = reduce_sum(square(tensor), dim if axis is None else axis, keepdims=True)
        return tensor * rsqrt(maximum(total, epsilon))


@names_result
def local_response_normalization(
    input: Any,
    depth_radius: int = 5,
    bias: float = 1,
    alpha: float = 1,
    beta: float = 0.5,
    name: str | None = None,
) -> Tensor:
    """Divide each pixel by a power of the squares in channels nearby.

    ``input / (bias + alpha * sum(input[..., c - radius : c + radius + 1] ** 2)) ** beta``.

    Args:
        input: [n, h, w, c], floating.
        depth_radius: How many channels to each side count.
        bias: What is added to the sum, usually positive.
        alpha: What the sum is multiplied with.
        beta: The power.
        name: The name of the operations.

    Returns:
        The shape and dtype of ``input``.

    Raises:
        ShapeError: if the rank is not 4.
        DTypeError: if ``input`` is not floating.

    References:
        A. Krizhevsky, I. Sutskever, G. E. Hinton, ImageNet classification with deep convolutional
        neural networks, 2012, section 3.3.
    """
    with name_scope(name, "LRN"):
        images = as_floats(input)
        if not images.dtype.is_floating:
            raise DTypeError(f"local_response_normalization: expected floats, got {images.dtype}")
        if images.shape.rank not in (None, 4):
            raise ShapeError(
                "local_response_normalization: input must have 4 dimensions, got "
                f"{images.spec.shape}"
            )
        sizes = shape_of(images)
        # Sums of neighbors are a product with a matrix of ones along its diagonal.
        along = range_of(sizes[3])
        distance = absolute(reshape(along, [-1, 1]) - along)
        reach = whole(depth_radius, "local_response_normalization: depth_radius")
        radius = min(max(reach, -1), 2**31 - 1)
        near = cast(less_equal(distance, radius), images.dtype)
        flat = reshape(square(images), [sizes[0] * sizes[1] * sizes[2], sizes[3]])
        sums = reshape(matmul(flat, near), sizes)
        exponent = real(beta, "beta") if as_tensor(beta) is None else beta
        return images * power(sums * alpha + bias, -exponent)


def dropout(
    x: Any,
    keep_prob: Any = None,
    noise_shape: Any = None,
    seed: int | None = None,
    name: str | None = None,
    rate: Any = None,
) -> Tensor:
    """Set elements to 0 at random, and divide the others by the share that is kept.

    Args:
        x: [...], floating.
        keep_prob: The probability with which an element is kept, ``1 - rate``: a number in (0, 1],
            or a scalar tensor.
        noise_shape: The shape of what is drawn, which broadcasts against ``x``; the shape of ``x``
            if None. Elements that are None or, with a list, unknown are those of ``x``.
        seed: Seeds this op's stream, together with the graph's seed.
        name: The name of the operations.
        rate: The probability with which an element is dropped: a number in [0, 1), or a scalar
            tensor. Of ``keep_prob`` and ``rate`` exactly one is given.

    Returns:
        The shape and dtype of ``x``.

    Raises:
        AttributeValueError: if both or none of ``keep_prob`` and ``rate`` are given, or it is out
            of range.
        DTypeError: if ``x`` is not floating.
    """
    if (keep_prob is None) == (rate is None):
        raise AttributeValueError("dropout: give one of keep_prob and rate")
    with name_scope(name, "dropout", [x]):
        tensor = convert_to_tensor(x)
        if not tensor.dtype.is_floating:
            raise DTypeError(f"dropout: x must be floating, got {tensor.dtype}")
        asked = keep_prob if rate is None else rate
        if isinstance(asked, numbers.Number):
            asked = real(asked, f"dropout: {'keep_prob' if rate is None else 'rate'}")
        else:
            asked = convert_to_tensor(asked)
        dropped = 1 - asked if rate is None else asked
        if isinstance(dropped, float):
            if not 0 <= dropped < 1:
                said, allowed, got = ("rate", "[0, 1)", dropped)
                if rate is None:
                    said, allowed, got = ("keep_prob, what is kept,", "(0, 1]", keep_prob)
                raise AttributeValueError(f"dropout: {said} must be in {allowed}, got {told(got)}")
            if dropped == 0:
                return tensor
            share: Any = dropped
        else:
            share = dropped
            if share.shape.rank not in (None, 0):
                raise ShapeError(f"dropout: rate must be a scalar, got shape {share.shape}")
            if share.shape.rank is None:
                share = reshape(share, [])
            share = cast(share, tensor.dtype)
        drawn = random_uniform(_noise_shape(tensor, noise_shape), dtype=tensor.dtype, seed=seed)
        kept: Tensor = cast(greater_equal(drawn, share), tensor.dtype)
        found: Tensor = tensor * (1 / (1 - share)) * kept
        if noise_shape is None:
            found.set_shape(tensor.spec.shape)
        elif tensor.shape.rank is not None and found.spec.shape != tensor.spec.shape:
            # What was drawn must not be of more dimensions or sizes than what is dropped.
            found = ensure_shape(found, tensor.shape)
        return found


def _noise_shape(tensor: Tensor, noise_shape: Any) -> Any:
    if noise_shape is None:
        return shape_of(tensor)
    dims = getattr(noise_shape, "dims", noise_shape)
    if not isinstance(dims, list | tuple) or None not in dims:
        return noise_shape
    rank = tensor.shape.rank
    if rank is not None and len(dims) != rank:
        raise ShapeError(f"dropout: noise_shape {list(dims)} must have {rank} elements")
    sizes = shape_of(tensor)
    return [sizes[i] if d is None else d for i, d in enumerate(dims)]


def bias_add(
    value: Any, bias: Any, data_format: str | None = None, name: str | None = None
) -> Tensor:
    """Add a bias per channel.

    Args:
        value: [n, ..., channels], numeric ([n, channels, ...] for layouts that start with "NC").
        bias: [channels], the dtype of ``value``.
        data_format: "NHWC" (channels last), "NCHW", or a layout of another rank.
        name: The name of the operation.

    Returns:
        The shape of ``value``.

    Raises:
        ShapeError: if ``value`` has less than 2 dimensions, or ``bias`` does not fit.
        AttributeValueError: if there is no such layout.
    """
    if data_format is not None and data_format not in (*LAYOUTS, "N...C", "NC...", "NC"):
        raise AttributeValueError(
            f"data_format must be one of {list(LAYOUTS)}, got {shown(data_format)}"
        )
    tensor = convert_to_tensor(value)
    offsets = convert_to_tensor(bias, preferred_dtype=tensor.dtype)
    if offsets.shape.rank not in (None, 1):
        raise ShapeError(f"bias_add: bias must be a vector, got shape {offsets.spec.shape}")
    rank = tensor.shape.rank
    if rank is not None and rank < 2:
        raise ShapeError(
            f"bias_add: value must have 2 dimensions at least, got {tensor.spec.shape}"
        )
    first = data_format is not None and data_format.startswith("NC")
    channels = tensor.spec.shape[1 if first else -1]
    if channels is not None and not offsets.shape.is_compatible_with([channels]):
        raise ShapeError(
            f"bias_add: bias {offsets.spec.shape} must have one element for each of the {channels} "
            f"channels of value {tensor.spec.shape}"
        )
    if offsets.shape.rank is None:
        # A matrix would be added, too, where a step brings one.
        offsets = ensure_shape(offsets, [channels])
    if rank is None:
        if first:
            raise ShapeError(f"bias_add: the rank of value must be known for {shown(data_format)}")
        message = ["bias_add: value must have 2 dimensions at least, got shape", shape_of(tensor)]
        tensor = holding(tensor, greater(rank_of(tensor), 1), message)
    elif first:
        offsets = reshape(offsets, [-1] + [1] * (rank - 2))
    return add(tensor, offsets, name=name or "BiasAdd")


@names_result
def xw_plus_b(x: Any, weights: Any, biases: Any, name: str | None = None) -> Tensor:
    """Multiply matrices and add a bias to each row: ``x @ weights + biases``.

    Args:
        x: [n, in], numeric.
        weights: [in, out], the dtype of ``x``.
        biases: [out], the dtype of ``x``.
        name: The name of the operations.

    Returns:
        [n, out], the dtype of ``x``.

    Raises:
        ShapeError: if shapes do not fit.
    """
    with name_scope(name, "xw_plus_b"):
        return bias_add(matmul(x, weights), biases)
