"""Values of attributes: what they may be, and their one form as JSON.

In JSON, numbers, strings, None and tuples (as lists) stand for themselves; all else is an object
with one key that names the type: ``float``, ``bytes``, ``dtype``, ``shape``, ``array``, ``spec``
and ``function``. A function is given by its name; documents list the functions themselves.
"""

from __future__ import annotations

import math
import re
import sys
import types
import typing
from collections.abc import Hashable, Mapping, Sequence
from typing import Any

import numpy as np

from headrace import dtypes
from headrace.dimension import Dimension
from headrace.dtypes import DType, as_dtype
from headrace.errors import AttributeValueError, DocumentError, HeadraceError, told
from headrace.graph.external_arrays import get_external, put_external
from headrace.graph.spec import MAX_RANK, TensorSpec
from headrace.graph.tensor_shape import TensorShape
from headrace.shapes import Shape

_NDArray = np.ndarray[Any, np.dtype[Any]]

# Attributes are tuples of tuples at most; a program can nest a few more.
MAX_NESTING = 8
# What is deeper is no value that any op takes, and would end in a RecursionError.
_MOST_TUPLES = 64
# Far more than any dtype or seed needs, far less than what is slow to read.
MAX_BITS = 256


class FunctionValue:
    """What marks a graph that can be the value of an attribute; see ``headrace.graph.function``."""

    __slots__ = ()

    name: str

    @property
    def stateful(self) -> bool:
        """Whether running it twice may differ from running it once."""
        raise NotImplementedError


def canonical(value: Any, depth: int = 0) -> Any:
    """Return an attribute's value as an immutable one of the kinds that documents hold.

    Args:
        value: The value.
        depth: How many tuples it is in.

    Raises:
        AttributeValueError: if it is of no such kind, or nested too deep.
    """
    if isinstance(value, np.generic):
        # First, because some of NumPy's scalars are Python's floats and strings, too.
        value = value.item()
    if isinstance(value, TensorShape):
        return value.plain
    if isinstance(value, Dimension):
        return value.value
    if value is None or isinstance(value, bool | int | float | str | bytes | DType | Shape):
        return value
    if isinstance(value, np.ndarray | FunctionValue):
        return value
    if isinstance(value, TensorSpec):
        return TensorSpec(value.dtype, value.shape, content=value.content)
    if isinstance(value, list | tuple):
        if depth >= _MOST_TUPLES:
            raise AttributeValueError(f"tuples of attributes are nested at most {told(depth)} deep")
        return tuple(canonical(item, depth + 1) for item in value)
    raise AttributeValueError(
        f"{type(value).__name__} is no attribute value; attributes are numbers, strings, dtypes, "
        "shapes, arrays and tuples of these"
    )


def encode(value: Any, depth: int = 0) -> Any:
    """Return an attribute's value as JSON data.

    Raises:
        DocumentError: if it is of a type that documents do not hold.
    """
    if value is None or isinstance(value, bool | str) or is_integer(value):
        return value
    if isinstance(value, float):
        return {"float": repr(float(value))}
    if isinstance(value, bytes):
        return {"bytes": _base64(value)}
    if isinstance(value, DType):
        return {"dtype": value.name}
    if isinstance(value, Shape):
        return {"shape": None if value.dims is None else list(value.dims)}
    if isinstance(value, np.ndarray):
        return {"array": _encode_array(value)}
    if isinstance(value, FunctionValue):
        return {"function": value.name}
    if isinstance(value, TensorSpec):
        content = None if value.content is None else encode(value.content)["spec"]
        return {"spec": [value.dtype.name, encode(value.shape)["shape"], content]}
    if isinstance(value, tuple) and depth < MAX_NESTING:
        return [encode(item, depth + 1) for item in value]
    raise DocumentError(
        f"{type(value).__name__} is no attribute value that a document holds; attributes are "
        f"numbers, strings, dtypes, shapes, arrays, and tuples of these nested {MAX_NESTING} deep"
    )


def decode(
    data: Any, depth: int = 0, functions: Mapping[str, FunctionValue] = types.MappingProxyType({})
) -> Any:
    """Return the attribute's value that ``encode`` gave as ``data``.

    Args:
        data: What a document holds.
        depth: In how many lists it stands.
        functions: The functions that are known by name.

    Raises:
        DocumentError: if it is none.
    """
    if data is None or isinstance(data, bool | str) or is_integer(data):
        return data
    if isinstance(data, list):
        if depth >= MAX_NESTING:
            raise DocumentError(f"lists are nested more than {MAX_NESTING} deep")
        return tuple(decode(item, depth + 1, functions) for item in data)
    if isinstance(data, dict) and len(data) == 1:
        ((key, content),) = data.items()
        if key == "function":
            return _read_function(content, functions)
        reader = _READERS.get(key)
        if reader is not None:
            return reader(content)
    raise DocumentError(
        f"expected an attribute's value (null, true, 1, 'text', a list, or an object with one of "
        f"the keys {', '.join(_READERS)}, function), got {brief(data)}"
    )


