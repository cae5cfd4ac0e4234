"""Arrays as messages (``TensorProto``), and back."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

import headrace as hr
from headrace.errors import AttributeValueError, DTypeError, ShapeError, ShapeTypeError
from headrace_io import protos
from headrace_io.dtype_protos import dtype_of, number_of, shape_proto

_Array = np.ndarray[Any, np.dtype[Any]]

# Which field holds the elements of a dtype one by one.
_FIELDS = {
    "float16": "half_val",
    "bfloat16": "half_val",
    "float32": "float_val",
    "float64": "double_val",
    "int8": "int_val",
    "int16": "int_val",
    "int32": "int_val",
    "uint8": "int_val",
    "uint16": "int_val",
    "int64": "int64_val",
    "uint32": "uint32_val",
    "uint64": "uint64_val",
    "bool": "bool_val",
    "complex64": "scomplex_val",
    "complex128": "dcomplex_val",
    "string": "string_val",
}
# Of which several elements are written as their bytes, in constants of graphs.
_AS_BYTES = frozenset(
    (
        *("float32", "float64", "int8", "int16", "int32", "int64"),
        *("uint8", "uint32", "uint64"),
    )
)
# Those of which an element is several numbers, or the bits of one.
_PARTS = {"complex64": np.float32, "complex128": np.float64}
_BITS = ("float16", "bfloat16")


# What NumPy's arrays have at most.
_MOST_AXES = 64
# A message of a few bytes must not claim all memory there is.
_MOST_REPEATED = 1 << 26


def tensor_proto(array: Any) -> Any:
    """Return an array as a ``TensorProto`` that holds its bytes; strings are listed.

    Args:
        array: An array of a dtype of tensors, or the bytes of a string.
    """
    values = np.asarray(array, object) if isinstance(array, bytes) else np.asarray(array)
    made = _begun(values)
    if values.dtype == object:
        made.string_val.extend(values.ravel().tolist())
    else:
        made.tensor_content = _little(values).tobytes()
    return made


def make_tensor_proto(
    values: Any,
    dtype: Any = None,
    shape: Any = None,
    verify_shape: bool = False,
    allow_broadcast: bool = False,
) -> Any:
    """Return values as a ``TensorProto``, as constants of a ``GraphDef`` hold them.

    Args:
        values: An array, a number, a string, lists of these, or a ``TensorProto``, which is
            returned.
        dtype: The dtype; found from the values if None.
        shape: The shape to give to them; theirs if None. The last of fewer values counts for all
            that follow.
        verify_shape: Whether their shape must be ``shape`` already.
        allow_broadcast: Whether one value may stand for all, where ``verify_shape`` is set, too.

    Returns:
        The message. Where several numbers fill the shape, it holds their bytes; other values are
        listed.

    Raises:
        ShapeError: if there are more values than the shape has.
        ShapeTypeError: if ``verify_shape`` is set and they have another shape.
        DTypeError: if a value does not fit the dtype.
    """
    if isinstance(values, protos.TensorProto):
        return values
    held = _quantized(values) if dtype is None else hr.as_dtype(dtype)
    array = _array(values, held)
    wanted = array.shape if shape is None else tuple(int(d) for d in hr.Shape(shape).known)
    if verify_shape and wanted != array.shape and not (allow_broadcast and array.size == 1):
        raise ShapeTypeError(
            f"the values must have the shape {list(wanted)}, got {list(array.shape)}"
        )
    size = math.prod(wanted)
    if array.size > size:
        raise ShapeError(
            f"a tensor of shape {list(wanted)} has {size} elements, got {array.size} values"
        )
    made = _begun(array, wanted)
    quantized = held is not None and held.is_quantized
    if (quantized or array.dtype.name in _AS_BYTES) and array.size == size and size > 1:
        made.tensor_content = _little(array).tobytes()
    else:
        _list(made, array)
    if held is not None and quantized:
        made.dtype = number_of(held)
    return made


def make_ndarray(tensor: Any) -> _Array:
    """Return what a ``TensorProto`` holds as an array; strings are bytes.

    Quantized elements are those of ``DType.as_numpy_dtype``, which says that they are.

    Args:
        tensor: The message.

    Raises:
        DTypeError: if there are no arrays of its dtype.
        AttributeValueError: if it holds more or fewer values than its shape has, or shape and
            dtype are not what they should be.
    """
    dtype = dtype_of(tensor.dtype)
    if dtype.is_quantized:
        return _elements(tensor, dtype.storage).view(dtype.as_numpy_dtype)
    return _elements(tensor, dtype)


def _elements(tensor: Any, dtype: hr.DType) -> _Array:
    shape = tuple(dim.size for dim in tensor.tensor_shape.dim)
    if tensor.tensor_shape.unknown_rank or any(size < 0 for size in shape):
        raise AttributeValueError("a tensor of values has a shape that is fully known")
    if dtype.name not in _FIELDS:
        raise DTypeError(f"there are no arrays of {dtype}")
    size = math.prod(shape)
    if len(shape) > _MOST_AXES:
        raise AttributeValueError(f"a tensor has at most {_MOST_AXES} axes, got {len(shape)}")
    found = _from_content(tensor, dtype.numpy) if tensor.tensor_content else _listed(tensor, dtype)
    if found.size == size:
        return found.reshape(shape)
    if size > max(_MOST_REPEATED, found.size):
        raise AttributeValueError(
            f"a tensor of shape {list(shape)} has {size} elements, the message holds {found.size}; "
            f"one value stands for {_MOST_REPEATED} elements at most"
        )
    if tensor.tensor_content or found.size > size or (size and not found.size):
        if size and not found.size and not tensor.tensor_content:
            # Nothing at all stands for zeros.
            return np.full(shape, b"" if dtype.name == "string" else 0, dtype.numpy)
        raise AttributeValueError(
            f"a tensor of shape {list(shape)} has {size} elements, the message holds {found.size}"
        )
    return np.concatenate([found, np.repeat(found[-1:], size - found.size)]).reshape(shape)


def _begun(array: _Array, shape: tuple[int, ...] | None = None) -> Any:
    dtype = hr.string if array.dtype == object else hr.as_dtype(array.dtype)
    if dtype.name not in _FIELDS:
        raise DTypeError(f"a TensorProto holds no values of {dtype}")
    made = protos.TensorProto(dtype=number_of(dtype))
    made.tensor_shape.CopyFrom(shape_proto(hr.Shape(array.shape if shape is None else shape)))
    return made


def _quantized(values: Any) -> hr.DType | None:
    """Return the quantized dtype of an array that says that it is of one."""
    own = getattr(values, "dtype", None)
    return hr.as_dtype(own) if getattr(own, "names", None) else None


def _array(values: Any, dtype: hr.DType | None) -> _Array:
    # lazy: core's conversion knows Python's numbers and strings
    from headrace.extend.graphs import to_array

    found: _Array = to_array(values, dtype)
    return found


def _little(array: _Array) -> _Array:
    """Return an array whose bytes are in the order of files."""
    ordered = np.ascontiguousarray(array)
    return ordered.byteswap() if ordered.dtype.byteorder == ">" else ordered


def _list(made: Any, array: _Array) -> None:
    """List the elements of an array in the field for its dtype."""
    name = "string" if array.dtype == object else hr.as_dtype(array.dtype).name
    flat = array.ravel()
    if name in _PARTS:
        flat = np.ascontiguousarray(flat).view(_PARTS[name])
    elif name in _BITS:
        flat = np.ascontiguousarray(flat).view(np.uint16)
    getattr(made, _FIELDS[name]).extend(flat.tolist())


def _listed(tensor: Any, dtype: Any) -> _Array:
    values = list(getattr(tensor, _FIELDS[dtype.name]))
    if dtype.name == "string":
        found = np.empty(len(values), object)
        found[:] = values
        return found
    if dtype.name in _PARTS:
        return np.array(values, _PARTS[dtype.name]).view(dtype.numpy)
    if dtype.name in _BITS:
        return np.array(values, np.uint16).view(dtype.numpy)
    return np.array(values, dtype.numpy)


def _from_content(tensor: Any, dtype: np.dtype[Any]) -> _Array:
    content = tensor.tensor_content
    if dtype.hasobject or len(content) % dtype.itemsize:
        raise AttributeValueError(f"{len(content)} bytes are no elements of {dtype}")
    return np.frombuffer(content, dtype).copy()
