"""Arithmetic made of other operations: sums, polynomials, products with scalars, choice."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from headrace.arguments import items
from headrace.dtypes import as_dtype
from headrace.errors import AttributeValueError, DTypeError, ShapeError, shown
from headrace.graph.convert import convert_to_tensor
from headrace.graph.dispatch import dispatched
from headrace.graph.indexed_slices import IndexedSlices
from headrace.graph.naming import names_result
from headrace.graph.schema import call_op
from headrace.graph.scopes import name_scope
from headrace.graph.tensor import Tensor
from headrace.ops.array import concat, identity, rank, reshape, shape
from headrace.ops.complex import abs_
from headrace.ops.constant import fill, ones, zeros_like
from headrace.ops.conversion import cast
from headrace.ops.elementwise import (
    add_n,
    div_no_nan,
    equal,
    less,
    maximum,
    multiply,
    select,
    subtract,
)
from headrace.ops.gather import where_indices
from headrace.shapes import Shape, broadcast


def accumulate_n(
    inputs: Sequence[Any], shape: Any = None, tensor_dtype: Any = None, name: str | None = None
) -> Tensor:
    """Sum of any number of tensors of one shape.

    Args:
        inputs: At least one tensor [...], numeric, all of one shape and dtype.
        shape: The shape that they must have.
        tensor_dtype: The dtype that they must have.
        name: The name of the operation.

    Returns:
        The shape and dtype of the inputs.

    Raises:
        AttributeValueError: if there are none.
        DTypeError: if one has another dtype.
        ShapeError: if one has another shape.
    """
    if not isinstance(inputs, list | tuple) or not inputs:
        raise AttributeValueError(f"accumulate_n: inputs is a list of tensors, got {shown(inputs)}")
    tensors = [convert_to_tensor(t) for t in inputs]
    dtype = tensors[0].dtype if tensor_dtype is None else as_dtype(tensor_dtype)
    wanted = Shape(shape)
    if not dtype.is_numeric:
        raise DTypeError(f"accumulate_n: inputs must be numeric, got {dtype}")
    for tensor in tensors:
        if tensor.dtype != dtype:
            raise DTypeError(f"accumulate_n: inputs must be {dtype}, got {tensor.dtype}")
        if not wanted.is_compatible_with(tensor.spec.shape):
            raise ShapeError(
                f"accumulate_n: inputs must have shape {wanted}, got {tensor.spec.shape}"
            )
    if len(tensors) == 1:
        return identity(tensors[0], name=name or "accumulate_n")
    return add_n(tensors, name=name or "AccumulateNV2")


def scalar_mul(scalar: Any, x: Any, name: str | None = None) -> Any:
    """Multiply a tensor by a scalar.

    Args:
        scalar: [], the dtype of ``x``.
        x: [...], numeric; or ``IndexedSlices``, of which the rows are multiplied.
        name: The name of the operation.

    Returns:
        [...], the dtype of ``x``.

    Raises:
        ShapeError: if ``scalar`` has dimensions.
    """
    if isinstance(x, IndexedSlices):
        return IndexedSlices(scalar_mul(scalar, x.values, name), x.indices, x.dense_shape)
    tensor = convert_to_tensor(x)
    factor = convert_to_tensor(scalar, preferred_dtype=tensor.dtype)
    if factor.shape.rank != 0:
        raise ShapeError(f"scalar_mul: scalar must be a scalar, got shape {factor.spec.shape}")
    return multiply(factor, tensor, name=name)


def polyval(coeffs: Any, x: Any, name: str | None = None) -> Tensor:
    """Value of a polynomial, by Horner's rule.

    Args:
        coeffs: A list of coefficients, that of the highest power first; each broadcasts to
            ``x`` and has its dtype.
        x: [...], numeric.
        name: The name of the operations.

    Returns:
        The broadcast shape, the dtype of ``x``; zeros where there are no coefficients.

    Raises:
        AttributeValueError: if ``coeffs`` is no list.
    """
    if isinstance(coeffs, np.ndarray) and coeffs.ndim:
        coeffs = items(coeffs, "coeffs")
    if not isinstance(coeffs, list | tuple):
        raise AttributeValueError(f"polyval: coeffs is a list of tensors, got {shown(coeffs)}")
    with name_scope(name, "polyval", [x]):
        at = convert_to_tensor(x)
        if not coeffs:
            return zeros_like(at)
        total = convert_to_tensor(coeffs[0], preferred_dtype=at.dtype)
        if not (total.dtype.is_numeric and at.dtype.is_numeric):
            raise DTypeError(f"polyval: expected numbers, got {total.dtype} and {at.dtype}")
        for coefficient in coeffs[1:]:
            total = total * at + coefficient
        return total


@names_result
def approximate_equal(x: Any, y: Any, tolerance: float = 1e-05, name: str | None = None) -> Tensor:
    """Whether ``abs(x - y) < tolerance``.

    Args:
        x: [...], numeric.
        y: The shape and dtype of ``x``.
        tolerance: The largest difference, not included.
        name: The name of the operations.

    Returns:
        [...], bool.

    Raises:
        ShapeError: if the shapes differ.
    """
    with name_scope(name, "ApproximateEqual"):
        difference = abs_(subtract(x, y))
        for value in (x, y):
            given = convert_to_tensor(value, preferred_dtype=difference.dtype).spec.shape
            if not given.is_compatible_with(difference.shape):
                raise ShapeError(f"approximate_equal: x and y must have one shape, got {given}")
        if difference.dtype.is_integer:
            # Whole numbers differ by less than the tolerance as they do in float64.
            difference = cast(difference, "float64")
        return less(difference, tolerance)


@dispatched()
@names_result
def where(condition: Any, x: Any = None, y: Any = None, name: str | None = None) -> Tensor:
    """``x`` where ``condition`` holds and ``y`` elsewhere; or the places where it holds.

    A condition of one dimension chooses rows: whole slices along the first axis of ``x`` and
    ``y``, where these have more dimensions. (``where_v2`` broadcasts it as NumPy does.) All else
    broadcasts.

    Args:
        condition: [...], bool; of numbers, too, where ``x`` and ``y`` are left out.
        x: [...], any dtype.
        y: [...], the dtype of ``x``.
        name: The name of the operations.

    Returns:
        The broadcast shape, the dtype of ``x``. Without ``x`` and ``y``: int64 [n, rank], the
        indices of all elements that hold, in row-major order.

    Raises:
        AttributeValueError: if only one of ``x`` and ``y`` is given.
        ShapeError: if the shapes do not fit.
    """
    if x is None and y is None:
        return where_indices(condition, name=name)
    if x is None or y is None:
        raise AttributeValueError("where: give both of x and y, or none of them")
    choice = convert_to_tensor(condition, preferred_dtype="bool")
    if choice.shape.rank not in (None, 1):
        return select(choice, x, y, name=name)
    with name_scope(name, "Select"):
        left, right = _converted(x, y)
        chosen = select(_along_first_axis(choice, left, right), left, right)
        if choice.shape.rank is None and left.shape.is_fully_defined():
            # A condition whose rank is not known is a scalar, a vector, or of the shape of both.
            known = broadcast(left.spec.shape, right.spec.shape)
            return convert_to_tensor(call_op("EnsureShape", chosen, known))
        return chosen


def where_v2(condition: Any, x: Any = None, y: Any = None, name: str | None = None) -> Tensor:
    """``x`` where ``condition`` holds and ``y`` elsewhere; or the places where it holds.

    All three broadcast, as they do in NumPy.

    Args:
        condition: [...], bool; of numbers, too, where ``x`` and ``y`` are left out.
        x: [...], any dtype.
        y: [...], the dtype of ``x``.
        name: The name of the operation.

    Returns:
        The broadcast shape, the dtype of ``x``. Without ``x`` and ``y``: int64 [n, rank], the
        indices of all elements that hold, in row-major order.

    Raises:
        AttributeValueError: if only one of ``x`` and ``y`` is given.
        ShapeError: if the shapes do not broadcast.
    """
    if x is None and y is None:
        return where_indices(condition, name=name)
    if x is None or y is None:
        raise AttributeValueError("where_v2: give both of x and y, or none of them")
    return select(condition, x, y, name=name)


def _converted(x: Any, y: Any) -> tuple[Tensor, Tensor]:
    """Return two values as tensors, plain data in the dtype of the other one."""
    for_x = getattr(y, "dtype", None)
    for_y = getattr(x, "dtype", None)
    left = convert_to_tensor(x, preferred_dtype=for_x)
    return left, convert_to_tensor(y, preferred_dtype=left.dtype if for_y is None else for_y)


def _along_first_axis(condition: Tensor, x: Tensor, y: Tensor) -> Tensor:
    """Return a condition of one dimension with as many as ``x`` and ``y`` have, others as is."""
    ranks = (x.shape.rank, y.shape.rank)
    known = [r for r in ranks if r is not None]
    if len(known) == 2:
        most: Any = max(known)
        if most <= 1:
            return condition
    else:
        most = maximum(rank(x), rank(y))
    if condition.shape.rank == 1 and len(known) == 2:
        rows = condition.spec.shape[0]
        for value in (x, y):
            if value.shape.rank == most and value.spec.shape[0] not in (None, 1, rows) and rows:
                raise ShapeError(
                    f"where: a condition of shape {condition.spec.shape} chooses rows, and "
                    f"{value.spec.shape} has {value.spec.shape[0]} of them"
                )
        return reshape(condition, [-1 if rows is None else rows] + [1] * (most - 1))
    is_vector = cast(equal(rank(condition), 1), "int32")
    missing = maximum(is_vector * (most - 1), 0)
    return reshape(condition, concat([shape(condition), fill(reshape(missing, [1]), 1)], 0))


@names_result
def reciprocal_no_nan(x: Any, name: str | None = None) -> Tensor:
    """``1 / x``, and 0 wherever ``x`` is 0.

    Args:
        x: [...], floating or complex.
        name: The name of the operation.

    Returns:
        The shape and dtype of ``x``.

    Raises:
        DTypeError: if ``x`` is neither.
    """
    with name_scope(name, "reciprocal_no_nan", [x]):
        x = convert_to_tensor(x)
        if not (x.dtype.is_floating or x.dtype.is_complex):
            raise DTypeError(f"reciprocal_no_nan: x must be floating or complex, got {x.dtype}")
        return div_no_nan(ones([], x.dtype), x)
