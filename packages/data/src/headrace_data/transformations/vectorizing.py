"""Vectorized maps: functions of elements as functions of batches, where the bits are the same.

``map(f).batch(n)`` calls ``f`` once for each element. Where every operation of ``f`` computes each
number by itself, or only moves numbers, a function of the whole batch computes the same: it is
built here operation by operation, with a new first axis. Functions with other operations
(reductions and matrix products, whose sums may be taken in another order, functions that are not
rounded correctly, state, anything that can fail for one element alone) stay as they are, and so do
those whose shapes are not known when the graph is built. Random numbers are drawn element by
element, by a function of their own, and come to the function of batches as further arguments.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import headrace as hr
from headrace import Operation, Tensor
from headrace.extend import TensorSpec
from headrace.extend.graphs import Function, get_default_graph, inside
from headrace.extend.ops import call_op
from headrace_data import structure
from headrace_data.build import Traced, make, static
from headrace_data.runtime.calls import CountedCalls
from headrace_data.runtime.columns import stacked
from headrace_data.runtime.passes import Pass
from headrace_data.runtime.stream import DatasetValue, Element, stream
from headrace_data.structure import Described
from headrace_data.transformations.batching import Batches, batch_arguments

_MAPS = ("map", "parallel_map")


class _NotVectorizableError(Exception):
    """An operation has no form for batches, or not one that gives the same bits."""


class _Batch:
    """The operations of a function, each for a batch.

    Attributes:
        made: What stands for a tensor: another one, and whether it has the new axis.
        size: How many elements the batch has.
        drawn: The random ops, each with what stands for its output.
    """

    def __init__(self, function: Function) -> None:
        self.made: dict[Tensor, tuple[Tensor, bool]] = {}
        self.size: Any = None
        self.drawn: list[Operation] = []
        self._function = function

    def tensor(self, tensor: Tensor) -> Tensor:
        """Return what stands for a tensor, with the new axis."""
        found, batched = self.made[tensor]
        if batched:
            return found
        shape = hr.concat([[self.size], hr.constant(_sizes(tensor), hr.int32)], 0)
        return hr.broadcast_to(hr.expand_dims(found, 0), shape)

    def reshaped(self, tensor: Tensor, sizes: Sequence[int]) -> Tensor:
        """Return a tensor whose rows have other shapes."""
        shape = hr.concat([[self.size], hr.constant(list(sizes), hr.int32, [len(sizes)])], 0)
        return hr.reshape(tensor, shape)

    def aligned(self, tensor: Tensor, rank: int) -> Tensor:
        """Return what stands for a tensor, its rows broadcasting with others of a rank."""
        found, batched = self.made[tensor]
        sizes = _sizes(tensor)
        if not batched or len(sizes) == rank:
            return found
        return self.reshaped(found, [1] * (rank - len(sizes)) + sizes)

    def add(self, op: Operation) -> None:
        """Add an operation for a batch.

        Raises:
            _NotVectorizableError: if there is no such form.
        """
        if op.control_inputs or op.gradient_rule or len(op.outputs) != 1:
            raise _NotVectorizableError
        value = None if op.schema.effects else _known(op.outputs[0])
        if value is not None:
            self.made[op.outputs[0]] = (hr.constant(value, op.outputs[0].dtype), False)
            return
        if op.schema.effects == _DRAWS:
            self._draw(op)
            return
        if op.schema.effects:
            raise _NotVectorizableError
        if not any(self.made[t][1] for t in op.inputs):
            self._as_it_is(op)
            return
        (output,) = op.outputs
        if _is_exact(op):
            rank = len(_sizes(output))
            given = [self.aligned(t, rank) for t in op.inputs]
            found = call_op(op.type, *given, **op.attrs)
        elif op.type == "FloorMod" and _never_zero(op.inputs[1]):
            given = [self.aligned(t, len(_sizes(output))) for t in op.inputs]
            found = call_op(op.type, *given)
        elif op.schema.view:
            if self.made[op.inputs[0]][1] is False:
                raise _NotVectorizableError
            found = self.reshaped(self.made[op.inputs[0]][0], _sizes(output))
        elif op.type in _MOVES:
            found = _MOVES[op.type](self, op)
        else:
            raise _NotVectorizableError
        self.made[output] = (found, True)

    def _draw(self, op: Operation) -> None:
        """Let what a random op draws for each element be an argument."""
        for tensor in op.inputs:
            _constant(tensor)
        (output,) = op.outputs
        self.made[output] = (self.argument(output), True)
        self.drawn.append(op)

    def argument(self, tensor: Tensor) -> Tensor:
        """Return an argument of the function of batches for a tensor of each element."""
        spec = TensorSpec(tensor.dtype, hr.Shape([None, *_sizes(tensor)]))
        found = self._function.add_parameter(spec)
        if self.size is None:
            self.size = hr.shape(found)[0]
        return found

    def _as_it_is(self, op: Operation) -> None:
        """Add an operation that depends on no element."""
        if not _is_exact(op) and op.type not in _MOVES and not op.schema.view:
            raise _NotVectorizableError
        given = [self.made[t][0] for t in op.inputs]
        grouped = [given] if op.type == "Concat" else given
        found = call_op(op.type, *grouped, **op.attrs)
        self.made[op.outputs[0]] = (found, False)


def _is_exact(op: Operation) -> bool:
    return op.schema.exact and not op.outputs[0].dtype.is_complex


def _sizes(tensor: Tensor) -> list[int]:
    if not tensor.shape.is_fully_defined():
        raise _NotVectorizableError
    return list(tensor.shape.known)


def _known(tensor: Tensor) -> Any:
    """Return the value of a tensor that is known when the graph is built, else None."""
    graph = tensor.op.graph
    assert isinstance(graph, Function)
    with inside(graph):
        return hr.get_static_value(tensor)


def _constant(tensor: Tensor) -> Any:
    value = _known(tensor)
    if value is None:
        raise _NotVectorizableError
    return value


def _never_zero(tensor: Tensor) -> bool:
    value = _known(tensor)
    return value is not None and bool(np.all(value != 0))


def _slice(batch: _Batch, op: Operation) -> Any:
    """Return the parts of rows that begin where a tensor says, as one gather."""
    source, begin, size = op.inputs
    dims, sizes = _sizes(source), _sizes(op.outputs[0])
    if np.any(_constant(size) < 0) or not dims:
        raise _NotVectorizableError
    first = hr.cast(batch.tensor(begin), hr.int32)
    room = hr.constant([d - s for d, s in zip(dims, sizes, strict=True)], hr.int32)
    checks = [
        hr.assert_non_negative(first, message="slice: begins before the first element"),
        hr.assert_less_equal(first, room, message="slice: ends behind the last element"),
    ]
    # How far apart neighbours along each axis are, in the row as a vector.
    strides = np.cumprod([1, *dims[:0:-1]])[::-1].astype(np.int32)
    inside = sum(np.ix_(*(np.arange(s) * stride for s, stride in zip(sizes, strides, strict=True))))
    with hr.control_dependencies(checks):
        start = hr.reduce_sum(first * hr.constant(strides), 1, keepdims=True)
    places = start + hr.constant(np.asarray(inside, np.int32).reshape(1, -1))
    flat = batch.reshaped(batch.tensor(source), [int(np.prod(dims))])
    return batch.reshaped(hr.gather(flat, places, axis=1, batch_dims=1), sizes)


def _transpose(batch: _Batch, op: Operation) -> Any:
    perm = op.attrs["perm"]
    rank = len(_sizes(op.inputs[0]))
    axes = range(rank - 1, -1, -1) if perm is None else [axis % rank for axis in perm]
    return hr.transpose(batch.tensor(op.inputs[0]), [0, *(axis + 1 for axis in axes)])


def _pad(batch: _Batch, op: Operation) -> Any:
    rows = np.concatenate([np.zeros((1, 2), np.int64), _constant(op.inputs[1])])
    filling = [_constant(t) for t in op.inputs[2:]]
    return call_op("Pad", batch.tensor(op.inputs[0]), rows, *filling)


def _one_hot(batch: _Batch, op: Operation) -> Any:
    if op.attrs["axis"] != -1:
        raise _NotVectorizableError
    rest = [_constant(t) for t in op.inputs[1:]]
    return call_op("OneHot", batch.tensor(op.inputs[0]), *rest, **op.attrs)


def _concat(batch: _Batch, op: Operation) -> Any:
    axis = op.attrs["axis"] % len(_sizes(op.outputs[0])) + 1
    return call_op("Concat", [batch.tensor(t) for t in op.inputs], axis=axis)


_MOVES: dict[str, Callable[[_Batch, Operation], Any]] = {
    "Transpose": _transpose,
    "Pad": _pad,
    "OneHot": _one_hot,
    "Concat": _concat,
    "Slice": _slice,
}
_DRAWS = frozenset(("draws",))


def batch(dataset: Described, batch_size: Any, drop_remainder: Any) -> Described:
    """Return a data set of so many elements each, joined along a new first axis."""
    size, drop = batch_arguments(batch_size, drop_remainder)
    element = structure.batched(dataset.spec, static(size) if static(drop) else None)
    joined = vectorized(dataset, size, drop, element)
    if joined is not None:
        return joined
    return make(
        "batch",
        element,
        sources=[dataset],
        arguments=[size, drop],
        settings={"kinds": _kinds(dataset)},
    )


def vectorized(dataset: Described, size: Any, drop: Any, element: Any) -> Described | None:
    """Return a data set of the batches of one that a function made, None where it stays in parts.

    Args:
        dataset: The data set.
        size: [], the size of a batch.
        drop: [], whether to leave out a last batch that is smaller.
        element: The structure of the batches.
    """
    op = dataset.variant.op
    if op.type != "Dataset" or op.attrs["kind"] not in _MAPS or op.graph is not get_default_graph():
        return None
    source = dataset
    while source.variant is dataset.variant:
        # The same data set without options, and then what was mapped; of a handle it is not known.
        if not source.inputs:
            return None
        source = source.inputs[0]
    if any(kind != "tensor" for part in (source, dataset) for kind in _kinds(part)):
        return None
    function: Function = op.attrs["function"]
    made = Function(f"{function.name}/batch", get_default_graph())
    batch = _Batch(made)
    try:
        with inside(made):
            _build(function, made, batch)
            made.finish([batch.tensor(t) for t in function.results])
    except _NotVectorizableError:
        return None
    functions = {"function": Traced(made, element)}
    if batch.drawn:
        functions["reducer"] = Traced(_draws(function, batch.drawn), element)
    joined = make(
        "map_batch", element, sources=[source], arguments=[size, drop], functions=functions
    )
    # Its options are those of what was mapped, too.
    return Described.face(joined.variant, element, inputs=[dataset])


def _draws(function: Function, drawn: Sequence[Operation]) -> Function:
    """Return a function without arguments that draws what random ops draw for one element."""
    made = Function(f"{function.name}/draws", get_default_graph())
    with inside(made):
        results = []
        for op in drawn:
            given = [hr.constant(_constant(t), t.dtype) for t in op.inputs]
            # Under their own names, so that they draw the same numbers.
            results.append(call_op(op.type, *given, **op.attrs, name=f"{op.name}/"))
        made.finish(results)
    return made


def _kinds(dataset: Described) -> tuple[str, ...]:
    return structure.kinds(dataset.spec)


def _build(function: Function, made: Function, batch: _Batch) -> None:
    captured = {parameter: tensor for tensor, parameter in function.captures.items()}
    for parameter in function.parameters:
        if parameter in captured:
            if parameter.dtype.kind in ("resource", "list"):
                raise _NotVectorizableError
            batch.made[parameter] = (made.capture(captured[parameter]), False)
            continue
        batch.made[parameter] = (batch.argument(parameter), True)
    for op in function.operations:
        if op.type != "Parameter":
            batch.add(op)


@stream("map_batch")
class MapBatchStream(Batches):
    """What a function of batches returns for so many elements at a time."""

    def __init__(self, value: DatasetValue, run: Pass) -> None:
        super().__init__(value, run)
        self._function = value.function
        draws = value.functions.get("reducer")
        self._draws = None if draws is None else CountedCalls(draws, run)

    def _joined(self, columns: list[Sequence[Any]]) -> Element:
        draws = self._draws
        if draws is not None:
            columns += zip(*[draws(()) for _ in columns[0]], strict=True)
        return self._function([stacked(column) for column in columns], self.run, None)

    def _left_out(self, count: int) -> None:
        # They would have drawn, too, one by one.
        if self._draws is not None:
            for _ in range(count):
                self._draws.number()
