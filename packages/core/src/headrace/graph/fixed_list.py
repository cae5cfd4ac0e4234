"""Lists that nobody changes: what operations have of others, as programs see it."""

from __future__ import annotations

from typing import Any, TypeVar

T = TypeVar("T")


class FixedList(tuple[T, ...]):
    """A tuple that is to programs what a list would be, but that nothing can be added to.

    It equals lists and tuples of the same items, and joins lists to a new list.
    """

    __slots__ = ()

    def __eq__(self, other: object) -> bool:
        return tuple.__eq__(self, tuple(other) if isinstance(other, list) else other)

    def __ne__(self, other: object) -> bool:
        return not self == other

    __hash__ = tuple.__hash__

    def __add__(self, other: Any) -> Any:
        return [*self, *other] if isinstance(other, list) else tuple.__add__(self, other)

    def __radd__(self, other: Any) -> Any:
        return [*other, *self] if isinstance(other, list) else NotImplemented

    def __repr__(self) -> str:
        return repr(list(self))


NOTHING: FixedList[Any] = FixedList()
