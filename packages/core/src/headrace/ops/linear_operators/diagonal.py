"""The operator of a diagonal."""

from __future__ import annotations

from typing import Any

from headrace.errors import AttributeValueError
from headrace.graph.operation import Operation
from headrace.graph.scopes import name_scope
from headrace.graph.tensor import Tensor
from headrace.graph.tensor_shape import TensorShape
from headrace.ops.array import concat, expand_dims, shape
from headrace.ops.assertions import assert_positive
from headrace.ops.complex import abs_, real
from headrace.ops.conversion import cast
from headrace.ops.diag import matrix_diag, matrix_diag_part, matrix_set_diag
from headrace.ops.elementwise import conj, reciprocal
from headrace.ops.linalg import adjoint as adjoint_of
from headrace.ops.linear_operators.batches import at_least, check_no_zeros, check_real, given
from headrace.ops.linear_operators.checks import shape_of
from headrace.ops.linear_operators.operator import LinearOperator
from headrace.ops.reduce import reduce_prod, reduce_sum
from headrace.ops.transcendental import log, sqrt
from headrace.shapes import Shape


class LinearOperatorDiag(LinearOperator):
    """The operator of a diagonal: it multiplies rows."""

    def __init__(
        self,
        diag: Any,
        is_non_singular: bool | None = None,
        is_self_adjoint: bool | None = None,
        is_positive_definite: bool | None = None,
        is_square: bool | None = None,
        name: str = "LinearOperatorDiag",
    ) -> None:
        """State the diagonal.

        Args:
            diag: [..., n], floating or complex.
            is_non_singular: As for ``LinearOperator``.
            is_self_adjoint: As for ``LinearOperator``; it is for real numbers.
            is_positive_definite: As for ``LinearOperator``.
            is_square: As for ``LinearOperator``.
            name: Its name.

        Raises:
            AttributeValueError: if it is said not to be square, or not self-adjoint and is.
            ShapeError: if ``diag`` is a scalar.
        """
        with name_scope(name):
            self._diag = given(diag)
            at_least(self._diag, 1, "diag")
            if not self._diag.dtype.is_complex:
                if is_self_adjoint is False:
                    raise AttributeValueError("A real diagonal operator is always self adjoint.")
                is_self_adjoint = True
            if is_square is False:
                raise AttributeValueError("Only square diagonal operators currently supported.")
            super().__init__(
                self._diag.dtype,
                [self._diag],
                is_non_singular,
                is_self_adjoint,
                is_positive_definite,
                True,
                name,
            )

    @property
    def diag(self) -> Any:
        """The diagonal."""
        return self._diag

    def _shape(self) -> TensorShape:
        known = Shape(self._diag.shape)
        return TensorShape(None) if known.rank is None else shape_of(known, known[-1:])

    def _shape_tensor(self) -> Tensor:
        sizes = shape(self._diag)
        return concat([sizes, sizes[-1:]], 0)

    def _assert_non_singular(self) -> Operation:
        return check_no_zeros(self._diag, "Singular operator:  Diagonal contained zero values.")

    def _assert_positive_definite(self) -> Operation:
        kind = "Diagonal operator had diagonal entries with non-positive real part"
        if not self.dtype.is_complex:
            kind = "Real diagonal operator had non-positive diagonal entries"
        return assert_positive(real(self._diag), message=f"{kind}, thus was not positive definite.")

    def _assert_self_adjoint(self) -> Operation:
        return check_real(
            self._diag,
            "This diagonal operator contained non-zero imaginary values.   Thus it was not "
            "self-adjoint.",
        )

    def _factor(self, adjoint: bool) -> Any:
        return conj(self._diag) if adjoint else self._diag

    def _matmul(self, x: Tensor, adjoint: bool = False, adjoint_arg: bool = False) -> Tensor:
        wanted = adjoint_of(x) if adjoint_arg else x
        return expand_dims(self._factor(adjoint), -1) * wanted

    def _matvec(self, x: Tensor, adjoint: bool = False) -> Tensor:
        made: Tensor = self._factor(adjoint) * x
        return made

    def _determinant(self) -> Tensor:
        return reduce_prod(self._diag, -1)

    def _log_abs_determinant(self) -> Tensor:
        made: Tensor = cast(reduce_sum(log(abs_(self._diag)), -1), self.dtype)
        return made

    def _solve(self, rhs: Tensor, adjoint: bool = False, adjoint_arg: bool = False) -> Tensor:
        wanted = adjoint_of(rhs) if adjoint_arg else rhs
        return wanted * expand_dims(reciprocal(self._factor(adjoint)), -1)

    def _to_dense(self) -> Tensor:
        return matrix_diag(self._diag)

    def _diag_part(self) -> Any:
        return self._diag

    def _add_to_tensor(self, x: Tensor) -> Tensor:
        return matrix_set_diag(x, self._diag + matrix_diag_part(x))

    def _adjoint(self) -> LinearOperator:
        return LinearOperatorDiag(conj(self._diag), *self._hints[:3], True)

    def _inverse(self) -> LinearOperator:
        return LinearOperatorDiag(reciprocal(self._diag), *self._hints[:3], True)

    def _cholesky(self) -> LinearOperator:
        return LinearOperatorDiag(sqrt(self._diag), True, True, True, True)
