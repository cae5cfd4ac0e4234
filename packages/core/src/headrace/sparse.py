"""Sparse tensors, as ``hr.sparse``."""

from typing import TYPE_CHECKING as _TYPE_CHECKING

from headrace.graph.sparse_tensor import SparseTensor as SparseTensor
from headrace.ops.segment import sparse_segment_mean as segment_mean
from headrace.ops.segment import sparse_segment_sqrt_n as segment_sqrt_n
from headrace.ops.segment import sparse_segment_sum as segment_sum
from headrace.ops.sparse_cross import sparse_cross as cross
from headrace.ops.sparse_cross import sparse_cross_hashed as cross_hashed
from headrace.ops.sparse_math import sparse_add as add
from headrace.ops.sparse_math import sparse_maximum as maximum
from headrace.ops.sparse_math import sparse_minimum as minimum
from headrace.ops.sparse_math import sparse_reduce_max as reduce_max
from headrace.ops.sparse_math import sparse_reduce_max_sparse as reduce_max_sparse
from headrace.ops.sparse_math import sparse_reduce_sum as reduce_sum
from headrace.ops.sparse_math import sparse_reduce_sum_sparse as reduce_sum_sparse
from headrace.ops.sparse_math import sparse_softmax as softmax
from headrace.ops.sparse_math import sparse_tensor_dense_matmul as matmul
from headrace.ops.sparse_math import sparse_tensor_dense_matmul as sparse_dense_matmul
from headrace.ops.sparse_parts import sparse_concat as concat
from headrace.ops.sparse_parts import sparse_mask as mask
from headrace.ops.sparse_parts import sparse_merge as merge
from headrace.ops.sparse_parts import sparse_slice as slice
from headrace.ops.sparse_parts import sparse_split as split
from headrace.ops.sparse_parts import sparse_to_indicator as to_indicator
from headrace.ops.sparse_tensor import sparse_expand_dims as expand_dims
from headrace.ops.sparse_tensor import sparse_eye as eye
from headrace.ops.sparse_tensor import sparse_fill_empty_rows as fill_empty_rows
from headrace.ops.sparse_tensor import sparse_from_dense as from_dense
from headrace.ops.sparse_tensor import sparse_placeholder as placeholder
from headrace.ops.sparse_tensor import sparse_reorder as reorder
from headrace.ops.sparse_tensor import sparse_reset_shape as reset_shape
from headrace.ops.sparse_tensor import sparse_reshape as reshape
from headrace.ops.sparse_tensor import sparse_retain as retain
from headrace.ops.sparse_tensor import sparse_tensor_to_dense as to_dense
from headrace.ops.sparse_tensor import sparse_transpose as transpose
from headrace.plugins.namespaces import added_names as _added_names

if not _TYPE_CHECKING:
    __getattr__, __dir__ = _added_names("sparse", __name__)
