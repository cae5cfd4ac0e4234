"""Dimensions: sizes of axes as programs see them, known or unknown."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Self

import numpy as np

from headrace.errors import DTypeError, ShapeError, shown


class Dimension:
    """The size of one axis of a tensor: an integer >= 0, or unknown.

    ``Dimension(3)`` is a Python integer besides, so everything that takes an integer takes it.
    ``Dimension(None)`` is unknown: arithmetic with it gives an unknown dimension, comparing with
    it gives None, and what needs an integer refuses it. It counts as false, so
    ``x.shape[0] or hr.shape(x)[0]`` is the size of an axis in either case.
    """

    __slots__ = ()

    def __new__(cls, value: Any) -> Dimension:  # noqa: PYI034  (of a class within this one)
        """Return the dimension of a size.

        Args:
            value: An integer >= 0, what converts to one, a dimension, or None for an unknown one.

        Raises:
            ShapeError: if it is negative, a fraction, or text that is no integer.
            DTypeError: if it is no number at all.
        """
        if isinstance(value, Dimension):
            return value
        if value is None:
            return UNKNOWN_DIMENSION
        try:
            size = int(value)
        except (ValueError, ArithmeticError, np.ma.MaskError):
            raise ShapeError(
                f"a dimension is an integer >= 0 or None, got {shown(value)}"
            ) from None
        except TypeError:
            raise DTypeError(
                f"a dimension is an integer >= 0 or None, got {shown(value)}"
            ) from None
        if size < 0 or (not isinstance(value, str | bytes) and size != value):
            raise ShapeError(f"a dimension is an integer >= 0 or None, got {shown(value)}")
        return known_dimension(size)

    @property
    def value(self) -> int | None:
        """The size, None where it is unknown."""
        raise NotImplementedError

    def is_compatible_with(self, other: Any) -> bool:
        """Whether both may be the same size: they are, or one of them is unknown."""
        mine, that = self.value, Dimension(other).value
        return mine is None or that is None or mine == that

    def assert_is_compatible_with(self, other: Any) -> None:
        """Do nothing where both may be the same size.

        Raises:
            ShapeError: otherwise.
        """
        if not self.is_compatible_with(other):
            raise ShapeError(f"dimensions {self} and {shown(other)} are not compatible")

    def merge_with(self, other: Any) -> Dimension:
        """Return the dimension that knows what either knows.

        Raises:
            ShapeError: if they are known and differ.
        """
        self.assert_is_compatible_with(other)
        return Dimension(other) if self.value is None else self

    def __reduce__(self) -> tuple[type[Dimension], tuple[int | None]]:
        return Dimension, (self.value,)

    def __repr__(self) -> str:
        return f"Dimension({self.value})"


class _Unknown(Dimension):
    """The dimension of which nothing is known; there is one."""

    __slots__ = ()

    def __new__(cls) -> Self:
        return object.__new__(cls)

    @property
    def value(self) -> None:
        """None."""
        return

    def _unknown(self, other: Any) -> Any:
        """Return what arithmetic with a number gives."""
        return self if _is_size(other) else NotImplemented

    __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = _unknown
    __floordiv__ = __rfloordiv__ = __mod__ = __rmod__ = _unknown

    def _undecided(self, other: Any) -> Any:
        """Return what comparing with a number gives: None, which counts as false."""
        return None if _is_size(other) else NotImplemented

    __eq__ = __ne__ = __lt__ = __le__ = __gt__ = __ge__ = _undecided

    def __hash__(self) -> int:
        return hash(Dimension)

    def __bool__(self) -> bool:
        return False

    def __int__(self) -> int:
        raise DTypeError(UNKNOWN_IS_NO_INTEGER)

    __index__ = __int__

    def __float__(self) -> float:
        raise DTypeError(UNKNOWN_IS_NO_INTEGER)

    def __str__(self) -> str:
        return "?"

    def __format__(self, spec: str) -> str:
        return format("?", spec.rstrip("dnx"))


UNKNOWN_DIMENSION = _Unknown()
UNKNOWN_IS_NO_INTEGER = (
    "an unknown dimension is no integer while the graph is built: hr.shape(x)[i] computes the "
    "size of an axis in a step, and -1 stands for it in a shape to reshape to"
)


def _computed(name: str) -> Callable[[Any, Any], Any]:
    """Return arithmetic of integers whose results are dimensions where they can be."""
    compute: Callable[[Any, Any], Any] = getattr(int, name)

    def method(self: _Known, other: Any) -> Any:
        if other is None or other is UNKNOWN_DIMENSION:
            return UNKNOWN_DIMENSION
        result = compute(self, other)
        return known_dimension(result) if type(result) is int and result >= 0 else result

    method.__name__ = name
    return method


def _compared(name: str) -> Callable[[Any, Any], Any]:
    """Return a comparison of integers that gives None for what is unknown."""
    compare: Callable[[Any, Any], Any] = getattr(int, name)

    def method(self: _Known, other: Any) -> Any:
        if other is None or other is UNKNOWN_DIMENSION:
            return None
        return compare(self, other)

    method.__name__ = name
    return method


class _Known(Dimension, int):
    """A dimension of a known size."""

    __slots__ = ()

    @property
    def value(self) -> int:
        """The size."""
        return int(self)

    __add__ = _computed("__add__")
    __radd__ = _computed("__radd__")
    __sub__ = _computed("__sub__")
    __rsub__ = _computed("__rsub__")
    __mul__ = _computed("__mul__")
    __rmul__ = _computed("__rmul__")
    __floordiv__ = _computed("__floordiv__")
    __rfloordiv__ = _computed("__rfloordiv__")
    __mod__ = _computed("__mod__")
    __rmod__ = _computed("__rmod__")
    __eq__ = _compared("__eq__")
    __ne__ = _compared("__ne__")
    __lt__ = _compared("__lt__")
    __le__ = _compared("__le__")
    __gt__ = _compared("__gt__")
    __ge__ = _compared("__ge__")
    __hash__ = int.__hash__

    def __int__(self) -> int:
        return int.__int__(self)

    def __str__(self) -> str:
        return int.__repr__(self)


def known_dimension(size: int) -> Dimension:
    """Return the dimension of a size that is known to be an integer >= 0."""
    return int.__new__(_Known, size)


def _is_size(other: Any) -> bool:
    """Whether something is a number, a dimension, or None."""
    return other is None or isinstance(other, int | Dimension) or hasattr(other, "__index__")


def dimension_value(dimension: Any) -> int | None:
    """Return the size that a dimension is, None where it is unknown.

    Args:
        dimension: A dimension; anything else, such as an integer or None, is returned as it is.
    """
    found: int | None = dimension.value if isinstance(dimension, Dimension) else dimension
    return found
