"""Arguments that may be numbers or tensors: what of them is known while the graph is built."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from headrace.errors import AttributeValueError, DTypeError, ShapeError
from headrace.graph.convert import as_tensor, contains_tensor, convert_to_tensor
from headrace.graph.operation import Operation
from headrace.graph.tensor import Tensor

_NDArray = np.ndarray[Any, np.dtype[Any]]

# Axes, shapes and counts are small; more than this is data, which a step computes.
_MAX_ELEMENTS = 1024
_MAX_DEPTH = 32

_COMPUTED: dict[str, Callable[..., Any]] = {
    "Add": np.add,
    "Sub": np.subtract,
    "Mul": np.multiply,
    "Neg": np.negative,
    "FloorDiv": np.floor_divide,
    "FloorMod": np.mod,
    "Maximum": np.maximum,
    "Minimum": np.minimum,
    "Identity": lambda x: x,
    "StopGradient": lambda x: x,
    "ReduceProd": lambda x, axis, keepdims: np.prod(x, axis, dtype=x.dtype, keepdims=keepdims),
    "ReduceSum": lambda x, axis, keepdims: np.sum(x, axis, dtype=x.dtype, keepdims=keepdims),
    "ReduceMax": lambda x, axis, keepdims: np.max(x, axis, keepdims=keepdims),
    "ReduceMin": lambda x, axis, keepdims: np.min(x, axis, keepdims=keepdims),
    "Cast": lambda x, dtype: x.astype(dtype.numpy),
    "ExpandDims": lambda x, axis: np.expand_dims(x, axis),
    "Squeeze": lambda x, axis: np.squeeze(x, axis),
    "Gather": lambda x, i, axis, batch_dims=0: None if batch_dims else np.take(x, i, axis),
    "Concat": lambda *parts, axis: np.concatenate(parts, axis),
    "Stack": lambda *parts, axis: np.stack(parts, axis),
    "Reshape": lambda x, shape: np.reshape(x, shape),
    "Range": lambda start, limit, delta: np.arange(start, limit, delta),
}


def static_value(tensor: Tensor) -> _NDArray | None:
    """Return the value of an integer tensor that depends on constants and static shapes alone.

    None where it is known in a step only, or takes more than a little integer arithmetic.
    """
    return _value(tensor, _MAX_DEPTH, {})


_Known = dict[Tensor, "_NDArray | None"]


def _value(tensor: Tensor, depth: int, known: _Known) -> _NDArray | None:
    if tensor.spec.value is not None:
        return tensor.spec.value
    compute = _COMPUTED.get(tensor.op.type)
    size = tensor.shape.num_elements()
    if compute is None or not depth or not tensor.dtype.is_integer or not _small(size):
        return None
    # Each tensor once: sums of sums would take twice as long with each step back.
    if tensor not in known:
        known[tensor] = _computed(tensor.op, compute, depth - 1, known)
    return known[tensor]


def _computed(
    op: Operation, compute: Callable[..., Any], depth: int, known: _Known
) -> _NDArray | None:
    values = []
    for source in op.inputs:
        value = _value(source, depth, known)
        if value is None or value.size > _MAX_ELEMENTS or value.dtype == object:
            return None
        values.append(value)
    try:
        with np.errstate(all="raise"):
            found = compute(*values, **op.attrs)
    except (ArithmeticError, ValueError, IndexError, TypeError):
        # The step will say what is wrong with it.
        return None
    if found is None:
        return None
    return np.asarray(found).astype(op.outputs[0].dtype.numpy)


def _small(size: int | None) -> bool:
    return size is not None and size <= _MAX_ELEMENTS


def as_ints(value: Any, label: str) -> Any:
    """Return nested lists of integers where ``value`` is known, else a tensor of int32 or int64.

    Args:
        value: An integer, nested lists, an array, or a tensor; lists may hold tensors.
        label: What messages call it.

    Raises:
        DTypeError: if it does not hold integers.
    """
    tensor = as_tensor(value)
    if tensor is None and contains_tensor(value):
        tensor = convert_to_tensor(value)
    if tensor is not None:
        if tensor.dtype.name not in ("int32", "int64"):
            raise DTypeError(f"{label} must be int32 or int64, got {tensor.dtype}")
        known = static_value(tensor)
        return convert_to_tensor(tensor) if known is None else known.tolist()
    if isinstance(value, int) and not isinstance(value, bool):
        return _within_int64(value, label)
    dims = getattr(value, "dims", None)
    try:
        array = np.asarray(list(dims) if isinstance(dims, tuple) else value)
    except (ValueError, OverflowError):
        raise ShapeError(
            f"{label} must be integers in lists of one length, got {value!r:.80}"
        ) from None
    if (array.dtype.kind not in "iu" or array.dtype.itemsize > 8) and array.size:
        raise DTypeError(f"{label} must hold integers, got {value!r:.80}")
    if array.dtype.kind == "u" and array.size:
        _within_int64(int(array.max()), label)
    return array.tolist()


def _within_int64(value: int, label: str) -> int:
    if not -(2**63) <= value < 2**63:
        raise DTypeError(f"{label} must hold integers of 64 bits, got {value:.3e}")
    return value


def as_int(value: Any, label: str) -> Any:
    """Return an integer where ``value`` is known, else a scalar tensor of int32 or int64.

    Raises:
        DTypeError: if it is no integer.
        ShapeError: if it is not one, but several.
    """
    found = as_ints(value, label)
    if isinstance(found, list):
        if len(found) == 1 and isinstance(found[0], int):
            return found[0]
        raise ShapeError(f"{label} must be one integer, got {found}")
    if isinstance(found, Tensor) and found.shape.rank not in (None, 0):
        raise ShapeError(f"{label} must be one integer, got a tensor of shape {found.shape}")
    return found


def static_int(value: Any, label: str) -> int:
    """Return an integer that must be known while the graph is built.

    Raises:
        DTypeError: if it is no integer.
        ShapeError: if it is not one, but several.
        AttributeValueError: if a step alone knows it.
    """
    found = as_int(value, label)
    if isinstance(found, Tensor):
        raise AttributeValueError(f"{label} must be known while the graph is built, got {found!r}")
    return int(found)


def as_list(values: Any, label: str) -> list[Any]:
    """Return several tensors as a list.

    Raises:
        DTypeError: if they are none.
    """
    if isinstance(values, Tensor) or not isinstance(values, Sequence | np.ndarray):
        raise DTypeError(f"{label} must be a list of tensors, got {values!r:.80}")
    if isinstance(values, np.ndarray) and not values.ndim:
        raise DTypeError(f"{label} must be a list of tensors, got a scalar")
    return list(values)


def known_ints(value: Any) -> Any:
    """Return ``value`` as a list where it is a tensor of known integers, else as it is."""
    if isinstance(value, Tensor) and value.spec.value is None:
        known = static_value(value)
        return value if known is None else known
    return value


def one_of(**given: Any) -> Any:
    """Return the argument that is given, under its present or its older name.

    Raises:
        AttributeValueError: if none is, or two are.
    """
    names = [name for name, value in given.items() if value is not None]
    if not names:
        raise AttributeValueError(f"argument {next(iter(given))!r} is missing")
    if len(names) > 1:
        raise AttributeValueError(f"{' and '.join(names)} are names of one argument; give one")
    return given[names[0]]
