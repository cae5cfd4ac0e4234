"""Feeds: turning what a caller hands in into arrays that a step can use."""

from __future__ import annotations

import functools
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from headrace import dtypes
from headrace.dtypes import DType
from headrace.errors import (
    DTypeError,
    FeedError,
    FeedKeyError,
    FeedTypeError,
    GraphError,
    ShapeError,
    listing,
    shown,
)
from headrace.graph.convert import contains_tensor, shared_array, to_array
from headrace.graph.graph import Graph
from headrace.graph.indexed_slices import IndexedSlices
from headrace.graph.sparse_tensor import SparseTensor
from headrace.graph.tensor import Tensor
from headrace.runtime.devices.device import HostArray
from headrace.session.tensor_handle import TensorHandle
from headrace.shapes import Shape

if TYPE_CHECKING:
    from headrace.ops.variable import Variable
    from headrace.passes.step_graph import StepGraph

# The op that reads a variable.
READ = "ReadVariable"

Binder = Callable[[Any], HostArray]

_PARTS = ("indices", "values", "dense_shape")


def feed_tensors(key: Any, graph: Graph) -> list[Tensor]:
    """Return the tensors that a key of a feed dictionary stands for.

    They are the parts of a sparse or ragged tensor, all that is read from a variable, or the tensor
    itself; of a tuple, which may be nested, those of its items.

    Raises:
        FeedError: if it names something else, or something that cannot be fed.
    """
    if isinstance(key, tuple):
        return [tensor for item in key for tensor in feed_tensors(item, graph)]
    if isinstance(key, SparseTensor | IndexedSlices):
        parts = [getattr(key, part) for part in _PARTS]
        return [feed_tensor(part, graph) for part in parts if part is not None]
    if hasattr(key, "parts_of"):
        return [feed_tensor(part, graph) for part in key.flatten()]
    variable = fed_variable(key, graph)
    if variable is not None:
        reads = (op for op in graph.operations if op.type == READ)
        return [op.outputs[0] for op in reads if op.inputs[0] is variable.handle]
    return [feed_tensor(key, graph)]


def fed_variable(key: Any, graph: Graph) -> Variable | None:
    """Return the variable whose value a key of a feed dictionary sets for a step, if it is one."""
    handle = getattr(key, "handle", key)
    if isinstance(key, str):
        handle = next((v.handle for v in graph.variables if v.name == key), None)
    return next((v for v in graph.variables if v.handle is handle), None)


def check_fed_variables(keys: Sequence[Any], step: StepGraph, graph: Graph) -> None:
    """Refuse a step that uses a variable otherwise than by reads, which a feed replaces.

    Args:
        keys: What is fed.
        step: What runs then.
        graph: The graph of the program.

    Raises:
        FeedError: if an operation takes the handle of a variable that is fed, such as a loop or
            an assignment.
    """
    variables = [v for v in (fed_variable(key, graph) for key in _flat(keys)) if v is not None]
    fed = {v.op_name: v for v in variables}
    if not fed:
        return
    for op in step.graph.operations:
        for name in (t.op.origin or t.op.name for t in op.inputs if t.dtype.kind == "resource"):
            if name in fed:
                raise FeedKeyError(
                    f"cannot feed the variable {fed[name].name!r}: {op.origin or op.name!r} "
                    f"({op.type}) of the step uses the variable itself, not a value that was read "
                    "from it; assign to the variable, or feed a tensor that is computed from it\n"
                    f"  at {op.site}"
                )


def _flat(keys: Sequence[Any]) -> Iterator[Any]:
    for key in keys:
        if isinstance(key, tuple):
            yield from _flat(key)
        else:
            yield key


