"""Shapes, parts and arrangements of tensors."""

from __future__ import annotations

from typing import Any

import headrace as hr
from headrace_io.graph_export.node import ExportedNode, ExportTable

ROWS = ExportTable()

ROWS.same("Reshape", types="T Tshape")
ROWS.same("Shape Size", attrs="out_type")
ROWS.same("Rank Where")
ROWS.same("BroadcastTo", types="T Tidx")
ROWS.same("Fill", types="index_type T")
ROWS.same("GatherNd", types="Tparams Tindices")
ROWS.same("Tile", types="T Tmultiples")
ROWS.same("MirrorPad", types="T Tpaddings", attrs="mode")
ROWS.same("Reverse", "ReverseV2", types="T Tidx")
ROWS.same("ReverseSequence", types="T Tlen", attrs="seq_dim=seq_axis batch_dim=batch_axis")
ROWS.same("Roll", types="T Tshift Taxis")
ROWS.same("Range", types="Tidx")
ROWS.same("LinSpace", types="T - Tidx")
ROWS.same("TransposeBy", "Transpose", types="T Tperm")
ROWS.same("ListDiff", attrs="out_idx", outputs=2)
ROWS.same("Unique", "UniqueWithCounts", attrs="out_idx", outputs=3)
ROWS.same("UnravelIndex", types="Tidx")


def _of_one_dtype(node: ExportedNode, kind: str, places: tuple[int, ...], name: str) -> str:
    """Write an operation some of whose inputs have to be of one integer dtype there.

    Args:
        node: The operation.
        kind: The type of TensorFlow's op.
        places: Which inputs.
        name: The attribute that is their dtype.
    """
    inputs = list(node.inputs)
    dtypes = {node.dtype(i) for i in places}
    common = node.dtype(places[0]) if len(dtypes) == 1 else hr.int64
    for i in places:
        inputs[i] = node.cast(i, common)
    attrs: dict[str, Any] = {name: common}
    if name != "T":
        attrs["T"] = node.op.outputs[0].dtype
    return node.emit(kind, *inputs, **attrs)


@ROWS.add("BroadcastShape")
def _broadcast_shape(node: ExportedNode) -> str:
    return _of_one_dtype(node, "BroadcastArgs", (0, 1), "T")


@ROWS.add("ScatterNd")
def _scatter_nd(node: ExportedNode) -> str:
    return _of_one_dtype(node, "ScatterNd", (0, 2), "Tindices")


@ROWS.add("Slice")
def _slice(node: ExportedNode) -> str:
    return _of_one_dtype(node, "Slice", (1, 2), "Index")


@ROWS.add("TopK")
def _top_k(node: ExportedNode) -> list[str]:
    made = node.emit(
        "TopKV2",
        node.inputs[0],
        node.cast(1, hr.int32),
        T=node.dtype(),
        sorted=node.attr("sorted"),
    )
    return [made, f"{made}:1"]


@ROWS.add("EnsureShape")
def _ensure_shape(node: ExportedNode) -> str:
    shape = node.attr("shape")
    if shape.rank is None:
        return node.emit("Identity", *node.inputs, T=node.dtype())
    return node.emit("EnsureShape", *node.inputs, T=node.dtype(), shape=shape)


@ROWS.add("Placeholder")
def _placeholder(node: ExportedNode) -> str:
    return node.emit("Placeholder", dtype=node.attr("dtype"), shape=node.attr("shape"))


@ROWS.add("PlaceholderWithDefault")
def _placeholder_with_default(node: ExportedNode) -> str:
    return node.emit(
        "PlaceholderWithDefault", *node.inputs, dtype=node.dtype(), shape=node.attr("shape")
    )


@ROWS.add("Const")
def _const(node: ExportedNode) -> str:
    return node.const(node.attr("value"), "", node.op.outputs[0].dtype)


@ROWS.add("ExpandDims")
def _expand_dims(node: ExportedNode) -> str:
    axis = node.const(node.attr("axis"), "dim")
    return node.emit("ExpandDims", *node.inputs, axis, T=node.dtype(), Tdim=hr.int32)


@ROWS.add("Squeeze")
def _squeeze(node: ExportedNode) -> str:
    axis = node.attr("axis")
    dims = [] if axis is None else [axis] if isinstance(axis, int) else list(axis)
    if axis is not None and not dims:
        # TensorFlow takes an empty list for all axes.
        return node.emit("Identity", *node.inputs, T=node.dtype())
    return node.emit("Squeeze", *node.inputs, T=node.dtype(), squeeze_dims=dims)


@ROWS.add("Concat")
def _concat(node: ExportedNode) -> str:
    count = len(node.inputs)
    if count == 1:
        return node.emit("Identity", *node.inputs, T=node.dtype())
    axis = node.const(node.attr("axis"), "axis")
    return node.emit("ConcatV2", *node.inputs, axis, N=count, T=node.dtype(), Tidx=hr.int32)


@ROWS.add("Stack")
def _stack(node: ExportedNode) -> str:
    return node.emit(
        "Pack", *node.inputs, N=len(node.inputs), T=node.dtype(), axis=node.attr("axis")
    )