def is_integer(data: Any) -> bool:
    """Whether ``data`` is an integer of a size that documents hold."""
    return isinstance(data, int) and not isinstance(data, bool) and data.bit_length() <= MAX_BITS


def brief(data: Any) -> str:
    """Return JSON data shortened for a message."""
    if isinstance(data, dict | list):
        # Not its repr: that could be as long as the document.
        kind = "an object" if isinstance(data, dict) else "a list"
        return f"{kind} of {len(data)}"
    if isinstance(data, int) and data.bit_length() > MAX_BITS:
        return f"an integer of {data.bit_length()} bits"
    text = repr(data) if not isinstance(data, str) else repr(data[:64])
    return text if len(text) <= 60 else f"{text[:57]}..."


def _read_function(data: Any, functions: Mapping[str, FunctionValue]) -> FunctionValue:
    found = functions.get(data) if isinstance(data, str) else None
    if found is None:
        raise DocumentError(f"no function {brief(data)} comes before it")
    return found


def _read_spec(data: Any, depth: int = 0) -> TensorSpec:
    if not isinstance(data, list) or len(data) != 3 or depth >= MAX_NESTING:
        raise DocumentError(f"expected [dtype, shape, content], got {brief(data)}")
    dtype, content = _read_dtype(data[0]), data[2]
    inner = None if content is None else _read_spec(content, depth + 1)
    if inner is not None and dtype.kind not in ("resource", "list"):
        raise DocumentError(f"{dtype} has no content")
    return TensorSpec(dtype, read_shape(data[1]), content=inner)


def _encode_array(array: _NDArray) -> dict[str, Any]:
    if array.dtype == object:
        items = array.ravel().tolist()
        if not all(isinstance(item, bytes) for item in items):
            raise DocumentError("an array of Python objects other than bytes has no document form")
        return {
            "dtype": "string",
            "items": [_base64(item) for item in items],
            "shape": list(array.shape),
        }
    try:
        dtype = as_dtype(array.dtype)
    except HeadraceError as error:
        raise DocumentError(f"an array has no document form: {error}") from None
    ordered = array.byteswap() if sys.byteorder == "big" else array
    raw = ordered.tobytes()
    return {
        "data": put_external(raw) or _base64(raw),
        "dtype": dtype.name,
        "shape": list(array.shape),
    }


def _base64(data: bytes) -> str:
    import base64  # only documents need it

    return base64.b64encode(data).decode("ascii")


def _read_base64(data: Any) -> bytes:
    if not isinstance(data, str):
        raise DocumentError(f"expected base64 text, got {brief(data)}")
    import base64

    try:
        found = base64.b64decode(data, validate=True)
    except ValueError:
        raise DocumentError(f"expected base64 text, got {brief(data)}") from None
    if _base64(found) != data:
        # Several texts can mean the same bytes; one is written, so that equal means equal text.
        raise DocumentError(f"base64 text {brief(data)} is not in its shortest form")
    return found


def _read_float(data: Any) -> float:
    try:
        value = float(data) if isinstance(data, str) else None
    except ValueError:
        value = None
    if value is None or repr(value) != data:
        raise DocumentError(
            f"expected a float as text in Python's shortest form, such as '0.5', 'inf' or 'nan', "
            f"got {brief(data)}"
        )
    return value


def _read_dtype(data: Any) -> DType:
    for dtype in dtypes.ALL:
        if dtype.name == data:
            return dtype
    raise DocumentError(f"expected the name of a dtype, got {brief(data)}")


def read_shape(data: Any) -> Shape:
    """Return a shape given as null or a list of sizes and nulls.

    Raises:
        DocumentError: if it is none.
    """
    if data is None:
        return Shape(None)
    if not isinstance(data, list) or len(data) > MAX_RANK:
        raise DocumentError(f"expected a shape of at most {MAX_RANK} sizes, got {brief(data)}")
    for dim in data:
        if dim is not None and not (is_integer(dim) and 0 <= dim < 2**63):
            raise DocumentError(f"expected a dimension's size >= 0 or null, got {brief(dim)}")
    return Shape(data)


