"""Running a region operation by operation, with the plain kernels, before it is compiled."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from headrace.graph.operation import Operation
from headrace.graph.tensor import Tensor
from headrace_cpu.fusion.nodes import shape_of

Array = Any

# Which inputs of an operation are data; the others say what shape the result has, which is known.
_DATA = {
    "Reshape": (0,),
    "BroadcastTo": (0,),
    "Fill": (1,),
    "SumToShape": (0,),
    "OneHot": (0, 1, 2),
}
_UPDATES = frozenset({"AssignVariable", "AssignAddVariable", "AssignSubVariable"})


def data_inputs(op: Operation) -> tuple[Tensor, ...]:
    """Return the inputs whose elements an operation computes with."""
    if op.type in _UPDATES:
        return (op.inputs[1],)
    if op.type == "ReadVariable":
        return ()
    places = _DATA.get(op.type)
    return op.inputs if places is None else tuple(op.inputs[i] for i in places)


@functools.cache
def _kernels() -> dict[str, Callable[..., Any]]:
    from headrace_cpu.kernels import ARRAY_KERNELS

    return {kernel.op: kernel.function for kernel in ARRAY_KERNELS if kernel.style == "plain"}


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
            if op.type in _UPDATES:
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
    if op.type in _DATA:
        return [_shaped(op, [value(t) for t in data_inputs(op)])]
    grouped = [
        [value(t) for t in part] if isinstance(part, list) else value(part)
        for part in op.grouped_inputs
    ]
    found = _kernels()[op.type](np, *grouped, **op.attrs)
    return found if isinstance(found, list | tuple) else [found]


def _shaped(op: Operation, data: list[Array]) -> Array:
    shape = shape_of(op.outputs[0])
    if op.type == "Reshape":
        return data[0].reshape(shape)
    if op.type in ("BroadcastTo", "Fill"):
        return np.broadcast_to(data[0], shape)
    if op.type == "SumToShape":
        return _kernels()["SumToShape"](np, data[0], np.array(shape, np.int64))
    depth = np.asarray(shape[op.attrs["axis"]])
    return _kernels()["OneHot"](np, *data, depth, **op.attrs)
