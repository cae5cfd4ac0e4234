"""Adjoints and inverses of any operator."""

from __future__ import annotations

from typing import Any

from headrace.errors import AttributeValueError
from headrace.graph.operation import Operation
from headrace.graph.scopes import name_scope
from headrace.graph.tensor import Tensor
from headrace.graph.tensor_shape import TensorShape
from headrace.ops.array import concat
from headrace.ops.elementwise import conj
from headrace.ops.linalg import adjoint as adjoint_of
from headrace.ops.linear_operators.checks import shape_of
from headrace.ops.linear_operators.hints import Hints, both_say
from headrace.ops.linear_operators.operator import LinearOperator
from headrace.shapes import Shape


class _Derived(LinearOperator):
    """An operator made of one other."""

    def __init__(self, operator: LinearOperator, hints: Hints, made: str, name: str) -> None:
        self._operator = operator
        stated = both_say(operator, hints, made)
        with name_scope(name):
            super().__init__(operator.dtype, operator.graph_parents, *stated, name)

    @property
    def operator(self) -> LinearOperator:
        """The operator of which it is made."""
        return self._operator

    def _assert_non_singular(self) -> Operation:
        return self.operator.assert_non_singular()

    def _assert_positive_definite(self) -> Operation:
        return self.operator.assert_positive_definite()

    def _assert_self_adjoint(self) -> Operation:
        return self.operator.assert_self_adjoint()


class LinearOperatorAdjoint(_Derived):
    """The adjoint of an operator."""

    def __init__(
        self,
        operator: LinearOperator,
        is_non_singular: bool | None = None,
        is_self_adjoint: bool | None = None,
        is_positive_definite: bool | None = None,
        is_square: bool | None = None,
        name: str | None = None,
    ) -> None:
        """Wrap an operator.

        Args:
            operator: The operator.
            is_non_singular: As for ``LinearOperator``.
            is_self_adjoint: As for ``LinearOperator``.
            is_positive_definite: As for ``LinearOperator``.
            is_square: As for ``LinearOperator``.
            name: Its name; made of the operator's if None.

        Raises:
            AttributeValueError: if a hint contradicts one of the operator.
        """
        hints = Hints(is_non_singular, is_self_adjoint, is_positive_definite, is_square)
        super().__init__(operator, hints, "adjoint", name or f"{operator.name}_adjoint")

    def _shape(self) -> TensorShape:
        known = Shape(self.operator.shape)
        if known.rank is None:
            return TensorShape(None)
        return shape_of(known[:-2], [known[-1], known[-2]])

    def _shape_tensor(self) -> Tensor:
        sizes = self.operator.shape_tensor()
        return concat([sizes[:-2], sizes[-1:], sizes[-2:-1]], 0)

    def _matmul(self, x: Tensor, adjoint: bool = False, adjoint_arg: bool = False) -> Tensor:
        made: Tensor = self.operator.matmul(x, adjoint=not adjoint, adjoint_arg=adjoint_arg)
        return made

    def _matvec(self, x: Tensor, adjoint: bool = False) -> Tensor:
        return self.operator.matvec(x, adjoint=not adjoint)

    def _determinant(self) -> Tensor:
        found = self.operator.determinant()
        return found if self.is_self_adjoint else conj(found)

    def _log_abs_determinant(self) -> Tensor:
        return self.operator.log_abs_determinant()

    def _trace(self) -> Tensor:
        found = self.operator.trace()
        return found if self.is_self_adjoint else conj(found)

    def _solve(self, rhs: Tensor, adjoint: bool = False, adjoint_arg: bool = False) -> Tensor:
        made: Tensor = self.operator.solve(rhs, adjoint=not adjoint, adjoint_arg=adjoint_arg)
        return made

    def _solvevec(self, rhs: Tensor, adjoint: bool = False) -> Tensor:
        return self.operator.solvevec(rhs, adjoint=not adjoint)

    def _to_dense(self) -> Tensor:
        found = self.operator.to_dense()
        return found if self.is_self_adjoint else adjoint_of(found)

    def _adjoint(self) -> LinearOperator:
        return self.operator


class LinearOperatorInversion(_Derived):
    """The inverse of an operator."""

    def __init__(
        self,
        operator: LinearOperator,
        is_non_singular: bool | None = None,
        is_self_adjoint: bool | None = None,
        is_positive_definite: bool | None = None,
        is_square: bool | None = None,
        name: str | None = None,
    ) -> None:
        """Wrap an operator.

        Args:
            operator: The operator.
            is_non_singular: As for ``LinearOperator``; not False.
            is_self_adjoint: As for ``LinearOperator``.
            is_positive_definite: As for ``LinearOperator``.
            is_square: As for ``LinearOperator``; not False.
            name: Its name; made of the operator's if None.

        Raises:
            AttributeValueError: if it has no inverse, or a hint contradicts one of the operator.
        """
        for hint, own, word in (
            (is_non_singular, operator.is_non_singular, "is_non_singular"),
            (is_square, operator.is_square, "is_square"),
        ):
            if False in (hint, own):
                raise AttributeValueError(
                    f"operator and supplied hints must have `{word}` equal to `True` or `None`.  "
                    f"Found {own}, {hint}"
                )
        hints = Hints(is_non_singular, is_self_adjoint, is_positive_definite, is_square)
        super().__init__(operator, hints, "inverse", name or f"{operator.name}_inv")

    def _shape(self) -> TensorShape:
        return self.operator.shape

    def _shape_tensor(self) -> Tensor:
        return self.operator.shape_tensor()

    def _matmul(self, x: Tensor, adjoint: bool = False, adjoint_arg: bool = False) -> Tensor:
        made: Tensor = self.operator.solve(x, adjoint=adjoint, adjoint_arg=adjoint_arg)
        return made

    def _determinant(self) -> Tensor:
        made: Tensor = 1.0 / self.operator.determinant()
        return made

    def _log_abs_determinant(self) -> Tensor:
        return -1.0 * self.operator.log_abs_determinant()

    def _solve(self, rhs: Any, adjoint: bool = False, adjoint_arg: bool = False) -> Tensor:
        made: Tensor = self.operator.matmul(rhs, adjoint=adjoint, adjoint_arg=adjoint_arg)
        return made

    def _inverse(self) -> LinearOperator:
        return self.operator
