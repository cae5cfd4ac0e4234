"""Translations of reductions, and of ops along one axis."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from headrace import Tensor
from headrace.errors import DocumentError
from headrace.extend.translations import TranslationTable
from headrace_io.translation.library import hr

ROWS = TranslationTable()

_REDUCTIONS: dict[str, Callable[..., Any]] = {
    "Sum": hr.reduce_sum,
    "Mean": hr.reduce_mean,
    "Prod": hr.reduce_prod,
    "Max": hr.reduce_max,
    "Min": hr.reduce_min,
    "All": hr.reduce_all,
    "Any": hr.reduce_any,
    "EuclideanNorm": hr.math.reduce_euclidean_norm,
}


@ROWS.add(*_REDUCTIONS)
def _reduced(node: Any) -> Any:
    keep = bool(node.attr("keep_dims", False))
    function, x = _REDUCTIONS[node.op], node.tensor(0)
    axes = node.static(1)
    if axes is not None:
        return function(x, axis=axes.tolist(), keepdims=keep)
    return _over_axes(function, x, node.tensor(1), keep)


def _over_axes(function: Callable[..., Any], x: Tensor, axes: Tensor, keep: bool) -> Any:
    """Reduce over axes that are known when the graph runs: moved behind the others, as one."""
    rank = x.shape.rank
    if rank is None:
        raise DocumentError("neither the rank of its input nor its axes are known")
    if rank == 0:
        return function(x, axis=[])
    all_axes = hr.range(rank)
    axes = hr.floormod(hr.reshape(hr.cast(axes, hr.int32), [-1]), rank)
    others, _ = hr.setdiff1d(all_axes, axes)
    moved = hr.transpose(x, hr.concat([others, axes], 0))
    sizes = hr.shape(x)
    kept = hr.gather(sizes, others)
    count = hr.reduce_prod(hr.gather(sizes, axes))
    found = function(hr.reshape(moved, hr.concat([kept, [count]], 0)), axis=-1)
    if not keep:
        return found
    reduced = hr.scatter_nd(hr.expand_dims(axes, 1), hr.ones_like(axes), [rank])
    return hr.reshape(found, hr.where(hr.greater(reduced, 0), hr.ones_like(sizes), sizes))


@ROWS.add("ArgMax", "ArgMin")
def _arg(node: Any) -> Any:
    function = hr.argmax if node.op == "ArgMax" else hr.argmin
    kind = node.attr("output_type", hr.int64)
    return function(node.tensor(0), axis=node.known(1, "dimension"), output_type=kind)


@ROWS.add("Cumsum", "Cumprod", "CumulativeLogsumexp")
def _cumulative(node: Any) -> Any:
    function = {
        "Cumsum": hr.cumsum,
        "Cumprod": hr.cumprod,
        "CumulativeLogsumexp": hr.math.cumulative_logsumexp,
    }[node.op]
    return function(
        node.tensor(0),
        axis=node.known(1, "axis"),
        exclusive=bool(node.attr("exclusive", False)),
        reverse=bool(node.attr("reverse", False)),
    )


for _name in ("Sum", "Mean", "Prod", "Max", "Min"):
    _function = getattr(hr.math, f"segment_{_name.lower()}")
    ROWS.call(f"Segment{_name}", _function)
    if _name != "Mean":
        ROWS.call(f"UnsortedSegment{_name}", getattr(hr.math, f"unsorted_segment_{_name.lower()}"))
for _name, _function in (
    ("Sum", hr.sparse_segment_sum),
    ("Mean", hr.sparse_segment_mean),
    ("SqrtN", hr.sparse_segment_sqrt_n),
):
    ROWS.call(f"SparseSegment{_name}", _function)


@ROWS.add(
    "SparseSegmentSumWithNumSegments",
    "SparseSegmentMeanWithNumSegments",
    "SparseSegmentSqrtNWithNumSegments",
)
def _sparse_segment(node: Any) -> Any:
    function = {
        "Sum": hr.sparse_segment_sum,
        "Mean": hr.sparse_segment_mean,
        "SqrtN": hr.sparse_segment_sqrt_n,
    }[node.op.removeprefix("SparseSegment").removesuffix("WithNumSegments")]
    data, indices, segments, count = node.tensors
    return function(data, indices, segments, num_segments=count)


@ROWS.add("BroadcastGradientArgs", outputs="r0 r1")
def _broadcast_gradient(node: Any) -> Any:
    left, right = node.tensors
    length = hr.maximum(hr.size(left), hr.size(right))
    # Missing axes come first, and are of size 1.
    padded = [
        hr.concat([hr.ones([length - hr.size(shape)], shape.dtype), shape], 0)
        for shape in (left, right)
    ]
    # Nothing is broadcast between equal shapes, whatever their sizes.
    same = hr.equal(hr.size(left), hr.size(right)) & hr.reduce_all(hr.equal(*padded))
    chosen = [hr.equal(sizes, 1) & ~same for sizes in padded]
    return [hr.cast(hr.reshape(hr.where(axes), [-1]), left.dtype) for axes in chosen]


@ROWS.add("BroadcastArgs")
def _broadcast_args(node: Any) -> Any:
    return hr.broadcast_dynamic_shape(*node.tensors)


@ROWS.add("Bincount")
def _bincount(node: Any) -> Any:
    values, size, weights = node.tensors
    empty = weights.shape.rank is not None and weights.shape.num_elements() == 0
    chosen = None if empty else weights
    kind = node.attr("T", hr.int32)
    return hr.math.bincount(values, weights=chosen, minlength=size, maxlength=size, dtype=kind)


ROWS.call("HistogramFixedWidth", hr.histogram_fixed_width, "dtype")
