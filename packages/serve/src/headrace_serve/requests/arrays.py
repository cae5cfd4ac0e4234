"""From the values of JSON to arrays: nested lists of numbers, truth values and strings.

The rules are those of TensorFlow Serving's REST interface: numbers without a fraction for integer
dtypes, no truth value for a number, no number that the dtype cannot hold, and strings as text or
as ``{"b64": "..."}``.
"""

from __future__ import annotations

import base64
import binascii
from itertools import chain
from typing import Any, NoReturn

import numpy as np

import headrace as hr
from headrace_serve.errors import UNIMPLEMENTED, RequestError, refuse
from headrace_serve.models.signature import Array, TensorInfo

# What JSON calls the values that Python reads.
_JSON_NAMES = {
    dict: "an object",
    list: "a list",
    str: "a string",
    int: "a number",
    float: "a number with a fraction",
    bool: "a truth value",
    type(None): "null",
}
_BASE64 = "b64"
# More axes than arrays can have; deeper lists are no tensor.
_MOST_AXES = 32
# Bytes of a floating element -> the largest number up to which it holds all whole ones.
_EXACT = {1: 8.0, 2: 256.0, 4: 2.0**24, 8: 2.0**53}


def array_of(value: Any, info: TensorInfo, where: str) -> Array:
    """Return the array that nested lists stand for.

    Args:
        value: What JSON has.
        info: The tensor that it is for.
        where: What messages call it.

    Returns:
        An array of the tensor's dtype, of a shape that fits.

    Raises:
        RequestError: if it is none; says what was expected and what was got, and where.
    """
    shape, flat = _flattened(value, where)
    if not flat and info.shape is not None and len(shape) == 1:
        # An empty list says nothing of the other axes.
        shape = [0, *(size or 0 for size in info.shape[1:])]
    if not info.fits(tuple(shape)):
        refuse(f"{where}: expected the shape {_shown(info.shape)}, got {_shown(shape)}")
    return _elements(flat, info.dtype, shape, where).reshape(shape)


def is_base64(value: Any) -> bool:
    """Whether a value is a string that is encoded in base64: ``{"b64": "..."}``."""
    return isinstance(value, dict) and len(value) == 1 and isinstance(value.get(_BASE64), str)


def decoded(value: Any, where: str) -> bytes:
    """Return the bytes of a string, or of one that is encoded in base64."""
    if isinstance(value, str):
        try:
            return value.encode()
        except UnicodeEncodeError:
            refuse(f"{where}: expected text, got half of a surrogate pair; encode bytes in base64")
    if not is_base64(value):
        refuse(f'{where}: expected a string or {{"b64": "..."}}, got {json_name(value)}')
    try:
        return base64.b64decode(value[_BASE64], validate=True)
    except (binascii.Error, ValueError) as error:
        refuse(f"{where}: this is no base64: {error}")


def json_name(value: Any) -> str:
    """Return what messages call a value of JSON."""
    if isinstance(value, dict) and value:
        return f"an object with {', '.join(map(repr, list(value)[:5]))}"
    return _JSON_NAMES[type(value)]


def _flattened(value: Any, where: str) -> tuple[list[int], list[Any]]:
    """Return the shape of nested lists, and their elements in order.

    All is asked of whole levels at once, as a request may have a million elements.
    """
    shape: list[int] = []
    flat = [value]
    while True:
        kinds = set(map(type, flat))
        if list not in kinds:
            return shape, flat
        lengths = {len(item) for item in flat} if kinds == {list} else set()
        if len(lengths) != 1:
            _refuse_ragged(flat, shape, where)
        if len(shape) == _MOST_AXES:
            refuse(f"{where}: expected at most {_MOST_AXES} lists inside each other, got more")
        shape.append(lengths.pop())
        flat = list(chain.from_iterable(flat))


