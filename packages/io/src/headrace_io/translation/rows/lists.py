"""Translations of arrays and lists of tensors, which loops write and read."""

from __future__ import annotations

from typing import Any

from headrace import Shape, Tensor
from headrace.errors import DocumentError
from headrace.extend.ops import TensorSpec
from headrace.extend.primitives import (
    list_concat,
    list_get,
    list_length,
    list_pop,
    list_push,
    list_reserve,
    list_resize,
    list_set,
    list_stack,
    list_unstack,
)
from headrace.extend.translations import TranslationTable
from headrace_io.translation.library import hr
from headrace_io.translation.values import ArrayHandle

ROWS = TranslationTable()


@ROWS.add(
    "TensorArrayV3", outputs="handle flow", ignored="clear_after_read identical_element_shapes"
)
def _array(node: Any) -> Any:
    node.attr("tensor_array_name")
    kind = node.attr("dtype")
    shape = node.attr("element_shape", Shape(None))
    array = ArrayHandle(kind, shape, bool(node.attr("dynamic_size", False)))
    return [array, list_reserve(node.tensor(0), spec=TensorSpec(kind, shape))]


def _at(node: Any, flow: int) -> hr.TensorArray:
    array = node.value(0)
    if not isinstance(array, ArrayHandle):
        raise DocumentError("its first input must be the handle of a TensorArray")
    return array.at(node.value(flow))


@ROWS.add("TensorArrayWriteV3")
def _write(node: Any) -> Any:
    return _at(node, 3).write(node.tensor(1), node.tensor(2)).flow


@ROWS.add("TensorArrayReadV3")
def _read(node: Any) -> Any:
    return _at(node, 2).read(node.tensor(1))


@ROWS.add("TensorArrayGatherV3")
def _gather(node: Any) -> Any:
    array = _at(node, 2)
    found = array.gather(node.tensor(1))
    shape = node.attr("element_shape", Shape(None))
    if shape.rank is not None:
        found.set_shape(Shape([None]).concatenate(shape))
    return found


@ROWS.add("TensorArrayScatterV3")
def _scatter(node: Any) -> Any:
    return _at(node, 3).scatter(node.tensor(1), node.tensor(2)).flow


@ROWS.add("TensorArrayConcatV3", outputs="value lengths")
def _concat(node: Any) -> Any:
    node.attr("element_shape_except0")
    value, lengths = list_concat(_at(node, 1).flow)
    return [value, lengths]


@ROWS.add("TensorArraySplitV3")
def _split(node: Any) -> Any:
    return _at(node, 3).split(node.tensor(1), node.tensor(2)).flow


@ROWS.add("TensorArraySizeV3")
def _size(node: Any) -> Any:
    return _at(node, 1).size()


@ROWS.add("TensorArrayCloseV3")
def _close(node: Any) -> Any:
    return hr.no_op()


def _shape(node: Any, index: int) -> Shape:
    """Return the shape of elements that an input gives; -1 stands for what is not known."""
    found = node.static(index)
    if found is None or found.ndim == 0:
        return Shape(None)
    return Shape([None if size < 0 else int(size) for size in found])


def _zeros(shape: Shape) -> list[int] | None:
    return list(shape.known) if shape.is_fully_defined() else None


@ROWS.add("TensorListReserve")
def _reserve(node: Any) -> Any:
    spec = TensorSpec(node.attr("element_dtype"), _shape(node, 0))
    return list_reserve(node.tensor(1), spec=spec)


@ROWS.add("EmptyTensorList")
def _empty(node: Any) -> Any:
    return list_reserve(0, spec=TensorSpec(node.attr("element_dtype"), _shape(node, 0)))


@ROWS.add("TensorListSetItem")
def _set_item(node: Any) -> Any:
    return list_set(*node.tensors)


def _shaped(found: Tensor, shape: Shape) -> Tensor:
    if shape.rank is not None:
        found.set_shape(shape)
    return found


@ROWS.add("TensorListGetItem")
def _get_item(node: Any) -> Any:
    shape = _shape(node, 2)
    return _shaped(list_get(node.tensor(0), node.tensor(1), _zeros(shape)), shape)


@ROWS.add("TensorListStack", ignored="num_elements")
def _stack(node: Any) -> Any:
    shape = _shape(node, 1)
    return _shaped(list_stack(node.tensor(0), _zeros(shape)), Shape([None]).concatenate(shape))


@ROWS.add("TensorListFromTensor")
def _from_tensor(node: Any) -> Any:
    return list_unstack(node.tensor(0))


@ROWS.add("TensorListPushBack")
def _push(node: Any) -> Any:
    return list_push(*node.tensors)


@ROWS.add("TensorListPopBack", outputs="output_handle tensor")
def _pop(node: Any) -> Any:
    return list(list_pop(node.tensor(0), _zeros(_shape(node, 1))))


@ROWS.add("TensorListLength")
def _length(node: Any) -> Any:
    return list_length(node.tensor(0))


@ROWS.add("TensorListResize")
def _resize(node: Any) -> Any:
    return list_resize(*node.tensors)
