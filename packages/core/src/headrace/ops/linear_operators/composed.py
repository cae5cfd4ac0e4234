"""Operators that are made of several: one after the other, beside each other, or as a product."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import reduce
from typing import Any

from headrace.errors import AttributeValueError
from headrace.graph.convert import convert_to_tensor
from headrace.graph.operation import Operation
from headrace.graph.scopes import name_scope
from headrace.graph.tensor import Tensor
from headrace.graph.tensor_shape import TensorShape
from headrace.ops.array import (
    concat,
    expand_dims,
    rank,
    reshape,
    shape,
    split,
    squeeze,
    stack,
    transpose,
)
from headrace.ops.constant import range as range_of
from headrace.ops.constant import zeros
from headrace.ops.control import group
from headrace.ops.conversion import cast
from headrace.ops.elementwise import power
from headrace.ops.linalg import adjoint as adjoint_of
from headrace.ops.linear_operators.batches import alike, broadcast_dynamic, broadcast_static
from headrace.ops.linear_operators.checks import shape_of
from headrace.ops.linear_operators.hints import Hints, all_say, listed
from headrace.ops.linear_operators.operator import LinearOperator
from headrace.shapes import Shape


class _Several(LinearOperator):
    """An operator made of several others."""

    def __init__(
        self, operators: Sequence[LinearOperator], hints: Hints, between: str, name: str | None
    ) -> None:
        self._operators = list(operators)
        parents = [parent for each in self._operators for parent in each.graph_parents]
        chosen = name or between.join(each.name for each in self._operators)
        with name_scope(chosen):
            super().__init__(self._operators[0].dtype, parents, *hints, chosen)

    @property
    def operators(self) -> list[LinearOperator]:
        """The operators of which it is made."""
        return self._operators

    def _batch(self) -> Shape:
        return broadcast_static(*(each.batch_shape for each in self._operators))

    def _batch_tensor(self) -> Tensor:
        return broadcast_dynamic(*(each.batch_shape_tensor() for each in self._operators))

    def _product(self, of: Callable[[LinearOperator], Tensor]) -> Tensor:
        made: Tensor = reduce(lambda a, b: a * b, [of(each) for each in self._operators])
        return made

    def _sum(self, of: Callable[[LinearOperator], Tensor]) -> Tensor:
        made: Tensor = reduce(lambda a, b: a + b, [of(each) for each in self._operators])
        return made


class LinearOperatorComposition(_Several):
    """The product of operators, of which the last one multiplies first."""

    def __init__(
        self,
        operators: Any,
        is_non_singular: bool | None = None,
        is_self_adjoint: bool | None = None,
        is_positive_definite: bool | None = None,
        is_square: bool | None = None,
        name: str | None = None,
    ) -> None:
        """Compose operators.

        Args:
            operators: The operators, of one dtype; each has as many columns as the next one rows.
            is_non_singular: As for ``LinearOperator``.
            is_self_adjoint: As for ``LinearOperator``.
            is_positive_definite: As for ``LinearOperator``.
            is_square: As for ``LinearOperator``.
            name: Its name; made of those of the operators if None.

        Raises:
            ArgumentTypeError: if they are no list, or of several dtypes.
            AttributeValueError: if there is none, or a hint is wrong.
        """
        found = listed(operators)
        is_non_singular = all_say(
            found,
            "is_non_singular",
            is_non_singular,
            "The composition of non-singular operators is always non-singular.",
        )
        hints = Hints(is_non_singular, is_self_adjoint, is_positive_definite, is_square)
        super().__init__(found, hints, "_o_", name)

    def _shape(self) -> TensorShape:
        for one, other in zip(self._operators[:-1], self._operators[1:], strict=True):
            one.domain_dimension.assert_is_compatible_with(other.range_dimension)
        ends = [self._operators[0].range_dimension, self._operators[-1].domain_dimension]
        return shape_of(self._batch(), ends)

    def _shape_tensor(self) -> Tensor:
        ends = [
            self._operators[0].range_dimension_tensor(),
            self._operators[-1].domain_dimension_tensor(),
        ]
        return concat([self._batch_tensor(), stack(ends)], 0)

    def _matmul(self, x: Tensor, adjoint: bool = False, adjoint_arg: bool = False) -> Tensor:
        order = self._operators if adjoint else self._operators[::-1]
        made: Tensor = order[0].matmul(x, adjoint=adjoint, adjoint_arg=adjoint_arg)
        for each in order[1:]:
            made = each.matmul(made, adjoint=adjoint)
        return made

    def _solve(self, rhs: Tensor, adjoint: bool = False, adjoint_arg: bool = False) -> Tensor:
        order = self._operators[::-1] if adjoint else self._operators
        made: Tensor = order[0].solve(rhs, adjoint=adjoint, adjoint_arg=adjoint_arg)
        for each in order[1:]:
            made = each.solve(made, adjoint=adjoint)
        return made

    def _determinant(self) -> Tensor:
        return self._product(lambda each: each.determinant())

    def _log_abs_determinant(self) -> Tensor:
        return self._sum(lambda each: each.log_abs_determinant())


class LinearOperatorBlockDiag(_Several):
    """Square operators along the diagonal of a matrix, with zeros elsewhere."""

    def __init__(
        self,
        operators: Any,
        is_non_singular: bool | None = None,
        is_self_adjoint: bool | None = None,
        is_positive_definite: bool | None = None,
        is_square: bool | None = True,
        name: str | None = None,
    ) -> None:
        """Put operators along a diagonal.

        Args:
            operators: The operators, square and of one dtype.
            is_non_singular: As for ``LinearOperator``.
            is_self_adjoint: As for ``LinearOperator``.
            is_positive_definite: As for ``LinearOperator``.
            is_square: True.
            name: Its name; made of those of the operators if None.

        Raises:
            ArgumentTypeError: if they are no list, or of several dtypes.
            AttributeValueError: if there is none, one is not square, or a hint is wrong.
        """
        found = listed(operators)
        hints = _of_all(
            found,
            Hints(is_non_singular, is_self_adjoint, is_positive_definite, True),
            "The direct sum of",
            "positive definite",
        )
        if not (is_square and all(each.is_square for each in found)):
            raise AttributeValueError("Can only represent a block diagonal of square matrices.")
        super().__init__(found, hints, "_ds_", name)

    def _shape(self) -> TensorShape:
        sizes: list[Any] = [each.domain_dimension for each in self._operators]
        count = reduce(lambda a, b: a + b, sizes)
        return shape_of(self._batch(), [count, count])

    def _shape_tensor(self) -> Tensor:
        count = self._sum(lambda each: each.domain_dimension_tensor())
        return concat([self._batch_tensor(), stack([count, count])], 0)

    def _parts(self, x: Tensor, axis: int) -> list[Tensor]:
        known = [each.domain_dimension.value for each in self._operators]
        sizes: Any = known
        if None in known:
            sizes = stack([each.domain_dimension_tensor() for each in self._operators])
        return split(x, sizes, axis, num=len(known))

    def _matmul(self, x: Tensor, adjoint: bool = False, adjoint_arg: bool = False) -> Tensor:
        parts = self._parts(x, -1 if adjoint_arg else -2)
        made = [
            each.matmul(part, adjoint=adjoint, adjoint_arg=adjoint_arg)
            for each, part in zip(self._operators, parts, strict=True)
        ]
        return concat(alike(made), -2)

    def _solve(self, rhs: Tensor, adjoint: bool = False, adjoint_arg: bool = False) -> Tensor:
        parts = self._parts(rhs, -1 if adjoint_arg else -2)
        made = [
            each.solve(part, adjoint=adjoint, adjoint_arg=adjoint_arg)
            for each, part in zip(self._operators, parts, strict=True)
        ]
        return concat(alike(made), -2)

    def _determinant(self) -> Tensor:
        return self._product(lambda each: each.determinant())

    def _log_abs_determinant(self) -> Tensor:
        return self._sum(lambda each: each.log_abs_determinant())

    def _trace(self) -> Tensor:
        return self._sum(lambda each: each.trace())

    def _diag_part(self) -> Tensor:
        columns = alike([expand_dims(each.diag_part(), -1) for each in self._operators])
        return squeeze(concat(columns, -2), -1)

    def _to_dense(self) -> Tensor:
        whole = self.domain_dimension_tensor()
        rows, done = [], cast(0, whole.dtype)
        for block in alike([each.to_dense() for each in self._operators]):
            sizes = shape(block)
            after = whole - done - sizes[-1]
            sides = [
                zeros(concat([sizes[:-1], reshape(count, [1])], 0), block.dtype)
                for count in (done, after)
            ]
            rows.append(concat([sides[0], block, sides[1]], -1))
            done = done + sizes[-1]
        made = concat(rows, -2)
        made.set_shape(self.shape)
        return made

    def _assert_non_singular(self) -> Operation:
        return group(*(each.assert_non_singular() for each in self._operators))

    def _assert_self_adjoint(self) -> Operation:
        return group(*(each.assert_self_adjoint() for each in self._operators))

    def _assert_positive_definite(self) -> Operation:
        return group(*(each.assert_positive_definite() for each in self._operators))

    def _adjoint(self) -> LinearOperator:
        return LinearOperatorBlockDiag([e.adjoint() for e in self._operators], *self._hints)

    def _inverse(self) -> LinearOperator:
        return LinearOperatorBlockDiag([e.inverse() for e in self._operators], *self._hints)

    def _cholesky(self) -> LinearOperator:
        factors = [each.cholesky() for each in self._operators]
        return LinearOperatorBlockDiag(factors, is_non_singular=True)


def _of_all(operators: Sequence[Any], hints: Hints, what: str, definite: str) -> Hints:
    """Return hints with what follows from those that all operators have."""
    found = [
        all_say(operators, name, hint, f"{what} {word} operators is always {word}.")
        for name, hint, word in zip(
            ("is_non_singular", "is_self_adjoint", "is_positive_definite"),
            hints,
            ("non-singular", "self-adjoint", definite),
            strict=False,
        )
    ]
    return Hints(found[0], found[1], found[2], hints.is_square)


class LinearOperatorKronecker(_Several):
    """The Kronecker product of operators."""

    def __init__(
        self,
        operators: Any,
        is_non_singular: bool | None = None,
        is_self_adjoint: bool | None = None,
        is_positive_definite: bool | None = None,
        is_square: bool | None = None,
        name: str | None = None,
    ) -> None:
        """Take the product of operators.

        Args:
            operators: The operators, of one dtype.
            is_non_singular: As for ``LinearOperator``.
            is_self_adjoint: As for ``LinearOperator``.
            is_positive_definite: As for ``LinearOperator``.
            is_square: As for ``LinearOperator``.
            name: Its name; made of those of the operators if None.

        Raises:
            ArgumentTypeError: if they are no list, or of several dtypes.
            AttributeValueError: if there is none, or a hint is wrong.
        """
        found = listed(operators)
        hints = _of_all(
            found,
            Hints(is_non_singular, is_self_adjoint, is_positive_definite, is_square),
            "The Kronecker product of",
            "positive-definite",
        )
        super().__init__(found, hints, "_x_", name)

    def _shape(self) -> TensorShape:
        sizes = [
            reduce(lambda a, b: a * b, [getattr(each, which) for each in self._operators])
            for which in ("range_dimension", "domain_dimension")
        ]
        return shape_of(self._batch(), sizes)

    def _shape_tensor(self) -> Tensor:
        rows = self._product(lambda each: each.range_dimension_tensor())
        columns = self._product(lambda each: each.domain_dimension_tensor())
        return concat([self._batch_tensor(), stack([rows, columns])], 0)

    def _along(self, x: Tensor, adjoint: bool, solves: bool) -> Tensor:
        """Return what each operator makes of its own axis of columns, one after the other."""
        sizes = [
            each.range_dimension_tensor() if adjoint != solves else each.domain_dimension_tensor()
            for each in self._operators
        ]
        made, done = x, convert_to_tensor([1])
        for i, each in enumerate(self._operators):
            own = reshape(sizes[i], [1])
            rest = reduce(lambda a, b: a * b, sizes[i + 1 :], shape(x)[-1])
            inner = concat([done, own, reshape(rest, [1])], 0)
            # [..., own axis, axes done and axes to do]: all of these are columns.
            moved = _swapped(reshape(made, concat([shape(made)[:-2], inner], 0)))
            wide = reshape(moved, concat([shape(moved)[:-2], [-1]], 0))
            found = each.solve(wide, adjoint) if solves else each.matmul(wide, adjoint)
            back = reshape(found, concat([shape(found)[:-1], inner[:1], inner[2:]], 0))
            done = done * shape(found)[-2]
            lead = shape(found)[:-2]
            made = reshape(_swapped(back), concat([lead, done, inner[2:]], 0))
        return made

    def _matmul(self, x: Tensor, adjoint: bool = False, adjoint_arg: bool = False) -> Tensor:
        wanted = adjoint_of(x) if adjoint_arg else x
        rows = self.domain_dimension if adjoint else self.range_dimension
        return self._sized(self._along(wanted, adjoint, solves=False), wanted, rows)

    def _solve(self, rhs: Tensor, adjoint: bool = False, adjoint_arg: bool = False) -> Tensor:
        wanted = adjoint_of(rhs) if adjoint_arg else rhs
        rows = self.range_dimension if adjoint else self.domain_dimension
        return self._sized(self._along(wanted, adjoint, solves=True), wanted, rows)

    def _sized(self, made: Tensor, x: Tensor, rows: Any) -> Tensor:
        """Return a result with what is known of its shape."""
        known = Shape(x.shape)
        if known.rank is not None and Shape(self.shape).rank is not None:
            batch = broadcast_static(known[:-2], self.batch_shape)
            made.set_shape(batch.concatenate([rows.value, known[-1]]))
        return made

    def _powers(self) -> list[Any]:
        """Return how often the determinant of each operator counts."""
        whole = self.domain_dimension_tensor()
        return [whole // each.domain_dimension_tensor() for each in self._operators]

    def _determinant(self) -> Tensor:
        parts = zip(self._operators, self._powers(), strict=True)
        powers = [power(each.determinant(), cast(n, self.dtype)) for each, n in parts]
        made: Tensor = reduce(lambda a, b: a * b, powers)
        return made

    def _log_abs_determinant(self) -> Tensor:
        logs = []
        for each, n in zip(self._operators, self._powers(), strict=True):
            found = each.log_abs_determinant()
            logs.append(found * cast(n, found.dtype))
        made: Tensor = reduce(lambda a, b: a + b, logs)
        return made

    def _trace(self) -> Tensor:
        return self._product(lambda each: each.trace())

    def _diag_part(self) -> Tensor:
        made = self._operators[0].diag_part()
        for each in self._operators[1:]:
            wide = expand_dims(made, -1) * expand_dims(each.diag_part(), -2)
            made = reshape(wide, concat([shape(wide)[:-2], [-1]], 0))
        return made

    def _to_dense(self) -> Tensor:
        made = self._operators[0].to_dense()
        for each in self._operators[1:]:
            left = expand_dims(expand_dims(made, -1), -3)
            right = expand_dims(expand_dims(each.to_dense(), -2), -4)
            wide = left * right
            sizes = shape(wide)
            rows, columns = sizes[-4:-3] * sizes[-3:-2], sizes[-2:-1] * sizes[-1:]
            made = reshape(wide, concat([sizes[:-4], rows, columns], 0))
        made.set_shape(self.shape)
        return made

    def _assert_non_singular(self) -> Operation:
        self._check_factors("invertible")
        return group(*(each.assert_non_singular() for each in self._operators))

    def _assert_self_adjoint(self) -> Operation:
        self._check_factors("self adjoint")
        return group(*(each.assert_self_adjoint() for each in self._operators))

    def _check_factors(self, what: str) -> None:
        if not all(each.is_square for each in self._operators):
            raise AttributeValueError(
                f"All Kronecker factors must be square for the product to be {what}."
            )

    def _adjoint(self) -> LinearOperator:
        return LinearOperatorKronecker([e.adjoint() for e in self._operators], *self._hints)

    def _inverse(self) -> LinearOperator:
        return LinearOperatorKronecker([e.inverse() for e in self._operators], *self._hints)

    def _cholesky(self) -> LinearOperator:
        factors = [each.cholesky() for each in self._operators]
        return LinearOperatorKronecker(factors, is_non_singular=True, is_square=True)


def _swapped(x: Tensor) -> Tensor:
    """Return a tensor with the second and the third axis from the end swapped."""
    count = x.shape.ndims
    if count is not None:
        return transpose(x, [*range(count - 3), count - 2, count - 3, count - 1])
    size = rank(x)
    ends = stack([size - 2, size - 3, size - 1])
    return transpose(x, concat([range_of(0, size - 3), ends], 0))