def _parts_of_items(key: tuple[Any, ...], value: Any) -> list[Any]:
    """Return the values for the tensors of a tuple, which come in a structure like it."""
    if not isinstance(value, list | tuple) or len(value) != len(key):
        raise FeedKeyError(
            f"cannot feed {shown(key)} with {shown(value)}: the values of a tuple of {len(key)} "
            f"tensors come in a list or tuple of {len(key)}"
        )
    found = []
    for item, part in zip(key, value, strict=True):
        alone = isinstance(item, str | tuple)
        found += feed_parts(item, part, 1 if alone else len(feed_tensors(item, item.graph)))
    return found


def feed_parts(key: Any, value: Any, count: int) -> list[Any]:
    """Return the values for the tensors of a key, in the order of ``feed_tensors``.

    Args:
        key: What is fed.
        value: Its value.
        count: How many tensors that is.

    Raises:
        FeedError: if it is no value for a sparse tensor where one is fed, or for a tuple.
    """
    if isinstance(key, tuple):
        return _parts_of_items(key, value)
    if hasattr(key, "parts_of"):
        return list(key.parts_of(value))
    if not isinstance(key, SparseTensor | IndexedSlices):
        return [value] * count
    wanted = [part for part in _PARTS if getattr(key, part) is not None]
    if all(hasattr(value, part) for part in wanted):
        return [getattr(value, part) for part in wanted]
    if isinstance(value, list | tuple) and len(value) == 2 and isinstance(key, SparseTensor):
        known = key.dense_shape.spec.value
        value = value if known is None else (*value, known)
    if isinstance(value, list | tuple) and len(value) == len(wanted):
        first = ["indices", "values"] if isinstance(key, SparseTensor) else ["values", "indices"]
        by_name = dict(zip([*first, "dense_shape"], value, strict=False))
        return [by_name[part] for part in wanted]
    raise FeedKeyError(
        f"cannot feed {shown(key)} with {shown(value)}: feed a SparseTensorValue, or a tuple of "
        "indices, values and dense_shape"
    )


def feed_tensor(key: Any, graph: Graph) -> Tensor:
    """Return the tensor that a key of a feed dictionary names.

    Raises:
        FeedError: if it is no tensor of ``graph``, or one that cannot be fed.
    """
    if hasattr(key, "handle"):
        raise FeedKeyError(f"cannot feed {shown(key)}: it is no variable of the session's graph")
    try:
        tensor = graph.as_graph_element(key)
    except GraphError as error:
        hint = _placeholders(graph) if isinstance(key, str) else ""
        raise FeedKeyError(f"cannot feed {shown(key)}: {error}{hint}") from None
    if not isinstance(tensor, Tensor):
        hint = f"; did you mean '{tensor.name}:0'?" if tensor.outputs else ""
        raise FeedKeyError(
            f"cannot feed the operation {tensor.name!r}: only tensors have values{hint}"
        )
    if tensor in graph.unfeedable:
        raise FeedKeyError(f"cannot feed {shown(tensor)}: graph.prevent_feeding() was called on it")
    if tensor.dtype.kind == "resource":
        raise FeedKeyError(f"cannot feed {tensor!r}: a handle has no value outside its device")
    return tensor


def _placeholders(graph: Graph) -> str:
    names = [repr(op.outputs[0].name) for op in graph.operations if op.type == "Placeholder"]
    return f"; its placeholders are {listing(names)}" if names else ""


def binder(tensor: Tensor) -> Binder:
    """Return the function that checks and converts values for one fed tensor.

    An array of the tensor's dtype is used as it is, without a copy. Other numbers are converted
    where that loses nothing but the precision of floats, and to bool.
    """
    dtype = tensor.dtype
    dims = tensor.spec.shape.dims
    wanted = dtype.numpy
    is_string = dtype.kind == "string"
    rank = None if dims is None else len(dims)
    known = [(i, d) for i, d in enumerate(dims or ()) if d is not None]
    numbers, sources = _numbers(dtype), _sources(dtype)

    def bind(value: Any) -> HostArray:
        if type(value) is np.ndarray and value.dtype == wanted and not is_string:
            array = value
        elif type(value) is np.ndarray and value.dtype in sources:
            with np.errstate(over="ignore"):
                array = value.astype(wanted)
        elif (limit := numbers.get(type(value))) is not None and -limit <= value <= limit:
            array = np.array(value, wanted)
        else:
            array = _converted(value, tensor)
        if rank is not None:
            shape = array.shape
            if len(shape) != rank:
                raise _misfit(shape, tensor)
            for i, d in known:
                if shape[i] != d:
                    raise _misfit(shape, tensor)
        return array

    return bind


