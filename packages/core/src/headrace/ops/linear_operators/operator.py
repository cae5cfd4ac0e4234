"""``LinearOperator``: what all linear operators can do, by way of a few methods of each."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from headrace.arguments import items, text
from headrace.dimension import Dimension
from headrace.dtypes import DType, as_dtype
from headrace.errors import (
    AttributeValueError,
    ShapeError,
    UnimplementedError,
    shown,
)
from headrace.graph.convert import convert_to_tensor, is_tensor
from headrace.graph.dispatch import KINDS
from headrace.graph.operation import Operation
from headrace.graph.scopes import name_scope
from headrace.graph.tensor import Tensor
from headrace.graph.tensor_shape import TensorShape
from headrace.module import Module
from headrace.ops.array import expand_dims, size, squeeze
from headrace.ops.assertions import assert_equal, assert_less, assert_positive
from headrace.ops.complex import real
from headrace.ops.constant import eye
from headrace.ops.decompositions import cholesky, svd
from headrace.ops.diag import matrix_diag_part
from headrace.ops.linalg import adjoint
from headrace.ops.linear_operators.batches import solved, solved_by_factor, vector
from headrace.ops.linear_operators.calls import call_with_operator
from headrace.ops.linear_operators.checks import check_dtype, check_size
from headrace.ops.linear_operators.hints import Hints
from headrace.ops.reduce import reduce_max, reduce_min, reduce_sum
from headrace.ops.solving import matrix_determinant, slogdet
from headrace.ops.transcendental import exp, log

# What makes other operators of any operator: "adjoint", "inverse", "cholesky",
# "matmul", "solve".
MAKERS: dict[str, Callable[..., Any]] = {}


class LinearOperator(Module):
    """A matrix, or a batch of them, that is known by what it does with others.

    A subclass states its shape in ``_shape`` and ``_shape_tensor``, and how it multiplies in
    ``_matmul``; everything else follows, if slowly, and it may say better. Hints that a program
    gives are believed: a wrong one gives wrong results, and methods such as
    ``assert_non_singular`` check them in a step.
    """

    def __init_subclass__(cls, **options: Any) -> None:
        """Let functions of matrices take operators of the class."""
        super().__init_subclass__(**options)
        KINDS[cls] = call_with_operator

    def __init__(
        self,
        dtype: Any,
        graph_parents: Sequence[Any] | None = None,
        is_non_singular: bool | None = None,
        is_self_adjoint: bool | None = None,
        is_positive_definite: bool | None = None,
        is_square: bool | None = None,
        name: str | None = None,
    ) -> None:
        """State what holds of it.

        Args:
            dtype: The dtype of the matrix, and of what it multiplies.
            graph_parents: The tensors of which it is made.
            is_non_singular: Whether it has an inverse; None where that is not known.
            is_self_adjoint: Whether it is its own adjoint.
            is_positive_definite: Whether ``x^H A x`` has a positive real part for each x but 0.
            is_square: Whether it has as many rows as columns.
            name: Its name; that of its class if None.

        Raises:
            AttributeValueError: if hints contradict each other, or a parent is no tensor.
        """
        stated = Hints(is_non_singular, is_self_adjoint, is_positive_definite, is_square)
        self._hints = stated.completed()
        parents = [] if graph_parents is None else items(graph_parents, "graph_parents")
        for i, each in enumerate(parents):
            if not is_tensor(each):
                raise AttributeValueError(f"Graph parent item {i} is not a Tensor; {shown(each)}.")
        self._dtype = as_dtype(dtype) if dtype else dtype
        self._graph_parents = parents
        self._name = text(name, "name") if name else type(self).__name__
        self._scope_name = f"{self._name}/"

    @contextmanager
    def _scoped(self, name: str | None) -> Iterator[str]:
        with name_scope(self._name if name is None else f"{self._name}/{name}") as scope:
            yield scope

    # -- what it is

    @property
    def dtype(self) -> DType:
        """The dtype of the matrix."""
        return self._dtype

    @property
    def graph_parents(self) -> list[Any]:
        """The tensors of which it is made."""
        return self._graph_parents

    @property
    def is_non_singular(self) -> bool | None:
        """Whether it has an inverse; None where that is not known."""
        return self._hints.is_non_singular

    @property
    def is_self_adjoint(self) -> bool | None:
        """Whether it is its own adjoint; None where that is not known."""
        return self._hints.is_self_adjoint

    @property
    def is_positive_definite(self) -> bool | None:
        """Whether ``x^H A x`` has a positive real part for each x but 0; None if not known."""
        return self._hints.is_positive_definite

    @property
    def is_square(self) -> bool | None:
        """Whether it has as many rows as columns; None where that is not known.

        Raises:
            AttributeValueError: if it was said not to be square, and is.
        """
        same: bool | None = self.domain_dimension == self.range_dimension
        if self._hints.is_square is False and same:
            raise AttributeValueError(
                "User set is_square hint to False, but the operator was square."
            )
        return same if self._hints.is_square is None else self._hints.is_square

    def _factors(self) -> bool:
        """Whether it has a Cholesky factor."""
        return bool(self.is_self_adjoint and self.is_positive_definite)

    def _shape(self) -> TensorShape:
        raise NotImplementedError(f"{type(self).__name__} needs a method _shape")

    def _shape_tensor(self) -> Tensor:
        raise NotImplementedError(f"{type(self).__name__} needs a method _shape_tensor")

    @property
    def shape(self) -> TensorShape:
        """The static shape: that of the batch, then the numbers of rows and columns."""
        return TensorShape(self._shape())

    def shape_tensor(self, name: str = "shape_tensor") -> Tensor:
        """Return the shape as a tensor.

        Args:
            name: The name of the scope.
        """
        with self._scoped(name):
            if self.shape.is_fully_defined():
                return vector(self.shape.as_list())
            return self._shape_tensor()

    @property
    def batch_shape(self) -> TensorShape:
        """The static shape of the batch."""
        return self.shape[:-2]

    def batch_shape_tensor(self, name: str = "batch_shape_tensor") -> Tensor:
        """Return the shape of the batch as a tensor.

        Args:
            name: The name of the scope.
        """
        with self._scoped(name):
            if self.batch_shape.is_fully_defined():
                return vector(self.batch_shape.as_list())
            return self.shape_tensor()[:-2]

    @property
    def tensor_rank(self) -> int | None:
        """The number of axes; None where it is not known."""
        return self.shape.ndims

    def tensor_rank_tensor(self, name: str = "tensor_rank_tensor") -> Tensor:
        """Return the number of axes as a tensor.

        Args:
            name: The name of the scope.
        """
        with self._scoped(name):
            known = self.tensor_rank
            return size(self.shape_tensor()) if known is None else convert_to_tensor(known)

    @property
    def domain_dimension(self) -> Dimension:
        """The number of columns."""
        return self._dimension(-1)

    @property
    def range_dimension(self) -> Dimension:
        """The number of rows."""
        return self._dimension(-2)

    def _dimension(self, axis: int) -> Dimension:
        dims = self.shape.dims
        return dims[axis] if dims else Dimension(None)

    def domain_dimension_tensor(self, name: str = "domain_dimension_tensor") -> Tensor:
        """Return the number of columns as a tensor.

        Args:
            name: The name of the scope.
        """
        with self._scoped(name):
            return self._dimension_tensor(-1)

    def range_dimension_tensor(self, name: str = "range_dimension_tensor") -> Tensor:
        """Return the number of rows as a tensor.

        Args:
            name: The name of the scope.
        """
        with self._scoped(name):
            return self._dimension_tensor(-2)

    def _dimension_tensor(self, axis: int) -> Tensor:
        known = self._dimension(axis).value
        return self.shape_tensor()[axis] if known is None else convert_to_tensor(known)

    # -- checks

    def assert_non_singular(self, name: str = "assert_non_singular") -> Operation:
        """Return an operation that fails where it has no inverse.

        Args:
            name: The name of the scope.
        """
        with self._scoped(name):
            return self._assert_non_singular()

    def _assert_non_singular(self) -> Operation:
        if self._factors():
            return self.assert_positive_definite()
        values: Any = svd(self.to_dense(), compute_uv=False)
        spread = reduce_max(values, -1) / reduce_min(values, -1)
        dims = [self._dimension(axis).value or 0 for axis in (-2, -1)]
        exactness = float(np.finfo(values.dtype.as_numpy_dtype).eps) * max(100, *dims)
        return assert_less(
            spread, 1.0 / exactness, message="Singular matrix up to precision epsilon."
        )

    def assert_positive_definite(self, name: str = "assert_positive_definite") -> Operation:
        """Return an operation that fails where it is not positive definite.

        Args:
            name: The name of the scope.

        Raises:
            UnimplementedError: if nothing is known of it by which that could be told.
        """
        with self._scoped(name):
            return self._assert_positive_definite()

    def _assert_positive_definite(self) -> Operation:
        if not self.is_self_adjoint:
            raise UnimplementedError("assert_positive_definite is not implemented.")
        diagonal = matrix_diag_part(cholesky(self.to_dense()))
        return assert_positive(real(diagonal), message="Matrix was not positive definite.")

    def assert_self_adjoint(self, name: str = "assert_self_adjoint") -> Operation:
        """Return an operation that fails where it is not its own adjoint.

        Args:
            name: The name of the scope.
        """
        with self._scoped(name):
            return self._assert_self_adjoint()

    def _assert_self_adjoint(self) -> Operation:
        dense = self.to_dense()
        return assert_equal(dense, adjoint(dense), message="Matrix was not equal to its adjoint.")

    # -- products

    def matmul(
        self, x: Any, adjoint: bool = False, adjoint_arg: bool = False, name: str = "matmul"
    ) -> Any:
        """Multiply matrices: ``A @ x``.

        Args:
            x: [..., n, k], of the operator's dtype, or another operator.
            adjoint: Whether to multiply by the adjoint instead.
            adjoint_arg: Whether to multiply the adjoint of ``x``.
            name: The name of the scope.

        Returns:
            [..., m, k], or an operator if ``x`` is one.

        Raises:
            ArgumentTypeError: if ``x`` has another dtype.
            ShapeError: if shapes do not fit.
        """
        if isinstance(x, LinearOperator):
            return self._with_operator("matmul", x, adjoint, adjoint_arg, name)
        with self._scoped(name):
            matrix = convert_to_tensor(x)
            check_dtype(self.dtype, matrix)
            check_size(self._dimension(-2 if adjoint else -1), matrix, -1 if adjoint_arg else -2)
            return self._matmul(matrix, adjoint, adjoint_arg)

    def _with_operator(
        self, what: str, x: LinearOperator, adjoint: bool, adjoint_arg: bool, name: str
    ) -> Any:
        left = self.adjoint() if adjoint else self
        right = x.adjoint() if adjoint_arg else x
        if (right.range_dimension != left.domain_dimension) is True:
            raise ShapeError(
                f"Operators are incompatible. Expected the argument to have dimension "
                f"{left.domain_dimension} but got {right.range_dimension}."
            )
        with self._scoped(name):
            return MAKERS[what](left, right)

    def _matmul(self, x: Tensor, adjoint: bool = False, adjoint_arg: bool = False) -> Tensor:
        raise NotImplementedError(f"{type(self).__name__} needs a method _matmul")

    def matvec(self, x: Any, adjoint: bool = False, name: str = "matvec") -> Tensor:
        """Multiply vectors: ``A @ x``.

        Args:
            x: [..., n], of the operator's dtype.
            adjoint: Whether to multiply by the adjoint instead.
            name: The name of the scope.

        Returns:
            [..., m].

        Raises:
            ArgumentTypeError: if ``x`` has another dtype.
            ShapeError: if shapes do not fit.
        """
        with self._scoped(name):
            given = convert_to_tensor(x)
            check_dtype(self.dtype, given)
            check_size(self._dimension(-2 if adjoint else -1), given, -1)
            return self._matvec(given, adjoint)

    def _matvec(self, x: Tensor, adjoint: bool = False) -> Tensor:
        return squeeze(self.matmul(expand_dims(x, -1), adjoint=adjoint), -1)

    # -- determinants

    def determinant(self, name: str = "det") -> Tensor:
        """Return the determinant of each matrix.

        Args:
            name: The name of the scope.

        Raises:
            UnimplementedError: if it is not square.
        """
        self._check_square("Determinant")
        with self._scoped(name):
            return self._determinant()

    def _determinant(self) -> Tensor:
        if self._factors():
            return exp(self.log_abs_determinant())
        return matrix_determinant(self.to_dense())

    def log_abs_determinant(self, name: str = "log_abs_det") -> Tensor:
        """Return the logarithm of the size of the determinant of each matrix.

        Args:
            name: The name of the scope.

        Raises:
            UnimplementedError: if it is not square.
        """
        self._check_square("Determinant")
        with self._scoped(name):
            return self._log_abs_determinant()

    def _log_abs_determinant(self) -> Tensor:
        if self._factors():
            return 2 * reduce_sum(log(matrix_diag_part(cholesky(self.to_dense()))), -1)
        return slogdet(self.to_dense())[1]

    def _check_square(self, what: str) -> None:
        if self.is_square is False:
            raise UnimplementedError(
                f"{what} not implemented for an operator that is expected to not be square."
            )

    # -- solutions

    def solve(
        self, rhs: Any, adjoint: bool = False, adjoint_arg: bool = False, name: str = "solve"
    ) -> Any:
        """Solve ``A @ x = rhs`` for matrices.

        Args:
            rhs: [..., n, k], of the operator's dtype, or another operator.
            adjoint: Whether to solve with the adjoint instead.
            adjoint_arg: Whether to solve for the adjoint of ``rhs``.
            name: The name of the scope.

        Returns:
            [..., n, k], or an operator if ``rhs`` is one.

        Raises:
            UnimplementedError: if it is singular, or not square.
            ArgumentTypeError: if ``rhs`` has another dtype.
            ShapeError: if shapes do not fit.
        """
        if self.is_non_singular is False:
            raise UnimplementedError(
                "Exact solve not implemented for an operator that is expected to be singular."
            )
        self._check_square("Exact solve")
        if isinstance(rhs, LinearOperator):
            return self._with_operator("solve", rhs, adjoint, adjoint_arg, name)
        with self._scoped(name):
            given = convert_to_tensor(rhs)
            check_dtype(self.dtype, given)
            check_size(self._dimension(-1 if adjoint else -2), given, -1 if adjoint_arg else -2)
            return self._solve(given, adjoint, adjoint_arg)

    def _solve(self, rhs: Tensor, adjoint: bool = False, adjoint_arg: bool = False) -> Tensor:
        given = _adjoint_if(rhs, adjoint_arg)
        if self._factors():
            return solved_by_factor(cholesky(self.to_dense()), given)
        return solved(self.to_dense(), given, adjoint)

    def solvevec(self, rhs: Any, adjoint: bool = False, name: str = "solve") -> Tensor:
        """Solve ``A @ x = rhs`` for vectors.

        Args:
            rhs: [..., n], of the operator's dtype.
            adjoint: Whether to solve with the adjoint instead.
            name: The name of the scope.

        Returns:
            [..., n].

        Raises:
            UnimplementedError: if it is singular, or not square.
            ArgumentTypeError: if ``rhs`` has another dtype.
            ShapeError: if shapes do not fit.
        """
        with self._scoped(name):
            given = convert_to_tensor(rhs)
            check_dtype(self.dtype, given)
            check_size(self._dimension(-1 if adjoint else -2), given, -1)
            return self._solvevec(given, adjoint)

    def _solvevec(self, rhs: Tensor, adjoint: bool = False) -> Tensor:
        return squeeze(self.solve(expand_dims(rhs, -1), adjoint=adjoint), -1)

    # -- other operators

    def adjoint(self, name: str = "adjoint") -> LinearOperator:
        """Return the adjoint, itself where it is self-adjoint.

        Args:
            name: The name of the scope.
        """
        if self.is_self_adjoint is True:
            return self
        with self._scoped(name):
            return self._adjoint()

    def _adjoint(self) -> LinearOperator:
        found: LinearOperator = MAKERS["adjoint"](self)
        return found

    @property
    def H(self) -> LinearOperator:  # noqa: N802
        """The adjoint."""
        return self.adjoint()

    def inverse(self, name: str = "inverse") -> LinearOperator:
        """Return the inverse.

        Args:
            name: The name of the scope.

        Raises:
            AttributeValueError: if it is not square, or singular.
        """
        for hint, what in ((self.is_square, "a non square"), (self.is_non_singular, "a singular")):
            if hint is False:
                raise AttributeValueError(
                    f"Cannot take the Inverse: This operator represents {what} matrix."
                )
        with self._scoped(name):
            return self._inverse()

    def _inverse(self) -> LinearOperator:
        found: LinearOperator = MAKERS["inverse"](self)
        return found

    def cholesky(self, name: str = "cholesky") -> LinearOperator:
        """Return the lower triangle L with ``L @ L^H = A``.

        Args:
            name: The name of the scope.

        Raises:
            AttributeValueError: if it is not known to be self-adjoint and positive definite.
        """
        if not self._factors():
            raise AttributeValueError(
                "Cannot take the Cholesky decomposition: Not a positive definite self adjoint "
                "matrix."
            )
        with self._scoped(name):
            return self._cholesky()

    def _cholesky(self) -> LinearOperator:
        found: LinearOperator = MAKERS["cholesky"](self)
        return found

    # -- the matrix

    def to_dense(self, name: str = "to_dense") -> Tensor:
        """Return the matrix.

        Args:
            name: The name of the scope.
        """
        with self._scoped(name):
            return self._to_dense()

    def _to_dense(self) -> Tensor:
        batch: Any = self.batch_shape_tensor()
        if self.batch_shape.is_fully_defined():
            batch = self.batch_shape.as_list()
        known = self.domain_dimension.value
        count: Any = self.domain_dimension_tensor() if known is None else known
        made: Tensor = self.matmul(eye(count, batch_shape=batch, dtype=self.dtype))
        return made

    def diag_part(self, name: str = "diag_part") -> Tensor:
        """Return the diagonal of each matrix.

        Args:
            name: The name of the scope.
        """
        with self._scoped(name):
            found: Tensor = self._diag_part()
            return found

    def _diag_part(self) -> Any:
        return matrix_diag_part(self.to_dense())

    def trace(self, name: str = "trace") -> Tensor:
        """Return the sum of the diagonal of each matrix.

        Args:
            name: The name of the scope.
        """
        with self._scoped(name):
            return self._trace()

    def _trace(self) -> Tensor:
        return reduce_sum(self.diag_part(), -1)

    def add_to_tensor(self, x: Any, name: str = "add_to_tensor") -> Tensor:
        """Return the matrix plus another one.

        Args:
            x: [..., m, n], of the operator's dtype.
            name: The name of the scope.

        Raises:
            ArgumentTypeError: if ``x`` has another dtype.
        """
        with self._scoped(name):
            given = convert_to_tensor(x)
            check_dtype(self.dtype, given)
            return self._add_to_tensor(given)

    def _add_to_tensor(self, x: Tensor) -> Tensor:
        return self.to_dense() + x


def _adjoint_if(x: Tensor, wanted: bool) -> Tensor:
    return adjoint(x) if wanted else x
