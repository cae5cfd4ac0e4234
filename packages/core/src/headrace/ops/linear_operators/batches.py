"""Matrices in batches whose shapes broadcast."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from headrace import dtypes
from headrace.errors import ArgumentTypeError, ShapeError, shown, told
from headrace.graph.convert import convert_to_tensor
from headrace.graph.operation import Operation
from headrace.graph.tensor import Tensor
from headrace.ops.array import (
    broadcast_dynamic_shape,
    broadcast_to,
    concat,
    shape,
)
from headrace.ops.assertions import assert_equal, assert_less
from headrace.ops.complex import abs_, imag
from headrace.ops.control import no_op
from headrace.ops.conversion import cast
from headrace.ops.solving import cholesky_solve, matrix_solve, matrix_triangular_solve
from headrace.ops.variable import Variable
from headrace.shapes import Shape, broadcast_static_shape


def given(value: Any) -> Any:
    """Return a value as a tensor; a variable as it is, so that each use reads it anew."""
    return value if isinstance(value, Variable) else convert_to_tensor(value)


def no_variable(value: Any, what: str) -> None:
    """Refuse a variable where a number of rows or the like is expected.

    Raises:
        ArgumentTypeError: if it is one.
    """
    if isinstance(value, Variable):
        raise ArgumentTypeError(f"Argument {what} cannot be reference type, got {shown(value)}")


def at_least(value: Any, rank: int, what: str) -> None:
    """Refuse what has too few axes.

    Raises:
        ShapeError: if it does.
    """
    known = value.shape.ndims
    if known is not None and known < rank:
        axes = "dimension" if rank == 1 else "dimensions"
        raise ShapeError(
            f"Argument {what} must have at least {told(rank)} {axes}, got shape "
            f"{Shape(value.shape)}"
        )


def broadcast_static(*shapes: Any) -> Shape:
    """Return the static shape to which shapes of batches broadcast."""
    found: Any = shapes[0]
    for each in shapes[1:]:
        found = broadcast_static_shape(found, each)
    return Shape(found)


def broadcast_dynamic(*shapes: Tensor) -> Tensor:
    """Return the shape to which shapes of batches broadcast, as a tensor."""
    found = shapes[0]
    for each in shapes[1:]:
        found = broadcast_dynamic_shape(found, each)
    return found


def alike(matrices: Sequence[Any]) -> list[Tensor]:
    """Return matrices with batches of one shape."""
    found = [convert_to_tensor(each) for each in matrices]
    for each in found:
        at_least(each, 2, "matrix")
    if len(found) < 2:
        return found
    batch = broadcast_static(*(each.shape[:-2] for each in found))
    if batch.is_fully_defined():
        wanted: Any = list(batch.known)
        if all(Shape(each.shape)[:-2] == batch for each in found):
            return found
    else:
        wanted = broadcast_dynamic(*(shape(each)[:-2] for each in found))
    made = []
    for each in found:
        wide = broadcast_to(each, concat([wanted, shape(each)[-2:]], 0))
        if batch.rank is not None and each.shape.ndims is not None:
            wide.set_shape(batch.concatenate(Shape(each.shape)[-2:]))
        made.append(wide)
    return made


def solved_by_factor(factor: Any, rhs: Any) -> Tensor:
    """Solve with a Cholesky factor, batches of which broadcast."""
    left, right = alike([factor, rhs])
    return cholesky_solve(left, right)


def solved(matrix: Any, rhs: Any, adjoint: bool) -> Tensor:
    """Solve with a matrix, batches of which broadcast."""
    left, right = alike([matrix, rhs])
    return matrix_solve(left, right, adjoint=adjoint)


def solved_by_triangle(matrix: Any, rhs: Any, adjoint: bool) -> Tensor:
    """Solve with a lower triangle, batches of which broadcast."""
    left, right = alike([matrix, rhs])
    return matrix_triangular_solve(left, right, lower=True, adjoint=adjoint)


def vector(sizes: Any) -> Tensor:
    """Return sizes as a tensor; nothing as int32."""
    empty = isinstance(sizes, list | tuple) and not sizes
    return convert_to_tensor(sizes, dtypes.int32 if empty else None)


def check_no_zeros(x: Any, message: str) -> Operation:
    """Return what checks that no element is 0."""
    size = abs_(x)
    return assert_less(cast(0, size.dtype), size, message=message)


def check_real(x: Any, message: str) -> Operation:
    """Return what checks that elements have no imaginary part."""
    tensor = convert_to_tensor(x)
    if not tensor.dtype.is_complex:
        return no_op()
    part = imag(tensor)
    return assert_equal(cast(0, part.dtype), part, message=message)
