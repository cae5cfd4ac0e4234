"""``ops.linalg.linear_operator_util``: batches of matrices, and what must hold of them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import headrace as hr
from headrace.errors import ArgumentTypeError, AttributeValueError, DTypeError, ShapeError, shown


def is_ref(x: Any) -> bool:
    """Whether a value can change: a variable, or a module with a ``dtype`` and a ``shape``."""
    module = isinstance(x, hr.Module) and hasattr(x, "dtype") and hasattr(x, "shape")
    return isinstance(x, hr.Variable) or module


def assert_not_ref_type(x: Any, arg_name: str) -> None:
    """Refuse a value that can change.

    Raises:
        ArgumentTypeError: if it can.
    """
    if is_ref(x):
        raise ArgumentTypeError(f"{arg_name} must not be able to change, got {shown(x)}")


def convert_nonref_to_tensor(
    value: Any, dtype: Any = None, dtype_hint: Any = None, name: str | None = None
) -> Any:
    """Return a value as a tensor; what can change, and None, as it is.

    Args:
        value: What ``convert_to_tensor`` takes, or a variable or module, or None.
        dtype: The dtype it must have.
        dtype_hint: The dtype it gets if it can.
        name: The name of a new tensor.

    Raises:
        DTypeError: if what can change has another dtype.
    """
    if value is None:
        return None
    if not is_ref(value):
        return hr.convert_to_tensor(value, dtype, name=name, dtype_hint=dtype_hint)
    if dtype is not None and base_dtype(dtype) != base_dtype(value.dtype):
        raise DTypeError(f"{shown(value)} has dtype {dtype_name(value.dtype)}, expected {dtype}")
    return value


def base_dtype(dtype: Any) -> Any:
    """Return a dtype by whatever stands for it."""
    return hr.as_dtype(dtype).base_dtype


def dtype_name(dtype: Any) -> str:
    """Return the name of a dtype, as ``float32``."""
    return str(hr.as_dtype(dtype).name)


def shape_tensor(shape: Any, name: str | None = None) -> Any:
    """Return sizes as a tensor; an empty list as int32."""
    empty = isinstance(shape, list | tuple) and not shape
    return hr.convert_to_tensor(shape, hr.int32 if empty else None, name=name)


def assert_no_entries_with_modulus_zero(
    x: Any,
    message: str | None = None,
    name: str | None = "assert_no_entries_with_modulus_zero",
) -> Any:
    """Return an operation that fails if an element is 0."""
    with hr.name_scope(name, values=[x]):
        size = hr.abs(hr.convert_to_tensor(x))
        return hr.debugging.assert_positive(size, message=message)


def assert_zero_imag_part(
    x: Any, message: str | None = None, name: str | None = "assert_zero_imag_part"
) -> Any:
    """Return an operation that fails if an element has an imaginary part."""
    with hr.name_scope(name, values=[x]):
        tensor = hr.convert_to_tensor(x)
        if not tensor.dtype.is_complex:
            return hr.no_op()
        part = hr.math.imag(tensor)
        return hr.debugging.assert_equal(part, hr.zeros([], part.dtype), message=message)


def assert_compatible_matrix_dimensions(operator: Any, x: Any) -> Any:
    """Return an operation that fails if a linear operator cannot be multiplied by a matrix."""
    return hr.debugging.assert_equal(
        hr.shape(x)[-2],
        operator.domain_dimension_tensor(),
        message="the operator has another number of columns than x has rows",
    )


def assert_is_batch_matrix(tensor: Any) -> None:
    """Refuse what is known to have fewer than two axes.

    Raises:
        ShapeError: if it does.
    """
    rank = tensor.shape.ndims
    if rank is not None and rank < 2:
        raise ShapeError(f"a matrix, or a batch, has two axes at least, got {tensor}")


def broadcast_matrix_batch_dims(batch_matrices: Iterable[Any], name: str | None = None) -> Any:
    """Return batches of matrices, repeated so that all have as many.

    Args:
        batch_matrices: Tensors [..., m, n], whose leading axes broadcast.
        name: The name of the scope.

    Raises:
        ShapeError: if one is known to have fewer than two axes, or batches do not broadcast.
    """
    with hr.name_scope(name, "broadcast_matrix_batch_dims"):
        found = [hr.convert_to_tensor(matrix) for matrix in batch_matrices]
        for matrix in found:
            assert_is_batch_matrix(matrix)
        if len(found) < 2:
            return found
        batch: Any = found[0].shape[:-2]
        for matrix in found[1:]:
            batch = hr.broadcast_static_shape(batch, matrix.shape[:-2])
        if batch.is_fully_defined() and all(m.shape[:-2] == batch for m in found):
            return found
        wanted = hr.shape(found[0])[:-2]
        for matrix in found[1:]:
            wanted = hr.broadcast_dynamic_shape(wanted, hr.shape(matrix)[:-2])
        return [
            hr.broadcast_to(matrix, hr.concat([wanted, hr.shape(matrix)[-2:]], 0))
            for matrix in found
        ]


def cholesky_solve_with_broadcast(chol: Any, rhs: Any, name: str | None = None) -> Any:
    """Solve systems of the Cholesky factors [..., n, n], as many as ``rhs`` [..., n, k] has."""
    with hr.name_scope(name, "CholeskySolveWithBroadcast", [chol, rhs]):
        return hr.linalg.cholesky_solve(*broadcast_matrix_batch_dims([chol, rhs]))


def matrix_solve_with_broadcast(
    matrix: Any, rhs: Any, adjoint: bool = False, name: str | None = None
) -> Any:
    """Solve systems of equations, of which batches broadcast.

    Args:
        matrix: [..., n, n].
        rhs: [..., n, k], of the same dtype.
        adjoint: Whether the conjugate transposes are meant.
        name: The name of the scope.
    """
    with hr.name_scope(name, "MatrixSolveWithBroadcast", [matrix, rhs]):
        one, other = _alike(matrix, rhs)
        return hr.linalg.solve(one, other, adjoint=adjoint)


def matrix_triangular_solve_with_broadcast(
    matrix: Any, rhs: Any, lower: bool = True, adjoint: bool = False, name: str | None = None
) -> Any:
    """Solve triangular systems of equations, of which batches broadcast.

    Args:
        matrix: [..., n, n], of which the other triangle is not looked at.
        rhs: [..., n, k], of the same dtype.
        lower: Whether the lower triangle counts.
        adjoint: Whether the conjugate transposes are meant.
        name: The name of the scope.
    """
    with hr.name_scope(name, "MatrixTriangularSolve", [matrix, rhs]):
        one, other = _alike(matrix, rhs)
        return hr.linalg.triangular_solve(one, other, lower=lower, adjoint=adjoint)


def _alike(matrix: Any, rhs: Any) -> Any:
    matrix = hr.convert_to_tensor(matrix)
    return broadcast_matrix_batch_dims([matrix, hr.convert_to_tensor(rhs, matrix.dtype)])


def use_operator_or_provided_hint_unless_contradicting(
    operator: Any, hint_attr_name: str, provided_hint_value: bool | None, message: str
) -> bool | None:
    """Return what a linear operator, or whoever uses it, says of it; None if neither does.

    Args:
        operator: It.
        hint_attr_name: The attribute of the operator.
        provided_hint_value: What the user of it says.
        message: What an error says.

    Raises:
        AttributeValueError: if they say the opposite.
    """
    said = {getattr(operator, hint_attr_name), provided_hint_value} - {None}
    if len(said) > 1:
        raise AttributeValueError(message)
    return said.pop() if said else None
