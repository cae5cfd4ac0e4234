"""Operators of multiples of the identity, and of zeros."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from headrace import dtypes
from headrace.dtypes import as_dtype
from headrace.errors import ArgumentTypeError, AttributeValueError, shown, told
from headrace.graph.convert import convert_to_tensor
from headrace.graph.operation import Operation
from headrace.graph.scopes import name_scope
from headrace.graph.tensor import Tensor
from headrace.graph.tensor_shape import TensorShape
from headrace.ops.array import concat, expand_dims, shape, stack
from headrace.ops.assertions import assert_equal, assert_non_negative, assert_positive
from headrace.ops.complex import abs_, imag, real
from headrace.ops.constant import known_value, ones, zeros, zeros_like
from headrace.ops.control import no_op, with_dependencies
from headrace.ops.conversion import cast
from headrace.ops.diag import matrix_diag_part, matrix_set_diag
from headrace.ops.elementwise import conj, power, reciprocal
from headrace.ops.linalg import adjoint as adjoint_of
from headrace.ops.linear_operators.batches import broadcast_static, given, no_variable, vector
from headrace.ops.linear_operators.checks import shape_of
from headrace.ops.linear_operators.operator import LinearOperator
from headrace.ops.reduce import reduce_min
from headrace.ops.shape_assertions import assert_rank
from headrace.ops.transcendental import log, sqrt
from headrace.shapes import Shape


def checked_sizes(value: Any, what: str, rank: int, proper: bool) -> Tensor:
    """Return numbers of rows, columns or the batch as a tensor, checked as far as they are known.

    Raises:
        ArgumentTypeError: if they are no integers.
        AttributeValueError: if they are negative, or of another rank.
    """
    no_variable(value, what)
    sizes = vector(value)
    if not sizes.dtype.is_integer:
        raise ArgumentTypeError(f"Argument {what} must be integer type.  Found: {shown(sizes)}")
    known = known_value(sizes)
    if known is not None:
        if known.ndim != rank:
            raise AttributeValueError(
                f"Argument {what} must be a {told(rank)}-D Tensor.  Found: {shown(known)}"
            )
        if np.any(known < 0):
            raise AttributeValueError(
                f"Argument {what} must be non-negative.  Found: {shown(known)}"
            )
    if not proper:
        return sizes
    checks = [
        assert_rank(sizes, rank, message=f"Argument {what} must be a {rank}-D Tensor."),
        assert_non_negative(sizes, message=f"Argument {what} must be non-negative."),
    ]
    waiting: Tensor = with_dependencies(checks, sizes)
    return waiting


class _Sized(LinearOperator):
    """An operator that is made of numbers of rows and columns, and perhaps of the batch."""

    _rows: Tensor
    _columns: Tensor
    _batch: Tensor | None
    _proper: bool

    def _known(self, size: Tensor) -> int | None:
        found = known_value(size)
        return None if found is None else int(found)

    def _known_batch(self) -> Shape:
        if self._batch is None:
            return Shape(())
        found = known_value(self._batch)
        if found is None:
            return Shape(None)
        return Shape([int(n) for n in found])

    def _shape(self) -> TensorShape:
        return shape_of(self._known_batch(), [self._known(self._rows), self._known(self._columns)])

    def _shape_tensor(self) -> Tensor:
        sizes = stack([self._rows, self._columns])
        return sizes if self._batch is None else concat([self._batch, sizes], 0)

    def _over_batch(self, x: Any) -> Tensor:
        """Return what is broadcast over the batch."""
        if self._batch is None:
            return convert_to_tensor(x)
        special = self._known_batch().concatenate([1, 1])
        if special.is_fully_defined() and broadcast_static(x.shape, special) == Shape(x.shape):
            return convert_to_tensor(x)
        sizes: Any = list(special.known) if special.is_fully_defined() else None
        if sizes is None:
            sizes = concat([self.batch_shape_tensor(), [1, 1]], 0)
        made: Tensor = x + zeros(sizes, self.dtype)
        return made

    def _checked(self, x: Tensor) -> Tensor:
        """Return a matrix, checked in the step if the program asked for that."""
        if not self._proper:
            return x
        check = assert_equal(
            shape(x)[-2],
            self.domain_dimension_tensor(),
            message="Dimensions are not compatible.  shape[-2] of argument to be the same as this "
            "operator",
        )
        waiting: Tensor = with_dependencies([check], x)
        return waiting

    def _least(self) -> Any:
        """Return the length of the diagonal."""
        known = [self._known(size) for size in (self._rows, self._columns)]
        if None in known:
            return reduce_min(self.shape_tensor()[-2:])
        return min(n for n in known if n is not None)

    def _sizes_of_batch(self) -> Any:
        known = Shape(self.batch_shape)
        return list(known.known) if known.is_fully_defined() else self.batch_shape_tensor()

    def _diagonal_sizes(self) -> Any:
        batch, least = self._sizes_of_batch(), self._least()
        if isinstance(batch, list) and isinstance(least, int):
            return [*batch, least]
        return concat([vector(batch), stack([least])], 0)


class LinearOperatorIdentity(_Sized):
    """The identity."""

    def __init__(
        self,
        num_rows: Any,
        batch_shape: Any = None,
        dtype: Any = None,
        is_non_singular: bool | None = True,
        is_self_adjoint: bool | None = True,
        is_positive_definite: bool | None = True,
        is_square: bool | None = True,
        assert_proper_shapes: bool = False,
        name: str = "LinearOperatorIdentity",
    ) -> None:
        """State its size.

        Args:
            num_rows: [], an integer.
            batch_shape: [axes], integers; one matrix if None.
            dtype: The dtype; float32 if None.
            is_non_singular: True.
            is_self_adjoint: True.
            is_positive_definite: True.
            is_square: True.
            assert_proper_shapes: Whether steps check the shapes of what it multiplies.
            name: Its name.

        Raises:
            AttributeValueError: if a hint is wrong, or a size negative.
            ArgumentTypeError: if a size is no integer.
        """
        with name_scope(name):
            for hint, word in (
                (is_self_adjoint, "self adjoint"),
                (is_non_singular, "non-singular"),
                (is_positive_definite, "positive-definite"),
                (is_square, "square"),
            ):
                if not hint:
                    raise AttributeValueError(f"An identity operator is always {word}.")
            super().__init__(as_dtype(dtype or dtypes.float32), None, True, True, True, True, name)
            self._proper = assert_proper_shapes
            self._rows = checked_sizes(num_rows, "num_rows", 0, assert_proper_shapes)
            self._columns = self._rows
            self._batch = None
            if batch_shape is not None:
                self._batch = checked_sizes(batch_shape, "batch_shape", 1, assert_proper_shapes)

    def _assert_non_singular(self) -> Operation:
        return no_op(name="assert_non_singular")

    def _assert_positive_definite(self) -> Operation:
        return no_op(name="assert_positive_definite")

    def _assert_self_adjoint(self) -> Operation:
        return no_op(name="assert_self_adjoint")

    def _matmul(self, x: Tensor, adjoint: bool = False, adjoint_arg: bool = False) -> Tensor:
        wanted = adjoint_of(x) if adjoint_arg else x
        return self._over_batch(self._checked(wanted))

    def _solve(self, rhs: Tensor, adjoint: bool = False, adjoint_arg: bool = False) -> Tensor:
        return self._matmul(rhs, adjoint_arg=adjoint_arg)

    def _determinant(self) -> Tensor:
        return ones(self._sizes_of_batch(), self.dtype)

    def _log_abs_determinant(self) -> Tensor:
        return zeros(self._sizes_of_batch(), self.dtype)

    def _trace(self) -> Tensor:
        made: Tensor = cast(self._least(), self.dtype)
        return made * ones(self._sizes_of_batch(), self.dtype)

    def _diag_part(self) -> Tensor:
        return ones(self._diagonal_sizes(), self.dtype)

    def add_to_tensor(self, mat: Any, name: str = "add_to_tensor") -> Tensor:
        """Return the matrix plus another one; arguments as of ``LinearOperator``'s."""
        return super().add_to_tensor(mat, name)

    def _add_to_tensor(self, x: Tensor) -> Tensor:
        return matrix_set_diag(x, matrix_diag_part(x) + cast(1, self.dtype))

    def _adjoint(self) -> LinearOperator:
        return self

    def _inverse(self) -> LinearOperator:
        return self

    def _cholesky(self) -> LinearOperator:
        batch = None if self._batch is None else self._sizes_of_batch()
        return LinearOperatorIdentity(self._rows, batch, self.dtype)


