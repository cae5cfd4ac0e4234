"""Pooling over images, and the ops of its gradients."""

from __future__ import annotations

from collections.abc import Sequence

from headrace import dtypes
from headrace.dtypes import DType
from headrace.errors import AttributeValueError, DTypeError, ShapeError
from headrace.graph.spec import TensorSpec, as_shape, like
from headrace.ops.declare import Spec, op
from headrace.ops.kinds import Floating, Index, Numeric, Real
from headrace.ops.windows import (
    Padding,
    channel_axis,
    check_geometry,
    check_images,
    laid_out_shape,
    out_dim,
    padding_of,
)
from headrace.shapes import Shape


def _pooled(
    value: TensorSpec,
    ksize: Sequence[int],
    strides: Sequence[int],
    padding: Padding,
    data_format: str,
    dilations: Sequence[int] | None,
) -> TensorSpec:
    spread = (1,) * len(ksize) if dilations is None else dilations
    axes = check_geometry(data_format, padding, ksize=ksize, strides=strides, dilations=spread)
    if not isinstance(padding, str):
        for size, step, pair in zip(ksize, spread, padding, strict=True):
            if max(pair) > (size - 1) * step:
                raise AttributeValueError(
                    f"padding {list(pair)} must be smaller than a window, which reaches over "
                    f"{(size - 1) * step + 1}"
                )
    dims = check_images(value, data_format, "input")
    sizes = [
        out_dim(dims[axis], ksize[i], strides[i], spread[i], padding_of(padding, i))
        for i, axis in enumerate(axes)
    ]
    channels = dims[channel_axis(data_format)]
    return TensorSpec(value.dtype, laid_out_shape(dims[0], sizes, channels, data_format))


def _check_shape(grad: TensorSpec, expected: Shape, what: str) -> None:
    if not grad.shape.is_compatible_with(expected):
        raise ShapeError(f"grad must have the shape {expected} of {what}, got {grad.shape}")


@op("MaxPool", public="")
def max_pool_op(
    value: Real,
    ksize: Sequence[int],
    strides: Sequence[int],
    padding: Padding,
    data_format: str,
    dilations: Sequence[int] | None = None,
) -> Spec:
    """Maxima of windows of images of one, two or three dimensions; NaN where a window holds one.

    Args:
        value: [n, ..., c] or [n, c, ...], a real number.
        ksize: The size of a window along each spatial axis.
        strides: The step along each spatial axis.
        padding: "SAME" (windows are cut off at the border), "VALID", or pairs of numbers.
        data_format: "NWC", "NCW", "NHWC", "NCHW", "NDHWC" or "NCDHW".
        dilations: Distances of elements of a window along each spatial axis; 1 if None.

    Returns:
        The same with one element for each window, the dtype of ``value``.
    """
    return _pooled(value, ksize, strides, padding, data_format, dilations)


@op("MaxPoolGrad", public="")
def max_pool_grad(
    value: Floating,
    grad: Floating,
    ksize: Sequence[int],
    strides: Sequence[int],
    padding: Padding,
    data_format: str,
    dilations: Sequence[int] | None = None,
) -> Spec:
    """Gradient of ``MaxPool``: ``grad`` at the first maximum of each window.

    Args:
        value: The images, floating.
        grad: The gradient with respect to the output.
        ksize: As the pooling's.
        strides: As the pooling's.
        padding: As the pooling's.
        data_format: As the pooling's.
        dilations: As the pooling's.

    Returns:
        The shape and dtype of ``value``.
    """
    pooled = _pooled(value, ksize, strides, padding, data_format, dilations)
    _check_shape(grad, pooled.shape, "the pooling's output")
    return like(value)


@op("MaxPoolGradGrad", public="")
def max_pool_grad_grad(
    value: Floating,
    grad: Floating,
    ksize: Sequence[int],
    strides: Sequence[int],
    padding: Padding,
    data_format: str,
    dilations: Sequence[int] | None = None,
) -> Spec:
    """``grad`` read at the first maximum of each window of ``value``.

    It is the transpose of ``MaxPoolGrad``, and so its gradient.

    Args:
        value: The images, floating.
        grad: A tensor of the shape of ``value``.
        ksize: As the pooling's.
        strides: As the pooling's.
        padding: As the pooling's.
        data_format: As the pooling's.
        dilations: As the pooling's.

    Returns:
        The shape of the pooling's output, the dtype of ``value``.
    """
    _check_shape(grad, value.shape, "the images")
    return _pooled(value, ksize, strides, padding, data_format, dilations)


@op("MaxPoolWithArgmax", public="")
def max_pool_with_argmax_op(
    value: Real,
    ksize: Sequence[int],
    strides: Sequence[int],
    padding: Padding,
    data_format: str,
    output_type: DType = dtypes.int64,
    include_batch_in_index: bool = False,
) -> tuple[Spec, Spec]:
    """Maxima of windows of images, and where the first of each window is.

    Args:
        value: [n, ..., c] or [n, c, ...], a real number.
        ksize: As for ``MaxPool``.
        strides: As for ``MaxPool``.
        padding: As for ``MaxPool``.
        data_format: As for ``MaxPool``.
        output_type: int32 or int64.
        include_batch_in_index: Whether places are counted through all images, or in each.

    Returns:
        The maxima, and their places in the images laid out as [..., c] and flattened.
    """
    if output_type not in (dtypes.int32, dtypes.int64):
        raise DTypeError(f"output_type must be int32 or int64, got {output_type}")
    pooled = _pooled(value, ksize, strides, padding, data_format, None)
    return pooled, TensorSpec(output_type, pooled.shape)


