"""The operator of a reflection."""

from __future__ import annotations

from typing import Any

from headrace.errors import AttributeValueError
from headrace.graph.operation import Operation
from headrace.graph.scopes import name_scope
from headrace.graph.tensor import Tensor
from headrace.graph.tensor_shape import TensorShape
from headrace.ops.array import concat, expand_dims, shape
from headrace.ops.constant import ones, zeros
from headrace.ops.control import no_op
from headrace.ops.conversion import cast
from headrace.ops.diag import matrix_diag_part, matrix_set_diag
from headrace.ops.elementwise import conj
from headrace.ops.linalg import adjoint as adjoint_of
from headrace.ops.linalg import matmul
from headrace.ops.linear_operators.batches import at_least, given
from headrace.ops.linear_operators.checks import shape_of
from headrace.ops.linear_operators.operator import LinearOperator
from headrace.ops.statistics import norm
from headrace.shapes import Shape


class LinearOperatorHouseholder(LinearOperator):
    """A reflection: ``I - 2 v v^H`` for an axis v of length 1."""

    def __init__(
        self,
        reflection_axis: Any,
        is_non_singular: bool | None = None,
        is_self_adjoint: bool | None = None,
        is_positive_definite: bool | None = None,
        is_square: bool | None = None,
        name: str = "LinearOperatorHouseholder",
    ) -> None:
        """State the axis.

        Args:
            reflection_axis: [..., n], floating or complex, of any length.
            is_non_singular: As for ``LinearOperator``.
            is_self_adjoint: It is.
            is_positive_definite: It is not.
            is_square: It is.
            name: Its name.

        Raises:
            AttributeValueError: if a hint is wrong.
            ShapeError: if the axis is a scalar.
        """
        with name_scope(name):
            self._axis = given(reflection_axis)
            at_least(self._axis, 1, "reflection_axis")
            if is_self_adjoint is False:
                raise AttributeValueError("A Householder operator is always self adjoint.")
            if is_positive_definite is True:
                raise AttributeValueError("A Householder operator is always non-positive definite.")
            if is_square is False:
                raise AttributeValueError("A Householder operator is always square.")
            super().__init__(
                self._axis.dtype, [self._axis], is_non_singular, True, False, True, name
            )

    @property
    def reflection_axis(self) -> Any:
        """The axis."""
        return self._axis

    def _unit(self) -> Tensor:
        made: Tensor = self._axis / norm(self._axis, axis=-1, keepdims=True)
        return made

    def _shape(self) -> TensorShape:
        known = Shape(self._axis.shape)
        return TensorShape(None) if known.rank is None else shape_of(known, known[-1:])

    def _shape_tensor(self) -> Tensor:
        sizes = shape(self._axis)
        return concat([sizes, sizes[-1:]], 0)

    def _assert_non_singular(self) -> Operation:
        return no_op(name="assert_non_singular")

    def _assert_positive_definite(self) -> Operation:
        raise AttributeValueError("Householder operators are always non-positive definite.")

    def _assert_self_adjoint(self) -> Operation:
        return no_op(name="assert_self_adjoint")

    def _matmul(self, x: Tensor, adjoint: bool = False, adjoint_arg: bool = False) -> Tensor:
        wanted = adjoint_of(x) if adjoint_arg else x
        column = expand_dims(self._unit(), -1)
        return wanted - 2 * column * matmul(column, wanted, adjoint_a=True)

    def _solve(self, rhs: Tensor, adjoint: bool = False, adjoint_arg: bool = False) -> Tensor:
        return self._matmul(rhs, adjoint, adjoint_arg)

    def _trace(self) -> Tensor:
        made: Tensor = cast(self.domain_dimension_tensor() - 2, self.dtype)
        return made * ones(self.batch_shape_tensor(), self.dtype)

    def _determinant(self) -> Tensor:
        return -ones(self.batch_shape_tensor(), self.dtype)

    def _log_abs_determinant(self) -> Tensor:
        return zeros(self.batch_shape_tensor(), self.dtype)

    def _to_dense(self) -> Tensor:
        column = expand_dims(self._unit(), -1)
        matrix = -2 * matmul(column, column, adjoint_b=True)
        return matrix_set_diag(matrix, 1 + matrix_diag_part(matrix))

    def _diag_part(self) -> Tensor:
        unit = self._unit()
        return 1 - 2 * unit * conj(unit)

    def _inverse(self) -> LinearOperator:
        return self
