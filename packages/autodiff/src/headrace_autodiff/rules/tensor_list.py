"""Gradients of lists: the gradient of a list is a list of the gradients of its items.

An item that no gradient reaches is missing in it, which reads as zeros where items are read.
"""

from __future__ import annotations

from typing import Any

from headrace import Operation, Tensor, zeros_like
from headrace.extend import GradientTable
from headrace.extend.primitives import (
    list_accumulate,
    list_add,
    list_clear,
    list_concat,
    list_gather,
    list_get,
    list_length,
    list_push,
    list_resize,
    list_scatter,
    list_set,
    list_split,
    list_stack,
    list_unstack,
    list_zeros_like,
)
from headrace_autodiff.liveness import popped_gradient, zeros_shape_of
from headrace_autodiff.shaping import take

RULES = GradientTable()


@RULES.add("TensorListPush")
def _push(op: Operation, grad: Tensor) -> tuple[Any, Any]:
    return popped_gradient(grad, op.inputs[1])


@RULES.add("TensorListPop")
def _pop(op: Operation, rest: Tensor | None, item: Tensor | None) -> list[Any]:
    if rest is None:
        rest = list_zeros_like(op.outputs[0])
    item = _zeros(op.outputs[1]) if item is None else item
    return [list_push(rest, item), *_no_zeros(op, 1)]


@RULES.add("TensorListGet")
def _get(op: Operation, grad: Tensor) -> list[Any]:
    items, index = op.inputs[:2]
    return [list_set(list_zeros_like(items), index, grad), None, *_no_zeros(op, 2)]


@RULES.add("TensorListSet")
def _set(op: Operation, grad: Tensor) -> tuple[Any, None, Any]:
    items, index, value = op.inputs
    of_value = list_get(grad, index, zeros_shape_of(value))
    of_items = list_clear(grad, index)
    if op.attrs["grows"]:
        of_items = list_resize(of_items, list_length(items))
    return of_items, None, of_value


@RULES.add("TensorListClear")
def _clear(op: Operation, grad: Tensor) -> tuple[Any, None]:
    return list_clear(grad, op.inputs[1]), None


@RULES.add("TensorListAdd")
def _add(op: Operation, grad: Tensor) -> tuple[Any, Any]:
    return grad, grad


@RULES.add("TensorListStack")
def _stack(op: Operation, grad: Tensor) -> list[Any]:
    return [list_unstack(grad), *_no_zeros(op, 1)]


@RULES.add("TensorListUnstack")
def _unstack(op: Operation, grad: Tensor) -> Any:
    shape = zeros_shape_of(op.inputs[0])
    assert shape is not None
    return list_stack(grad, take(shape, 0, 1, None))


@RULES.add("TensorListGather")
def _gather(op: Operation, grad: Tensor) -> list[Any]:
    items, indices = op.inputs[:2]
    spread = list_accumulate(list_zeros_like(items), indices, grad)
    return [spread, None, *_no_zeros(op, 2)]


@RULES.add("TensorListScatter")
def _scatter(op: Operation, grad: Tensor) -> tuple[Any, None, Any]:
    items, indices, value = op.inputs
    shape = zeros_shape_of(value)
    assert shape is not None
    of_value = list_gather(grad, indices, take(shape, 0, 1, None))
    of_items = list_scatter(grad, indices, zeros_like(value))
    if op.attrs["grows"]:
        of_items = list_resize(of_items, list_length(items))
    return of_items, None, of_value


@RULES.add("TensorListConcat")
def _concat(op: Operation, grad: Tensor | None, _: None) -> list[Any]:
    if grad is None:
        return [None] * len(op.inputs)
    return [list_split(grad, op.outputs[1]), *_no_zeros(op, 1)]


@RULES.add("TensorListSplit")
def _split(op: Operation, grad: Tensor) -> tuple[Any, None]:
    # Zeros stand for the parts that no gradient reaches.
    parts = list_split(zeros_like(op.inputs[0]), op.inputs[1])
    return list_concat(list_add(parts, grad))[0], None


@RULES.add("TensorListAccumulate")
def _accumulate(op: Operation, grad: Tensor) -> tuple[Any, None, Any]:
    shape = zeros_shape_of(op.inputs[2])
    assert shape is not None
    return grad, None, list_gather(grad, op.inputs[1], take(shape, 0, 1, None))


@RULES.add("TensorListResize")
def _resize(op: Operation, grad: Tensor) -> tuple[Any, None]:
    return list_resize(grad, list_length(op.inputs[0])), None


def _zeros(tensor: Tensor) -> Tensor:
    return list_zeros_like(tensor) if tensor.dtype.kind == "list" else zeros_like(tensor)


def _no_zeros(op: Operation, before: int) -> list[None]:
    """Return that nothing flows to the optional shape of zeros, where it is given."""
    return [None] * (len(op.inputs) - before)
