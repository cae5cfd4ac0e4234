"""Running a group operation by operation, with the plain kernels, before it is compiled.

Where all operations go element by element over arrays of one shape, they do so block by block: what
one hands to the next is in the cache then, and in memory that the block before has used. New pages
for each result took longer than the arithmetic.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from headrace import Operation, Tensor
from headrace.extend.ops import OpSchema
from headrace.extend.scalars import expression_of, interpreter
from headrace_cpu.fusion.nodes import shape_of

Array = Any

# Elements of a block. Arrays of less than some blocks are gone through at once.
_BLOCK = 1 << 16
_FEWEST_BLOCKS = 4


def data_inputs(op: Operation) -> tuple[Tensor, ...]:
    """Return the inputs whose elements an operation computes with.

    Handles are not among them, nor inputs that say what shape the result has, or which part of
    another one it is: they are read on the host, and known here (``host_values``).
    """
    schema = op.schema
    if _takes_data_alone(schema):
        return op.inputs
    if schema.effects:
        return tuple(t for t in op.inputs if t.dtype.kind != "resource")
    places = _data_places(schema, op.arity)
    return op.inputs if len(places) == len(op.inputs) else tuple(op.inputs[i] for i in places)


def host_values(op: Operation) -> tuple[Array | None, ...]:
    """Return the values of the inputs that are read on the host, None for those not known."""
    schema = op.schema
    if _takes_data_alone(schema):
        return ()
    return tuple(op.inputs[i].spec.value for i in _host_places(schema, op.arity))


@functools.cache
def _host_places(schema: OpSchema, arity: tuple[int, ...]) -> tuple[int, ...]:
    return schema.flat_places(arity, lambda param: param.on_host)


@functools.cache
def _takes_data_alone(schema: OpSchema) -> bool:
    return not schema.effects and not any(param.on_host for param in schema.inputs)


@functools.cache
def _data_places(schema: OpSchema, arity: tuple[int, ...]) -> tuple[int, ...]:
    return schema.flat_places(arity, lambda param: not param.on_host)


@functools.cache
def _kernels() -> dict[str, Callable[..., Any]]:
    # lazy: kernels are many, and interpreting is for tests and small arrays
    from headrace_cpu.kernels import ARRAY_KERNELS

    return {kernel.op: kernel.function for kernel in ARRAY_KERNELS if kernel.style == "plain"}


def passes(op: Operation) -> int:
    """Return how many kernels compute an operation where it is not fused.

    That is one, but for an op of another package, which is computed function by function.
    """
    if op.type in _kernels() or op.schema.effects:
        return 1
    expression = expression_of(op)
    return 1 if expression is None else sum(bool(step.args) for step in expression.steps)


def interpret(
    ops: Sequence[Operation],
    read: Callable[[Tensor], Array],
    buffers: Mapping[Tensor, Array],
    writes: Sequence[Tensor],
) -> None:
    """Compute operations.

    Args:
        ops: In an order in which they can run.
        read: Returns the array of a tensor from outside.
        buffers: Arrays to fill: of ``writes``, and of the handles of variables to update.
        writes: The tensors that are wanted.
    """

    def outside(tensor: Tensor) -> Array:
        constant = tensor.spec.value
        return read(tensor) if constant is None else constant

    size = _elements(ops, buffers)
    if size is None:
        _interpret(ops, outside, buffers, writes)
        return
    arrays = functools.cache(lambda tensor: np.asarray(outside(tensor)).reshape(-1))
    flat = {tensor: buffer.reshape(-1) for tensor, buffer in buffers.items()}
    for first in range(0, size, _BLOCK):
        block = slice(first, first + _BLOCK)
        _interpret(
            ops,
            functools.partial(_part, arrays, size, block),
            {tensor: buffer[block] for tensor, buffer in flat.items()},
            writes,
        )


def _elements(ops: Sequence[Operation], buffers: Mapping[Tensor, Array]) -> int | None:
    """Return of how many elements all arrays are that are no scalars, None for one go.

    Operations must go element by element. Buffers have the memory of each element where the arrays
    that they stand for have it, as in the kernel that is compiled: so what is read may share it.
    """
    first = next(iter(buffers.values()), None)
    if first is None or first.size < _FEWEST_BLOCKS * _BLOCK:
        return None
    shape = first.shape
    if any(b.shape != shape or not b.flags.c_contiguous for b in buffers.values()):
        return None
    for op in ops:
        taken = data_inputs(op)
        if op.schema.effects:
            if op.type not in _EFFECTS:
                return None
        elif op.schema.expression is None or len(taken) != len(op.inputs):
            return None
        if any(shape_of(t) not in ((), shape) for t in (*taken, *op.outputs)):
            return None
    return int(first.size)


# What is done here to variables, element by element.
_EFFECTS = ("ReadVariable", "AssignVariable", "AssignAddVariable", "AssignSubVariable")


def _part(arrays: Callable[[Tensor], Array], size: int, block: slice, tensor: Tensor) -> Array:
    array = arrays(tensor)
    return array[block] if array.size == size else array.reshape(())


def _interpret(
    ops: Sequence[Operation],
    read: Callable[[Tensor], Array],
    buffers: Mapping[Tensor, Array],
    writes: Sequence[Tensor],
) -> None:
    values: dict[Tensor, Array] = {}
    # Nothing is written before all is computed: what is read may share memory with it.
    updated: dict[Tensor, Array] = {}

    def value(tensor: Tensor) -> Array:
        found = values.get(tensor)
        if found is None:
            found = values[tensor] = read(tensor)
        return found

    with np.errstate(all="ignore"):
        for op in ops:
            if op.type == "ReadVariable":
                values[op.outputs[0]] = buffers[op.inputs[0]]
                continue
            if op.schema.changes:
                handle, new = op.inputs[0], value(op.inputs[1])
                if op.type == "AssignAddVariable":
                    new = buffers[handle] + new
                elif op.type == "AssignSubVariable":
                    new = buffers[handle] - new
                updated[handle] = values[op.outputs[0]] = new
                continue
            for tensor, result in zip(op.outputs, _run(op, value), strict=True):
                values[tensor] = np.asarray(result)
    results = {tensor: value(tensor) for tensor in writes} | updated
    owned = {t: r if r.flags.owndata else r.copy() for t, r in results.items()}
    for tensor, result in owned.items():
        np.copyto(buffers[tensor], result)


def _run(op: Operation, value: Callable[[Tensor], Array]) -> Sequence[Array]:
    shaped = _SHAPED.get(op.type)
    if shaped is not None:
        return [shaped(op, shape_of(op.outputs[0]), *(value(t) for t in data_inputs(op)))]
    kernel = _kernels().get(op.type)
    if kernel is None:
        return [_expression(op)(*[value(t) for t in op.inputs])]
    if _takes_each(op.schema) and len(op.inputs) == len(op.schema.inputs):
        grouped: list[Any] = [value(t) for t in op.inputs]
    else:
        grouped = [
            [value(t) for t in part]
            if isinstance(part, list)
            else None
            if part is None
            else value(part)
            for part in op.grouped_inputs
        ]
    found = kernel(np, *grouped, **op.attrs)
    return found if isinstance(found, list | tuple) else [found]


@functools.cache
def _takes_each(schema: OpSchema) -> bool:
    return not any(param.variadic for param in schema.inputs)


def _expression(op: Operation) -> Callable[..., Any]:
    """Return what computes an operation that another package declared."""
    expression = expression_of(op)
    assert expression is not None
    return interpreter(expression, np, lambda kind, _: _kernels().get(kind))


def _sum_to(op: Operation, shape: tuple[int, ...], x: Array) -> Array:
    return _kernels()["SumToShape"](np, x, np.array(shape, np.int64))


def _one_hot(op: Operation, shape: tuple[int, ...], *data: Array) -> Array:
    return _kernels()["OneHot"](np, *data, np.asarray(shape[op.attrs["axis"]]), **op.attrs)


# Operations whose other inputs say what shape the result has, which is known here.
_SHAPED: dict[str, Callable[..., Array]] = {
    "Reshape": lambda op, shape, x: x.reshape(shape),
    "BroadcastTo": lambda op, shape, x: np.broadcast_to(x, shape),
    "Fill": lambda op, shape, value: np.broadcast_to(value, shape),
    "SumToShape": _sum_to,
    "OneHot": _one_hot,
}