def _refuse_ragged(level: list[Any], shape: list[int], where: str) -> NoReturn:
    """Name the first item that does not look like those before it."""

    def look(item: Any) -> str:
        return f"a list of {len(item)}" if isinstance(item, list) else json_name(item)

    first = look(level[0])
    index, item = next((i, item) for i, item in enumerate(level) if look(item) != first)
    refuse(
        f"{where}: expected lists of equal lengths, got {look(item)} at {_place(index, shape)} "
        f"where {_place(0, shape)} has {first}"
    )


def _elements(flat: list[Any], dtype: hr.DType, shape: list[int], where: str) -> Array:
    kinds = set(map(type, flat))
    if dtype == hr.string:
        return _strings(flat, kinds, shape, where)
    numpy_dtype = np.dtype(dtype.numpy)
    if dtype == hr.bool:
        allowed: set[type] = {bool}
    elif numpy_dtype.kind in "iu":
        allowed = {int}
    elif dtype.is_floating:
        allowed = {int, float}
    else:
        raise RequestError(
            UNIMPLEMENTED, f"{where}: JSON has no form for values of the dtype {dtype.name}"
        )
    if not kinds <= allowed:
        index, item = next((i, v) for i, v in enumerate(flat) if type(v) not in allowed)
        refuse(f"{where}: expected {dtype.name}, got {json_name(item)} at {_place(index, shape)}")
    if numpy_dtype.kind in "iu":
        return _integers(flat, numpy_dtype, shape, where)
    return _floats(flat, numpy_dtype, shape, where) if float in allowed else np.array(flat, bool)


def _strings(flat: list[Any], kinds: set[type], shape: list[int], where: str) -> Array:
    found = np.empty(len(flat), object)
    if kinds <= {str}:
        try:
            found[:] = [item.encode() for item in flat]
            return found
        except UnicodeEncodeError:
            pass
    found[:] = [decoded(v, f"{where} at {_place(i, shape)}") for i, v in enumerate(flat)]
    return found


def _integers(flat: list[int], dtype: np.dtype[Any], shape: list[int], where: str) -> Array:
    limits = np.iinfo(dtype)
    if flat and not (limits.min <= min(flat) and max(flat) <= limits.max):
        index = next(i for i, v in enumerate(flat) if not limits.min <= v <= limits.max)
        _refuse_lossy(flat[index], dtype, index, shape, where)
    return np.array(flat, dtype)


def _floats(flat: list[Any], dtype: np.dtype[Any], shape: list[int], where: str) -> Array:
    try:
        wide = np.array(flat, np.float64)
    except OverflowError:
        index = next(i for i, v in enumerate(flat) if isinstance(v, int) and abs(v) > 1 << 1023)
        _refuse_lossy(flat[index], dtype, index, shape, where)
    # Finite numbers must stay finite, and whole ones what they are.
    with np.errstate(over="ignore"):
        narrow = wide.astype(dtype)
    sizes = np.abs(wide)
    exact = _EXACT[dtype.itemsize]
    if sizes.max(initial=0.0) <= exact:
        return narrow
    large = np.flatnonzero(np.isfinite(wide) & (sizes > exact))
    for index in large.tolist():
        value, kept = flat[index], narrow[index].astype(np.float64)
        lost = not np.isfinite(kept) or (isinstance(value, int) and int(kept) != value)
        if lost:
            _refuse_lossy(value, dtype, index, shape, where)
    return narrow


def _refuse_lossy(
    value: Any, dtype: np.dtype[Any], index: int, shape: list[int], where: str
) -> NoReturn:
    long = isinstance(value, int) and abs(value) >= 10**30
    digits = "a number of more than 30 digits" if long else str(value)
    refuse(f"{where}: {dtype.name} cannot hold {digits}, at {_place(index, shape)}")


def _place(index: int, shape: list[int]) -> str:
    """Return where the element of a flat index stands, as in ``[0][3]``."""
    indices = np.unravel_index(index, shape) if shape else ()
    return "".join(f"[{int(i)}]" for i in indices) or "the top"


def _shown(shape: Any) -> str:
    if shape is None:
        return "[...]"
    return f"[{', '.join('?' if size is None else str(size) for size in shape)}]"
