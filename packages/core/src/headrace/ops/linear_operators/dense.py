"""Operators that have a matrix: any, or a lower triangle."""

from __future__ import annotations

from typing import Any

from headrace import dtypes
from headrace.errors import ArgumentTypeError, AttributeValueError
from headrace.graph.operation import Operation
from headrace.graph.scopes import name_scope
from headrace.graph.tensor import Tensor
from headrace.graph.tensor_shape import TensorShape
from headrace.ops.array import shape
from headrace.ops.complex import abs_
from headrace.ops.diag import matrix_band_part, matrix_diag_part
from headrace.ops.linalg import adjoint as adjoint_of
from headrace.ops.linalg import matmul
from headrace.ops.linear_operators.batches import (
    at_least,
    check_no_zeros,
    given,
    solved_by_triangle,
)
from headrace.ops.linear_operators.operator import LinearOperator
from headrace.ops.reduce import reduce_prod, reduce_sum
from headrace.ops.transcendental import log

_TAKEN = (
    dtypes.float16,
    dtypes.float32,
    dtypes.float64,
    dtypes.complex64,
    dtypes.complex128,
)


class LinearOperatorFullMatrix(LinearOperator):
    """The operator of a matrix."""

    def __init__(
        self,
        matrix: Any,
        is_non_singular: bool | None = None,
        is_self_adjoint: bool | None = None,
        is_positive_definite: bool | None = None,
        is_square: bool | None = None,
        name: str = "LinearOperatorFullMatrix",
    ) -> None:
        """Wrap a matrix.

        Args:
            matrix: [..., m, n], floating or complex.
            is_non_singular: As for ``LinearOperator``.
            is_self_adjoint: As for ``LinearOperator``.
            is_positive_definite: As for ``LinearOperator``.
            is_square: As for ``LinearOperator``.
            name: Its name.

        Raises:
            ArgumentTypeError: if it has another dtype.
            ShapeError: if it has fewer than 2 dimensions.
        """
        with name_scope(name):
            self._matrix = given(matrix)
            if self._matrix.dtype not in _TAKEN:
                told = ", ".join(str(dtype) for dtype in _TAKEN)
                raise ArgumentTypeError(
                    f"Argument matrix must have dtype in {told}.  Found: {self._matrix.dtype}"
                )
            at_least(self._matrix, 2, "matrix")
            super().__init__(
                self._matrix.dtype,
                [self._matrix],
                is_non_singular,
                is_self_adjoint,
                is_positive_definite,
                is_square,
                name,
            )

    def _shape(self) -> TensorShape:
        return TensorShape(self._matrix.shape)

    def _shape_tensor(self) -> Tensor:
        return shape(self._matrix)

    def _matmul(self, x: Tensor, adjoint: bool = False, adjoint_arg: bool = False) -> Tensor:
        return matmul(self._matrix, x, adjoint_a=adjoint, adjoint_b=adjoint_arg)

    def _to_dense(self) -> Any:
        return self._matrix


class LinearOperatorLowerTriangular(LinearOperator):
    """The operator of the lower triangle of a matrix."""

    def __init__(
        self,
        tril: Any,
        is_non_singular: bool | None = None,
        is_self_adjoint: bool | None = None,
        is_positive_definite: bool | None = None,
        is_square: bool | None = None,
        name: str = "LinearOperatorLowerTriangular",
    ) -> None:
        """Take the lower triangle of a matrix.

        Args:
            tril: [..., n, n], floating or complex; what is above the diagonal does not count.
            is_non_singular: As for ``LinearOperator``.
            is_self_adjoint: As for ``LinearOperator``.
            is_positive_definite: As for ``LinearOperator``.
            is_square: As for ``LinearOperator``.
            name: Its name.

        Raises:
            AttributeValueError: if it is said not to be square.
            ShapeError: if it has fewer than 2 dimensions.
        """
        if is_square is False:
            raise AttributeValueError(
                "Only square lower triangular operators supported at this time."
            )
        with name_scope(name):
            self._tril = given(tril)
            at_least(self._tril, 2, "tril")
            super().__init__(
                self._tril.dtype,
                [self._tril],
                is_non_singular,
                is_self_adjoint,
                is_positive_definite,
                True,
                name,
            )

    def _triangle(self) -> Tensor:
        return matrix_band_part(self._tril, -1, 0)

    def _shape(self) -> TensorShape:
        return TensorShape(self._tril.shape)

    def _shape_tensor(self) -> Tensor:
        return shape(self._tril)

    def _assert_non_singular(self) -> Operation:
        return check_no_zeros(
            matrix_diag_part(self._tril), "Singular operator:  Diagonal contained zero values."
        )

    def _matmul(self, x: Tensor, adjoint: bool = False, adjoint_arg: bool = False) -> Tensor:
        return matmul(self._triangle(), x, adjoint_a=adjoint, adjoint_b=adjoint_arg)

    def _determinant(self) -> Tensor:
        return reduce_prod(matrix_diag_part(self._tril), -1)

    def _log_abs_determinant(self) -> Tensor:
        return reduce_sum(log(abs_(matrix_diag_part(self._tril))), -1)

    def _solve(self, rhs: Tensor, adjoint: bool = False, adjoint_arg: bool = False) -> Tensor:
        wanted = adjoint_of(rhs) if adjoint_arg else rhs
        return solved_by_triangle(self._triangle(), wanted, adjoint)

    def _to_dense(self) -> Tensor:
        return self._triangle()
