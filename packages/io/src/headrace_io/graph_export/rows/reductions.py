"""Reductions, and operations along one axis."""

from __future__ import annotations

from typing import Any

import headrace as hr
from headrace_io.graph_export.node import ExportedNode, ExportTable

ROWS = ExportTable()

_REDUCTIONS = ("All", "Any", "Max", "Mean", "Min", "Prod", "Sum")

ROWS.same(
    "UnsortedSegmentMax UnsortedSegmentMin UnsortedSegmentProd UnsortedSegmentSum",
    types="T Tindices Tnumsegments",
)


@ROWS.add(*(f"Reduce{name}" for name in _REDUCTIONS))
def _reduce(node: ExportedNode) -> str:
    axis = node.attr("axis")
    kind = node.op.type.removeprefix("Reduce")
    attrs: dict[str, Any] = {} if kind in ("All", "Any") else {"T": node.dtype()}
    if axis is None:
        # Of a rank that only the step knows, all axes, too.
        first, step = node.const(0, "start"), node.const(1, "delta")
        rank = node.emit("Rank", *node.inputs, part="rank", T=node.dtype())
        axes = node.emit("Range", first, rank, step, part="axes", Tidx=hr.int32)
        if node.tensor(0).shape.rank is not None:
            axes = node.const(list(range(node.rank())), "reduction_indices")
    else:
        given = [axis] if isinstance(axis, int) else list(axis)
        axes = node.const(given, "reduction_indices")
    keep = node.attr("keepdims")
    return node.emit(kind, *node.inputs, axes, keep_dims=keep, Tidx=hr.int32, **attrs)


@ROWS.add("ArgMax", "ArgMin")
def _arg(node: ExportedNode) -> str:
    axis = node.const(node.attr("axis") or 0, "dimension")
    output = node.attr("output_type")
    return node.emit(
        node.op.type, *node.inputs, axis, T=node.dtype(), Tidx=hr.int32, output_type=output
    )


@ROWS.add("Cumsum", "Cumprod")
def _cumulative(node: ExportedNode) -> str:
    attrs = {name: node.attr(name) for name in ("exclusive", "reverse")}
    axis = node.const(node.attr("axis"), "axis")
    return node.emit(node.op.type, *node.inputs, axis, T=node.dtype(), Tidx=hr.int32, **attrs)