def _read_array(data: Any) -> _NDArray:
    if not isinstance(data, dict):
        raise DocumentError(f"expected an array, got {brief(data)}")
    dtype = _read_dtype(data.get("dtype"))
    payload = "items" if dtype.kind == "string" else "data"
    apart = ("resource", "list", "quantized")
    if set(data) != {"dtype", "shape", payload} or dtype.kind in apart:
        raise DocumentError(
            f"an array of {dtype} has the keys 'dtype', 'shape' and {payload!r}, "
            f"got {', '.join(map(brief, data))}"
        )
    shape = read_shape(data["shape"])
    if not shape.is_fully_defined():
        raise DocumentError(f"an array's shape must be fully known, got {shape}")
    size = math.prod(shape.known)
    flat = _read_strings(data["items"]) if payload == "items" else _read_numbers(data, dtype, size)
    # Only now that the data is known to be there is anything of the array's size made.
    if flat.size != size:
        raise DocumentError(
            f"an array of shape {shape} has {size} elements, the document holds {flat.size}"
        )
    try:
        array = flat.reshape(shape.known)
    except ValueError:
        raise DocumentError(f"no array has the shape {shape}") from None
    array.flags.writeable = False
    return array


def _read_strings(data: Any) -> _NDArray:
    if not isinstance(data, list):
        raise DocumentError(f"expected a list of base64 texts, got {brief(data)}")
    flat = np.empty(len(data), dtype=object)
    for i, item in enumerate(data):
        flat[i] = _read_base64(item)
    return flat


def _read_numbers(data: dict[str, Any], dtype: DType, size: int) -> _NDArray:
    apart = get_external(data["data"])
    raw = _read_base64(data["data"]) if apart is None else apart
    if len(raw) != size * dtype.itemsize:
        raise DocumentError(
            f"an array of {size} {dtype} elements takes {size * dtype.itemsize} bytes, "
            f"the document holds {len(raw)}"
        )
    if not raw:
        return np.empty(0, dtype.numpy)
    if dtype.is_bool and raw.strip(b"\0\1"):
        raise DocumentError("an array of bool holds bytes other than 0 and 1")
    flat = np.frombuffer(raw, dtype.numpy)
    return flat.byteswap() if sys.byteorder == "big" else flat


_READERS: dict[str, typing.Callable[[Any], Any]] = {
    "array": _read_array,
    "bytes": _read_base64,
    "dtype": _read_dtype,
    "float": _read_float,
    "shape": read_shape,
    "spec": _read_spec,
}


def hint_name(hint: Any) -> str:
    """Return an annotation as messages call it."""
    text = hint.__name__ if isinstance(hint, type) and not typing.get_args(hint) else str(hint)
    return re.sub(r"\b(?:\w+\.)+(?=\w)", "", text)


def fits(value: Any, hint: Any) -> bool:
    """Whether a canonical attribute value is of the type that a rule's annotation states."""
    if hint is Any:
        return True
    if hint is None or hint is types.NoneType:
        return value is None
    if hint is float:
        return isinstance(value, float | int) and not isinstance(value, bool)
    if hint is int:
        return isinstance(value, int) and not isinstance(value, bool)
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if origin in (typing.Union, types.UnionType):
        return any(fits(value, argument) for argument in arguments)
    if origin is typing.Literal:
        return any(type(value) is type(a) and value == a for a in arguments)
    if origin is tuple and arguments[-1:] != (...,):
        sized = isinstance(value, tuple) and len(value) == len(arguments)
        return sized and all(map(fits, value, arguments))
    if origin in (tuple, list, Sequence):
        return isinstance(value, tuple) and all(fits(item, arguments[0]) for item in value)
    checked = origin or hint
    # What is no class (a type variable, say) states nothing that could be checked.
    return isinstance(value, checked) if isinstance(checked, type) else True


def as_text(value: Any) -> Any:
    """Return bytes, and tuples of them, as the text that they are; other values as given."""
    if isinstance(value, tuple) and value and all(isinstance(item, bytes) for item in value):
        items = tuple(map(as_text, value))
        return items if all(isinstance(item, str) for item in items) else value
    if not isinstance(value, bytes):
        return value
    try:
        return value.decode()
    except UnicodeDecodeError:
        return value


def may_hold_function(hint: Any) -> bool:
    """Whether a function is of the type that a rule's annotation states, as far as it tells."""
    inside = typing.get_args(hint)
    if inside and typing.get_origin(hint) is not typing.Literal:
        return any(map(may_hold_function, inside))
    if not isinstance(hint, type) or hint is object:
        return hint is not None and typing.get_origin(hint) is not typing.Literal
    return issubclass(hint, FunctionValue)


def attribute_key(value: Any) -> Hashable:
    """Return what two equal values of an attribute have in common."""
    if isinstance(value, np.ndarray):
        data: Hashable = tuple(value.ravel()) if value.dtype == object else value.tobytes()
        return (value.dtype.str, value.shape, data)
    if isinstance(value, tuple):
        return tuple(attribute_key(item) for item in value)
    # 1, 1.0 and True are equal to Python, and so are 0.0 and -0.0, but they compute differently.
    return (type(value).__name__, repr(value) if isinstance(value, float) else value)
