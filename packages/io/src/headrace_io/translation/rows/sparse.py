"""Translations of ops of sparse tensors, which messages hold as their three parts."""

from __future__ import annotations

from typing import Any

from headrace import SparseTensor
from headrace.errors import DocumentError
from headrace.extend.translations import TranslationTable
from headrace_io.translation.library import hr

ROWS = TranslationTable()


def _sparse(node: Any, first: int = 0) -> SparseTensor:
    return SparseTensor(*(node.tensor(first + i) for i in range(3)))


def parts(sparse: Any) -> list[Any]:
    """Return a sparse tensor as messages hold it."""
    return [sparse.indices, sparse.values, sparse.dense_shape]


@ROWS.add("SparseToDense")
def _to_dense(node: Any) -> Any:
    return hr.sparse_to_dense(*node.tensors)


@ROWS.add("SparseTensorDenseMatMul")
def _matmul(node: Any) -> Any:
    flags = {name: bool(node.attr(name, False)) for name in ("adjoint_a", "adjoint_b")}
    return hr.sparse_tensor_dense_matmul(_sparse(node), node.tensor(3), **flags)


@ROWS.add("SparseTensorDenseAdd")
def _dense_add(node: Any) -> Any:
    return hr.sparse_add(_sparse(node), node.tensor(3))


@ROWS.add("SparseAdd", outputs="sum_indices sum_values sum_shape")
def _add(node: Any) -> Any:
    return parts(hr.sparse_add(_sparse(node), _sparse(node, 3), threshold=node.tensor(6)))


@ROWS.add(
    "SparseCross", outputs="output_indices output_values output_shape", ignored="internal_type"
)
def _cross(node: Any) -> Any:
    count, tensors = node.attr("N"), node.tensors
    several = [tensors[i * count : (i + 1) * count] for i in range(3)]
    inputs = [SparseTensor(*one) for one in zip(*several, strict=True)] + tensors[3 * count :]
    buckets, key = node.attr("num_buckets", 0), node.attr("hash_key")
    if not node.attr("hashed_output", False):
        return parts(hr.sparse.cross(inputs))
    return parts(hr.sparse.cross_hashed(inputs, buckets, key))


@ROWS.add("SparseDenseCwiseAdd", "SparseDenseCwiseMul", "SparseDenseCwiseDiv")
def _elementwise(node: Any) -> Any:
    indices, values, shape, dense = node.tensors
    other = hr.gather_nd(hr.broadcast_to(dense, shape), indices)
    kind = node.op[-3:]
    if kind == "Add":
        return values + other
    return values * other if kind == "Mul" else hr.div(values, other)


@ROWS.add("SparseReorder", outputs="output_indices output_values")
def _reorder(node: Any) -> Any:
    return parts(hr.sparse_reorder(_sparse(node)))[:2]


@ROWS.add("SparseReshape", outputs="output_indices output_shape")
def _reshape(node: Any) -> Any:
    indices, shape, wanted = node.tensors
    # The values stay as they are: any of their number will do.
    values = hr.zeros([hr.shape(indices)[0]])
    found = hr.sparse_reshape(SparseTensor(indices, values, shape), wanted)
    return [found.indices, found.dense_shape]


@ROWS.add("SparseSlice", outputs="output_indices output_values output_shape")
def _slice(node: Any) -> Any:
    return parts(hr.sparse_slice(_sparse(node), node.tensor(3), node.tensor(4)))


@ROWS.add("SparseSoftmax")
def _softmax(node: Any) -> Any:
    return hr.sparse_softmax(_sparse(node)).values


@ROWS.add(
    "SparseFillEmptyRows",
    outputs="output_indices output_values empty_row_indicator reverse_index_map",
)
def _fill_empty_rows(node: Any) -> Any:
    given = _sparse(node)
    found, empty = hr.sparse_fill_empty_rows(given, node.tensor(3))
    # Where each entry went, found by sending the numbers of the entries along.
    count = hr.shape(given.indices)[0]
    numbers = SparseTensor(given.indices, hr.range(count), given.dense_shape)
    sent, _ = hr.sparse_fill_empty_rows(numbers, -1)
    kept = hr.reshape(hr.where(hr.greater_equal(sent.values, 0)), [-1])
    where = hr.expand_dims(hr.gather(sent.values, kept), 1)
    back = hr.scatter_nd(where, kept, [count])
    return [found.indices, found.values, empty, hr.cast(back, hr.int64)]


@ROWS.add("SparseConcat", outputs="output_indices output_values output_shape")
def _concat(node: Any) -> Any:
    count = node.attr("N")
    tensors = node.tensors
    sparse = [SparseTensor(*tensors[i::count]) for i in range(count)]
    return parts(hr.sparse_concat(node.attr("concat_dim"), sparse))


@ROWS.add("SparseSplit", outputs="output_indices output_values output_shape")
def _split(node: Any) -> Any:
    count = node.attr("num_split")
    axis = node.known(0, "split_dim")
    found = hr.sparse_split(sp_input=_sparse(node, 1), num_split=count, axis=axis)
    listed = [parts(sparse) for sparse in found]
    return [item[i] for i in range(3) for item in listed]


@ROWS.add("SparseReduceSum", "SparseReduceMax")
def _reduce(node: Any) -> Any:
    function = hr.sparse_reduce_sum if node.op.endswith("Sum") else hr.sparse_reduce_max
    axes = node.known(3, "reduction_axes")
    return function(_sparse(node), axis=axes, keepdims=bool(node.attr("keep_dims", False)))


@ROWS.add("SparseSparseMaximum", "SparseSparseMinimum", outputs="output_indices output_values")
def _extreme(node: Any) -> Any:
    function = hr.sparse_maximum if node.op.endswith("Maximum") else hr.sparse_minimum
    return parts(function(_sparse(node), _sparse(node, 3)))[:2]


@ROWS.add("EditDistance")
def _edit_distance(node: Any) -> Any:
    normalize = bool(node.attr("normalize", True))
    return hr.edit_distance(_sparse(node), _sparse(node, 3), normalize=normalize)


ROWS.call(
    "SerializeSparse",
    lambda i, v, s, **a: hr.serialize_sparse(SparseTensor(i, v, s), **a),
    "out_type",
)
ROWS.call(
    "SerializeManySparse",
    lambda i, v, s, **a: hr.serialize_many_sparse(SparseTensor(i, v, s), **a),
    "out_type",
)


@ROWS.add("DeserializeManySparse", outputs="sparse_indices sparse_values sparse_shape")
def _deserialize(node: Any) -> Any:
    kind = node.attr("dtype")
    if kind is None:
        raise DocumentError("the attribute 'dtype' is missing")
    return parts(hr.deserialize_many_sparse(node.tensor(0), kind))
