"""Feeds: turning what a caller hands in into arrays that a step can use."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from headrace.errors import DTypeError, FeedError, GraphError, ShapeError
from headrace.graph.convert import contains_tensor, to_array
from headrace.graph.graph import Graph
from headrace.graph.indexed_slices import IndexedSlices
from headrace.graph.sparse_tensor import SparseTensor
from headrace.graph.tensor import Tensor
from headrace.runtime.device import HostArray

Binder = Callable[[Any], HostArray]

_PARTS = ("indices", "values", "dense_shape")


def feed_tensors(key: Any, graph: Graph) -> list[Tensor]:
    """Return the tensors that a key of a feed dictionary stands for: several for a sparse one.

    Raises:
        FeedError: if it names something else, or something that cannot be fed.
    """
    if isinstance(key, SparseTensor | IndexedSlices):
        parts = [getattr(key, part) for part in _PARTS]
        return [feed_tensor(part, graph) for part in parts if part is not None]
    return [feed_tensor(key, graph)]


def feed_parts(key: Any, value: Any) -> list[Any]:
    """Return the values for the tensors of a key, in the order of ``feed_tensors``.

    Raises:
        FeedError: if it is no value for a sparse tensor where one is fed.
    """
    if not isinstance(key, SparseTensor | IndexedSlices):
        return [value]
    wanted = [part for part in _PARTS if getattr(key, part) is not None]
    if all(hasattr(value, part) for part in wanted):
        return [getattr(value, part) for part in wanted]
    if isinstance(value, list | tuple) and len(value) == len(wanted):
        first = ["indices", "values"] if isinstance(key, SparseTensor) else ["values", "indices"]
        by_name = dict(zip([*first, "dense_shape"], value, strict=False))
        return [by_name[part] for part in wanted]
    raise FeedError(
        f"cannot feed {key!r:.80} with {value!r:.80}: feed a SparseTensorValue, or a tuple of "
        "indices, values and dense_shape"
    )


def feed_tensor(key: Any, graph: Graph) -> Tensor:
    """Return the tensor that a key of a feed dictionary names.

    Raises:
        FeedError: if it is no tensor of ``graph``, or one that cannot be fed.
    """
    if hasattr(key, "handle"):
        raise FeedError(
            f"cannot feed the variable {key.name!r}: assign to it, or feed the tensor that is read "
            "from it (variable.value())"
        )
    try:
        tensor = graph.as_graph_element(key)
    except GraphError as error:
        raise FeedError(f"cannot feed {key!r}: {error}") from None
    if not isinstance(tensor, Tensor):
        raise FeedError(f"cannot feed the operation {tensor.name!r}: only tensors have values")
    if tensor.dtype.kind == "resource":
        raise FeedError(f"cannot feed {tensor!r}: a handle has no value outside its device")
    return tensor


def binder(tensor: Tensor) -> Binder:
    """Return the function that checks and converts values for one fed tensor.

    An array of the tensor's dtype is used as it is, without a copy. Other numbers are converted
    where that loses nothing but the precision of floats.
    """
    dtype = tensor.dtype
    dims = tensor.shape.dims
    wanted = dtype.numpy
    is_string = dtype.kind == "string"
    rank = None if dims is None else len(dims)
    known = [(i, d) for i, d in enumerate(dims or ()) if d is not None]

    def bind(value: Any) -> HostArray:
        if type(value) is np.ndarray and value.dtype == wanted and not is_string:
            array = value
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


def _misfit(shape: tuple[int, ...], tensor: Tensor) -> FeedError:
    return FeedError(
        f"cannot feed an array of shape {list(shape)} for {tensor.name!r}, which has shape "
        f"{tensor.shape}\n  at {tensor.op.site}"
    )


def _converted(value: Any, tensor: Tensor) -> HostArray:
    if isinstance(value, Tensor) or contains_tensor(value) or hasattr(value, "_as_tensor"):
        raise FeedError(
            f"cannot feed a tensor for {tensor.name!r}: feeds are values; fetch it first, or build "
            "with it instead of the placeholder"
        )
    try:
        return to_array(value, tensor.dtype)
    except (DTypeError, ShapeError) as error:
        raise FeedError(
            f"cannot feed {tensor.name!r}, which is {tensor.spec}: {error}\n  at {tensor.op.site}"
        ) from None
