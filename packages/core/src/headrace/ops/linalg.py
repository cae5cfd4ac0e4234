"""Matrix products, and what is made of them and of matrices' elements."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from headrace.dtypes import DType
from headrace.errors import AttributeValueError, DTypeError, ShapeError
from headrace.graph.builder import convert_alike
from headrace.graph.convert import as_tensor, contains_tensor, convert_to_tensor, to_array
from headrace.graph.dispatch import dispatched
from headrace.graph.naming import names_result
from headrace.graph.schema import Kind, call_op
from headrace.graph.scopes import name_scope
from headrace.graph.spec import TensorSpec
from headrace.graph.tensor import Tensor
from headrace.ops.array import (
    concat,
    expand_dims,
    rank,
    reshape,
    shape,
    squeeze,
    stack,
    transpose,
)
from headrace.ops.constant import constant, zeros_like
from headrace.ops.constant import range as range_op
from headrace.ops.declare import Spec, op
from headrace.ops.elementwise import conj, equal
from headrace.ops.flops import of_matmul
from headrace.ops.identity import ensure_shape
from headrace.ops.kinds import Numeric
from headrace.ops.reduce import reduce_all, reduce_sum
from headrace.ops.report import holding
from headrace.shapes import Dim, Shape, broadcast

_NUMERIC = Kind("numeric", lambda d: d.is_numeric)
_REAL = Kind("a real number", lambda d: d.is_numeric and not d.is_complex)


@op("MatMul", total=True, public="matmul", flops=of_matmul)
def _matmul(a: Numeric, b: Numeric, transpose_a: bool = False, transpose_b: bool = False) -> Spec:
    """Matrix product of the last two axes; leading axes broadcast.

    Args:
        a: [..., n, k] ([..., k, n] where transposed), numeric.
        b: [..., k, m] ([..., m, k] where transposed), the dtype of ``a``.
        transpose_a: Swap the last two axes of ``a`` first.
        transpose_b: Swap the last two axes of ``b`` first.

    Returns:
        [..., n, m], the dtype of ``a``.
    """
    for part, label in ((a, "a"), (b, "b")):
        if part.rank is not None and part.rank < 2:
            raise ShapeError(
                f"{label} must have at least 2 dimensions, got shape {part.shape}; give a vector "
                "an axis with hr.expand_dims or hr.reshape, or use hr.linalg.matvec"
            )
    if a.shape.dims is None or b.shape.dims is None:
        return TensorSpec(a.dtype)
    rows, inner_a = a.shape[-2], a.shape[-1]
    inner_b, columns = b.shape[-2], b.shape[-1]
    if transpose_a:
        rows, inner_a = inner_a, rows
    if transpose_b:
        inner_b, columns = columns, inner_b
    if inner_a is not None and inner_b is not None and inner_a != inner_b:
        raise ShapeError(
            f"inner dimensions differ: {inner_a} of a {a.shape}"
            f"{' transposed' if transpose_a else ''} against {inner_b} of b {b.shape}"
            f"{' transposed' if transpose_b else ''}{_turned(rows, inner_a, inner_b, columns)}"
        )
    batch = broadcast(a.shape[:-2], b.shape[:-2])
    return TensorSpec(a.dtype, batch.concatenate(Shape([rows, columns])))


def _turned(rows: Dim, inner_a: Dim, inner_b: Dim, columns: Dim) -> str:
    """Return which argument would make a product that does not fit one that does."""
    if columns is not None and columns == inner_a:
        return "; transpose b: transpose_b=True"
    if rows is not None and rows == inner_b:
        return "; transpose a: transpose_a=True"
    return "; expected equal sizes"


@dispatched()
def matmul(
    a: Any,
    b: Any,
    transpose_a: bool = False,
    transpose_b: bool = False,
    adjoint_a: bool = False,
    adjoint_b: bool = False,
    a_is_sparse: bool = False,
    b_is_sparse: bool = False,
    name: str | None = None,
) -> Tensor:
    """Multiply matrices: the last two axes; leading axes broadcast.

    Args:
        a: [..., n, k] ([..., k, n] where transposed), numeric.
        b: [..., k, m] ([..., m, k] where transposed), the dtype of ``a``.
        transpose_a: Swap the last two axes of ``a`` first.
        transpose_b: Swap the last two axes of ``b`` first.
        adjoint_a: Transpose and conjugate ``a`` first.
        adjoint_b: Transpose and conjugate ``b`` first.
        a_is_sparse: Ignored: a hint that ``a`` has many zeros.
        b_is_sparse: Ignored: a hint that ``b`` has many zeros.
        name: The name of the operation.

    Returns:
        [..., n, m], the dtype of ``a``.

    Raises:
        AttributeValueError: if a matrix is to be both transposed and adjoint.
        ShapeError: if one has fewer than 2 dimensions, or they do not fit each other.
    """
    if transpose_a and adjoint_a:
        raise AttributeValueError("matmul: only one of transpose_a and adjoint_a can be True")
    if transpose_b and adjoint_b:
        raise AttributeValueError("matmul: only one of transpose_b and adjoint_b can be True")
    left = conjugated(a) if adjoint_a else a
    right = conjugated(b) if adjoint_b else b
    return _matmul(
        left, right, bool(transpose_a or adjoint_a), bool(transpose_b or adjoint_b), name=name
    )


def matvec(
    a: Any,
    b: Any,
    transpose_a: bool = False,
    adjoint_a: bool = False,
    a_is_sparse: bool = False,
    b_is_sparse: bool = False,
    name: str | None = None,
) -> Tensor:
    """Multiply matrices with vectors; leading axes broadcast.

    Args:
        a: [..., n, k] ([..., k, n] where transposed), numeric.
        b: [..., k], the dtype of ``a``.
        transpose_a: Swap the last two axes of ``a`` first.
        adjoint_a: Transpose and conjugate ``a`` first.
        a_is_sparse: Ignored: a hint that ``a`` has many zeros.
        b_is_sparse: Ignored: a hint that ``b`` has many zeros.
        name: The name of the operations.

    Returns:
        [..., n], the dtype of ``a``.

    Raises:
        AttributeValueError: if ``a`` is to be both transposed and adjoint.
        ShapeError: if the shapes do not fit each other.
    """
    with name_scope(name, "matvec"):
        matrix, vector = convert_alike(_NUMERIC, {"matvec: a": a, "matvec: b": b})
        if vector.shape.rank == 0:
            raise ShapeError("matvec: b must have at least 1 dimension, got a scalar")
        product = matmul(matrix, expand_dims(vector, -1), transpose_a, False, adjoint_a)
        return squeeze(product, -1)


def conjugated(value: Any) -> Any:
    """Return the complex conjugate; plain data stays without a dtype of its own."""
    if as_tensor(value) is None and not contains_tensor(value):
        array = to_array(value)
        return np.conj(array) if array.dtype.kind == "c" else value
    return conj(convert_to_tensor(value))


def swap_last_axes(x: Tensor) -> Tensor:
    """Return [..., m, n] for [..., n, m]."""
    if x.spec.shape.dims is not None:
        size = len(x.spec.shape.dims)
        if size < 2:
            raise ShapeError(f"a matrix has at least 2 dimensions, got shape {x.spec.shape}")
        return transpose(x, [*range(size - 2), size - 1, size - 2])
    order = range_op(rank(x))
    # One by one, so that a step refuses what has no two axes.
    return transpose(x, concat([order[:-2], stack([order[-1], order[-2]])], 0))


@dispatched()
def adjoint(matrix: Any, name: str | None = None) -> Tensor:
    """Swap the last two axes, and conjugate.

    Args:
        matrix: [..., n, m], any dtype.
        name: The name of the operations.

    Returns:
        [..., m, n], the dtype of ``matrix``.

    Raises:
        ShapeError: if it has fewer than 2 dimensions.
    """
    with name_scope(name, "adjoint"):
        x = convert_to_tensor(matrix)
        swapped = swap_last_axes(x)
        return conj(swapped) if x.dtype.is_complex else swapped


def real_part(x: Tensor) -> Tensor:
    """Return the real part of complex numbers, in their dtype."""
    return (x + conj(x)) * 0.5 if x.dtype.is_complex else x


def imaginary_part(x: Tensor) -> Tensor:
    """Return the imaginary part of complex numbers, times i."""
    return (x - conj(x)) * 0.5


def choose(mask: Tensor, x: Tensor, y: Tensor) -> Tensor:
    """Return elements of ``x`` where ``mask`` is true, else those of ``y``; all broadcast."""
    chosen = call_op("Select", mask, x, y)
    assert isinstance(chosen, Tensor)
    return chosen


def band_mask(x: Tensor, keep: Callable[[Any], Any]) -> Tensor:
    """Return which elements of matrices to keep, by their distance from the diagonal.

    Args:
        x: [..., n, m], any dtype.
        keep: Takes ``column - row``, as an array or a tensor of integers, and returns booleans.

    Returns:
        [n, m], bool.
    """
    if x.shape.rank is not None and x.shape.rank < 2:
        raise ShapeError(f"matrices must have at least 2 dimensions, got shape {x.spec.shape}")
    dims = x.spec.shape[-2:] if x.shape.rank is not None else Shape(None)
    if dims.is_fully_defined():
        n, m = dims.known
        return constant(np.asarray(keep(np.arange(m)[None, :] - np.arange(n)[:, None]), bool))
    sizes = shape(x)
    return keep(expand_dims(range_op(sizes[-1]), 0) - expand_dims(range_op(sizes[-2]), 1))  # type: ignore[no-any-return]


def lower_part(x: Tensor, strictly: bool = False) -> Tensor:
    """Return [..., n, m] with zeros above the diagonal, or on it, too."""
    mask = band_mask(x, (lambda d: d < 0) if strictly else (lambda d: d <= 0))
    return choose(mask, x, zeros_like(x))


def upper_part(x: Tensor, strictly: bool = False) -> Tensor:
    """Return [..., n, m] with zeros below the diagonal, or on it, too."""
    mask = band_mask(x, (lambda d: d > 0) if strictly else (lambda d: d >= 0))
    return choose(mask, x, zeros_like(x))


def on_diagonal(x: Tensor) -> Tensor:
    """Return [n, m] of booleans: which elements of a matrix are on its diagonal."""
    return band_mask(x, lambda d: (d <= 0) & (d >= 0))


def diagonal_of(x: Tensor) -> Tensor:
    """Return [..., min(n, m)]: the diagonals of matrices."""
    dims = x.spec.shape[-2:] if x.shape.rank is not None else Shape(None)
    inside = choose(on_diagonal(x), x, zeros_like(x))
    if dims.is_fully_defined() and dims[0] < dims[1]:
        return reduce_sum(inside, -1)
    if dims.is_fully_defined():
        return reduce_sum(inside, -2)
    sizes = shape(x)
    return reduce_sum(inside, -2)[..., : sizes[-2]]


def diagonal_matrix(x: Tensor) -> Tensor:
    """Return [..., n, n]: matrices with the vectors [..., n] on their diagonals."""
    row = expand_dims(x, -2)
    columns = expand_dims(x, -1)
    square = row + zeros_like(columns)
    return choose(on_diagonal(square), square, zeros_like(square))


@dispatched()
@names_result
def trace(x: Any, name: str | None = None) -> Tensor:
    """Sum the diagonals of matrices.

    Args:
        x: [..., n, m], numeric.
        name: The name of the operations.

    Returns:
        [...], the dtype of ``x``.

    Raises:
        DTypeError: if ``x`` is not numeric.
        ShapeError: if it has fewer than 2 dimensions.
    """
    with name_scope(name, "Trace"):
        matrix = convert_to_tensor(x)
        _check_numeric(matrix.dtype, "trace")
        if matrix.shape.rank is not None and matrix.shape.rank < 2:
            raise ShapeError(
                f"trace: x must have at least 2 dimensions, got shape {matrix.spec.shape}"
            )
        return reduce_sum(choose(on_diagonal(matrix), matrix, zeros_like(matrix)), [-2, -1])


def _check_numeric(dtype: DType, label: str) -> None:
    if not dtype.is_numeric:
        raise DTypeError(f"{label}: expected a numeric dtype, got {dtype}")


@names_result
def cross(a: Any, b: Any, name: str | None = None) -> Tensor:
    """Multiply vectors of three elements: the vector at right angles to both.

    Args:
        a: [..., 3], a real dtype.
        b: The shape and dtype of ``a``.
        name: The name of the operations.

    Returns:
        The shape and dtype of ``a``.

    Raises:
        DTypeError: if the dtypes are not real.
        ShapeError: if the shapes differ, or the last axis has not 3 elements.
    """
    with name_scope(name, "Cross"):
        x, y = convert_alike(_REAL, {"cross: a": a, "cross: b": b})
        for part, label in ((x, "a"), (y, "b")):
            if part.shape.rank == 0 or (
                part.shape.rank is not None and part.spec.shape[-1] not in (3, None)
            ):
                raise ShapeError(f"cross: {label} must have shape [..., 3], got {part.spec.shape}")
        common = x.spec.shape.merge_with(y.spec.shape)
        x, y = (
            part if part.spec.shape == common else ensure_shape(part, common) for part in (x, y)
        )
        unknown = None if common.dims is None else common.dims.count(None)
        if unknown is None or unknown > 1:
            # Operands would broadcast.
            same = reduce_all(equal(stack([shape(x), shape(y)]), shape(x)))
            y = holding(y, same, ["cross: a and b must have one shape, got", shape(x), shape(y)])
        elif unknown:
            # Of one shape where they have as many elements.
            y = reshape(y, shape(x))
        if common.rank is None or common[-1] is None:
            x = reshape(x, concat([shape(x)[:-1], [3]], 0))
        first_x, second_x, third_x = (x[..., i] for i in range(3))
        first_y, second_y, third_y = (y[..., i] for i in range(3))
        parts = [
            second_x * third_y - third_x * second_y,
            third_x * first_y - first_x * third_y,
            first_x * second_y - second_x * first_y,
        ]
        return stack(parts, -1)
