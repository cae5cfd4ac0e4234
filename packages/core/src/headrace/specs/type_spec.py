"""``TypeSpec``: what all values of a kind have in common, as programs state it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Self

from headrace.dtypes import DType
from headrace.errors import ArgumentTypeError, AttributeValueError, shown
from headrace.graph.tensor_shape import TensorShape

# Class of values -> what makes a spec of one.
_KINDS: dict[type, Callable[[Any], TypeSpec]] = {}


class TypeSpec:
    """What all values of a kind have in common: dtypes, shapes and others. Equal ones hash alike.

    Attributes:
        value_type: The class of the values.
    """

    __slots__ = ()

    value_type: Any = None

    def facts(self) -> tuple[Any, ...]:
        """Return what this states, in the order of the arguments of its class."""
        raise NotImplementedError

    def is_compatible_with(self, spec_or_value: Any) -> bool:
        """Return whether a value, or one of another spec, may be of this one.

        Args:
            spec_or_value: A spec, or a value of some kind.
        """
        other = spec_or_value
        if not isinstance(other, TypeSpec):
            other = spec_of(other)
        return type(other) is type(self) and _compatible(self.facts(), other.facts())

    def most_specific_compatible_type(self, other: TypeSpec) -> Self:
        """Return the spec of all values that are of this one or another, and of as few as can be.

        Args:
            other: The other one.

        Raises:
            ArgumentTypeError: if it is no spec.
            AttributeValueError: if no value is of both kinds.
        """
        if not isinstance(other, TypeSpec):
            raise ArgumentTypeError(f"expected a TypeSpec, got {shown(other)}")
        if type(other) is not type(self):
            raise AttributeValueError(
                f"No TypeSpec is compatible with both {shown(self)} and {shown(other)}"
            )
        facts = zip(self.facts(), other.facts(), strict=True)
        return type(self)(*(_joined(a, b) for a, b in facts))

    def __eq__(self, other: object) -> bool:
        if type(other) is not type(self):
            return NotImplemented
        return self._key() == other._key()

    def __hash__(self) -> int:
        return hash(self._key())

    def _key(self) -> tuple[Any, ...]:
        return tuple(
            each.plain.dims if isinstance(each, TensorShape) else each for each in self.facts()
        )

    def __repr__(self) -> str:
        return f"{type(self).__name__}{self.facts()!r}"

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), self.facts()


def _compatible(one: Any, other: Any) -> bool:
    if isinstance(one, TensorShape):
        return bool(one.is_compatible_with(other))
    if isinstance(one, DType):
        return one.is_compatible_with(other)
    if isinstance(one, TypeSpec):
        return one.is_compatible_with(other)
    if isinstance(one, tuple):
        return len(one) == len(other) and all(map(_compatible, one, other))
    return bool(one == other)


def _joined(one: Any, other: Any) -> Any:
    """Return what holds of both."""
    if isinstance(one, TensorShape):
        return one.most_specific_compatible_shape(other)
    if isinstance(one, TypeSpec):
        return one.most_specific_compatible_type(other)
    if one != other:
        raise AttributeValueError(f"Types are not compatible: {shown(one)} vs {shown(other)}")
    return one


def spec_of(value: Any) -> TypeSpec | None:
    """Return the spec of a value, None where it is of no kind that has some."""
    make = _KINDS.get(type(value))
    return None if make is None else make(value)


def describe(kind: type, make: Callable[[Any], TypeSpec]) -> None:
    """Say what makes specs of values of a class."""
    _KINDS[kind] = make
