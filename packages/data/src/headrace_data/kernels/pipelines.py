"""Kernels of the ops of input pipelines, on the host."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import numpy as np

from headrace import DType, Shape
from headrace.errors import InvalidArgumentError, OutOfRangeError
from headrace.extend import KernelContext, KernelTable, ListValue, TensorSpec
from headrace.extend.graphs import Function, functions_in
from headrace_data.runtime.calls import CountedCalls
from headrace_data.runtime.functions import BoundFunction
from headrace_data.runtime.passes import Pass
from headrace_data.runtime.resource import IteratorResource
from headrace_data.runtime.stream import DatasetValue, count_of, frozen
from headrace_data.runtime.threads import Lifetime

KERNELS = KernelTable()

Done: TypeAlias = Callable[[Any], None]
_FUNCTIONS = ("function", "reducer", "sizer")


@KERNELS.stateful("Dataset")
def dataset(
    ctx: KernelContext,
    sources: Sequence[Any],
    arguments: Sequence[Any],
    captures: Sequence[Any],
    *,
    kind: str,
    settings: tuple[Any, ...],
    function: Function | None,
    reducer: Function | None,
    sizer: Function | None,
) -> Any:
    """Return a data set."""
    given = iter(captures)
    functions = {}
    for name, held in zip(_FUNCTIONS, (function, reducer, sizer), strict=True):
        if held is not None:
            functions[name] = _bound(ctx, held, [next(given) for _ in held.captures])
    return DatasetValue(
        kind,
        tuple(sources),
        tuple(a if isinstance(a, DatasetValue | ListValue) else frozen(a) for a in arguments),
        dict(settings),
        functions,
        str(ctx.site),
    )


def _bound(ctx: KernelContext, function: Function, captures: Sequence[Any]) -> Any:
    values = [frozen(c) if isinstance(c, np.ndarray) else c for c in captures]
    return BoundFunction(ctx.called(function), values, draws_in(function))


def draws_in(function: Function) -> bool:
    """Whether random ops are in a function."""
    graphs = [function, *functions_in(function)]
    return any("draws" in op.schema.effects for graph in graphs for op in graph.operations)


@KERNELS.blocking("DatasetReduce", answers=False)
def dataset_reduce(
    ctx: KernelContext,
    step: Any,
    done: Done,
    source: Any,
    state: Sequence[Any],
    captures: Sequence[Any],
    *,
    function: Function,
) -> None:
    """Return the state that a function makes of all elements."""
    lifetime = Lifetime()
    key = step.cancellation.add(lifetime.cancel)
    try:
        source.check()
        run = Pass(lifetime)
        stream = source.open(run.part(0))
        calls = CountedCalls(_bound(ctx, function, captures), run, ends=True)
        current = tuple(state)
        try:
            while (element := stream.next()) is not None:
                if lifetime.reason is not None:
                    raise lifetime.reason
                current = calls((*current, *element))
        finally:
            stream.close()
    finally:
        step.cancellation.discard(key)
    done(list(current))


@KERNELS.stateful("DatasetCardinality")
def dataset_cardinality(ctx: KernelContext, source: Any) -> Any:
    """Return how many elements there are."""
    source.check()
    return np.array(count_of(source), np.int64)


@KERNELS.stateful("Iterator")
def iterator(
    ctx: KernelContext,
    *,
    output_types: tuple[DType, ...],
    output_shapes: tuple[Shape, ...],
    container: str,
    shared_name: str,
    function: Function | None,
) -> Any:
    """Return the iterator of a name."""
    make = None
    if function is not None:
        called = ctx.called(function)
        make = lambda: called(())[0]  # noqa: E731
    return ctx.resource(
        IteratorResource,
        lambda: IteratorResource(shared_name, output_types, output_shapes, function, make),
    )


@KERNELS.stateful("IteratorFromStringHandle")
def iterator_from_string(
    ctx: KernelContext,
    string_handle: Any,
    *,
    output_types: tuple[DType, ...],
    output_shapes: tuple[Shape, ...],
) -> Any:
    """Return the iterator that a string stands for."""
    found = IteratorResource.find(bytes(np.asarray(string_handle)[()]).decode(errors="replace"))
    agrees = len(output_types) == len(found.output_types) and all(
        a == b and c.is_compatible_with(d)
        for a, b, c, d in zip(
            output_types, found.output_types, output_shapes, found.output_shapes, strict=True
        )
    )
    if not agrees:
        raise InvalidArgumentError(
            f"the iterator {found.name!r} has elements of "
            f"{_listed(found.output_types, found.output_shapes)}, and from_string_handle states "
            f"{_listed(output_types, output_shapes)}"
        )
    return found


def _listed(types: Sequence[DType], shapes: Sequence[Shape]) -> str:
    return ", ".join(f"{d}{s}" for d, s in zip(types, shapes, strict=True))


@KERNELS.stateful("IteratorToStringHandle")
def iterator_to_string(ctx: KernelContext, handle: Any) -> Any:
    """Return the string that stands for an iterator."""
    return np.array(handle.token.encode(), object)


@KERNELS.stateful("MakeIterator")
def make_iterator(ctx: KernelContext, source: Any, handle: Any) -> None:
    """Let an iterator start."""
    handle.start(source)


@KERNELS.blocking("IteratorGetNext", answers=False)
def iterator_get_next(
    ctx: KernelContext,
    step: Any,
    done: Done,
    handle: Any,
    *,
    output_types: tuple[DType, ...],
    output_shapes: tuple[Shape, ...],
    contents: tuple[TensorSpec, ...],
) -> None:
    """Return the next element, in the thread that runs the step."""
    done(list(handle.next()))


@KERNELS.blocking("IteratorGetNextAsOptional", answers=False)
def iterator_get_next_as_optional(
    ctx: KernelContext,
    step: Any,
    done: Done,
    handle: Any,
    *,
    output_types: tuple[DType, ...],
    output_shapes: tuple[Shape, ...],
    contents: tuple[TensorSpec, ...],
) -> None:
    """Return whether there is a next element, and it, or zeros."""
    try:
        found = handle.next()
    except OutOfRangeError:
        pairs = zip(output_types, output_shapes, strict=True)
        done([np.array(False), *(no_value(dtype, shape) for dtype, shape in pairs)])
    else:
        done([np.array(True), *found])


def no_value(dtype: DType, shape: Shape) -> Any:
    """Return what stands for a tensor that is not there."""
    if dtype.kind == "list":
        return ListValue()
    dims = [] if shape.rank is None else [0 if d is None else d for d in shape.as_list()]
    return np.full(dims, b"", object) if dtype.kind == "string" else np.zeros(dims, dtype.numpy)


@KERNELS.blocking("IteratorState", answers=False)
def iterator_state(ctx: KernelContext, step: Any, done: Done, handle: Any) -> None:
    """Return the position."""
    done([np.array(handle.save(), object)])


@KERNELS.stateful("IteratorIsInitialized")
def iterator_is_initialized(ctx: KernelContext, handle: Any) -> Any:
    """Return whether there is a position to save."""
    return np.array(handle.initialized)


@KERNELS.blocking("RestoreIterator", answers=False)
def restore_iterator(ctx: KernelContext, step: Any, done: Done, handle: Any, state: Any) -> None:
    """Go to a position."""
    handle.restore(bytes(np.asarray(state)[()]))
    done([])


@KERNELS.blocking("DatasetToSingleElement", answers=False)
def dataset_single(
    ctx: KernelContext,
    step: Any,
    done: Done,
    source: Any,
    *,
    output_types: tuple[DType, ...],
    output_shapes: tuple[Shape, ...],
    contents: tuple[TensorSpec, ...],
) -> None:
    """Return the only element."""
    lifetime = Lifetime()
    key = step.cancellation.add(lifetime.cancel)
    try:
        source.check()
        stream = source.open(Pass(lifetime))
        try:
            element = stream.next()
            if element is None:
                raise InvalidArgumentError("get_single_element: the data set is empty")
            if stream.next() is not None:
                raise InvalidArgumentError(
                    "get_single_element: the data set has more than one element"
                )
        finally:
            stream.close()
    finally:
        step.cancellation.discard(key)
    done(list(element))
