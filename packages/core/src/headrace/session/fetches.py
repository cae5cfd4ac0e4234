"""Fetch structures: what a caller asks for, flattened for the step and rebuilt after it."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from headrace.arguments import members
from headrace.errors import FetchError, GraphEmptyError, GraphError, shown
from headrace.graph.fixed_list import FixedList
from headrace.graph.graph import Graph
from headrace.graph.indexed_slices import IndexedSlices
from headrace.graph.operation import Operation
from headrace.graph.tensor import Tensor
from headrace.ops.session_tensor import KEEP
from headrace.records import dataclass

if TYPE_CHECKING:
    from headrace.session.tensor_handle import Kept

Rebuild = Callable[[Sequence[Any]], Any]


@dataclass(frozen=True, slots=True)
class Fetches:
    """A flattened fetch structure.

    Attributes:
        tensors: The tensors to fetch, each once.
        targets: The operations to run for their effect.
        rebuild: Makes the caller's structure of the tensors' values; operations become None.
    """

    tensors: tuple[Tensor, ...]
    targets: tuple[Operation, ...]
    rebuild: Rebuild


_TOO_DEEP = "cannot fetch a structure that contains itself, or is as deep"


def fetch_key(fetches: Any) -> Hashable:
    """Return a key that is equal for equal fetch structures of the same elements.

    Raises:
        FetchError: if something in it cannot be fetched, or it contains itself.
    """
    try:
        return _key(fetches)
    except RecursionError:
        raise FetchError(_TOO_DEEP) from None


# A union of types would be made anew in each call.
_SEQUENCES = (list, tuple)
_ELEMENTS = frozenset((Tensor, Operation))


def _key(fetches: Any) -> Hashable:
    if type(fetches) in _ELEMENTS:
        return fetches  # type: ignore[no-any-return]
    if isinstance(fetches, _SEQUENCES):
        return (type(fetches), *map(_key, members(fetches, "fetches")))
    if isinstance(fetches, Mapping):
        keys = tuple(members(fetches, "fetches"))
        return (type(fetches), keys, *(_key(fetches[key]) for key in keys))
    if isinstance(fetches, Hashable) and not isinstance(fetches, np.generic):
        return fetches
    raise FetchError(_refusal(fetches))


def flatten(fetches: Any, graph: Graph, kept: Kept | None = None) -> Fetches:
    """Flatten a structure of tensors, operations, variables and names.

    Args:
        fetches: One of these, or a list, tuple, named tuple or dict of structures.
        graph: The graph to which they belong.
        kept: What makes handles of the strings that stand for tensors which the session keeps.

    Raises:
        FetchError: if something in it cannot be fetched.
    """
    tensors: dict[Tensor, int] = {}
    targets: dict[Operation, None] = {}
    try:
        rebuild = _visit(fetches, graph, tensors, targets, kept)
    except RecursionError:
        raise FetchError(_TOO_DEEP) from None
    return Fetches(tuple(tensors), tuple(targets), rebuild)


def _visit(
    item: Any,
    graph: Graph,
    tensors: dict[Tensor, int],
    targets: dict[Operation, None],
    kept: Kept | None,
) -> Rebuild:
    if isinstance(item, IndexedSlices):
        parts = [item.values, item.indices, item.dense_shape]
        inner = [_visit(part, graph, tensors, targets, kept) for part in parts if part is not None]
        return lambda values: IndexedSlicesValue(*(part(values) for part in inner))
    value_of = getattr(item, "value_of", None)
    if value_of is not None:
        # A composite value, such as a sparse or a ragged tensor.
        inner = [_visit(part, graph, tensors, targets, kept) for part in item.flatten()]
        return lambda values: value_of([part(values) for part in inner])
    if isinstance(item, list | tuple):
        inner = [_visit(part, graph, tensors, targets, kept) for part in members(item, "fetches")]
        make: Any = list if isinstance(item, FixedList) else type(item)
        if hasattr(item, "_fields"):
            return lambda values: make(*(part(values) for part in inner))
        if make not in (list, tuple):
            try:
                make(item)
            except Exception as error:
                raise FetchError(
                    f"cannot fetch a {make.__name__}: it cannot be made of a list of values "
                    f"({type(error).__name__}: {error}); fetch a list or a tuple"
                ) from error
        return lambda values: make([part(values) for part in inner])
    if isinstance(item, Mapping):
        keys = list(members(item, "fetches"))
        inner = [_visit(item[key], graph, tensors, targets, kept) for key in keys]
        mapping: Any = OrderedDict if isinstance(item, OrderedDict) else dict
        return lambda values: mapping(
            (k, part(values)) for k, part in zip(keys, inner, strict=True)
        )
    try:
        element = graph.as_graph_element(item)
    except GraphError as error:
        hint = "; does the function that should return it return nothing?" if item is None else ""
        kind = FetchError if len(graph) else GraphEmptyError
        raise kind(f"cannot fetch {shown(item)}: {error}{hint}") from None
    if graph.unfetchable and not graph.is_fetchable(element):
        raise FetchError(f"cannot fetch {shown(item)}: graph.prevent_fetching() was called on it")
    if isinstance(element, Operation):
        targets.setdefault(element)
        return lambda values: None
    if element.dtype.kind == "resource":
        # The handle of a variable, under the name that the variable has, stands for its value.
        snapshot = next((v.snapshot for v in graph.variables if v.handle is element), None)
        if snapshot is None:
            # Graphs that came as messages have variables that no list has, and reads of them.
            reads = (
                op
                for op in graph.operations
                if op.type == "ReadVariable" and op.inputs[0] is element
            )
            snapshot = next((op.outputs[0] for op in reads), None)
        if snapshot is not None:
            return _visit(snapshot, graph, tensors, targets, kept)
        raise FetchError(
            f"cannot fetch {element!r}: a handle has no value outside its device; fetch what it "
            "refers to"
        )
    if element.dtype.kind == "list":
        raise FetchError(
            f"cannot fetch {element!r}: it is a list of tensors; fetch what is read of it"
        )
    index = tensors.setdefault(element, len(tensors))
    if kept is not None and element.op.type == KEEP:
        dtype = element.op.inputs[0].dtype
        return lambda values: kept.handle(values[index], dtype)
    return lambda values: values[index]


class IndexedSlicesValue(NamedTuple):
    """The fetched parts of ``IndexedSlices``.

    Attributes:
        values: [n, ...], the rows.
        indices: [n], the index of each row.
        dense_shape: [rank], the shape of the whole, or None.
    """

    values: Any
    indices: Any
    dense_shape: Any = None


def _refusal(item: Any) -> str:
    if isinstance(item, np.generic | np.ndarray):
        return (
            f"cannot fetch {shown(item.tolist())}: it is a value, expected a tensor; was the "
            "Python name of a tensor given to what session.run returned?"
        )
    return (
        f"cannot fetch {shown(item)}; tensors, operations, variables, names, and lists, tuples and "
        "dicts of these can be fetched"
    )
