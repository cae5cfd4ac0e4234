"""``gradients``: extends a graph with the nodes that compute derivatives."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from typing import Any

import numpy as np

from headrace import (
    Graph,
    IndexedSlices,
    Operation,
    Shape,
    Tensor,
    Variable,
    colocate_with,
    convert_to_tensor,
    device,
    name_scope,
    ones_like,
    shape,
)
from headrace.errors import AttributeValueError, DTypeError, GraphError, ShapeError, shown
from headrace.extend import DeviceName
from headrace.extend.arguments import whole
from headrace.extend.graphs import (
    Function,
    flatten,
    graphs_around,
    pinned_site,
    unhindered,
    use_graph,
    user_site,
)
from headrace_autodiff.accumulate import Grad
from headrace_autodiff.liveness import zeros_for
from headrace_autodiff.placed_sums import summed_beside
from headrace_autodiff.walk import Walk


def gradients(
    ys: Any,
    xs: Any,
    grad_ys: Any = None,
    name: str | None = "gradients",
    colocate_gradients_with_ops: bool = False,
    gate_gradients: bool = False,
    aggregation_method: Any = None,
    stop_gradients: Any = None,
    unconnected_gradients: str = "none",
    *,
    memory_budget: Any = None,
) -> list[Grad]:
    """Add nodes that compute the derivatives of the sum of ``ys`` with respect to each of ``xs``.

    The nodes are ordinary ones: they can be fetched, placed and differentiated again. They run on
    the device asked for by the operation that they differentiate, where it asks for one.

    Integers, booleans and strings carry no gradient. A complex gradient is the conjugate of the
    derivative, as in TensorFlow.

    Args:
        ys: A tensor or variable, or a list of these, of numbers and arrays. What is a structure of
            tensors in such a list is one tensor, as for ``hr.stack``.
        xs: A tensor or variable, or a list of these. For a variable all its reads count, for a
            tensor only what is computed from that very tensor.
        grad_ys: For each of ``ys`` the gradient that arrives there, ones if None.
        name: The name scope of the nodes.
        colocate_gradients_with_ops: Place the nodes on the device of the operation that they
            differentiate, wherever that will be, and sums beside what they are made of.
        gate_gradients: Let no gradient of an operation's inputs be used before all are there.
        aggregation_method: One of ``AggregationMethod``, which all ask for the same: sums are
            always made in one fixed order, pair by pair.
        stop_gradients: Tensors to be taken as constant.
        unconnected_gradients: What to return for an x on which no y depends: "none" for None, or
            "zero" for zeros of its shape.
        memory_budget: How much of the forward pass to keep for the gradients; the rest is computed
            again when they need it. A number of bytes of values at any one time; a fraction of what
            would be kept otherwise; "memory" for as little as one more forward pass allows; "speed"
            to compute again only what is elementwise; "host" to keep everything, in the memory of
            the host; or a list of the tensors to keep. Everything is kept if None.

    Returns:
        One entry for each of ``xs``: a tensor, ``IndexedSlices`` where only rows were gathered
        from it, or None where no y depends differentiably on it.

    Raises:
        NoGradientError: if an operation in between has no gradient rule.
        GraphError: if ``ys`` or ``xs`` are no tensors of one graph.
        DTypeError: if the dtype of a ``grad_ys`` differs from that of its y, or is missing for a
            complex y.
        ShapeError: if the shape of a ``grad_ys`` does not fit its y.
        AttributeValueError: if ``memory_budget`` is none of these, if no way to compute the
            gradients fits into it, or if it is in bytes and sizes are not known before the step.
        NoDeviceError: if values are to be kept on the host, and it is the only device.

    References:
        For ``memory_budget``: T. Chen et al., Training deep nets with sublinear memory cost,
        arXiv:1604.06174, 2016; O. Beaumont et al., Optimal checkpointing for heterogeneous chains,
        arXiv:1911.13214, 2019.
    """
    method = 0 if aggregation_method is None else whole(aggregation_method, "aggregation_method")
    if not 0 <= method <= 2:
        raise AttributeValueError(
            "gradients: aggregation_method is one of hr.AggregationMethod, got "
            f"{shown(aggregation_method)}"
        )
    if unconnected_gradients not in ("none", "zero"):
        raise AttributeValueError(
            "gradients: unconnected_gradients is 'none' or 'zero', got "
            f"{shown(unconnected_gradients)}"
        )
    outputs, inputs = [_joined(y) for y in _listed(ys)], _listed(xs)
    if not outputs:
        return [None] * len(inputs)
    made = [y for y in outputs if not isinstance(y, _PLAIN)] or outputs
    graph = _innermost([_graph_of(y, "ys") for y in made])
    budget = None
    if memory_budget is not None:
        # lazy: few programs compute anything again
        from headrace_autodiff.checkpointing.budget import read_budget
        from headrace_autodiff.checkpointing.replay import Replay

        budget = read_budget(memory_budget, graph)
    # What is computed again stands in one graph; otherwise a walk may leave that of a function.
    across = budget is None and isinstance(graph, Function)
    with (
        unhindered(settle=False),
        pinned_site(user_site()),
        use_graph(graph),
        name_scope(name, "gradients") as scope,
    ):
        targets = [
            _member(y, graph, "ys", as_handle=False)
            if not isinstance(y, _PLAIN)
            else convert_to_tensor(y)
            for y in outputs
        ]
        sources = [_member(x, graph, "xs", True, across) for x in inputs]
        stop = [_member(t, graph, "stop_gradients", True, across) for t in _listed(stop_gradients)]
        anywhere = DeviceName()

        @contextmanager
        def scopes(op: Operation) -> Iterator[None]:
            # Where the program asks for, with a device or with what the operation is to be beside.
            beside = [other for other in op.colocated_with[-1:] if other.graph is graph]
            place: AbstractContextManager[Any] | None = None
            if colocate_gradients_with_ops:
                place = colocate_with(op)
            elif beside:
                place = colocate_with(beside[0])
            elif op.device_name != anywhere:
                place = device(op.device_name)
            with graph.name_scope(f"{scope}{op.name}_grad/"):
                if place is None:
                    yield
                    return
                with place:
                    yield

        differentiate = None
        if budget is not None:
            replay = Replay(targets, sources, stop, graph, budget, scope)
            differentiate = replay.differentiate
        sums = summed_beside if colocate_gradients_with_ops else None
        walk = Walk(targets, sources, stop, scopes, differentiate, across, sums)
        for y, grad in zip(targets, _given(grad_ys, targets), strict=True):
            if y.dtype.is_differentiable:
                start, live = _initial(y, grad), walk.liveness.of(y)
                if live:
                    start = walk.liveness.confined(convert_to_tensor(start), live)
                walk.start(y, start)
        walk.run(gate_gradients)
        found = [walk.gradient(x) for x in sources]
        missing = any(g is None for g in found)
        flat = walk.flat() if missing and unconnected_gradients != "zero" else set()
        if flat:
            pairs = zip(sources, found, strict=True)
            found = [zeros_for(x) if g is None and x in flat else g for x, g in pairs]
        if unconnected_gradients == "zero":
            found = [zeros_for(x) if g is None else g for x, g in zip(sources, found, strict=True)]
        return found


# What is a constant among the ys, which depends on nothing.
_PLAIN = (int, float, np.ndarray, np.generic)


def _listed(value: Any) -> list[Any]:
    if value is None:
        return []
    return list(value) if isinstance(value, list | tuple) else [value]


def _joined(y: Any) -> Any:
    """Return a y; of a structure of tensors, such as the state of a cell, one tensor."""
    if not isinstance(y, list | tuple):
        return y
    try:
        held = any(isinstance(t, Tensor | Variable) for t in flatten(y))
    except GraphError:
        # Nested too deep: it is told that it is no tensor.
        return y
    return convert_to_tensor(y) if held else y


def _graph_of(value: Any, label: str) -> Graph:
    graph = getattr(value, "graph", None)
    if not isinstance(graph, Graph) or isinstance(value, Operation):
        raise _no_tensor(value, label)
    return graph


def _innermost(graphs: Sequence[Graph]) -> Graph:
    """Return the first of graphs, or one of a function inside of it."""
    found = graphs[0]
    for graph in graphs:
        if found in graphs_around(graph):
            found = graph
    return found


def _member(value: Any, graph: Graph, label: str, as_handle: bool, across: bool = False) -> Tensor:
    """Return the tensor that stands for a value given by the user.

    Args:
        value: The value.
        graph: The graph of the ys.
        label: What the value is, for messages.
        as_handle: Whether a variable stands for its handle, not for its value.
        across: Whether tensors of graphs around stay what they are.
    """
    own = None if across and as_handle else _taken_in(value, graph, as_handle)
    if own is not None:
        return own
    home = _graph_of(value, label)
    if home is not graph and not (across and home in graphs_around(graph)):
        raise GraphError(
            f"gradients: {shown(value)} of {label} belongs to another graph than ys[0]"
        )
    if isinstance(value, Variable):
        return value.handle if as_handle else value.value()
    if isinstance(value, Tensor):
        return value
    if isinstance(value, IndexedSlices) and not as_handle:
        return convert_to_tensor(value)
    raise _no_tensor(value, label)


def _taken_in(value: Any, graph: Graph, as_handle: bool) -> Tensor | None:
    """Return what stands in the graph of a function for a value of a graph around it."""
    if not isinstance(graph, Function) or _graph_of(value, "xs") is graph:
        return None
    tensor = (
        value if not isinstance(value, Variable) else value.handle if as_handle else value.value()
    )
    if not isinstance(tensor, Tensor) or tensor.graph not in graphs_around(graph):
        return None
    return graph.capture(tensor)


def _no_tensor(value: Any, label: str) -> GraphError:
    return GraphError(
        f"gradients: {label} are tensors or variables of a graph, got {shown(value)} "
        f"({type(value).__name__})"
    )


def _given(grad_ys: Any, ys: Sequence[Tensor]) -> list[Any]:
    if grad_ys is None:
        return [None] * len(ys)
    given = _listed(grad_ys) if len(ys) > 1 or isinstance(grad_ys, list | tuple) else [grad_ys]
    if len(given) != len(ys):
        raise GraphError(f"gradients: {len(given)} grad_ys for {len(ys)} ys; give one for each")
    return given


def _initial(y: Tensor, grad: Any) -> Tensor | IndexedSlices:
    """Return the gradient with which the walk starts at ``y``."""
    start: Tensor | IndexedSlices
    if grad is None:
        if y.dtype.is_complex:
            raise DTypeError(
                f"gradients: {shown(y)} is complex, so that its gradient has no natural start; "
                "give "
                "grad_ys, or differentiate a real tensor"
            )
        return ones_like(y)
    if isinstance(grad, IndexedSlices):
        whole = shape(y) if grad.dense_shape is None else grad.dense_shape
        start = IndexedSlices(grad.values, grad.indices, whole)
    else:
        start = convert_to_tensor(grad, preferred_dtype=y.dtype)
    if start.dtype != y.dtype:
        raise DTypeError(f"gradients: a grad_ys is {start.dtype} for the y {shown(y)}")
    if not start.shape.is_compatible_with(y.shape):
        raise ShapeError(
            f"gradients: a grad_ys has shape {Shape(start.shape)} for the y {shown(y)}; "
            "expected the shape of y"
        )
    return start