@ROWS.add("Unstack")
def _unstack(node: ExportedNode) -> list[str]:
    count = node.attr("num")
    made = node.emit("Unpack", *node.inputs, num=count, T=node.dtype(), axis=node.attr("axis"))
    return [made, *(f"{made}:{i}" for i in range(1, count))]


@ROWS.add("Split", "SplitBy")
def _split(node: ExportedNode) -> list[str]:
    value, *sizes = node.inputs
    count, tlen = len(node.op.outputs), hr.int32
    if sizes:
        tlen = node.dtype(1)
    else:
        sizes = [node.const(node.attr("sizes"), "size_splits")]
    axis = node.const(node.attr("axis"), "split_dim")
    made = node.emit("SplitV", value, *sizes, axis, num_split=count, T=node.dtype(), Tlen=tlen)
    return [made, *(f"{made}:{i}" for i in range(1, count))]


@ROWS.add("StridedSlice")
def _strided_slice(node: ExportedNode) -> str:
    entries = node.attr("entries")

    def mask(text: str, mark: str) -> int:
        return sum(1 << i for i, letter in enumerate(text) if letter == mark)

    return node.emit(
        "StridedSlice",
        *node.inputs,
        T=node.dtype(),
        Index=node.dtype(1),
        begin_mask=mask(node.attr("open_begin"), "1"),
        end_mask=mask(node.attr("open_end"), "1"),
        ellipsis_mask=mask(entries, "e"),
        new_axis_mask=mask(entries, "n"),
        shrink_axis_mask=mask(entries, "i"),
    )


@ROWS.add("Transpose")
def _transpose(node: ExportedNode) -> str:
    perm = node.attr("perm")
    axes = range(node.rank())
    order = list(axes)[::-1] if perm is None else [axes[axis] for axis in perm]
    return node.emit(
        "Transpose", *node.inputs, node.const(order, "perm"), T=node.dtype(), Tperm=hr.int32
    )


@ROWS.add("Gather")
def _gather(node: ExportedNode) -> str:
    axis = node.const(node.attr("axis"), "axis")
    params, indices = node.dtype(0), node.dtype(1)
    return node.emit(
        "GatherV2",
        *node.inputs,
        axis,
        Tparams=params,
        Tindices=indices,
        Taxis=hr.int32,
        batch_dims=node.attr("batch_dims"),
    )


@ROWS.add("Pad")
def _pad(node: ExportedNode) -> str:
    kind = "PadV2" if len(node.inputs) == 3 else "Pad"
    return node.emit(kind, *node.inputs, T=node.dtype(), Tpaddings=node.dtype(1))


@ROWS.add("OneHot")
def _one_hot(node: ExportedNode) -> str:
    indices, on, off, depth = node.inputs
    return node.emit(
        "OneHot", indices, depth, on, off, T=node.dtype(1), TI=node.dtype(0), axis=node.attr("axis")
    )


@ROWS.add("TensorScatter")
def _tensor_scatter(node: ExportedNode) -> str:
    kinds = {"update": "Update", "add": "Add", "sub": "Sub"}
    mode = node.attr("mode")
    if mode not in kinds:
        raise node.refused(f"there is none of the mode {mode!r}")
    return node.emit(
        f"TensorScatter{kinds[mode]}", *node.inputs, T=node.dtype(), Tindices=node.dtype(1)
    )


@ROWS.add("SearchSorted")
def _search_sorted(node: ExportedNode) -> str:
    kind = "LowerBound" if node.attr("side") == "left" else "UpperBound"
    attrs: dict[str, Any] = {"T": node.dtype(), "out_type": node.attr("out_type")}
    if node.rank() == 2:
        return node.emit(kind, *node.inputs, **attrs)
    # TensorFlow searches in the rows of matrices.
    rows = []
    for i in range(2):
        dims = node.tensor(i).spec.shape.dims
        if dims is None or dims[-1] is None:
            raise node.refused(f"the length of the rows of {node.tensor(i).name!r} is not known")
        shape = node.const([-1, dims[-1]], "shape")
        types: dict[str, Any] = {"T": node.dtype(), "Tshape": hr.int32}
        rows.append(node.emit("Reshape", node.inputs[i], shape, part="rows", **types))
    found = node.emit(kind, *rows, part="found", **attrs)
    shape = node.emit("Shape", node.inputs[1], part="shape", T=node.dtype(), out_type=hr.int32)
    return node.emit("Reshape", found, shape, T=node.attr("out_type"), Tshape=hr.int32)


@ROWS.add("DynamicPartition")
def _dynamic_partition(node: ExportedNode) -> list[str]:
    count = node.attr("num_partitions")
    made = node.emit("DynamicPartition", *node.inputs, num_partitions=count, T=node.dtype())
    return [made, *(f"{made}:{i}" for i in range(1, count))]


@ROWS.add("DynamicStitch")
def _dynamic_stitch(node: ExportedNode) -> str:
    count = len(node.inputs) // 2
    return node.emit("DynamicStitch", *node.inputs, N=count, T=node.dtype(count))
