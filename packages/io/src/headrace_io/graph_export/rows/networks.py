"""Products, convolutions, pooling and the other operations of networks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import headrace as hr
from headrace import Tensor
from headrace_io.graph_export.node import ExportedNode, ExportTable

ROWS = ExportTable()

ROWS.same("SoftmaxCrossEntropyWithLogits", outputs=2)
ROWS.same("SparseSoftmaxCrossEntropyWithLogits", types="T Tlabels", outputs=2)
ROWS.same("Quantize", "QuantizeV2", types="", attrs="T mode round_mode", outputs=3)
ROWS.same("Dequantize", attrs="mode")


@ROWS.add("QuantizedConcat")
def _quantized_concat(node: ExportedNode) -> list[str]:
    axis, *rest = node.cast(0, hr.int32), *node.inputs[1:]
    name = node.emit("QuantizedConcat", axis, *rest, N=len(rest) // 3, T=node.dtype(1))
    return [name, f"{name}:1", f"{name}:2"]


@ROWS.add("FakeQuant")
def _fake_quant(node: ExportedNode) -> str:
    attrs = {name: node.attr(name) for name in ("num_bits", "narrow_range")}
    kind = "FakeQuantWithMinMaxVars" + ("PerChannel" if node.rank(1) else "")
    return node.emit(kind, *node.inputs, **attrs)


@ROWS.add("InTopK")
def _in_top_k(node: ExportedNode) -> str:
    predictions, targets, k = node.cast(0, hr.float32), node.inputs[1], node.cast(2, node.dtype(1))
    return node.emit("InTopKV2", predictions, targets, k, T=node.dtype(1))


@ROWS.add("MatMul")
def _matmul(node: ExportedNode) -> str:
    first, second = node.attr("transpose_a"), node.attr("transpose_b")
    if node.rank(0) == node.rank(1) == 2:
        return node.emit(
            "MatMul", *node.inputs, T=node.dtype(), transpose_a=first, transpose_b=second
        )
    taken = [
        _conjugate(node, i) if flag and node.dtype().is_complex else node.inputs[i]
        for i, flag in enumerate((first, second))
    ]
    return node.emit("BatchMatMulV2", *taken, T=node.dtype(), adj_x=first, adj_y=second)


def _conjugate(node: ExportedNode, index: int) -> str:
    # Products of several matrices transpose and conjugate at once there.
    return node.emit("Conj", node.inputs[index], part="conj", T=node.dtype())


@ROWS.add("Softmax", "LogSoftmax")
def _softmax(node: ExportedNode) -> str:
    axis = node.attr("axis")
    if axis in (None, -1):
        return node.emit(node.op.type, *node.inputs, T=node.dtype())
    rank = node.rank()
    axis %= rank
    if axis == rank - 1:
        return node.emit(node.op.type, *node.inputs, T=node.dtype())
    # TensorFlow takes the last axis alone: two axes change their places, and back.
    order = list(range(rank))
    order[axis], order[-1] = order[-1], order[axis]
    perm = node.const(order, "perm")
    types: dict[str, Any] = {"T": node.dtype(), "Tperm": hr.int32}
    moved = node.emit("Transpose", *node.inputs, perm, part="moved", **types)
    made = node.emit(node.op.type, moved, part="along_last", T=node.dtype())
    return node.emit("Transpose", made, perm, **types)


def _spread(node: ExportedNode, values: Sequence[int] | None, fill: int = 1) -> list[int]:
    """Return a value for each axis of images: those of batch and channels are 1."""
    layout = node.attr("data_format")
    given = [fill] * (len(layout) - 2) if values is None else list(values)
    return [fill, fill, *given] if layout.startswith("NC") else [fill, *given, fill]


def _padding(node: ExportedNode) -> dict[str, Any]:
    padding = node.attr("padding")
    if isinstance(padding, str):
        return {"padding": padding}
    flat = [size for pair in padding for size in pair]
    channels_first = node.attr("data_format").startswith("NC")
    pairs = [0, 0, 0, 0, *flat] if channels_first else [0, 0, *flat, 0, 0]
    return {"padding": "EXPLICIT", "explicit_paddings": pairs}


def _window(node: ExportedNode) -> dict[str, Any]:
    return {
        "strides": _spread(node, node.attr("strides")),
        "dilations": _spread(node, node.attr("dilations")),
        "data_format": node.attr("data_format"),
        **_padding(node),
    }


@ROWS.add("Conv2D", "Conv2DBackpropInput", "Conv2DBackpropFilter")
def _conv2d(node: ExportedNode) -> str:
    groups = _groups(node)
    if groups == 1:
        last = node.dtype(len(node.inputs) - 1)
        return node.emit(node.op.type, *node.inputs, T=last, **_window(node))
    if node.op.type != "Conv2D":
        raise node.refused(f"it divides the channels into {groups} groups")
    return _depthwise(node)


def _groups(node: ExportedNode) -> int:
    """Return into how many groups a convolution divides the channels."""
    result = node.op.outputs[0]
    images, filters = {
        "Conv2D": (node.op.inputs[0], node.op.inputs[1]),
        "Conv2DBackpropInput": (result, node.op.inputs[1]),
        "Conv2DBackpropFilter": (node.op.inputs[0], result),
    }[node.op.type]
    channel = 1 if node.attr("data_format").startswith("NC") else -1
    there, taken = _size(images, channel), _size(filters, -2)
    if there is None or taken is None:
        raise node.refused("the channels of its images or filters are not known")
    return there // taken


def _size(tensor: Tensor, axis: int) -> int | None:
    dims = tensor.spec.shape.dims
    return None if dims is None else dims[axis]


def _depthwise(node: ExportedNode) -> str:
    rows, columns, taken, made = node.tensor(1).spec.shape.dims or (None,) * 4
    groups = _groups(node)
    strides = node.attr("strides")
    if taken != 1 or rows is None or columns is None or made is None:
        raise node.refused(f"it divides the channels into {groups} groups")
    if len(set(strides)) > 1 or set(node.attr("dilations")) != {1}:
        raise node.refused(
            "each channel has a filter of its own, with gaps, or with other strides along rows "
            "than along columns"
        )
    shape = node.const([rows, columns, groups, made // groups], "shape")
    types: dict[str, Any] = {"T": node.dtype(1), "Tshape": hr.int32}
    filters = node.emit("Reshape", node.inputs[1], shape, part="filter", **types)
    kind = "DepthwiseConv2dNative"
    window = _window(node)
    if window["padding"] == "EXPLICIT":
        raise node.refused("each channel has a filter of its own, with paddings of its own")
    return node.emit(kind, node.inputs[0], filters, T=node.dtype(), **window)


@ROWS.add("Conv3D")
def _conv3d(node: ExportedNode) -> str:
    if not isinstance(node.attr("padding"), str):
        raise node.refused("convolutions of volumes take no paddings of their own")
    return node.emit("Conv3D", *node.inputs, T=node.dtype(), **_window(node))


@ROWS.add("AvgPool", "MaxPool")
def _pool(node: ExportedNode) -> str:
    layout = node.attr("data_format")
    count = len(layout) - 2
    dilations = node.attr("dilations")
    if count not in (2, 3) or (dilations is not None and set(dilations) != {1}):
        raise node.refused("windows have two or three axes there, and no gaps")
    if not isinstance(node.attr("padding"), str):
        raise node.refused("pooling takes no paddings of its own")
    kind = node.op.type + ("3D" if count == 3 else "")
    return node.emit(
        kind,
        *node.inputs,
        T=node.dtype(),
        ksize=_spread(node, node.attr("ksize")),
        strides=_spread(node, node.attr("strides")),
        padding=node.attr("padding"),
        data_format=layout,
    )


@ROWS.add("Resize")
def _resize(node: ExportedNode) -> str:
    kinds = {
        "bilinear": "ResizeBilinear",
        "nearest": "ResizeNearestNeighbor",
        "bicubic": "ResizeBicubic",
        "area": "ResizeArea",
    }
    method = node.attr("method")
    if method not in kinds:
        raise node.refused(f"there is none of the method {method!r}")
    attrs = {"align_corners": node.attr("align_corners")}
    if method != "area":
        attrs["half_pixel_centers"] = node.attr("half_pixel_centers")
    elif node.attr("half_pixel_centers"):
        raise node.refused("areas have no centers of half a pixel")
    if method == "nearest" or node.op.outputs[0].dtype == hr.float32:
        return node.emit(kinds[method], *node.inputs, T=node.dtype(), **attrs)
    made = node.emit(kinds[method], *node.inputs, part="resized", T=node.dtype(), **attrs)
    return node.emit("Cast", made, SrcT=hr.float32, DstT=node.op.outputs[0].dtype)
