"""The operator that makes zeros of everything."""

from __future__ import annotations

from typing import Any

from headrace import dtypes
from headrace.dtypes import as_dtype
from headrace.errors import AttributeValueError
from headrace.graph.operation import Operation
from headrace.graph.scopes import name_scope
from headrace.graph.tensor import Tensor
from headrace.ops.array import concat, shape, stack
from headrace.ops.constant import known_value
from headrace.ops.constant import zeros as zeros_of
from headrace.ops.control import no_op
from headrace.ops.linalg import adjoint as adjoint_of
from headrace.ops.linear_operators.identity import _Sized, checked_sizes


class LinearOperatorZeros(_Sized):
    """The matrix of zeros."""

    def __init__(
        self,
        num_rows: Any,
        num_columns: Any = None,
        batch_shape: Any = None,
        dtype: Any = None,
        is_non_singular: bool | None = False,
        is_self_adjoint: bool | None = True,
        is_positive_definite: bool | None = False,
        is_square: bool | None = True,
        assert_proper_shapes: bool = False,
        name: str = "LinearOperatorZeros",
    ) -> None:
        """State its size.

        Args:
            num_rows: [], an integer.
            num_columns: [], an integer; ``num_rows`` if None.
            batch_shape: [axes], integers; one matrix if None.
            dtype: The dtype; float32 if None.
            is_non_singular: False.
            is_self_adjoint: Whether it is square.
            is_positive_definite: False.
            is_square: Whether it is square.
            assert_proper_shapes: Whether steps check the shapes of what it multiplies.
            name: Its name.

        Raises:
            AttributeValueError: if a hint is wrong, or a size negative.
            ArgumentTypeError: if a size is no integer.
        """
        with name_scope(name):
            if not is_self_adjoint and is_square:
                raise AttributeValueError("A zero operator is always self adjoint.")
            if is_non_singular:
                raise AttributeValueError("A zero operator is always singular.")
            if is_positive_definite:
                raise AttributeValueError("A zero operator is always not positive-definite.")
            super().__init__(
                as_dtype(dtype or dtypes.float32),
                None,
                is_non_singular,
                is_self_adjoint,
                is_positive_definite,
                is_square,
                name,
            )
            self._proper = assert_proper_shapes
            self._rows = checked_sizes(num_rows, "num_rows", 0, assert_proper_shapes)
            columns = num_rows if num_columns is None else num_columns
            self._columns = checked_sizes(columns, "num_columns", 0, assert_proper_shapes)
            sizes = [known_value(n) for n in (self._rows, self._columns)]
            if is_square and None not in [s if s is None else 0 for s in sizes]:
                rows, cols = (int(n) for n in sizes if n is not None)
                if rows != cols:
                    raise AttributeValueError(
                        "LinearOperatorZeros initialized as is_square=True, but got "
                        f"num_rows({rows}) != num_columns({cols})"
                    )
            self._batch = None
            if batch_shape is not None:
                self._batch = checked_sizes(batch_shape, "batch_shape", 1, assert_proper_shapes)

    def _assert_non_singular(self) -> Operation:
        raise AttributeValueError("Zero operators are always non-invertible.")

    def _assert_positive_definite(self) -> Operation:
        raise AttributeValueError("Zero operators are always non-positive definite.")

    def _assert_self_adjoint(self) -> Operation:
        return no_op(name="assert_self_adjoint")

    def _matmul(self, x: Tensor, adjoint: bool = False, adjoint_arg: bool = False) -> Tensor:
        wanted = self._checked(adjoint_of(x) if adjoint_arg else x)
        if self.is_square:
            return self._over_batch(zeros_of(shape(wanted), x.dtype))
        sizes = shape(wanted)
        rows = self._columns if adjoint else self._rows
        made = zeros_of(concat([sizes[:-2], stack([rows, sizes[-1]])], 0), x.dtype)
        return self._over_batch(made)

    def _determinant(self) -> Tensor:
        return zeros_of(self._sizes_of_batch(), self.dtype)

    def _trace(self) -> Tensor:
        return zeros_of(self._sizes_of_batch(), self.dtype)

    def _diag_part(self) -> Tensor:
        return zeros_of(self._diagonal_sizes(), self.dtype)

    def add_to_tensor(self, mat: Any, name: str = "add_to_tensor") -> Tensor:
        """Return the matrix plus another one; arguments as of ``LinearOperator``'s."""
        return super().add_to_tensor(mat, name)

    def _add_to_tensor(self, x: Tensor) -> Tensor:
        return self._over_batch(x)