@op("AvgPool", public="")
def avg_pool_op(
    value: Floating,
    ksize: Sequence[int],
    strides: Sequence[int],
    padding: Padding,
    data_format: str,
    dilations: Sequence[int] | None = None,
) -> Spec:
    """Means of windows of images of one, two or three dimensions; padding does not count.

    Args:
        value: [n, ..., c] or [n, c, ...], floating.
        ksize: As for ``MaxPool``.
        strides: As for ``MaxPool``.
        padding: As for ``MaxPool``.
        data_format: As for ``MaxPool``.
        dilations: As for ``MaxPool``.

    Returns:
        The same with one element for each window, the dtype of ``value``.
    """
    return _pooled(value, ksize, strides, padding, data_format, dilations)


@op("AvgPoolGrad", host_inputs=["input_sizes"], public="")
def avg_pool_grad(
    input_sizes: Index,
    grad: Floating,
    ksize: Sequence[int],
    strides: Sequence[int],
    padding: Padding,
    data_format: str,
    dilations: Sequence[int] | None = None,
) -> Spec:
    """Gradient of ``AvgPool``: a share of ``grad`` at each element of each window.

    Args:
        input_sizes: [rank], the shape of the images.
        grad: The gradient with respect to the output, floating.
        ksize: As the pooling's.
        strides: As the pooling's.
        padding: As the pooling's.
        data_format: As the pooling's.
        dilations: As the pooling's.

    Returns:
        ``input_sizes``, the dtype of ``grad``.
    """
    images = _images_of(input_sizes, grad.dtype, data_format)
    pooled = _pooled(images, ksize, strides, padding, data_format, dilations)
    _check_shape(grad, pooled.shape, "the pooling's output")
    return images


def _images_of(sizes: TensorSpec, dtype: DType, data_format: str) -> TensorSpec:
    """Return the spec of images whose shape is a tensor."""
    check_geometry(data_format, "VALID")
    if sizes.rank not in (None, 1):
        raise ShapeError(f"input_sizes must be a vector, got shape {sizes.shape}")
    if sizes.value is not None and (sizes.value < 0).any():
        raise ShapeError(f"input_sizes must be sizes >= 0, got {sizes.value.tolist()}")
    shape = as_shape(sizes)
    return TensorSpec(dtype, shape if shape.dims is not None else Shape([None] * len(data_format)))


@op("ExtractPatches", public="", node_name="ExtractImagePatches")
def extract_patches_op(
    images: Numeric,
    ksize: Sequence[int],
    strides: Sequence[int],
    padding: Padding,
    data_format: str,
    dilations: Sequence[int] | None = None,
) -> Spec:
    """The elements of each window, beside one another in the channels; padding is 0.

    Args:
        images: [n, ..., c], numeric.
        ksize: As for ``MaxPool``.
        strides: As for ``MaxPool``.
        padding: As for ``MaxPool``.
        data_format: "NWC", "NHWC" or "NDHWC".
        dilations: As for ``MaxPool``.

    Returns:
        [n, ..., window * c], the dtype of ``images``.
    """
    return _patches(images, ksize, strides, padding, data_format, dilations)


def _patches(
    images: TensorSpec,
    ksize: Sequence[int],
    strides: Sequence[int],
    padding: Padding,
    data_format: str,
    dilations: Sequence[int] | None,
) -> TensorSpec:
    if data_format.startswith("NC"):
        raise AttributeValueError(f"patches are taken of channels-last images, not {data_format}")
    pooled = _pooled(images, ksize, strides, padding, data_format, dilations)
    *places, channels = pooled.shape.as_list()
    if channels is not None:
        for size in ksize:
            channels *= size
        if channels >= 2**62:
            raise AttributeValueError(f"windows of {list(ksize)} elements are too large")
    return TensorSpec(images.dtype, Shape([*places, channels]))


@op("ExtractPatchesGrad", host_inputs=["input_sizes"], public="")
def extract_patches_grad(
    input_sizes: Index,
    grad: Numeric,
    ksize: Sequence[int],
    strides: Sequence[int],
    padding: Padding,
    data_format: str,
    dilations: Sequence[int] | None = None,
) -> Spec:
    """Gradient of ``ExtractPatches``: patches added up where they were taken.

    Args:
        input_sizes: [rank], the shape of the images.
        grad: The gradient with respect to the patches, numeric.
        ksize: As the patches'.
        strides: As the patches'.
        padding: As the patches'.
        data_format: As the patches'.
        dilations: As the patches'.

    Returns:
        ``input_sizes``, the dtype of ``grad``.
    """
    images = _images_of(input_sizes, grad.dtype, data_format)
    patches = _patches(images, ksize, strides, padding, data_format, dilations)
    _check_shape(grad, patches.shape, "the patches")
    return images
