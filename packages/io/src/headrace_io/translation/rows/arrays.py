"""Translations of ops that move, join, take apart and fill arrays."""

from __future__ import annotations

from typing import Any

from headrace.errors import DocumentError, ShapeError
from headrace.extend.translations import TranslationTable
from headrace_io.tensor_protos import make_ndarray
from headrace_io.translation.library import hr
from headrace_io.translation.rows.elementwise import same

ROWS = TranslationTable()


@ROWS.add("Const", ignored="dtype")
def _const(node: Any) -> Any:
    if "value" not in node.message.attr:
        raise DocumentError("the attribute 'value' is missing")
    node.attr("value")
    return hr.constant(make_ndarray(node.message.attr["value"].tensor))


@ROWS.add("Placeholder", "PlaceholderV2")
def _placeholder(node: Any) -> Any:
    kind = node.attr("dtype")
    if kind is None or kind.kind in ("resource", "list"):
        raise DocumentError(f"a placeholder holds numbers or strings, got the dtype {kind}")
    return hr.placeholder(kind, node.attr("shape"))


@ROWS.add("PlaceholderWithDefault")
def _with_default(node: Any) -> Any:
    return hr.placeholder_with_default(node.tensor(0), node.attr("shape"))


@ROWS.add("ConcatV2", "Concat")
def _concat(node: Any) -> Any:
    first = node.op == "Concat"
    values = node.tensors[1:] if first else node.tensors[:-1]
    return hr.concat(values, node.known(0 if first else len(node.inputs) - 1, "axis"))


@ROWS.add("ConcatOffset")
def _concat_offset(node: Any) -> Any:
    axis, shapes = node.tensor(0), node.tensors[1:]
    for shape in shapes:
        if not shape.shape.is_compatible_with([None]):
            raise ShapeError(f"a shape must be a vector, got one of shape {shape.shape}")
    sizes = hr.stack(shapes)
    rank = hr.shape(sizes)[1]
    # 1 at the axis, which may be counted from the end, and 0 elsewhere.
    joined = hr.cast(hr.equal(hr.range(rank), hr.where(axis < 0, axis + rank, axis)), hr.int32)
    others = sizes * (1 - joined)
    checks = [
        hr.debugging.assert_equal(hr.reduce_sum(joined), 1, message="concat_dim is out of range"),
        hr.debugging.assert_equal(
            others, others[:1], message="shapes to join differ elsewhere, too"
        ),
    ]
    with hr.control_dependencies(checks):
        return hr.unstack(hr.cumsum(sizes, exclusive=True) * joined, num=len(shapes))


@ROWS.add("Split")
def _split(node: Any) -> Any:
    axis = node.known(0, "split_dim")
    return hr.split(node.tensor(1), node.attr("num_split"), axis=axis)


@ROWS.add("SplitV")
def _split_v(node: Any) -> Any:
    sizes = node.static(1)
    count, axis = node.attr("num_split"), node.known(2, "split_dim")
    given = node.tensor(1) if sizes is None else sizes.tolist()
    return hr.split(node.tensor(0), given, axis=axis, num=count)


@ROWS.add("Pack")
def _pack(node: Any) -> Any:
    return hr.stack(node.tensors, axis=node.attr("axis", 0))


@ROWS.add("ParallelConcat", ignored="shape")
def _parallel_concat(node: Any) -> Any:
    return hr.concat(node.tensors, 0)


@ROWS.add("Unpack")
def _unpack(node: Any) -> Any:
    return hr.unstack(node.tensor(0), num=node.attr("num"), axis=node.attr("axis", 0))


@ROWS.add("ExpandDims")
def _expand_dims(node: Any) -> Any:
    return hr.expand_dims(node.tensor(0), node.known(1, "dim"))


@ROWS.add("Squeeze")
def _squeeze(node: Any) -> Any:
    axes = list(node.attr("squeeze_dims", ()))
    return hr.squeeze(node.tensor(0), axes or None)


@ROWS.add("Transpose", "ConjugateTranspose")
def _transpose(node: Any) -> Any:
    perm = node.static(1)
    given = node.tensor(1) if perm is None else perm.tolist()
    return hr.transpose(node.tensor(0), given, conjugate=node.op == "ConjugateTranspose")


_MASKS = ("begin_mask", "end_mask", "ellipsis_mask", "new_axis_mask", "shrink_axis_mask")


def masks_of(node: Any) -> dict[str, int]:
    """Return which parts of a slice mean something else than numbers."""
    return {name: node.attr(name, 0) for name in _MASKS}


def known_or_tensor(node: Any, index: int) -> Any:
    """Return an input's value where it is known, else the tensor."""
    found = node.static(index)
    return node.tensor(index) if found is None else found.tolist()


@ROWS.add("StridedSlice")
def _strided_slice(node: Any) -> Any:
    parts = [known_or_tensor(node, i) for i in (1, 2, 3)]
    return hr.strided_slice(node.tensor(0), *parts, **masks_of(node))


