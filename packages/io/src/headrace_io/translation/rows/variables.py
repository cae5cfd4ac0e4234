"""Translations of variables: of references, and of resources."""

from __future__ import annotations

from typing import Any

from headrace import Operation, Shape, Tensor
from headrace.extend.ops import call_op
from headrace.extend.translations import TranslationTable
from headrace_io.translation.library import hr
from headrace_io.translation.rows.arrays import known_or_tensor, masks_of
from headrace_io.translation.values import Reference

ROWS = TranslationTable()


def _made(node: Any, shape: Shape) -> Tensor:
    found: Tensor = call_op(
        "VarHandle",
        dtype=node.attr("dtype"),
        shape=shape,
        container=node.text("container"),
        shared_name=node.text("shared_name") or node.name,
    )
    return found


@ROWS.add("VariableV2", "Variable")
def _variable(node: Any) -> Any:
    shape = node.attr("shape")
    # The older op says "unknown" by a shape of no axes.
    older = node.op == "Variable" and shape.rank == 0
    return Reference(_made(node, Shape(None) if older else shape))


@ROWS.add("VarHandleOp")
def _handle(node: Any) -> Any:
    return _made(node, node.attr("shape"))


@ROWS.add("ReadVariableOp")
def _read(node: Any) -> Any:
    return call_op("ReadVariable", node.handle(0))


@ROWS.add("VarIsInitializedOp", "IsVariableInitialized")
def _initialized(node: Any) -> Any:
    return call_op("VariableInitialized", node.handle(0))


@ROWS.add("VariableShape")
def _shape(node: Any) -> Any:
    return hr.shape(
        call_op("ReadVariable", node.handle(0)), out_type=node.attr("out_type", hr.int32)
    )


def _assigned(node: Any, name: str, **attrs: Any) -> Any:
    handle = node.handle(0)
    written = call_op(name, handle, *node.tensors[1:], **attrs)
    return written.op if node.op.endswith("Op") else Reference(handle, written)


@ROWS.add("Assign", "AssignVariableOp")
def _assign(node: Any) -> Any:
    checked = bool(node.attr("validate_shape", True))
    return _assigned(node, "AssignVariable", validate_shape=checked)


@ROWS.add("AssignAdd", "AssignAddVariableOp")
def _assign_add(node: Any) -> Any:
    return _assigned(node, "AssignAddVariable")


@ROWS.add("AssignSub", "AssignSubVariableOp")
def _assign_sub(node: Any) -> Any:
    return _assigned(node, "AssignSubVariable")


_SCATTERS = ("Add", "Sub", "Mul", "Div", "Min", "Max", "Update", "NdAdd", "NdSub", "NdUpdate")


@ROWS.add(*(f"{first}Scatter{last}" for first in ("", "Resource") for last in _SCATTERS))
def _scatter(node: Any) -> Any:
    resource = node.op.startswith("Resource")
    name = node.op.removeprefix("Resource") + "Variable"
    handle = node.handle(0)
    written = call_op(name, handle, *node.tensors[1:])
    return written.op if resource else Reference(handle, written)


@ROWS.add("ResourceGather")
def _gather(node: Any) -> Any:
    value = call_op("ReadVariable", node.handle(0))
    return hr.gather(value, node.tensor(1), batch_dims=node.attr("batch_dims", 0))


@ROWS.add("ResourceGatherNd")
def _gather_nd(node: Any) -> Any:
    return hr.gather_nd(call_op("ReadVariable", node.handle(0)), node.tensor(1))


@ROWS.add("StridedSliceAssign", "ResourceStridedSliceAssign")
def _slice_assign(node: Any) -> Any:
    handle, value = node.handle(0), node.tensor(4)
    # Which elements the slice names: taken from their numbers.
    whole = call_op("ReadVariable", handle)
    places = hr.reshape(hr.range(hr.size(whole)), hr.shape(whole))
    parts = [known_or_tensor(node, i) for i in (1, 2, 3)]
    taken = hr.strided_slice(places, *parts, **masks_of(node))
    flat = hr.reshape(hr.broadcast_to(value, hr.shape(taken)), [-1])
    rows = hr.reshape(taken, [-1, 1])
    made = hr.reshape(
        hr.tensor_scatter_update(hr.reshape(whole, [-1]), rows, flat), hr.shape(whole)
    )
    written = call_op("AssignVariable", handle, made)
    return written.op if node.op.startswith("Resource") else Reference(handle, written)


@ROWS.add("CountUpTo", "ResourceCountUpTo")
def _count_up_to(node: Any) -> Any:
    return call_op("CountUpTo", node.handle(0), limit=node.attr("limit"))


@ROWS.add("DestroyResourceOp", ignored="ignore_lookup_error")
def _destroy(node: Any) -> Operation:
    # Sessions end what they hold.
    found: Operation = hr.no_op()
    return found
