"""Reading arguments that must be Python values, or refusing them with our errors.

What ``int``, ``float``, ``list`` and ``str`` make of what a program passes raises whatever they
like: ``OverflowError`` for infinities, ``decimal.InvalidOperation``, ``MemoryError`` for ranges
without end. These raise one error that names the argument. What an object of the program itself
raises comes through.
"""

from __future__ import annotations

import contextlib
import itertools
import operator
from collections import OrderedDict
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import numpy as np

from headrace.errors import ArgumentTypeError, AttributeValueError, DepthError
from headrace.message_text import shown

# More items than a program lists; an iterable may have no end.
_MOST = 1 << 20
# Longer numbers are counts of nothing, and Python writes none that have some thousand digits.
_MOST_BITS = 1 << 12


def whole(value: Any, label: str, least: int | None = None, most: int | None = None) -> int:
    """Return a whole number.

    Args:
        value: An integer, or a number or array of one that equals an integer.
        label: What messages call it.
        least: The least that it may be.
        most: The most that it may be.

    Raises:
        ArgumentTypeError: if it is none.
        AttributeValueError: if it is out of range, or has more than 4096 bits.
    """
    try:
        number = operator.index(value)
    except TypeError:
        number = _of_float(value, label)
    if (least is not None and number < least) or (most is not None and number > most):
        raise AttributeValueError(f"{label} must be {_range(least, most)}, got {shown(value)}")
    if number.bit_length() > _MOST_BITS:
        raise AttributeValueError(
            f"{label} must be at most a number of {_MOST_BITS} bits, got {shown(value)}"
        )
    return number


def _of_float(value: Any, label: str) -> int:
    number = real(value, label, "a whole number")
    if not number.is_integer():
        raise ArgumentTypeError(f"{label} must be a whole number, got {shown(value)}")
    return int(number)


def _range(least: int | None, most: int | None) -> str:
    if most is None:
        return f"at least {least}"
    return f"at most {most}" if least is None else f"from {least} to {most}"


def mapping(value: Any, label: str) -> dict[Any, Any]:
    """Return a dict of its own.

    Args:
        value: A dict or what is like one; None for an empty one.
        label: What messages call it.

    Raises:
        ArgumentTypeError: if it is none.
        AttributeValueError: if it holds more than a program lists.
    """
    if value is None:
        return {}
    if not isinstance(value, Mapping):
        raise ArgumentTypeError(f"{label} must be a dict, got {shown(value)}")
    # A dict has an end; another mapping may have none.
    return dict(value if isinstance(value, dict) else items(value.items(), label))


def real(value: Any, label: str, expected: str = "a number") -> float:
    """Return a number as a float; NaN and infinities are numbers.

    Args:
        value: What ``float`` takes, but for texts.
        label: What messages call it.
        expected: What they say that it must be.

    Raises:
        ArgumentTypeError: if it is none, or too large.
    """
    if not isinstance(value, str | bytes | bytearray):
        try:
            return float(value)
        except (TypeError, ValueError, ArithmeticError, np.ma.MaskError):
            pass
    raise ArgumentTypeError(f"{label} must be {expected}, got {shown(value)}")


# What iterates by these has the end that its length says.
_ENDS = (list.__iter__, tuple.__iter__, dict.__iter__, OrderedDict.__iter__)


def members(value: Any, label: str = "a list") -> Any:
    """Return a list, tuple or mapping as it is, or a list of what it holds if that may never end.

    Args:
        value: The list, tuple or mapping.
        label: What messages call it.

    Raises:
        AttributeValueError: if its class iterates it in a way of its own, and holds more than a
            program lists.
    """
    return value if type(value).__iter__ in _ENDS else items(value, label)


def items(value: Any, label: str, most: int = _MOST) -> list[Any]:
    """Return what an iterable holds.

    Args:
        value: A list, or what else can be iterated; no text.
        label: What messages call it.
        most: How many it may hold.

    Raises:
        ArgumentTypeError: if it cannot be iterated.
        AttributeValueError: if it holds more.
    """
    # What has no iterator may have items by number.
    if isinstance(value, str | bytes | bytearray) or not (
        isinstance(value, Iterable) or hasattr(value, "__getitem__")
    ):
        raise ArgumentTypeError(f"{label} must be a list, got {shown(value)}")
    most = whole(most, "most", 0, 1 << 62)
    found = list(itertools.islice(iter(value), most + 1))
    if len(found) > most:
        raise AttributeValueError(f"{label} must hold at most {most} items, got {shown(value)}")
    return found


@contextlib.contextmanager
def nesting(label: str) -> Iterator[None]:
    """Refuse, in the block, structures that are nested deeper than Python can follow.

    Args:
        label: What messages call the structure.

    Raises:
        DepthError: if it is, or holds itself.
    """
    try:
        yield
    except RecursionError:
        raise DepthError(
            f"{label} is nested deeper than Python can follow, or holds itself"
        ) from None


def text(value: Any, label: str) -> str:
    """Return a text.

    Args:
        value: A string.
        label: What messages call it.

    Raises:
        ArgumentTypeError: if it is none.
    """
    if not isinstance(value, str):
        raise ArgumentTypeError(f"{label} must be a string, got {shown(value)}")
    return value
