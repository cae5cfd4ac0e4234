"""The ops of input pipelines: data sets, which are values, and iterators, which are resources."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from headrace import DType, Shape, int64, resource, string
from headrace import bool as boolean
from headrace.errors import AttributeValueError
from headrace.extend import Resource, Spec, TensorSpec, Value, op
from headrace.extend.graphs import Function
from headrace.extend.ops import String as Text
from headrace.extend.ops import handle_spec

_NO_GRADIENT = "elements of input pipelines do not depend on what a step computes"
_ITERATED = "what comes from an iterator does not depend on what a step computes"


@op("Dataset", concurrent=True, effects="reads", public="", no_gradient=_NO_GRADIENT)
def dataset(
    sources: Sequence[Resource] = (),
    arguments: Sequence[Value] = (),
    captures: Sequence[Value] = (),
    *,
    kind: str,
    settings: tuple[Any, ...] = (),
    function: Function | None = None,
    reducer: Function | None = None,
    sizer: Function | None = None,
) -> Spec:
    """A data set: how its elements come from those of others, or from tensors.

    Args:
        sources: The data sets that it transforms.
        arguments: The tensors that it depends on.
        captures: What its functions use of the graph around them, one after the other.
        kind: Which transformation or source it is.
        settings: Pairs of names and values that the kind takes besides.
        function: What it calls for elements.
        reducer: What it calls for groups of elements, where there are groups.
        sizer: What it calls for the sizes of groups.

    Returns:
        [], a handle.
    """
    return handle_spec()


@op("DatasetReduce", effects="observes", blocking=True, public="", no_gradient=_NO_GRADIENT)
def dataset_reduce(
    source: Resource,
    state: Sequence[Value],
    captures: Sequence[Value] = (),
    *,
    function: Function,
) -> list[Spec]:
    """The state that a function makes of an initial one and all elements, one after the other.

    Args:
        source: [], the data set.
        state: The initial state.
        captures: What the function uses of the graph around it.
        function: From state and element to state.

    Returns:
        The last state.
    """
    return [TensorSpec(t.dtype, t.spec.shape, content=t.spec.content) for t in function.results]


@op("DatasetCardinality", effects="reads", public="", no_gradient=_NO_GRADIENT)
def dataset_cardinality(source: Resource) -> Spec:
    """How many elements a data set has: -1 for endlessly many, -2 where that is not known.

    Args:
        source: [], the data set.

    Returns:
        [], int64.
    """
    return TensorSpec(int64, Shape([]))


@op("Iterator", concurrent=True, effects="reads", public="", no_gradient=_ITERATED)
def iterator(
    output_types: tuple[DType, ...],
    output_shapes: tuple[Shape, ...],
    container: str,
    shared_name: str,
    function: Function | None = None,
) -> Spec:
    """A handle to an iterator of a name in a container of the device.

    Args:
        output_types: The dtype of each tensor of an element.
        output_shapes: Their shapes, as far as fixed.
        container: The container; empty for the default one.
        shared_name: The iterator's name in the container.
        function: Makes the data set of an iterator that starts by itself.

    Returns:
        [], a resource handle.
    """
    _check_components(output_types, output_shapes)
    return TensorSpec(resource, Shape([]))


@op(
    "IteratorFromStringHandle",
    concurrent=True,
    effects="observes",
    public="",
    no_gradient=_ITERATED,
)
def iterator_from_string(
    string_handle: Text, output_types: tuple[DType, ...], output_shapes: tuple[Shape, ...]
) -> Spec:
    """The iterator that a string stands for.

    Args:
        string_handle: [], what ``IteratorToStringHandle`` yields.
        output_types: The dtype of each tensor of an element.
        output_shapes: Their shapes, as far as fixed.

    Returns:
        [], a resource handle.
    """
    _check_components(output_types, output_shapes)
    if not string_handle.shape.is_compatible_with([]):
        raise AttributeValueError(f"string_handle must be a scalar, got {string_handle.shape}")
    return TensorSpec(resource, Shape([]))


def _check_components(types: tuple[DType, ...], shapes: tuple[Shape, ...]) -> None:
    if not types or len(types) != len(shapes):
        raise AttributeValueError("an iterator needs one dtype and one shape for each component")


def _tensors(
    types: tuple[DType, ...], shapes: tuple[Shape, ...], contents: tuple[TensorSpec, ...]
) -> list[Spec]:
    held = iter(contents)
    return [
        TensorSpec(dtype, shape, content=next(held) if dtype.kind == "list" else None)
        for dtype, shape in zip(types, shapes, strict=True)
    ]


@op("IteratorToStringHandle", effects="reads", public="", no_gradient=_ITERATED)
def iterator_to_string(handle: Resource) -> Spec:
    """A string that stands for an iterator, in this process.

    Args:
        handle: [], the iterator.

    Returns:
        [], string.
    """
    return TensorSpec(string, Shape([]))


@op("MakeIterator", effects="changes", public="", no_gradient=_ITERATED)
def make_iterator(source: Resource, handle: Resource) -> None:
    """Let an iterator start at the first element of a data set.

    Args:
        source: [], the data set.
        handle: [], the iterator.
    """


@op("IteratorGetNext", effects="changes", blocking=True, public="", no_gradient=_ITERATED)
def iterator_get_next(
    handle: Resource,
    output_types: tuple[DType, ...],
    output_shapes: tuple[Shape, ...],
    contents: tuple[TensorSpec, ...] = (),
) -> list[Spec]:
    """The next element of an iterator.

    Args:
        handle: [], the iterator.
        output_types: The dtype of each tensor of an element.
        output_shapes: Their shapes, as far as fixed.
        contents: What those that are lists hold.

    Returns:
        The tensors of an element. Raises when there are no more.
    """
    return _tensors(output_types, output_shapes, contents)


@op("IteratorGetNextAsOptional", effects="changes", blocking=True, public="", no_gradient=_ITERATED)
def iterator_get_next_as_optional(
    handle: Resource,
    output_types: tuple[DType, ...],
    output_shapes: tuple[Shape, ...],
    contents: tuple[TensorSpec, ...] = (),
) -> list[Spec]:
    """Whether an iterator has a next element, and that element.

    Args:
        handle: [], the iterator.
        output_types: The dtype of each tensor of an element.
        output_shapes: Their shapes, as far as fixed.
        contents: What those that are lists hold.

    Returns:
        [], bool, and the tensors of an element; where there is none, zeros, and no elements along
        axes of unknown size.
    """
    return [TensorSpec(boolean, Shape([])), *_tensors(output_types, output_shapes, contents)]


@op("IteratorState", effects="reads", blocking=True, public="", no_gradient=_ITERATED)
def iterator_state(handle: Resource) -> Spec:
    """Where an iterator stands, to go on from there later.

    Args:
        handle: [], the iterator.

    Returns:
        [], string.
    """
    return TensorSpec(string, Shape([]))


@op("IteratorIsInitialized", effects="reads", public="", no_gradient=_ITERATED)
def iterator_is_initialized(handle: Resource) -> Spec:
    """Whether an iterator has a position that could be saved.

    Args:
        handle: [], the iterator.

    Returns:
        [], bool.
    """
    return TensorSpec(boolean, Shape([]))


@op("RestoreIterator", effects="changes", blocking=True, public="", no_gradient=_ITERATED)
def restore_iterator(handle: Resource, state: Text) -> None:
    """Let an iterator go on where it stood once.

    Args:
        handle: [], the iterator.
        state: [], string, what ``IteratorState`` yielded.
    """


@op(
    "DatasetToSingleElement", effects="observes", blocking=True, public="", no_gradient=_NO_GRADIENT
)
def dataset_single(
    source: Resource,
    output_types: tuple[DType, ...],
    output_shapes: tuple[Shape, ...],
    contents: tuple[TensorSpec, ...] = (),
) -> list[Spec]:
    """The only element of a data set.

    Args:
        source: [], the data set.
        output_types: The dtype of each tensor of an element.
        output_shapes: Their shapes, as far as fixed.
        contents: What those that are lists hold.

    Returns:
        The tensors of the element.
    """
    return _tensors(output_types, output_shapes, contents)
