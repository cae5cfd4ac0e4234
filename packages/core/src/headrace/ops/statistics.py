"""Statistics: norms, moments, counts and log-sum-exp, built of reductions."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from headrace import dtypes
from headrace.dtypes import DType, as_dtype
from headrace.errors import AttributeValueError, DTypeError, shown, told
from headrace.graph.convert import convert_to_tensor
from headrace.graph.scopes import name_scope
from headrace.graph.tensor import Tensor
from headrace.ops.aliases import flag, renamed
from headrace.ops.arguments import as_ints
from headrace.ops.array import gather, reshape, shape, size, squeeze, stop_gradient
from headrace.ops.complex import abs_, real
from headrace.ops.constant import constant, zeros_like
from headrace.ops.conversion import cast
from headrace.ops.decompositions import svd
from headrace.ops.elementwise import (
    add,
    conj,
    divide,
    equal,
    is_finite,
    multiply,
    not_equal,
    power,
    select,
    square,
    subtract,
)
from headrace.ops.identity import identity
from headrace.ops.reduce import (
    axes_last,
    reduce_max,
    reduce_mean,
    reduce_prod,
    reduce_sum,
    reduced_axes,
)
from headrace.ops.transcendental import exp, log, sqrt


def reduce_logsumexp(
    input_tensor: Any,
    axis: Any = None,
    keepdims: bool | None = None,
    name: str | None = None,
    reduction_indices: Any = None,
    keep_dims: bool | None = None,
) -> Tensor:
    """``log(sum(exp(input_tensor)))`` along axes, without overflow.

    Args:
        input_tensor: [...], floating.
        axis: The axis or axes to fold: an integer, a list, or an integer tensor; all if None.
        keepdims: Keep folded axes with size 1.
        name: The name of the operations.
        reduction_indices: The old name of ``axis``.
        keep_dims: The old name of ``keepdims``.

    Returns:
        The remaining axes, the dtype of ``input_tensor``; -inf where there are no elements.

    Raises:
        ShapeError: if an axis is out of range or named twice.
    """
    axes = renamed("axis", axis, "reduction_indices", reduction_indices)
    keep = flag("keepdims", renamed("keepdims", keepdims, "keep_dims", keep_dims))
    with name_scope(name, "ReduceLogSumExp"):
        x = convert_to_tensor(input_tensor)
        largest = stop_gradient(reduce_max(x, axes, keepdims=True))
        shift = select(is_finite(largest), largest, 0)
        total = reduce_sum(exp(x - shift), axes, keepdims=keep)
        if not keep:
            shift = reshape(shift, shape(total))
        return log(total) + shift


def reduce_euclidean_norm(
    input_tensor: Any, axis: Any = None, keepdims: bool = False, name: str | None = None
) -> Tensor:
    """The root of the sum of squares along axes.

    Args:
        input_tensor: [...], numeric. Norms of integers are rounded down.
        axis: The axis or axes to fold: an integer, a list, or an integer tensor; all if None. Of no
            axes the tensor comes out as it is, as in TensorFlow.
        keepdims: Keep folded axes with size 1.
        name: The name of the operations.

    Returns:
        The remaining axes, the dtype of ``input_tensor``; 0 where there are no elements.

    Raises:
        ShapeError: if an axis is out of range or named twice.
    """
    with name_scope(name, "EuclideanNorm"):
        x = convert_to_tensor(input_tensor)
        if isinstance(axis, list | tuple) and not axis:
            return identity(x)
        wide = cast(x, _wide(x.dtype))
        squares = multiply(wide, conj(wide)) if wide.dtype.is_complex else square(wide)
        result: Tensor = cast(sqrt(reduce_sum(squares, axis, keepdims)), x.dtype)
        return result


def _wide(dtype: DType) -> DType:
    """Return the dtype in which squares of a dtype are summed."""
    if dtype.is_integer:
        return dtypes.float64
    return dtypes.float32 if dtype.is_floating and dtype.itemsize == 2 else dtype


def reduce_variance(
    input_tensor: Any, axis: Any = None, keepdims: bool = False, name: str | None = None
) -> Tensor:
    """The mean square of the distances from the mean along axes.

    Args:
        input_tensor: [...], numeric. Of integers, means are rounded towards zero.
        axis: The axis or axes to fold: an integer, a list, or an integer tensor; all if None.
        keepdims: Keep folded axes with size 1.
        name: The name of the operations.

    Returns:
        The remaining axes, the dtype of ``input_tensor``, or that of its parts where it is
        complex; NaN where there are no elements.

    Raises:
        DTypeError: if ``input_tensor`` holds integers.
        ShapeError: if an axis is out of range or named twice.
    """
    with name_scope(name, "reduce_variance"):
        x = convert_to_tensor(input_tensor)
        if not x.dtype.is_numeric:
            raise DTypeError(f"input_tensor must be numeric, got {x.dtype}")
        distance = x - reduce_mean(x, axis, keepdims=True)
        if x.dtype.is_complex:
            squares = real(multiply(distance, conj(distance)))
        else:
            squares = square(distance)
        return reduce_mean(squares, axis, keepdims)


def reduce_std(
    input_tensor: Any, axis: Any = None, keepdims: bool = False, name: str | None = None
) -> Tensor:
    """The standard deviation along axes: the root of ``reduce_variance``.

    Args:
        input_tensor: [...], floating or complex.
        axis: The axis or axes to fold: an integer, a list, or an integer tensor; all if None.
        keepdims: Keep folded axes with size 1.
        name: The name of the operations.

    Returns:
        The remaining axes, the dtype of ``input_tensor``, or that of its parts where it is
        complex; NaN where there are no elements.

    Raises:
        DTypeError: if ``input_tensor`` holds integers.
        ShapeError: if an axis is out of range or named twice.
    """
    with name_scope(name, "reduce_std"):
        return sqrt(reduce_variance(input_tensor, axis, keepdims))


def count_nonzero(
    input_tensor: Any = None,
    axis: Any = None,
    keepdims: bool | None = None,
    dtype: Any = dtypes.int64,
    name: str | None = None,
    reduction_indices: Any = None,
    keep_dims: bool | None = None,
    input: Any = None,
) -> Tensor:
    """The number of elements that are not 0, false or empty, along axes.

    Args:
        input_tensor: [...], numeric, bool or string. NaN is not 0.
        axis: The axis or axes to fold: an integer, a list, or an integer tensor; all if None.
        keepdims: Keep folded axes with size 1.
        dtype: The dtype of the result.
        name: The name of the operations.
        reduction_indices: The old name of ``axis``.
        keep_dims: The old name of ``keepdims``.
        input: Another name of ``input_tensor``.

    Returns:
        The remaining axes, ``dtype``.

    Raises:
        ShapeError: if an axis is out of range or named twice.
    """
    given = renamed("input_tensor", input_tensor, "input", input)
    axes = renamed("axis", axis, "reduction_indices", reduction_indices)
    keep = flag("keepdims", renamed("keepdims", keepdims, "keep_dims", keep_dims))
    if given is None:
        raise AttributeValueError("count_nonzero needs input_tensor")
    with name_scope(name, "count_nonzero"):
        x = convert_to_tensor(given)
        found = x if x.dtype.is_bool else not_equal(x, zeros_like(x))
        count: Tensor = cast(reduce_sum(cast(found, dtypes.int64), axes, keep), as_dtype(dtype))
        return count


def zero_fraction(value: Any, name: str | None = None) -> Tensor:
    """The share of elements that are 0.

    Args:
        value: [...], numeric.
        name: The name of the operations.

    Returns:
        [], float32; NaN where there are no elements.
    """
    with name_scope(name, "zero_fraction"):
        x = convert_to_tensor(value)
        zeros: Tensor = cast(reduce_sum(cast(equal(x, zeros_like(x)), dtypes.int64)), "float32")
        count: Tensor = cast(size(x, out_type=dtypes.int64), dtypes.float32)
        return divide(zeros, count, name="fraction")


def norm(
    tensor: Any,
    ord: Any = "euclidean",
    axis: Any = None,
    keepdims: bool | None = None,
    name: str | None = None,
    keep_dims: bool | None = None,
) -> Tensor:
    """Norms of vectors or matrices.

    Args:
        tensor: [...], floating or complex.
        ord: Which norm: "euclidean", 1, 2, infinity, or any number p > 0 for vectors; "euclidean"
            or "fro" (the root of the sum of squares), 1, 2 or infinity for matrices.
        axis: The axis along which vectors lie, two axes for matrices, or None for one vector of
            all elements.
        keepdims: Keep folded axes with size 1.
        name: The name of the operations.
        keep_dims: The old name of ``keepdims``.

    Returns:
        The remaining axes, the dtype of ``tensor``. Only "euclidean", "fro" and 2 of complex
        vectors are complex; other norms have the dtype of the parts.

    Raises:
        AttributeValueError: if there is no such norm, or ``axis`` is neither one axis nor two.
        ShapeError: if an axis is out of range or named twice.
    """
    keep = flag("keepdims", renamed("keepdims", keepdims, "keep_dims", keep_dims))
    axes = _norm_axes(axis)
    matrix = axes is not None and len(axes) == 2
    _check_order(ord, matrix)
    with name_scope(name, "norm"):
        x = convert_to_tensor(tensor)
        if matrix and axes is not None and ord == 2:
            return _spectral_norm(x, axes, keep)
        if isinstance(ord, str) or ord == 2:
            return sqrt(reduce_sum(multiply(x, conj(x)), axes, keep))
        size_of = abs_(x)
        if not matrix or axes is None:
            return _vector_norm(size_of, ord, axes, keep)
        # Sums of columns for 1, of rows for infinity; then the largest of them.
        summed, largest = axes if ord == 1 else axes[::-1]
        result = reduce_max(reduce_sum(size_of, summed, keepdims=True), largest, keepdims=True)
        return result if keep else squeeze(result, list(axes))


def normalize(
    tensor: Any, ord: Any = "euclidean", axis: Any = None, name: str | None = None
) -> tuple[Tensor, Tensor]:
    """Divide vectors or matrices by their norms.

    Args:
        tensor: [...], floating or complex.
        ord: Which norm, as for ``norm``.
        axis: The axis along which vectors lie, two axes for matrices, or None for one vector of
            all elements.
        name: The name of the operations.

    Returns:
        The quotients, and the norms with the folded axes of size 1.

    Raises:
        AttributeValueError: if there is no such norm, or ``axis`` is neither one axis nor two.
        ShapeError: if an axis is out of range or named twice.
    """
    with name_scope(name, "normalize"):
        x = convert_to_tensor(tensor)
        size_of = norm(x, ord, axis, keepdims=True)
        return x / cast(size_of, x.dtype), size_of


def _vector_norm(sizes: Tensor, ord: float, axes: Any, keep: bool) -> Tensor:
    if ord == 1:
        return reduce_sum(sizes, axes, keep)
    if ord == math.inf:
        return reduce_max(sizes, axes, keep)
    return power(reduce_sum(power(sizes, ord), axes, keep), 1.0 / ord)


def _spectral_norm(x: Tensor, axes: Sequence[int], keep: bool) -> Tensor:
    """Return the largest singular values of matrices along two axes."""
    values: Any = svd(axes_last(x, axes), compute_uv=False)
    result = reduce_max(values, -1)
    if not keep:
        return result
    return reshape(result, shape(reduce_sum(abs_(x), list(axes), keepdims=True)))


def _norm_axes(axis: Any) -> tuple[int, ...] | None:
    if axis is None:
        return None
    axes = as_ints(axis, "axis")
    if isinstance(axes, int):
        return (axes,)
    if (
        isinstance(axes, list)
        and len(axes) == 2
        and all(isinstance(a, int) for a in axes)
        and axes[0] != axes[1]
    ):
        return (axes[0], axes[1])
    raise AttributeValueError(
        f"axis must be None, one integer, or two different ones, got {told(axis)}"
    )


def _check_order(ord: Any, matrix: bool) -> None:
    number = isinstance(ord, int | float | np.integer | np.floating) and not isinstance(ord, bool)
    if not number and not isinstance(ord, str):
        raise AttributeValueError(f"ord must be a number, 'euclidean' or 'fro', got {shown(ord)}")
    if matrix and not (ord in ("euclidean", "fro") or (number and ord in (1, 2, math.inf))):
        raise AttributeValueError(
            f"ord of matrices must be 'euclidean', 'fro', 1, 2 or infinity, got {shown(ord)}"
        )
    if not matrix and not (ord == "euclidean" or (number and ord > 0)):
        raise AttributeValueError(
            f"ord of vectors must be 'euclidean' or a number > 0, got {shown(ord)}"
        )


# -- moments


def moments(
    x: Any,
    axes: Any,
    shift: Any = None,
    name: str | None = None,
    keep_dims: bool | None = None,
    keepdims: bool | None = None,
) -> tuple[Tensor, Tensor]:
    """Mean and variance along axes.

    Args:
        x: [...], numeric. Those of 16-bit floats are computed in float32.
        axes: The axis or axes to fold.
        shift: Ignored, as in TensorFlow.
        name: The name of the operations.
        keep_dims: The old name of ``keepdims``.
        keepdims: Keep folded axes with size 1.

    Returns:
        The mean and the variance: the remaining axes, the dtype of ``x``.

    Raises:
        ShapeError: if an axis is out of range or named twice.
    """
    del shift
    keep = flag("keepdims", renamed("keepdims", keepdims, "keep_dims", keep_dims))
    with name_scope(name, "moments"):
        given = convert_to_tensor(x)
        y = _widened(given)
        mean = reduce_mean(y, axes, keepdims=True)
        variance = reduce_mean(square(y - mean), axes, keep)
        if not keep:
            mean = reshape(mean, shape(variance))
        return cast(mean, given.dtype), cast(variance, given.dtype)


def _widened(x: Tensor) -> Tensor:
    half = x.dtype.is_floating and x.dtype.itemsize == 2
    return cast(x, dtypes.float32) if half else x


def weighted_moments(
    x: Any,
    axes: Any,
    frequency_weights: Any,
    name: str | None = None,
    keep_dims: bool | None = None,
    keepdims: bool | None = None,
) -> tuple[Tensor, Tensor]:
    """Mean and variance along axes of elements that count with weights.

    Args:
        x: [...], floating. Those of 16-bit floats are computed in float32.
        axes: The axis or axes to fold.
        frequency_weights: How often each element counts; numeric, broadcasts with ``x``.
        name: The name of the operations.
        keep_dims: The old name of ``keepdims``.
        keepdims: Keep folded axes with size 1.

    Returns:
        The mean and the variance: the remaining axes, the dtype of ``x``.

    Raises:
        ShapeError: if an axis is out of range or named twice, or shapes do not broadcast.
    """
    keep = flag("keepdims", renamed("keepdims", keepdims, "keep_dims", keep_dims))
    with name_scope(name, "weighted_moments"):
        given = convert_to_tensor(x)
        y = _widened(given)
        weights = cast(frequency_weights, y.dtype)
        spread = add(weights, zeros_like(y))
        mean = reduce_sum(weights * y, axes, keepdims=True) / reduce_sum(spread, axes, True)
        squares = reduce_sum(weights * square(y - mean), axes, keep)
        variance = squares / reduce_sum(spread, axes, keep)
        if not keep:
            mean = reshape(mean, shape(variance))
        return cast(mean, given.dtype), cast(variance, given.dtype)


def sufficient_statistics(
    x: Any,
    axes: Any,
    shift: Any = None,
    keep_dims: bool | None = None,
    name: str | None = None,
    keepdims: bool | None = None,
) -> tuple[Tensor, Tensor, Tensor, Tensor | None]:
    """Sums from which ``normalize_moments`` computes mean and variance.

    Args:
        x: [...], floating.
        axes: The axis or axes to fold.
        shift: What is subtracted from all elements first: a number close to the mean makes the
            result more precise.
        keep_dims: The old name of ``keepdims``.
        name: The name of the operations.
        keepdims: Keep folded axes with size 1.

    Returns:
        The number of elements in each sum [], the sum of elements, the sum of squares, both with
        the remaining axes, and the shift, None if there is none; of the dtype of ``x``.

    Raises:
        ShapeError: if an axis is out of range or named twice.
    """
    keep = flag("keepdims", renamed("keepdims", keepdims, "keep_dims", keep_dims))
    with name_scope(name, "sufficient_statistics"):
        tensor = convert_to_tensor(x)
        moved: Tensor | None = None
        elements = tensor
        if shift is not None:
            moved = convert_to_tensor(shift, tensor.dtype)
            elements = subtract(tensor, moved)
        total = reduce_sum(elements, axes, keep, name="mean_ss")
        squares = reduce_sum(square(elements), axes, keep, name="var_ss")
        return _count(tensor, as_ints(axes, "axes")), total, squares, moved


def _count(x: Tensor, axes: Any) -> Tensor:
    """Return how many elements of ``x`` fold into one."""
    if x.shape.rank is not None and not isinstance(axes, Tensor):
        folded = [x.spec.shape[a] for a in reduced_axes(axes, x.shape.rank)]
        known = [d for d in folded if d is not None]
        if len(known) == len(folded):
            return constant(math.prod(known), x.dtype)
    count: Tensor = cast(reduce_prod(gather(shape(x), _wrapped(axes, x))), x.dtype)
    return count


def _wrapped(axes: Any, x: Tensor) -> Any:
    """Return axes counted from the front, for a tensor whose rank only a step knows."""
    return convert_to_tensor(axes) % size(shape(x))


def normalize_moments(
    counts: Any, mean_ss: Any, variance_ss: Any, shift: Any, name: str | None = None
) -> tuple[Tensor, Tensor]:
    """Mean and variance of the sums that ``sufficient_statistics`` returns.

    Args:
        counts: [], the number of elements in each sum, floating.
        mean_ss: [...], sums of elements.
        variance_ss: [...], sums of squares.
        shift: What was subtracted from the elements; None if nothing was.
        name: The name of the operations.

    Returns:
        The mean and the variance.
    """
    with name_scope(name, "normalize"):
        total = convert_to_tensor(counts)
        plain = shift is None
        shifted = divide(mean_ss, total, name="mean" if plain else "shifted_mean")
        mean = shifted if plain else add(shifted, shift, name="mean")
        squares = convert_to_tensor(variance_ss) / total
        return mean, subtract(squares, square(shifted), name="variance")
