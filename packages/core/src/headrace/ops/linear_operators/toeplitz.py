"""The operator whose diagonals are constant."""

from __future__ import annotations

from typing import Any

from headrace.errors import AttributeValueError, ShapeError
from headrace.graph.convert import convert_to_tensor
from headrace.graph.operation import Operation
from headrace.graph.scopes import name_scope
from headrace.graph.tensor import Tensor
from headrace.graph.tensor_shape import TensorShape
from headrace.ops.array import concat, reshape, shape
from headrace.ops.assertions import assert_equal
from headrace.ops.constant import ones, zeros_like
from headrace.ops.conversion import cast
from headrace.ops.fourier import fft
from headrace.ops.linalg import adjoint as adjoint_of
from headrace.ops.linear_operators.batches import at_least, broadcast_dynamic, broadcast_static
from headrace.ops.linear_operators.checks import shape_of
from headrace.ops.linear_operators.circulant import LinearOperatorCirculant, as_complex
from headrace.ops.linear_operators.operator import LinearOperator
from headrace.ops.rearrange import reverse


class LinearOperatorToeplitz(LinearOperator):
    """A matrix whose diagonals are constant; it multiplies as a circulant one of twice its size."""

    def __init__(
        self,
        col: Any,
        row: Any,
        is_non_singular: bool | None = None,
        is_self_adjoint: bool | None = None,
        is_positive_definite: bool | None = None,
        is_square: bool | None = None,
        name: str = "LinearOperatorToeplitz",
    ) -> None:
        """State its first column and row.

        Args:
            col: [..., n], floating or complex.
            row: [..., n], the same dtype; its first element is that of ``col``.
            is_non_singular: As for ``LinearOperator``.
            is_self_adjoint: As for ``LinearOperator``.
            is_positive_definite: As for ``LinearOperator``.
            is_square: It is.
            name: Its name.

        Raises:
            AttributeValueError: if it is said not to be square.
            ShapeError: if one is a scalar, or their lengths differ.
        """
        with name_scope(name):
            self._row = convert_to_tensor(row)
            self._col = convert_to_tensor(col)
            for each, what in ((self._row, "row"), (self._col, "col")):
                at_least(each, 1, what)
            lengths = [TensorShape(each.shape).dims for each in (self._row, self._col)]
            if None not in lengths and (lengths[0][-1] != lengths[1][-1]) is True:  # type: ignore[index]
                raise ShapeError(
                    "Expected square matrix, got row and col with mismatched dimensions."
                )
            if is_square is False:
                raise AttributeValueError("Only square Toeplitz operators currently supported.")
            super().__init__(
                self._row.dtype,
                [self._row, self._col],
                is_non_singular,
                is_self_adjoint,
                is_positive_definite,
                True,
                name,
            )
            middle = zeros_like(self._col[..., :1])
            ring = concat([self._col, middle, reverse(self._row[..., 1:], [-1])], -1)
            self._circulant = LinearOperatorCirculant(fft(as_complex(ring)), self._row.dtype)

    @property
    def col(self) -> Tensor:
        """Its first column."""
        return self._col

    @property
    def row(self) -> Tensor:
        """Its first row."""
        return self._row

    def _shape(self) -> TensorShape:
        known = broadcast_static(self._row.shape, self._col.shape)
        return TensorShape(None) if known.rank is None else shape_of(known, known[-1:])

    def _shape_tensor(self) -> Tensor:
        sizes = broadcast_dynamic(shape(self._row), shape(self._col))
        return concat([sizes, sizes[-1:]], 0)

    def _assert_self_adjoint(self) -> Operation:
        return assert_equal(
            self._row,
            self._col,
            message="row and col are not the same, and so this operator is not self-adjoint.",
        )

    def _matmul(self, x: Tensor, adjoint: bool = False, adjoint_arg: bool = False) -> Tensor:
        wanted = adjoint_of(x) if adjoint_arg else x
        # The circulant operator wants the dtype of the row.
        twice = concat([wanted, zeros_like(wanted)], -2)
        found = self._circulant.matmul(twice, adjoint=adjoint)
        made: Tensor = cast(found[..., : self.domain_dimension_tensor(), :], self.dtype)
        known = self.domain_dimension.value
        if made.shape.ndims is not None and known is not None:
            made.set_shape([*made.shape.as_list()[:-2], known, made.shape.as_list()[-1]])
        return made

    def _trace(self) -> Tensor:
        made: Tensor = cast(self.domain_dimension_tensor(), self.dtype) * self._col[..., 0]
        return made

    def _diag_part(self) -> Tensor:
        count = reshape(self.domain_dimension_tensor(), [1])
        made: Tensor = self._col[..., :1] * ones(count, self.dtype)
        return made
