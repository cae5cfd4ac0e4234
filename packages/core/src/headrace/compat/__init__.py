"""Conversions of strings, and names of other versions of the interface, as ``hr.compat``."""

import datetime as _datetime
import numbers as _numbers
import os as _os
from collections.abc import Callable as _Callable
from collections.abc import Iterator as _Iterator
from contextlib import contextmanager as _contextmanager
from contextvars import ContextVar as _ContextVar
from importlib import import_module as _import_module
from typing import TYPE_CHECKING as _TYPE_CHECKING
from typing import Any as _Any

from numpy import floating as _floating
from numpy import integer as _integer
from numpy import number as _number

from headrace.dimension import dimension_value as dimension_value
from headrace.errors import ArgumentTypeError as _ArgumentTypeError
from headrace.errors import AttributeValueError as _AttributeValueError
from headrace.errors import shown as _shown
from headrace.errors import told as _told
from headrace.graph.tensor_shape import dimension_at_index as dimension_at_index

if _TYPE_CHECKING:
    from headrace.compat import v1 as v1

bytes_or_text_types = (bytes, str)
integral_types = (_numbers.Integral, _integer)
real_types = (_numbers.Real, _integer, _floating)
complex_types = (_numbers.Complex, _number)

# The interface is that of TensorFlow 1.15, which looked three weeks ahead of its own date.
_HORIZON: _ContextVar[_datetime.date] = _ContextVar(
    "headrace_horizon", default=_datetime.date(2019, 11, 6)
)


def as_bytes(bytes_or_text: _Any, encoding: str = "utf-8") -> bytes:
    """Return text as bytes; bytes as they are.

    Args:
        bytes_or_text: A string or bytes.
        encoding: How text is encoded.

    Raises:
        ArgumentTypeError: if it is neither.
    """
    if isinstance(bytes_or_text, str):
        coded: bytes = _coded(bytes_or_text.encode, bytes_or_text, encoding)
        return coded
    if isinstance(bytes_or_text, bytes | bytearray):
        return bytes(bytes_or_text)
    raise _ArgumentTypeError(f"expected bytes or a string, got {_shown(bytes_or_text)}")


def as_text(bytes_or_text: _Any, encoding: str = "utf-8") -> str:
    """Return bytes as text; text as it is.

    Args:
        bytes_or_text: A string or bytes.
        encoding: How bytes are decoded.

    Raises:
        ArgumentTypeError: if it is neither.
    """
    if isinstance(bytes_or_text, str):
        return bytes_or_text
    if isinstance(bytes_or_text, bytes):
        decoded: str = _coded(bytes_or_text.decode, bytes_or_text, encoding)
        return decoded
    raise _ArgumentTypeError(f"expected bytes or a string, got {_shown(bytes_or_text)}")


def _coded(code: _Callable[[str], _Any], value: _Any, encoding: str) -> _Any:
    try:
        return code(encoding)
    except (LookupError, UnicodeError, ValueError) as error:
        raise _AttributeValueError(
            f"{_shown(value)} is no text in {_shown(encoding)}: {_told(error)}"
        ) from None


as_str = as_text


def as_str_any(value: _Any) -> str:
    """Return any value as text: bytes decoded, the others as ``str`` has them."""
    if isinstance(value, bytes):
        return as_text(value)
    try:
        return str(value)
    except (ValueError, TypeError, RecursionError):
        # A number of more digits than Python writes, a list that is too deep, no text.
        return _shown(value)


def path_to_str(path: _Any) -> _Any:
    """Return a path object as a string; anything else as it is."""
    return as_text(_os.fspath(path)) if hasattr(path, "__fspath__") else path


def forward_compatible(year: int, month: int, day: int) -> bool:
    """Return whether a feature that TensorFlow had from a date on may be used: that of 1.15 may."""
    return _date(year, month, day) < _HORIZON.get()


@_contextmanager
def forward_compatibility_horizon(year: int, month: int, day: int) -> _Iterator[None]:
    """Let ``forward_compatible`` answer in the block as if features until a date may be used.

    Args:
        year: The year of the date from which on they may not be used.
        month: Its month.
        day: Its day.

    Raises:
        AttributeValueError: if there is no such date.
    """
    before = _HORIZON.set(_date(year, month, day))
    try:
        yield
    finally:
        _HORIZON.reset(before)


def _date(year: int, month: int, day: int) -> _datetime.date:
    try:
        return _datetime.date(year, month, day)
    except (ValueError, OverflowError):
        given = ", ".join(map(_shown, (year, month, day)))
        raise _AttributeValueError(
            f"expected the year, month and day of a date, got {given}"
        ) from None


def __getattr__(name: str) -> _Any:
    """Return ``v1``, which is imported when a program first names it."""
    if name != "v1":
        raise AttributeError(
            f"headrace.compat has no attribute {name!r}; the names of TensorFlow 1.15 are those of "
            "hr itself, and of hr.compat.v1"
        )
    return _import_module("headrace.compat.v1")


def __dir__() -> list[str]:
    return sorted({*globals(), "v1"})