@functools.cache
def _numbers(dtype: DType) -> Mapping[type, float]:
    """Return the types of single numbers that become elements of a dtype without a look at them.

    Learning rates and rates of dropout are fed in every step.

    Returns:
        For each type the size up to which that loses nothing but the precision of a float.
    """
    if dtype.is_bool:
        return {bool: 1, np.bool_: 1}
    if dtype in _FLOATS:
        most, whole = (1e38, 1 << 24) if dtype == dtypes.float32 else (np.inf, 1 << 53)
        return {dtype.numpy.type: np.inf, float: most, int: whole, bool: 1}
    if dtype in (dtypes.int32, dtypes.int64):
        most = int(dtype.max)
        return {dtype.numpy.type: most, int: most, bool: 1}
    return {}


_FLOATS = (dtypes.float32, dtypes.float64)
_SOURCES = "?bBhHiIlLqQefd"


@functools.cache
def _sources(dtype: DType) -> frozenset[np.dtype[Any]]:
    """Return NumPy's dtypes whose arrays become ones of a dtype without a look at the elements."""
    if dtype in _FLOATS:
        return frozenset(map(np.dtype, _SOURCES))
    if not dtype.is_integer or dtype.is_quantized:
        return frozenset()
    return frozenset(s for s in map(np.dtype, _SOURCES) if np.can_cast(s, dtype.numpy, "safe"))


def _misfit(shape: tuple[int, ...], tensor: Tensor) -> FeedError:
    return FeedError(
        f"cannot feed an array of shape {list(shape)} for {tensor.name!r}, which has shape "
        f"{tensor.spec.shape}{_widened(shape, tensor)}\n  at {tensor.op.site}"
    )


def _widened(shape: tuple[int, ...], tensor: Tensor) -> str:
    """Return the shape of a placeholder that takes batches of any size, where that is the fault."""
    dims = tensor.spec.shape.dims
    if tensor.op.type != "Placeholder" or not dims or dims[0] is None:
        return ""
    example = shape[1:]
    if example != dims and example != dims[1:]:
        return ""
    return f"; a placeholder of shape {Shape([None, *example])} takes batches of any size"


def _converted(value: Any, tensor: Tensor) -> HostArray:
    if isinstance(value, TensorHandle):
        value = value.handle if tensor.dtype.kind == "string" else value.eval()
    if isinstance(value, Tensor) or contains_tensor(value) or hasattr(value, "_as_tensor"):
        raise FeedKeyError(
            f"cannot feed a tensor for {tensor.name!r}: feeds are values; fetch it first, or build "
            "with it instead of the placeholder"
        )
    try:
        shared = shared_array(value)
        if shared is not None and shared.dtype == tensor.dtype.numpy:
            return shared
        return to_array(value, tensor.dtype, fed=True)
    except (DTypeError, ShapeError) as error:
        kind = FeedTypeError if isinstance(error, DTypeError) else FeedError
        raise kind(
            f"cannot feed {tensor.name!r}, which is {tensor.spec}: {error}\n  at {tensor.op.site}"
        ) from None


def is_hashable(key: Any) -> bool:
    """Whether a key can be looked up: its class may say so, and not all of its objects agree."""
    if not isinstance(key, Hashable):
        return False
    try:
        hash(key)
    except (TypeError, ValueError):
        # Of a tuple of lists, and of a view of bytes that may change.
        return False
    return True
