"""The operator of a matrix to which one of low rank is added."""

from __future__ import annotations

from typing import Any

from headrace.errors import AttributeValueError
from headrace.graph.scopes import name_scope
from headrace.graph.tensor import Tensor
from headrace.graph.tensor_shape import TensorShape, dimension_at_index
from headrace.ops.array import concat, shape
from headrace.ops.complex import abs_
from headrace.ops.conversion import cast
from headrace.ops.decompositions import cholesky
from headrace.ops.diag import matrix_diag_part
from headrace.ops.linalg import matmul
from headrace.ops.linear_operators.batches import (
    broadcast_dynamic,
    broadcast_static,
    given,
    solved,
    solved_by_factor,
)
from headrace.ops.linear_operators.checks import shape_of
from headrace.ops.linear_operators.diagonal import LinearOperatorDiag
from headrace.ops.linear_operators.identity import LinearOperatorIdentity
from headrace.ops.linear_operators.operator import LinearOperator
from headrace.ops.reduce import reduce_sum
from headrace.ops.solving import matrix_determinant
from headrace.ops.transcendental import exp, log
from headrace.shapes import Shape


class LinearOperatorLowRankUpdate(LinearOperator):
    """``L + U D V^H``, for an operator L and a diagonal D of few elements.

    It solves by way of L and a matrix of the size of D.
    """

    def __init__(
        self,
        base_operator: LinearOperator,
        u: Any,
        diag_update: Any = None,
        v: Any = None,
        is_diag_update_positive: bool | None = None,
        is_non_singular: bool | None = None,
        is_self_adjoint: bool | None = None,
        is_positive_definite: bool | None = None,
        is_square: bool | None = None,
        name: str = "LinearOperatorLowRankUpdate",
    ) -> None:
        """State its parts.

        Args:
            base_operator: L, [..., m, n].
            u: U, [..., m, k], the dtype of L.
            diag_update: The diagonal of D, [..., k]; ones if None.
            v: V, [..., n, k]; U if None.
            is_diag_update_positive: Whether D is positive.
            is_non_singular: As for ``LinearOperator``.
            is_self_adjoint: As for ``LinearOperator``.
            is_positive_definite: As for ``LinearOperator``.
            is_square: As for ``LinearOperator``.
            name: Its name.

        Raises:
            AttributeValueError: if a hint is wrong.
            ShapeError: if shapes do not fit.
        """
        if diag_update is None:
            if is_diag_update_positive is False:
                raise AttributeValueError(
                    "Default diagonal is the identity, which is positive.  However, user set "
                    "'is_diag_update_positive' to False."
                )
            is_diag_update_positive = True
        base = base_operator
        symmetric = bool(base.is_self_adjoint and v is None)
        self._definite = bool(symmetric and base.is_positive_definite and is_diag_update_positive)
        if symmetric and not base.dtype.is_complex:
            if is_self_adjoint is False:
                raise AttributeValueError(
                    "A = L + UDU^H, with L self-adjoint and D real diagonal.  Since UDU^H is "
                    "self-adjoint, this must be a self-adjoint operator."
                )
            is_self_adjoint = True
        if self._definite:
            if False in (is_positive_definite, is_self_adjoint, is_non_singular):
                raise AttributeValueError(
                    "Arguments imply this is self-adjoint positive-definite operator."
                )
            is_positive_definite = is_self_adjoint = True
        with name_scope(name):
            self._u = given(u)
            self._v = self._u if v is None else given(v)
            self._diag_update = None if diag_update is None else given(diag_update)
            self._base_operator = base
            parts = [self._u, self._diag_update, self._v]
            super().__init__(
                base.dtype,
                [*base.graph_parents, *(part for part in parts if part is not None)],
                is_non_singular,
                is_self_adjoint,
                is_positive_definite,
                is_square,
                name,
            )
            self._positive = is_diag_update_positive
            if self._diag_update is not None:
                self._diag_operator: LinearOperator = LinearOperatorDiag(
                    self._diag_update, is_positive_definite=is_diag_update_positive
                )
            else:
                known = dimension_at_index(TensorShape(self._u.shape), -1).value
                count = shape(self._u)[-1] if known is None else known
                self._diag_operator = LinearOperatorIdentity(count, dtype=self.dtype)
            self._check_shapes()

    def _check_shapes(self) -> None:
        both = broadcast_static(self._u.shape, self._v.shape)
        sizes = TensorShape(both)
        batch = broadcast_static(self.base_operator.batch_shape, sizes[:-2])
        self.base_operator.domain_dimension.assert_is_compatible_with(dimension_at_index(sizes, -2))
        if self._diag_update is not None:
            of_update = TensorShape(self._diag_update.shape)
            dimension_at_index(sizes, -1).assert_is_compatible_with(
                dimension_at_index(of_update, -1)
            )
            broadcast_static(batch, of_update[:-1])

    @property
    def u(self) -> Any:
        """U."""
        return self._u

    @property
    def v(self) -> Any:
        """V."""
        return self._v

    @property
    def diag_update(self) -> Any:
        """The diagonal of D, None for ones."""
        return self._diag_update

    @property
    def diag_operator(self) -> LinearOperator:
        """D."""
        return self._diag_operator

    @property
    def base_operator(self) -> LinearOperator:
        """L."""
        return self._base_operator

    @property
    def is_diag_update_positive(self) -> bool | None:
        """Whether D is positive; None where that is not known."""
        return self._positive

    def _shape(self) -> TensorShape:
        batch = broadcast_static(self.base_operator.batch_shape, TensorShape(self._u.shape)[:-2])
        own = Shape(self.base_operator.shape)
        return TensorShape(None) if own.rank is None else shape_of(batch, own[-2:])

    def _shape_tensor(self) -> Tensor:
        batch = broadcast_dynamic(self.base_operator.batch_shape_tensor(), shape(self._u)[:-2])
        return concat([batch, self.base_operator.shape_tensor()[-2:]], 0)

    def _matmul(self, x: Tensor, adjoint: bool = False, adjoint_arg: bool = False) -> Tensor:
        before, after = (self._v, self._u) if adjoint else (self._u, self._v)
        inner = matmul(after, x, adjoint_a=True, adjoint_b=adjoint_arg)
        inner = self._diag_operator.matmul(inner, adjoint=adjoint)
        own: Tensor = self.base_operator.matmul(x, adjoint=adjoint, adjoint_arg=adjoint_arg)
        return own + matmul(before, inner)

    def _determinant(self) -> Tensor:
        if self.is_positive_definite:
            return exp(self.log_abs_determinant())
        small = matrix_determinant(self._capacitance())
        return small * self._diag_operator.determinant() * self.base_operator.determinant()

    def _log_abs_determinant(self) -> Tensor:
        if self._definite:
            factor = matrix_diag_part(cholesky(self._capacitance()))
            small = 2 * reduce_sum(log(factor), -1)
        else:
            small = cast(log(abs_(matrix_determinant(self._capacitance()))), self.dtype)
        others = (self._diag_operator, self.base_operator)
        logs = [cast(each.log_abs_determinant(), small.dtype) for each in others]
        made: Tensor = small + logs[0] + logs[1]
        return made

    def _solve(self, rhs: Tensor, adjoint: bool = False, adjoint_arg: bool = False) -> Tensor:
        if self.base_operator.is_non_singular is False:
            raise AttributeValueError(
                "Solve not implemented unless this is a perturbation of a non-singular "
                "LinearOperator."
            )
        before, after = (self._v, self._u) if adjoint else (self._u, self._v)
        first: Tensor = self.base_operator.solve(rhs, adjoint=adjoint, adjoint_arg=adjoint_arg)
        inner = matmul(after, first, adjoint_a=True)
        if self._definite:
            inner = solved_by_factor(cholesky(self._capacitance()), inner)
        else:
            inner = solved(self._capacitance(), inner, adjoint)
        made: Tensor = first - self.base_operator.solve(matmul(before, inner), adjoint=adjoint)
        return made

    def _capacitance(self) -> Tensor:
        """Return ``D^-1 + V^H L^-1 U``."""
        inner = matmul(self._v, self.base_operator.solve(self._u), adjoint_a=True)
        return self._diag_operator.inverse().add_to_tensor(inner)
