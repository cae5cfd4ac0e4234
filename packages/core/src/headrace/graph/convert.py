"""Making tensors of Python values, NumPy arrays, variables and nested lists."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np

from headrace import dtypes
from headrace.arguments import members
from headrace.dimension import UNKNOWN_DIMENSION
from headrace.dtypes import DType, as_dtype
from headrace.errors import DTypeError, HeadraceError, ResourceExhaustedError, ShapeError, shown
from headrace.graph.conversion_registry import CONVERSIONS, converted, converts
from headrace.graph.schema import call_op
from headrace.graph.scopes import get_default_graph, other_graph_of
from headrace.graph.spec import MAX_RANK
from headrace.graph.tensor import Tensor
from headrace.graph.tensor_shape import TensorShape
from headrace.shapes import Shape

_NDArray = np.ndarray[Any, np.dtype[Any]]


def convert_to_tensor(
    value: Any,
    dtype: Any = None,
    name: str | None = None,
    preferred_dtype: Any = None,
    dtype_hint: Any = None,
) -> Tensor:
    """Return ``value`` as a tensor of the default graph.

    A tensor of another program's graph stays one of that.

    Args:
        value: A tensor, variable, number, string, NumPy array, or nested list of these.
        dtype: The dtype that the tensor must have.
        name: Name of the constant, where one is made.
        preferred_dtype: The dtype to use for a value that is not yet a tensor, if it fits.
        dtype_hint: Another name of ``preferred_dtype``.

    Raises:
        DTypeError: if the value cannot have the dtype without loss.
        GraphError: if it belongs to the graph of another function or converts to no tensor.
    """
    wanted = None if dtype is None else as_dtype(dtype)
    preferred_dtype = dtype_hint if preferred_dtype is None else preferred_dtype
    tensor = value if wanted is dtypes.resource and isinstance(value, Tensor) else as_tensor(value)
    if tensor is None and contains_tensor(value):
        # Plain numbers beside tensors take their dtype, as operands of one operation do.
        inside = dtype_inside(value)
        asked = wanted
        if asked is None and preferred_dtype is not None:
            asked = cast_inside(inside, as_dtype(preferred_dtype))
        parts = [_part(v, asked, inside) for v in value]
        tensor = call_op("Stack", parts)
        assert isinstance(tensor, Tensor)
    if tensor is not None:
        if other_graph_of((tensor,)) is None:
            tensor = get_default_graph().capture(tensor)
        if wanted is not None and tensor.dtype != wanted:
            raise DTypeError(
                f"{tensor!r} has dtype {tensor.dtype}, expected {wanted}; convert it with hr.cast"
            )
        return tensor
    held = quantized_dtype(value) if wanted is None else wanted
    if held is None and preferred_dtype is not None:
        try:
            held = as_dtype(preferred_dtype)
            array = to_array(value, held)
        except DTypeError:
            held, array = None, to_array(value)
    else:
        array = to_array(value, held)
    return constant_of(array, name, held)


def _part(value: Any, wanted: DType | None, preferred: Any) -> Tensor:
    """Return an item of a nested list as a tensor; one of another dtype is cast."""
    tensor = as_tensor(value)
    if tensor is None or wanted is None or tensor.dtype == wanted:
        # Tensors within keep their dtype, and what they are stacked with is promoted.
        hint = None if wanted is None and contains_tensor(value) else preferred
        return convert_to_tensor(value, wanted, None, hint)
    cast = call_op("Cast", convert_to_tensor(tensor), wanted)
    assert isinstance(cast, Tensor)
    return cast


def dtype_inside(value: Any) -> DType | None:
    """Return the dtype of the first tensor in a nested list."""
    if isinstance(value, list | tuple):
        return next((d for d in map(dtype_inside, value) if d is not None), None)
    return value.dtype if isinstance(value, Tensor) or hasattr(value, "_as_tensor") else None


def cast_inside(inside: DType | None, asked: DType) -> DType | None:
    """Return the dtype that tensors in a list are cast to where another one is asked for.

    None where the cast would lose more than precision, so that they stay as they are.
    """
    order = ("bool", "uint", "int", "float", "complex")
    if inside is None or inside.kind not in order or asked.kind not in order:
        return None
    whole = inside.is_integer and asked.is_integer
    return asked if whole or order.index(inside.kind) <= order.index(asked.kind) else None


def as_tensor(value: Any) -> Tensor | None:
    """Return the tensor that ``value`` is or stands for, None where it is plain data."""
    if isinstance(value, Tensor):
        return value_of_handle(value) if value.spec.dtype is dtypes.resource else value
    convert: Callable[[], Tensor] | None = getattr(value, "_as_tensor", None)
    if convert is not None:
        return convert()
    if CONVERSIONS:
        made: Tensor | None = converted(value, lambda made: isinstance(made, Tensor))
        return made
    return None


def value_of_handle(tensor: Tensor) -> Tensor:
    """Return a read of the variable to which a handle leads; other tensors are what they are.

    The graph knows a variable's handle by the variable's own name, under which programs find it
    and take it for the value.
    """
    if tensor.op.type != "VarHandle":
        return tensor
    read: Tensor = call_op("ReadVariable", tensor, name=f"{tensor.op.name.rpartition('/')[2]}/read")
    return read


def is_tensor(x: Any) -> bool:
    """Return whether a value is a tensor, sparse tensor, ``IndexedSlices`` or variable.

    Args:
        x: Any value.
    """
    parts = ("values", "indices", "dense_shape")
    return (
        isinstance(x, Tensor)
        or hasattr(x, "_as_tensor")
        or (not isinstance(x, tuple) and all(hasattr(x, part) for part in parts))
    )


def constant_of(array: _NDArray, name: str | None = None, dtype: DType | None = None) -> Tensor:
    """Add a constant node that holds ``array``, which it makes read-only.

    Args:
        array: The elements, which tell the dtype.
        name: The name of the tensor.
        dtype: A quantized dtype that the elements are to be read as; others are passed over.
    """
    array.flags.writeable = False
    if dtype is not None and dtype.is_quantized:
        return levels_of(array, dtype, name or "Const")
    result = call_op("Const", value=array, name=name)
    assert isinstance(result, Tensor)
    return result


def levels_of(array: _NDArray, dtype: DType, name: str) -> Tensor:
    """Return integers read as elements of a quantized dtype."""
    levels = call_op("Const", value=array, name="levels")
    result = call_op("Bitcast", levels, dtype, name=name)
    assert isinstance(result, Tensor)
    return result


def to_array(value: Any, dtype: DType | None = None, fed: bool = False) -> _NDArray:
    """Return a fresh NumPy array of ``value``, of a dtype that Headrace has.

    A value that is not yet a tensor takes any dtype of its own kind or a wider kind: floats may
    be rounded to a narrower float, integers must fit, and a fraction never becomes an integer.
    Arrays take any dtype of numbers that holds all that they hold, and bool, true for what is not
    0; so do Python's numbers where they are fed.

    Args:
        value: The value.
        dtype: The dtype; that of the value if None.
        fed: Whether it is the value of a tensor whose dtype stands already.

    Raises:
        DTypeError: if the value does not fit ``dtype``, or is of no known dtype.
        ShapeError: if a nested list is ragged.
    """
    # Quantized elements are given as the integers that they are stored as.
    if dtype is not None and dtype.is_quantized:
        value, dtype = _unwrapped(value), dtype.storage
    natural = _natural_array(value)
    if natural.dtype == np.longdouble and natural.dtype not in _KNOWN and dtype is not None:
        natural = natural.astype(np.float64)
    if not natural.size and dtype not in (None, dtypes.resource) and is_python_literal(value):
        return natural.astype(dtype.numpy)
    if dtype is None:
        if natural.dtype != object and natural.dtype not in _KNOWN:
            as_dtype(natural.dtype)
        return natural
    if dtype.kind == "string" or natural.dtype == object:
        if dtype.kind != "string" or natural.dtype != object:
            raise DTypeError(f"{_brief(value)} is not of dtype {dtype}")
        return natural
    if dtype.kind == "resource":
        raise DTypeError(f"{_brief(value)} is not a resource handle; pass the variable or queue")
    if isinstance(value, Shape | TensorShape) and dtype not in (dtypes.int32, dtypes.int64):
        raise DTypeError(f"a shape is a tensor of int32 or int64, not of {dtype}")
    is_array = isinstance(value, np.generic) or not isinstance(value, _PYTHONS)
    return _cast_literal(natural, dtype, value, fed or is_array)


def _unwrapped(value: Any, depth: int = 0) -> Any:
    """Return a nested list with its tuples of one integer, which are quantized elements, as such.

    That is how NumPy writes elements of the dtypes that TensorFlow has for them.
    """
    if not isinstance(value, list | tuple) or depth > MAX_RANK:
        return value
    if isinstance(value, tuple) and len(value) == 1 and isinstance(value[0], int):
        return value[0]
    return [_unwrapped(item, depth + 1) for item in members(value)]


_KNOWN = {dtype.numpy for dtype in dtypes.ALL if dtype.numpy != np.dtype(object)}


# Long lists hold nothing else, which is quicker to see of all than of one by one.
_NUMBERS = frozenset([bool, int, float, complex])
_PLAIN = _NUMBERS | {str, bytes}

# What is written down in a program, whose kind says what it is meant to be.
_PYTHONS = (bool, int, float, complex, list, tuple, range)


def quantized_dtype(value: Any) -> DType | None:
    """Return the quantized dtype that an array says it is of, None where it says none."""
    fields = getattr(getattr(value, "dtype", None), "names", None)
    return as_dtype(value.dtype) if fields and isinstance(value, np.ndarray | np.generic) else None


def natural_dtype(value: Any) -> DType:
    """Return the dtype that ``value`` has where nothing asks for another."""
    quantized = quantized_dtype(value)
    if quantized is not None:
        return quantized
    array = _natural_array(value)
    return dtypes.string if array.dtype == object else as_dtype(array.dtype)


def is_python_literal(value: Any) -> bool:
    """Whether ``value`` is built of Python numbers, whose dtype is only a default."""
    if isinstance(value, list | tuple):
        if type(value) in (list, tuple) and _NUMBERS.issuperset(map(type, value)):
            return True
        try:
            return all(is_python_literal(item) for item in value)
        except RecursionError:
            # The conversion says how deep it is.
            return False
    return isinstance(value, int | float | complex) and not isinstance(value, np.generic)


def holds_nothing(value: Any) -> bool:
    """Whether ``value`` is an empty list, or a nested one of empty lists."""
    return isinstance(value, list | tuple) and all(map(holds_nothing, value))


def shared_array(value: Any) -> _NDArray | None:
    """Return what another library's array holds, without a copy; None for what is none.

    Arrays are shared by DLPack, as those of PyTorch, JAX and CuPy are.

    Args:
        value: Any value.

    Raises:
        DTypeError: if it is one, but not in the memory of the host, or of elements that NumPy does
            not have, and there is no other way to read it.
    """
    if isinstance(value, np.ndarray | np.generic) or not hasattr(type(value), "__dlpack__"):
        return None
    try:
        return np.from_dlpack(value)
    except (BufferError, RuntimeError, TypeError, ValueError) as error:
        if hasattr(type(value), "__array__"):
            return None
        raise _unreadable(value, error) from None


def _unreadable(value: Any, error: Exception) -> DTypeError:
    why = str(error).partition("\n")[0]
    return DTypeError(f"{_brief(value)} cannot be converted to an array: {why}")


def _natural_array(value: Any) -> _NDArray:
    shared = shared_array(value)
    if shared is not None:
        value = shared
    if isinstance(value, range):
        value = _listed(value)
    elif isinstance(value, Shape | TensorShape):
        # Refuses shapes that are not fully defined. One without axes is no list of floats.
        sizes = value.known
        wide = any(size > dtypes.int32.max for size in sizes)
        value = np.array(sizes, np.int64 if wide else np.int32)
    if isinstance(value, np.ndarray) or hasattr(value, "__array__"):
        # Asked of subclasses only: NumPy imports np.ma when it is first named.
        if (
            isinstance(value, np.ndarray)
            and type(value) is not np.ndarray
            and np.ma.is_masked(value)
        ):
            raise DTypeError(
                f"{_brief(value)} has masked elements, which tensors cannot have; replace them "
                "with its method filled(...)"
            )
        try:
            array = np.array(value)
        except HeadraceError:
            # A tensor says itself that it holds no values.
            raise
        except (RuntimeError, TypeError, ValueError) as error:
            raise _unreadable(value, error) from None
        except MemoryError:
            # It may be a view of few numbers, seen many times.
            raise _too_large(value) from None
        if array.dtype.kind == "T":
            array = array.astype(object)
        if array.dtype.kind not in "USO" and not array.dtype.names:
            native = array.dtype.newbyteorder("=")
            return array.astype(native) if array.dtype != native else array
    elif isinstance(value, Mapping):
        # NumPy takes those that are no dicts for lists, and iterates them.
        raise DTypeError(
            f"{_brief(value)} converts to no tensor: {type(value).__name__} elements have no "
            "dtype; tensors are made of numbers, booleans and strings"
        )
    else:
        if isinstance(value, list | tuple):
            value = _with_end(value)
        try:
            array = np.array(value)
            if array.dtype.kind in "US":
                # NumPy's strings drop zero bytes at their end, and take numbers for strings.
                array = np.array(value, dtype=object)
        except UnicodeDecodeError:
            array = np.array(value, dtype=object)
        except HeadraceError:
            # A tensor somewhere inside says itself that it holds no values.
            raise
        except ValueError:
            raise ShapeError(
                f"{_brief(value)} is ragged: nested lists need rows of one length; pad the "
                "shorter ones"
            ) from None
        except OverflowError:
            raise DTypeError(f"{_brief(value)} does not fit any integer dtype") from None
        except MemoryError:
            raise _too_large(value) from None
    if quantized_dtype(array) is not None:
        return array.view(as_dtype(array.dtype).numpy)
    if array.dtype.kind in "US":
        return _bytes_array(array.astype(object), value)
    if array.dtype.kind == "O":
        return _bytes_array(array, value)
    if is_python_literal(value):
        if array.dtype == np.float64:
            with np.errstate(over="ignore"):
                return array.astype(np.float32)
        if array.dtype == np.int64 and _fits(array, dtypes.int32):
            return array.astype(np.int32)
    elif isinstance(value, list | tuple) and array.dtype.kind in "iufc":
        return _mixed_array(array, value)
    return array


def _listed(value: range) -> list[int]:
    try:
        return list(value)
    except (MemoryError, OverflowError):
        raise _too_large(value) from None


def _too_large(value: Any) -> ResourceExhaustedError:
    return ResourceExhaustedError(f"{_brief(value)} has more elements than there is memory for")


def _with_end(value: list[Any] | tuple[Any, ...]) -> Any:
    """Return a list as one that NumPy comes to the end of, and so its rows.

    Raises:
        AttributeValueError: if the class of one iterates it without an end.
        ShapeError: if they are nested deeper than an array can be, as lists that hold themselves.
    """
    held = members(value)
    row, depth = held, 1
    while row and isinstance(row[0], list | tuple):
        row, depth = row[0], depth + 1
        if depth > MAX_RANK:
            # Of lists that hold themselves twice, NumPy would look at 2^64.
            raise ShapeError(
                f"{_brief(value)} is nested more than {MAX_RANK} deep, which no array can be"
            )
    if all(type(item) in (list, tuple) or not isinstance(item, list | tuple) for item in held):
        return held
    return [members(item) if isinstance(item, list | tuple) else item for item in held]


def _mixed_array(array: _NDArray, value: Any) -> _NDArray:
    """Return an array of a list with NumPy's numbers in it in the dtype that these have.

    Python's numbers take their dtype if they fit it: NumPy would make float64 of float32 and a
    Python float. Where NumPy's numbers differ, the widest of the highest kind counts.
    """
    order = ("bool", "uint", "int", "float", "complex")
    own = {
        getattr(leaf, "dtype", None) or np.asarray(leaf).dtype
        for leaf in _leaves(value)
        if not is_python_literal(leaf)
    }
    strong = max(map(as_dtype, own), key=lambda dtype: (order.index(dtype.kind), dtype.itemsize))
    natural = as_dtype(array.dtype)
    if strong.kind in ("float", "complex") and strong.kind == natural.kind:
        with np.errstate(over="ignore"):
            return array.astype(strong.numpy)
    if natural.is_integer and strong.is_integer and _fits(array, strong):
        return array.astype(strong.numpy)
    if natural == dtypes.float64 and not strong.is_floating:
        # Python's floats beside integers are what they are alone.
        return array.astype(np.float32)
    if natural == dtypes.int64 and _fits(array, dtypes.int32):
        return array.astype(np.int32)
    return array


def _leaves(value: Any) -> Iterator[Any]:
    if isinstance(value, list | tuple):
        for item in value:
            yield from _leaves(item)
    else:
        yield value


def _bytes_array(array: _NDArray, value: Any) -> _NDArray:
    listed = array.ravel().tolist()
    kinds = set(map(type, listed))
    # The usual cases; what is wrong with others is told below.
    if kinds == {bytes}:
        return np.fromiter(listed, object, len(listed)).reshape(array.shape)
    if kinds == {str}:
        with contextlib.suppress(UnicodeEncodeError):
            return np.fromiter(map(str.encode, listed), object, len(listed)).reshape(array.shape)
    flat = np.empty(array.size, dtype=object)
    for i, item in enumerate(array.ravel()):
        if isinstance(item, str):
            try:
                flat[i] = item.encode()
            except UnicodeEncodeError as error:
                raise DTypeError(
                    f"{_brief(value)} converts to no tensor: strings are kept as UTF-8, {error}"
                ) from None
        elif isinstance(item, bytes):
            flat[i] = item
        elif isinstance(item, int) and is_python_literal(value):
            raise DTypeError(f"{_brief(value)} does not fit any integer dtype")
        elif item is UNKNOWN_DIMENSION:
            int(item)
        else:
            raise DTypeError(
                f"{_brief(value)} converts to no tensor: {type(item).__name__} elements have no "
                "dtype; tensors are made of numbers, booleans and strings"
            )
    return flat.reshape(array.shape)


def _cast_literal(array: _NDArray, dtype: DType, value: Any, by_value: bool) -> _NDArray:
    source = as_dtype(array.dtype)
    if source == dtype:
        return array
    order = ("bool", "uint", "int", "float", "complex")
    rises = order.index(source.kind) <= order.index(dtype.kind)
    if not (rises or (source.is_integer and dtype.is_integer)):
        if by_value and dtype.is_bool:
            return array.astype(np.bool_)
        lowered = _lowered(array, dtype) if by_value else None
        if lowered is not None:
            return lowered
        raise DTypeError(f"{_brief(value)} is {source}, expected {dtype}; convert it with hr.cast")
    if dtype.is_integer and not _fits(array, dtype):
        raise DTypeError(f"{_brief(value)} does not fit {dtype} ({dtype.min} to {dtype.max})")
    # Python floats were narrowed to their default float32 above; start again from full precision.
    narrowed = is_python_literal(value) or isinstance(value, list | tuple)
    exact = np.array(value) if narrowed else array
    with np.errstate(over="ignore"):
        return exact.astype(dtype.numpy)


def _lowered(array: _NDArray, dtype: DType) -> _NDArray | None:
    """Return numbers in a dtype of a narrower kind, None where it does not hold all of them."""
    if array.dtype.kind == "c":
        array = array.real if not array.imag.any() else array
    if array.dtype.kind == "c" or not dtype.is_integer:
        with np.errstate(over="ignore"):
            return None if array.dtype.kind == "c" else array.astype(dtype.numpy)
    wide = array.astype(np.float64)
    # The largest integers of 64 bits are no floats: their neighbours above would wrap around.
    if not np.all((wide == np.trunc(wide)) & (wide >= dtype.min) & (wide < float(dtype.max) + 1)):
        return None
    return wide.astype(dtype.numpy)


def _fits(array: _NDArray, dtype: DType) -> bool:
    return array.size == 0 or (int(array.min()) >= dtype.min and int(array.max()) <= dtype.max)


def contains_tensor(value: Any, depth: int = 0) -> bool:
    """Whether ``value`` is a nested list with a tensor in it.

    Raises:
        ShapeError: if it is nested deeper than arrays have axes.
    """
    if not isinstance(value, list | tuple):
        return False
    if depth == MAX_RANK:
        raise ShapeError(f"a list is nested more than {MAX_RANK} deep, and no tensor has more axes")
    held = members(value)
    if not CONVERSIONS and type(held) in (list, tuple) and _PLAIN.issuperset(map(type, held)):
        return False
    return any(
        isinstance(item, Tensor)
        or hasattr(item, "_as_tensor")
        or contains_tensor(item, depth + 1)
        or (CONVERSIONS and converts(item))
        for item in held
    )


def _brief(value: Any) -> str:
    if isinstance(value, np.ndarray):
        return f"an array {value.dtype}{list(value.shape)}"
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    return shown(value, 60)
