"""Running a group operation by operation, with the plain kernels, before it is compiled."""

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
    values: dict[Tensor, Array] = {}
    # Nothing is written before all is computed: what is read may share memory with it.
    updated: dict[Tensor, Array] = {}

    def value(tensor: Tensor) -> Array:
        found = values.get(tensor)
        if found is None:
            constant = tensor.spec.value
            found = values[tensor] = read(tensor) if constant is None else constant
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