class LinearOperatorScaledIdentity(_Sized):
    """A multiple of the identity, another one for each matrix of the batch."""

    def __init__(
        self,
        num_rows: Any,
        multiplier: Any,
        is_non_singular: bool | None = None,
        is_self_adjoint: bool | None = None,
        is_positive_definite: bool | None = None,
        is_square: bool | None = True,
        assert_proper_shapes: bool = False,
        name: str = "LinearOperatorScaledIdentity",
    ) -> None:
        """State its size and what it multiplies by.

        Args:
            num_rows: [], an integer.
            multiplier: [...], the shape of the batch, floating or complex.
            is_non_singular: As for ``LinearOperator``.
            is_self_adjoint: As for ``LinearOperator``; it is for real numbers.
            is_positive_definite: As for ``LinearOperator``.
            is_square: True.
            assert_proper_shapes: Whether steps check the shapes of what it multiplies.
            name: Its name.

        Raises:
            AttributeValueError: if a hint is wrong, or the size negative.
            ArgumentTypeError: if the size is no integer.
        """
        with name_scope(name):
            self._multiplier = given(multiplier)
            if not self._multiplier.dtype.is_complex:
                if is_self_adjoint is False:
                    raise AttributeValueError("A real diagonal operator is always self adjoint.")
                is_self_adjoint = True
            if not is_square:
                raise AttributeValueError("A ScaledIdentity operator is always square.")
            super().__init__(
                self._multiplier.dtype,
                None,
                is_non_singular,
                is_self_adjoint,
                is_positive_definite,
                True,
                name,
            )
            self._proper = assert_proper_shapes
            self._rows = checked_sizes(num_rows, "num_rows", 0, assert_proper_shapes)
            self._columns = self._rows
            self._batch = None

    @property
    def multiplier(self) -> Any:
        """What it multiplies by."""
        return self._multiplier

    @property
    def num_rows(self) -> Tensor:
        """The number of rows."""
        return self._rows

    def _shape(self) -> TensorShape:
        known = self._known(self._rows)
        return shape_of(Shape(self._multiplier.shape), [known, known])

    def _shape_tensor(self) -> Tensor:
        return concat([shape(self._multiplier), stack([self._rows, self._rows])], 0)

    def _assert_non_singular(self) -> Operation:
        return assert_positive(abs_(self._multiplier), message="LinearOperator was singular")

    def _assert_positive_definite(self) -> Operation:
        return assert_positive(
            real(self._multiplier), message="LinearOperator was not positive definite."
        )

    def _assert_self_adjoint(self) -> Operation:
        part = imag(self._multiplier)
        return assert_equal(zeros_like(part), part, message="LinearOperator was not self-adjoint")

    def _factor(self, adjoint: bool) -> Tensor:
        made = conj(self._multiplier) if adjoint else self._multiplier
        return expand_dims(expand_dims(made, -1), -1)

    def _matmul(self, x: Tensor, adjoint: bool = False, adjoint_arg: bool = False) -> Tensor:
        wanted = self._checked(adjoint_of(x) if adjoint_arg else x)
        return wanted * self._factor(adjoint)

    def _solve(self, rhs: Tensor, adjoint: bool = False, adjoint_arg: bool = False) -> Tensor:
        wanted = self._checked(adjoint_of(rhs) if adjoint_arg else rhs)
        return wanted / self._factor(adjoint)

    def _determinant(self) -> Tensor:
        made: Tensor = power(self._multiplier, cast(self._rows, self.dtype))
        return made

    def _log_abs_determinant(self) -> Tensor:
        logs = log(abs_(self._multiplier))
        count: Tensor = cast(self._rows, logs.dtype)
        return count * logs

    def _trace(self) -> Tensor:
        made: Tensor = self._multiplier * cast(self._least(), self.dtype)
        return made * ones(self._sizes_of_batch(), self.dtype)

    def _diag_part(self) -> Tensor:
        return ones(self._diagonal_sizes(), self.dtype) * expand_dims(self._multiplier, -1)

    def add_to_tensor(self, mat: Any, name: str = "add_to_tensor") -> Tensor:
        """Return the matrix plus another one; arguments as of ``LinearOperator``'s."""
        return super().add_to_tensor(mat, name)

    def _add_to_tensor(self, x: Tensor) -> Tensor:
        return matrix_set_diag(x, expand_dims(self._multiplier, -1) + matrix_diag_part(x))

    def _of(self, multiplier: Any, hints: Sequence[bool | None]) -> LinearOperator:
        stated = tuple(hints)
        return LinearOperatorScaledIdentity(self._rows, multiplier, stated[0], stated[1], stated[2])

    def _adjoint(self) -> LinearOperator:
        return self._of(conj(self._multiplier), self._hints)

    def _inverse(self) -> LinearOperator:
        return self._of(reciprocal(self._multiplier), self._hints)

    def _cholesky(self) -> LinearOperator:
        return self._of(sqrt(self._multiplier), (True, True, True))
