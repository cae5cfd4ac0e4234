"""What a program states of a linear operator, and what follows for one made of others."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

from headrace.arguments import items
from headrace.errors import ArgumentTypeError, AttributeValueError, shown


class Hints(NamedTuple):
    """What a program states of an operator; None where it states nothing.

    Attributes:
        is_non_singular: Whether it has an inverse.
        is_self_adjoint: Whether it is its own adjoint.
        is_positive_definite: Whether ``x^H A x`` has a positive real part for each x but 0.
        is_square: Whether it has as many rows as columns.
    """

    is_non_singular: bool | None = None
    is_self_adjoint: bool | None = None
    is_positive_definite: bool | None = None
    is_square: bool | None = None

    def completed(self) -> Hints:
        """Return them with what follows from them.

        Raises:
            AttributeValueError: if they contradict each other.
        """
        non_singular, square = self.is_non_singular, self.is_square
        if self.is_positive_definite:
            if non_singular is False:
                raise AttributeValueError("A positive definite matrix is always non-singular.")
            non_singular = True
        if non_singular:
            if square is False:
                raise AttributeValueError("A non-singular matrix is always square.")
            square = True
        if self.is_self_adjoint:
            if square is False:
                raise AttributeValueError("A self-adjoint matrix is always square.")
            square = True
        return Hints(non_singular, self.is_self_adjoint, self.is_positive_definite, square)


def hints_of(operator: Any) -> Hints:
    """Return what is stated of an operator."""
    return Hints(
        operator.is_non_singular,
        operator.is_self_adjoint,
        operator.is_positive_definite,
        operator.is_square,
    )


def both_say(operator: Any, given: Hints, made: str) -> Hints:
    """Return what is stated of an operator or of one made of it, for which the same holds.

    Raises:
        AttributeValueError: if they contradict each other.
    """
    found = []
    words = ("non-singular", "self-adjoint", "positive-definite", "square")
    for word, own, stated in zip(words, hints_of(operator), given, strict=True):
        if None not in (own, stated) and bool(own) != bool(stated):
            raise AttributeValueError(f"An operator is {word} if and only if its {made} is {word}.")
        known = [bool(hint) for hint in (own, stated) if hint is not None]
        found.append(any(known) if known else None)
    return Hints(*found)


def all_say(operators: Iterable[Any], hint: str, stated: bool | None, what: str) -> bool | None:
    """Return whether something holds of what is made of operators: it does where it does of all.

    Raises:
        AttributeValueError: if the opposite is stated.
    """
    if not all(getattr(operator, hint) for operator in operators):
        return stated
    if stated is False:
        raise AttributeValueError(what)
    return True


def listed(operators: Any) -> list[Any]:
    """Return a list of operators of one dtype.

    Raises:
        ArgumentTypeError: if they are no list, or of several dtypes.
        AttributeValueError: if there is none.
    """
    if isinstance(operators, str | dict) or not hasattr(operators, "__iter__"):
        raise ArgumentTypeError(f"expected a list of operators, got {shown(operators)}")
    found = items(operators, "operators")
    if not found:
        raise AttributeValueError("Expected a non-empty list of operators, got none")
    if any(operator.dtype != found[0].dtype for operator in found):
        told = ", ".join(f"{operator.name} {operator.dtype}" for operator in found)
        raise ArgumentTypeError(f"Expected all operators to have the same dtype.  Found {told}")
    return found


def product_hints(one: Any, other: Any) -> Hints:
    """Return what holds of the product of two operators, whatever they are."""
    square = squareness(one, other)
    if square is False:
        return Hints(False, False, False, False)
    return Hints(is_non_singular=non_singular(one, other) if square else None, is_square=square)


def commuting_hints(one: Any, other: Any) -> Hints:
    """Return what holds of the product of two square operators, in either order."""
    adjoint = True if one.is_self_adjoint and other.is_self_adjoint else None
    definite = one.is_positive_definite and other.is_positive_definite
    return Hints(non_singular(one, other), adjoint, True if definite and adjoint else None, True)


def non_singular(one: Any, other: Any) -> bool | None:
    """Return whether the product of two square operators has an inverse."""
    if one.is_non_singular is False or other.is_non_singular is False:
        return False
    return True if one.is_non_singular and other.is_non_singular else None


def squareness(one: Any, other: Any) -> bool | None:
    """Return whether the product of two operators is square."""
    if one.is_square and other.is_square:
        return True
    if one.is_square is False and other.is_square is False:
        same = one.range_dimension == other.domain_dimension
        return None if same is None else bool(same)
    if one.is_square is None or other.is_square is None:
        return None
    return False