@ROWS.add("StridedSliceGrad")
def _strided_slice_grad(node: Any) -> Any:
    shape, dy = node.tensor(0), node.tensor(4)
    count = hr.reduce_prod(shape)
    places = hr.reshape(hr.range(count), shape)
    taken = hr.strided_slice(
        places, *[known_or_tensor(node, i) for i in (1, 2, 3)], **masks_of(node)
    )
    where = hr.reshape(taken, [-1, 1])
    return hr.reshape(hr.scatter_nd(where, hr.reshape(dy, [-1]), [count]), shape)


@ROWS.add("Gather")
def _gather(node: Any) -> Any:
    return hr.gather(node.tensor(0), node.tensor(1))


@ROWS.add("GatherV2")
def _gather_v2(node: Any) -> Any:
    axis = node.known(2, "axis")
    return hr.gather(
        node.tensor(0), node.tensor(1), axis=axis, batch_dims=node.attr("batch_dims", 0)
    )


@ROWS.add("OneHot")
def _one_hot(node: Any) -> Any:
    indices, _, on, off = node.tensors
    depth = known_or_tensor(node, 1)
    return hr.one_hot(indices, depth, on, off, axis=node.attr("axis", -1), dtype=on.dtype)


@ROWS.add("TopK", outputs="values indices")
def _top_k(node: Any) -> Any:
    found = hr.nn.top_k(node.tensor(0), node.attr("k"), sorted=node.attr("sorted", True))
    return list(found)


@ROWS.add("TopKV2", outputs="values indices")
def _top_k_v2(node: Any) -> Any:
    k = known_or_tensor(node, 1)
    return list(hr.nn.top_k(node.tensor(0), k, sorted=node.attr("sorted", True)))


@ROWS.add("MirrorPad")
def _mirror_pad(node: Any) -> Any:
    return hr.pad(node.tensor(0), known_or_tensor(node, 1), mode=node.text("mode"))


@ROWS.add("Pad", "PadV2")
def _pad(node: Any) -> Any:
    fill = node.tensor(2) if node.op == "PadV2" else 0
    return hr.pad(node.tensor(0), known_or_tensor(node, 1), constant_values=fill)


@ROWS.add("Reverse")
def _reverse(node: Any) -> Any:
    axes = [i for i, chosen in enumerate(node.known(1, "dims")) if chosen]
    return hr.reverse(node.tensor(0), axes) if axes else hr.identity(node.tensor(0))


@ROWS.add("NthElement")
def _nth_element(node: Any) -> Any:
    direction = "DESCENDING" if node.attr("reverse", False) else "ASCENDING"
    ordered = hr.sort(node.tensor(0), direction=direction)
    return hr.gather(ordered, node.tensor(1), axis=-1)


@ROWS.add("Bucketize")
def _bucketize(node: Any) -> Any:
    x = node.tensor(0)
    # The op holds its boundaries in float32, and compares them as they are.
    edges = hr.cast(hr.constant(list(node.attr("boundaries", ())), hr.float32), hr.float64)
    flat = hr.reshape(hr.cast(x, hr.float64), [-1])
    return hr.reshape(hr.searchsorted(edges, flat, side="right"), hr.shape(x))


@ROWS.add("MirrorPadGrad")
def _mirror_pad_grad(node: Any) -> Any:
    dy, paddings = node.tensor(0), node.tensor(1)
    # Of as many elements as were padded; their values do not matter.
    x = hr.zeros(hr.shape(dy) - hr.cast(hr.reduce_sum(paddings, 1), hr.int32), dy.dtype)
    padded = hr.pad(x, known_or_tensor(node, 1), mode=node.text("mode"))
    (found,) = hr.gradients(padded, [x], grad_ys=[dy])
    return found


@ROWS.add("ReverseV2")
def _reverse_v2(node: Any) -> Any:
    return hr.reverse(node.tensor(0), known_or_tensor(node, 1))


@ROWS.add("ReverseSequence")
def _reverse_sequence(node: Any) -> Any:
    return hr.reverse_sequence(
        *node.tensors, seq_axis=node.attr("seq_dim"), batch_axis=node.attr("batch_dim", 0)
    )


@ROWS.add("ShapeN")
def _shape_n(node: Any) -> Any:
    return [hr.shape(t, out_type=node.attr("out_type", hr.int32)) for t in node.tensors]


@ROWS.add("DynamicStitch", "ParallelDynamicStitch")
def _dynamic_stitch(node: Any) -> Any:
    half = len(node.inputs) // 2
    return hr.dynamic_stitch(node.tensors[:half], node.tensors[half:])


@ROWS.add("UniqueV2", "UniqueWithCountsV2", outputs="y idx count")
def _unique_v2(node: Any) -> Any:
    axes = node.known(1, "axis")
    if axes not in ([], [0]) or node.tensor(0).shape.rank != 1:
        raise DocumentError("only vectors are taken apart into unique elements")
    function = hr.unique if node.op == "UniqueV2" else hr.unique_with_counts
    return list(function(node.tensor(0), node.attr("out_idx", hr.int32)))


