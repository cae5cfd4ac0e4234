"""What operators make of each other: products and solutions that are operators, too."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from headrace.errors import AttributeValueError
from headrace.ops.array import expand_dims
from headrace.ops.decompositions import cholesky
from headrace.ops.linear_operators.circulant import LinearOperatorCirculant
from headrace.ops.linear_operators.composed import LinearOperatorComposition
from headrace.ops.linear_operators.dense import LinearOperatorLowerTriangular
from headrace.ops.linear_operators.derived import LinearOperatorAdjoint, LinearOperatorInversion
from headrace.ops.linear_operators.diagonal import LinearOperatorDiag
from headrace.ops.linear_operators.hints import (
    Hints,
    commuting_hints,
    hints_of,
    non_singular,
    product_hints,
)
from headrace.ops.linear_operators.identity import (
    LinearOperatorIdentity,
    LinearOperatorScaledIdentity,
)
from headrace.ops.linear_operators.operator import MAKERS, LinearOperator
from headrace.ops.linear_operators.zeros import LinearOperatorZeros

# What two operators make: of each pair of classes the rule of the nearest ones among their bases.
Rule = Callable[[Any, Any], LinearOperator]
PRODUCTS: dict[tuple[type, type], Rule] = {}
SOLUTIONS: dict[tuple[type, type], Rule] = {}


def _rule(table: dict[tuple[type, type], Rule], left: Any, right: Any) -> Rule:
    """Return the rule for two operators: the first of the most special ones."""
    found = [
        (type(left).__mro__.index(a) + type(right).__mro__.index(b), rule)
        for (a, b), rule in table.items()
        if isinstance(left, a) and isinstance(right, b)
    ]
    return min(found, key=lambda each: each[0])[1]


def _product(left: Any, right: Any) -> LinearOperator:
    return _rule(PRODUCTS, left, right)(left, right)


def _solution(left: Any, right: Any) -> LinearOperator:
    return _rule(SOLUTIONS, left, right)(left, right)


def _composed(left: Any, right: Any) -> LinearOperator:
    return LinearOperatorComposition([left, right], *product_hints(left, right))


def _solved(left: Any, right: Any) -> LinearOperator:
    first = LinearOperatorInversion(left)
    return LinearOperatorComposition([first, right], *product_hints(left, right))


def _check_squares(left: Any, right: Any) -> None:
    if not (left.is_square and right.is_square):
        raise AttributeValueError(
            "Matmul with non-square `LinearOperator`s or non-square `LinearOperatorZeros` not "
            "supported at this time."
        )


def _zeros_first(left: Any, right: Any) -> LinearOperator:
    _check_squares(left, right)
    found: LinearOperator = left
    return found


def _zeros_last(left: Any, right: Any) -> LinearOperator:
    _check_squares(left, right)
    found: LinearOperator = right
    return found


def _diagonal(make: Callable[[Any, Any], Any]) -> Rule:
    def rule(left: Any, right: Any) -> LinearOperator:
        return LinearOperatorDiag(make(left, right), *commuting_hints(left, right))

    return rule


def _triangle(make: Callable[[Any, Any], Any]) -> Rule:
    def rule(left: Any, right: Any) -> LinearOperator:
        hints = Hints(
            non_singular(left, right), commuting_hints(left, right).is_self_adjoint, None, True
        )
        return LinearOperatorLowerTriangular(make(left, right), *hints)

    return rule


def _circulant(make: Callable[[Any, Any], Any]) -> Rule:
    def rule(left: Any, right: Any) -> LinearOperator:
        hints = commuting_hints(left, right)
        return LinearOperatorCirculant(make(left, right), left.dtype, *hints)

    return rule


def _column(diagonal: Any) -> Any:
    return expand_dims(diagonal, -1)


_ANY, _DIAG, _UNIT = LinearOperator, LinearOperatorDiag, LinearOperatorIdentity
_SCALED, _LOWER, _RING = (
    LinearOperatorScaledIdentity,
    LinearOperatorLowerTriangular,
    LinearOperatorCirculant,
)

PRODUCTS.update(
    {
        (_ANY, _ANY): _composed,
        (_UNIT, _ANY): lambda left, right: right,
        (_ANY, _UNIT): lambda left, right: left,
        (_ANY, LinearOperatorZeros): _zeros_last,
        (LinearOperatorZeros, _ANY): _zeros_first,
        (_DIAG, _DIAG): _diagonal(lambda a, b: a.diag * b.diag),
        (_DIAG, _SCALED): _diagonal(lambda a, b: a.diag * _column(b.multiplier)),
        (_SCALED, _DIAG): _diagonal(lambda a, b: b.diag * _column(a.multiplier)),
        (_DIAG, _LOWER): _triangle(lambda a, b: _column(a.diag) * b.to_dense()),
        (_LOWER, _DIAG): _triangle(lambda a, b: a.to_dense() * expand_dims(b.diag, -2)),
        (_RING, _RING): _circulant(lambda a, b: a.spectrum * b.spectrum),
    }
)
SOLUTIONS.update(
    {
        (_ANY, _ANY): _solved,
        (LinearOperatorInversion, _ANY): lambda left, right: left.operator.matmul(right),
        (_UNIT, _ANY): lambda left, right: right,
        (_DIAG, _DIAG): _diagonal(lambda a, b: b.diag / a.diag),
        (_DIAG, _SCALED): _diagonal(lambda a, b: _column(b.multiplier) / a.diag),
        (_SCALED, _DIAG): _diagonal(lambda a, b: b.diag / _column(a.multiplier)),
        (_DIAG, _LOWER): _triangle(lambda a, b: b.to_dense() / _column(a.diag)),
        (_RING, _RING): _circulant(lambda a, b: b.spectrum / a.spectrum),
    }
)

MAKERS.update(
    matmul=_product,
    solve=_solution,
    adjoint=lambda operator: LinearOperatorAdjoint(operator, *hints_of(operator)),
    inverse=lambda operator: LinearOperatorInversion(operator, *hints_of(operator)),
    cholesky=lambda operator: LinearOperatorLowerTriangular(
        cholesky(operator.to_dense()), is_non_singular=True, is_self_adjoint=False, is_square=True
    ),
)