@ROWS.add("Unique", "UniqueWithCounts", outputs="y idx count")
def _unique(node: Any) -> Any:
    function = hr.unique if node.op == "Unique" else hr.unique_with_counts
    return list(function(node.tensor(0), node.attr("out_idx", hr.int32)))


@ROWS.add("ListDiff", outputs="out idx")
def _list_diff(node: Any) -> Any:
    return list(hr.setdiff1d(*node.tensors, index_dtype=node.attr("out_idx", hr.int32)))


@ROWS.add("LinSpace")
def _lin_space(node: Any) -> Any:
    return hr.lin_space(node.tensor(0), node.tensor(1), known_or_tensor(node, 2))


@ROWS.add("MatrixDiag", "BatchMatrixDiag")
def _matrix_diag(node: Any) -> Any:
    return hr.matrix_diag(node.tensor(0))


@ROWS.add("EnsureShape")
def _ensure_shape(node: Any) -> Any:
    return hr.ensure_shape(node.tensor(0), node.attr("shape"))


@ROWS.add("LowerBound", "UpperBound")
def _bound(node: Any) -> Any:
    side = "left" if node.op == "LowerBound" else "right"
    return hr.searchsorted(*node.tensors, side=side, out_type=node.attr("out_type", hr.int32))


@ROWS.add("InplaceUpdate", "InplaceAdd", "InplaceSub")
def _inplace(node: Any) -> Any:
    x, rows, values = node.tensors
    function = {
        "InplaceUpdate": hr.tensor_scatter_update,
        "InplaceAdd": hr.tensor_scatter_add,
        "InplaceSub": hr.tensor_scatter_sub,
    }[node.op]
    return function(x, hr.expand_dims(rows, 1), values)


@ROWS.add("Empty", ignored="init")
def _empty(node: Any) -> Any:
    return hr.zeros(node.tensor(0), node.attr("dtype"))


@ROWS.add("IdentityN")
def _identity_n(node: Any) -> Any:
    return hr.identity_n(node.tensors)


@ROWS.add("SpaceToDepth", "DepthToSpace")
def _depth(node: Any) -> Any:
    function = hr.space_to_depth if node.op == "SpaceToDepth" else hr.depth_to_space
    return function(
        node.tensor(0), node.attr("block_size"), data_format=node.text("data_format", "NHWC")
    )


@ROWS.add("SpaceToBatchND", "BatchToSpaceND")
def _batch(node: Any) -> Any:
    function = hr.space_to_batch_nd if node.op == "SpaceToBatchND" else hr.batch_to_space_nd
    return function(node.tensor(0), known_or_tensor(node, 1), known_or_tensor(node, 2))


@ROWS.add("SpaceToBatch", "BatchToSpace")
def _batch_square(node: Any) -> Any:
    size = [node.attr("block_size")] * 2
    function = hr.space_to_batch_nd if node.op == "SpaceToBatch" else hr.batch_to_space_nd
    return function(node.tensor(0), size, known_or_tensor(node, 1))


for _name in ("Identity", "PreventGradient", "Snapshot", "DeepCopy"):
    ROWS.call(_name, hr.identity, ignored="message")
for _name, _function in (
    ("BroadcastTo", hr.broadcast_to),
    ("DiagPart", hr.diag_part),
    ("Diag", hr.diag),
    ("Fill", hr.fill),
    ("GatherNd", hr.gather_nd),
    ("GuaranteeConst", hr.guarantee_const),
    ("InvertPermutation", hr.invert_permutation),
    ("MatrixBandPart", hr.matrix_band_part),
    ("BatchMatrixBandPart", hr.matrix_band_part),
    ("MatrixDiagPart", hr.matrix_diag_part),
    ("BatchMatrixDiagPart", hr.matrix_diag_part),
    ("MatrixSetDiag", hr.matrix_set_diag),
    ("BatchMatrixSetDiag", hr.matrix_set_diag),
    ("OnesLike", hr.ones_like),
    ("ZerosLike", hr.zeros_like),
    ("Range", hr.range),
    ("Rank", hr.rank),
    ("Reshape", hr.reshape),
    ("Roll", hr.roll),
    ("ScatterNd", hr.scatter_nd),
    ("ScatterNdNonAliasingAdd", hr.tensor_scatter_add),
    ("Slice", hr.slice),
    ("StopGradient", hr.stop_gradient),
    ("TensorScatterAdd", hr.tensor_scatter_add),
    ("TensorScatterSub", hr.tensor_scatter_sub),
    ("TensorScatterUpdate", hr.tensor_scatter_update),
    ("Tile", hr.tile),
    ("UnravelIndex", hr.unravel_index),
    ("Where", hr.where),
):
    ROWS.call(_name, _function)
ROWS.call("DynamicPartition", hr.dynamic_partition, "num_partitions")
ROWS.call("Shape", hr.shape, "out_type")
ROWS.call("Size", hr.size, "out_type")
ROWS.call("ExtractImagePatches", hr.extract_image_patches, "ksizes strides rates padding")
ROWS.call("ExtractVolumePatches", hr.extract_volume_patches, "ksizes strides padding")
ROWS.call("Timestamp", same("Timestamp"))
