"""Calls of functions of ``headrace`` itself, M to Z."""

from __future__ import annotations

import headrace as hr
from headrace_testing.fuzz.arguments import Sparse, Stored
from headrace_testing.fuzz.seeds.rows import real, seed
from headrace_testing.inputs import array, booleans, integers

ROWS = [
    seed("Print", real(), []),
    seed("matmul", real(4, 3, dtype="float64"), real(5, 3, dtype="float64"), transpose_b=True),
    seed("matmul", real(3, 2, dtype="float64"), real(3, 4, dtype="float64"), transpose_a=True),
    seed("matrix_band_part", real(3, 4, dtype="float64"), -1, array(1, "int64")),
    seed("matrix_band_part", real(3, 4, dtype="float64"), 1, 0),
    seed("matrix_diag", [1, 2], num_rows=3, num_cols=2, padding_value=7),
    seed("matrix_diag", [[0, 1, 2], [3, 4, 5]], k=(0, 1), align="RIGHT_LEFT"),
    seed("matrix_diag_part", real(3, 4, dtype="float64"), k=(-1, 2), padding_value=9),
    seed("matrix_diag_part", real(2, 3, 4), k=1),
    seed("matrix_set_diag", real(3, 4, dtype="float64"), [[1.0, 2, 3], [4, 5, 6]], k=(0, 1)),
    seed("matrix_set_diag", real(3, 4, dtype="float64"), [7.0, 8, 9]),
    seed("matrix_solve_ls", real(4, 2, dtype="float64"), real(4, 2, dtype="float64"), fast=False),
    seed("matrix_solve_ls", real(2, 2), real(2, 2)),
    seed("matrix_transpose", real(2, 3, 3, dtype="complex128"), conjugate=True),
    seed("matrix_transpose", real(2, 3, 3, dtype="complex128")),
    seed("meshgrid", array([1, 1], "int32"), [1, 2, 3]),
    seed("meshgrid", [1, 2], [3, 4, 5]),
    seed("norm", real(2, 3, 4, dtype="float64"), ord=1, axis=(0, 2), keep_dims=True),
    seed("norm", real(2, 3, 4, dtype="float64"), ord=1, axis=(0, 2), keep_dims=False),
    seed("one_hot", [1, 0, 5], 3, real(dtype="float64"), real(dtype="float64")),
    seed("one_hot", [1], 2, on_value=5, off_value=-1, axis=0),
    seed("ones", array([3], "int32")),
    seed("ones", [2]),
    seed("ones_like", real(1, 7, 8, 3, dtype="float64")),
    seed("ones_like", [True, False]),
    seed("pad", real(3, 4, dtype="float64"), [[1, 2], [0, 1]], constant_values=7),
    seed("pad", real(3, 4, dtype="float64"), [[array(1, "int32"), 0], [0, 0]]),
    seed("parallel_stack", [real(3, 4, dtype="float64"), real(3, 4, dtype="float64")]),
    seed(
        "parallel_stitch", [[0, 2], [1]], [real(2, 4, dtype="float64"), real(1, 4, dtype="float64")]
    ),
    seed("placeholder", "int64", []),
    seed("placeholder", "float64", [4]),
    seed("placeholder_with_default", array(2, "int32"), []),
    seed("polyval", [], [2.0, 3.0]),
    seed("print", array(b"only", "string")),
    seed("random_crop", integers((6, 8), 0, 48, "int64"), [3, 2], seed=4),
    seed("random_normal", []),
    seed("range", array(0, "int32"), real()),
    seed("range", array(1, "int32")),
    seed("rank", Sparse(array([[0, 1]], "int64"), real(1), array([2, 3], "int64"))),
    seed("rank", real(2, 3, 4, dtype="float64")),
    seed("real", real(dtype="complex128")),
    seed("real", [1.0]),
    seed("reduce_all", booleans((2, 3, 4)), array(1, "int64"), keepdims=True),
    seed("reduce_all", array([True, True], "bool")),
    seed("reduce_any", booleans((2, 3, 4)), reduction_indices=0),
    seed("reduce_euclidean_norm", real(2, dtype="float16")),
    seed("reduce_euclidean_norm", [5, -3, 2, -7, -2]),
    seed("reduce_join", [["a", "b"], ["c", "d"]], reduction_indices=1, keepdims=True),
    seed("reduce_join", [["a", "b"], ["c", "d"]], -1, keep_dims=True),
    seed("reduce_logsumexp", real(2, 3, 4, dtype="float64"), reduction_indices=0, keep_dims=True),
    seed("reduce_logsumexp", real(3, dtype="float64")),
    seed("reduce_max", real(2, 3, 4, dtype="float64"), axis=array(2, "int64"), keepdims=True),
    seed("reduce_max", real(2, 3, 4, dtype="float64"), axis=array(2, "int64"), keepdims=False),
    seed("reduce_mean", real(2, 3, 4, dtype="float64"), axis=array(2, "int64"), keepdims=True),
    seed("reduce_mean", real(2, 3, 4, dtype="float64"), axis=array(2, "int64"), keepdims=False),
    seed("reduce_min", real(2, 3, 4, dtype="float64"), axis=array(2, "int64"), keepdims=True),
    seed("reduce_min", real(2, 3, 4, dtype="float64"), axis=array(2, "int64"), keepdims=False),
    seed("reduce_prod", real(2, 3, 4, dtype="float64"), axis=array(2, "int64"), keepdims=True),
    seed("reduce_prod", real(2, 3, 4, dtype="float64"), axis=array(2, "int64"), keepdims=False),
    seed("reduce_std", real(0, dtype="float64")),
    seed("reduce_sum", real(2, 3, 4, dtype="float64"), axis=array(2, "int64"), keepdims=True),
    seed("reduce_sum", real(2, 3, 4, dtype="float64"), axis=array(2, "int64"), keepdims=False),
    seed("reduce_variance", real(3, 4, dtype="complex128"), 0),
    seed("reduce_variance", real(2, 3, 4, dtype="float64"), [0, 1], True),
    seed("repeat", real(3, 4, dtype="float64"), 2, axis=1),
    seed("repeat", ["a", "b"], [2, 1]),
    seed("report_uninitialized_variables", [Stored(real())]),
    seed("required_space_to_batch_paddings", [5, 7], [2, 4]),
    seed("reshape", real(3, 4, dtype="float64"), array([4, 3], "int32")),
    seed("reshape", real(2, 4), [-1, 2, 2]),
    seed("reverse", real(3, 4, dtype="float64"), [-1]),
    seed("reverse_sequence", real(3, 4, dtype="float64"), [1, 2, 4], seq_dim=1, batch_dim=0),
    seed("reverse_sequence", real(3, 4, dtype="float64"), [1, 2, 5], 1),
    seed("roll", real(3, 4, dtype="float64"), array(1, "int32"), -1),
    seed("roll", real(3, 4, dtype="float64"), [1, -2], [0, 1]),
    seed("round", [1, 2]),
    seed("saturate_cast", real(2), "float16"),
    seed("saturate_cast", [1.5], "float64"),
    seed("scalar_mul", 2, real(2)),
    seed("scatter_add", Stored(real(3, 2)), 1, real(2)),
    seed("scatter_add", Stored(real(3, 2)), integers((0,), 0, 1, "int32"), real(0, 2)),
    seed("scatter_div", Stored(real(3, 2)), 1, real(2)),
    seed("scatter_div", Stored(real(3, 2)), integers((0,), 0, 1, "int32"), real(0, 2)),
    seed("scatter_max", Stored(real(3, 2)), 1, real(2)),
    seed("scatter_max", Stored(real(3, 2)), integers((0,), 0, 1, "int32"), real(0, 2)),
    seed("scatter_min", Stored(real(3, 2)), 1, real(2)),
    seed("scatter_min", Stored(real(3, 2)), integers((0,), 0, 1, "int32"), real(0, 2)),
    seed("scatter_mul", Stored(real(3, 2)), 1, real(2)),
    seed("scatter_mul", Stored(real(3, 2)), integers((0,), 0, 1, "int32"), real(0, 2)),
    seed("scatter_nd", [[1], [1]], ["a", "b"], [2]),
    seed("scatter_nd", [[0], [2], [0]], [1, 2, 3], [4]),
    seed(
        "scatter_nd_add",
        Stored(real(3, 2, dtype="float64")),
        [[1], [2]],
        real(2, 2, dtype="float64"),
    ),
    seed(
        "scatter_nd_sub",
        Stored(real(3, 2, dtype="float64")),
        [[1], [2]],
        real(2, 2, dtype="float64"),
    ),
    seed(
        "scatter_nd_update",
        Stored(real(3, 2, dtype="float64")),
        [[1], [2]],
        real(2, 2, dtype="float64"),
    ),
    seed("scatter_sub", Stored(real(3, 2)), 1, real(2)),
    seed("scatter_sub", Stored(real(3, 2)), integers((0,), 0, 1, "int32"), real(0, 2)),
    seed("scatter_update", Stored(real(3, 2)), 1, real(2)),
    seed("scatter_update", Stored(real(3, 2)), integers((0,), 0, 1, "int32"), real(0, 2)),
    seed(
        "searchsorted",
        real(2, 3, 4, dtype="float64"),
        real(2, 3, 2, dtype="float64"),
        side="left",
        out_type=hr.int64,
    ),
    seed("segment_max", real(5, 2, dtype="float64"), array([1, 1, 1, 1, 1], "int32")),
    seed("segment_max", real(4, dtype="float64"), [0, 0, 0, 1]),
    seed("segment_mean", real(5, 2, dtype="float64"), array([1, 1, 1, 1, 1], "int32")),
    seed("segment_mean", real(5, 2, dtype="float64"), [0, 0, 1, 3, 3]),
    seed("segment_min", real(5, 2, dtype="float64"), array([1, 1, 1, 1, 1], "int32")),
    seed("segment_min", real(4, dtype="float64"), [0, 0, 0, 1]),
    seed("segment_prod", real(5, 2, dtype="float64"), array([1, 1, 1, 1, 1], "int32")),
    seed("segment_prod", real(5, dtype="float64"), [0, 0, 0, 1, 1]),
    seed("segment_sum", real(5, 2, dtype="float64"), array([1, 1, 1, 1, 1], "int32")),
    seed("segment_sum", real(5, 2, dtype="float64"), [0, 0, 1, 3, 3]),
    seed("self_adjoint_eig", real(2, 3, 3, dtype="float64")),
    seed("self_adjoint_eigvals", real(2, 3, 3, dtype="complex128")),
    seed("sequence_mask", array([1, 1], "int64"), 5),
    seed("sequence_mask", [1, 3], array(1, "int32"), hr.float32),
    seed("setdiff1d", [5, 1, 5, 2], [2, 7], index_dtype=hr.int64),
    seed("shape", Sparse(array([[0, 1]], "int64"), real(1), array([2, 3], "int64"))),
    seed("shape", real(3)),
    seed("shape_n", [real(3, 4, dtype="float64"), array(1, "int32")], out_type=hr.int64),
    seed("sign", x=Sparse(array([[0, 1], [2, 0]], "int64"), real(2), array([3, 2], "int64"))),
    seed("sign", real(2)),
    seed("size", Sparse(array([[0, 1]], "int64"), real(1), array([2, 3], "int64"))),
    seed("size", real(2, 3, dtype="float64")),
    seed("slice", real(3, 4, dtype="float64"), array([1, 1], "int32"), [2, 3]),
    seed("slice", real(3, 4, dtype="float64"), [0, 1], [2, -1]),
    seed("sort", real(2, 3, 4, dtype="float64"), axis=0, direction="ASCENDING"),
    seed("sort", real(2, 3, 4, dtype="float64"), axis=0, direction="DESCENDING"),
    seed("space_to_batch", array([[[[0], [1]], [[2], [3]]]], "int64"), [[0, 0], [0, 0]], 2),
    seed("space_to_batch", integers((2, 4, 4, 3), 1, 2, "int32"), [[0, 0], [1, 1]], 2),
    seed("space_to_batch_nd", real(2, 2, 2, 2, dtype="float64"), [2, 3], [[1, 1], [2, 0]]),
    seed("space_to_depth", real(1, 4, 4, 4, dtype="float64"), 2, data_format="NCHW"),
    seed("space_to_depth", real(2, 2, 2, 2, dtype="float64"), 2),
    seed(
        "sparse_add",
        Sparse(
            integers((12, 3), 0, 4, "int64"), real(12, dtype="float64"), array([3, 4, 2], "int64")
        ),
        Sparse(
            integers((12, 3), 0, 4, "int64"), real(12, dtype="float64"), array([3, 4, 2], "int64")
        ),
    ),
    seed(
        "sparse_concat",
        1,
        [
            Sparse(
                integers((12, 3), 0, 4, "int64"),
                real(12, dtype="float64"),
                array([3, 4, 2], "int64"),
            ),
            Sparse(
                integers((12, 3), 0, 4, "int64"),
                real(12, dtype="float64"),
                array([3, 4, 2], "int64"),
            ),
        ],
    ),
    seed(
        "sparse_fill_empty_rows",
        Sparse(array([[3, 1], [0, 2]], "int64"), real(2), array([5, 4], "int64")),
        -1.0,
    ),
    seed(
        "sparse_maximum",
        Sparse(
            integers((12, 3), 0, 4, "int64"), real(12, dtype="float64"), array([3, 4, 2], "int64")
        ),
        Sparse(
            integers((12, 3), 0, 4, "int64"), real(12, dtype="float64"), array([3, 4, 2], "int64")
        ),
    ),
    seed(
        "sparse_merge",
        Sparse(
            array([[0, 0], [1, 0], [1, 1]], "int64"),
            array([2, 5, 3], "int64"),
            array([2, 2], "int64"),
        ),
        Sparse(array([[0, 0], [1, 0], [1, 1]], "int64"), real(3), array([2, 2], "int64")),
        7,
    ),
    seed(
        "sparse_minimum",
        Sparse(
            integers((12, 3), 0, 4, "int64"), real(12, dtype="float64"), array([3, 4, 2], "int64")
        ),
        Sparse(
            integers((12, 3), 0, 4, "int64"), real(12, dtype="float64"), array([3, 4, 2], "int64")
        ),
    ),
    seed("sparse_placeholder", hr.float32, [2, None]),
    seed(
        "sparse_reduce_max",
        Sparse(
            integers((12, 3), 0, 4, "int64"), real(12, dtype="float64"), array([3, 4, 2], "int64")
        ),
        0,
        True,
    ),
    seed(
        "sparse_reduce_max_sparse",
        Sparse(
            integers((12, 3), 0, 4, "int64"), real(12, dtype="float64"), array([3, 4, 2], "int64")
        ),
        0,
        True,
    ),
    seed(
        "sparse_reduce_sum",
        Sparse(
            integers((12, 3), 0, 4, "int64"), real(12, dtype="float64"), array([3, 4, 2], "int64")
        ),
        0,
        True,
    ),
    seed(
        "sparse_reduce_sum_sparse",
        Sparse(
            integers((12, 3), 0, 4, "int64"), real(12, dtype="float64"), array([3, 4, 2], "int64")
        ),
        0,
        True,
    ),
    seed(
        "sparse_reorder",
        Sparse(
            integers((12, 3), 0, 4, "int64"), real(12, dtype="float64"), array([3, 4, 2], "int64")
        ),
    ),
    seed(
        "sparse_reset_shape",
        Sparse(
            integers((12, 3), 0, 4, "int64"), real(12, dtype="float64"), array([3, 4, 2], "int64")
        ),
        [4, 4, 3],
    ),
    seed(
        "sparse_reshape",
        Sparse(
            integers((12, 3), 0, 4, "int64"), real(12, dtype="float64"), array([3, 4, 2], "int64")
        ),
        [6, -1],
    ),
    seed(
        "sparse_retain",
        Sparse(
            integers((12, 3), 0, 4, "int64"), real(12, dtype="float64"), array([3, 4, 2], "int64")
        ),
        array([True, True, True, True, True, True, True, True, True, True, True, True], "bool"),
    ),
    seed("sparse_segment_mean", real(5, 2, dtype="float64"), [4, 0, 4], [0, 0, 2], num_segments=6),
    seed(
        "sparse_segment_sqrt_n", real(5, 2, dtype="float64"), [4, 0, 4], [0, 0, 2], num_segments=6
    ),
    seed("sparse_segment_sum", real(5, 2, dtype="float64"), [4, 0, 4], [0, 0, 2], num_segments=6),
    seed("sparse_segment_sum", real(5, 2, dtype="float64"), [0, 5], [0, 1]),
    seed(
        "sparse_slice",
        Sparse(
            integers((12, 3), 0, 4, "int64"), real(12, dtype="float64"), array([3, 4, 2], "int64")
        ),
        [1, 0, 1],
        [9, 3, 1],
    ),
    seed(
        "sparse_softmax",
        Sparse(
            integers((12, 3), 0, 4, "int64"), real(12, dtype="float64"), array([3, 4, 2], "int64")
        ),
    ),
    seed(
        "sparse_split",
        sp_input=Sparse(
            array([[0, 0], [0, 3], [0, 4], [1, 1], [2, 0], [2, 1], [2, 2]], "int64"),
            real(7, dtype="float64"),
            array([3, 5], "int64"),
        ),
        num_split=3,
        axis=1,
    ),
    seed(
        "sparse_tensor_dense_matmul",
        Sparse(
            array([[0, 0], [0, 3], [0, 4], [1, 1], [2, 0], [2, 1], [2, 2]], "int64"),
            real(7, dtype="float64"),
            array([3, 5], "int64"),
        ),
        real(4, 3, dtype="float64"),
        True,
        True,
    ),
    seed("sparse_tensor_to_dense", Sparse(array([[9]], "int64"), real(1), array([2], "int64"))),
    seed(
        "sparse_to_indicator",
        Sparse(
            array([[0, 0], [1, 0], [1, 1]], "int64"),
            array([2, 5, 3], "int64"),
            array([2, 2], "int64"),
        ),
        7,
    ),
    seed(
        "sparse_transpose",
        Sparse(
            integers((12, 3), 0, 4, "int64"), real(12, dtype="float64"), array([3, 4, 2], "int64")
        ),
    ),
    seed("split", real(3, 4, dtype="float64"), array([1, 1], "int32"), num=2),
    seed("split", real(3, 4, dtype="float64"), 2, array(1, "int32")),
    seed("squared_difference", [3, 1], 2),
    seed("squared_difference", [3j], [(1 + 0j)]),
    seed("squeeze", real(1, 3, 1, 4, dtype="float64"), squeeze_dims=[0]),
    seed("squeeze", real(2, 1, 3, dtype="float64")),
    seed("stack", [real(dtype="complex128"), real(dtype="complex128"), real(dtype="complex128")]),
    seed("stack", [real(3, 4, dtype="float64"), real(3, 4, dtype="float64")], axis=-1),
    seed("strided_slice", real(3, 4, dtype="float64"), [0, 1], [0, 2], new_axis_mask=1),
    seed("strided_slice", real(3, 4, dtype="float64"), [0, 1], [0, 3], ellipsis_mask=1),
    seed("string_join", [array(b"a\x00", "string"), array(b"b", "string")]),
    seed("string_join", ["a", "b"], separator="é"),
    seed("string_split", ["a,b|c"], delimiter=",|"),
    seed("string_split", ["ab"], ""),
    seed("string_to_hash_bucket", ["a", "b", "c"], 10),
    seed("string_to_number", ["1.5", " 2 "]),
    seed("svd", real(3, 2, dtype="float64"), full_matrices=True),
    seed("svd", real(3, 3, dtype="float64"), full_matrices=False),
    seed("tensor_scatter_add", real(3, 4, dtype="float64"), [[0, 1], [0, 1]], [9.0, 1]),
    seed("tensor_scatter_sub", real(3, 4, dtype="float64"), [[0, 1]], [9.0]),
    seed("tensor_scatter_update", real(3, 4, dtype="float64"), [[0, 1]], [9.0]),
    seed("tensor_scatter_update", real(2), [[0], [0]], real(2)),
    seed("tensordot", real(2, 3, 4, dtype="float64"), real(4, 3, 5, dtype="float64"), 0),
    seed("tile", real(3, 4, dtype="float64"), array([1, 1], "int32")),
    seed("tile", real(3, 4, dtype="float64"), [2, 1]),
    seed("to_complex128", [1.5]),
    seed("to_complex64", [1.5]),
    seed("to_double", [1, 2]),
    seed("to_float", [1, 2]),
    seed("to_int32", [1.7]),
    seed("to_int64", [1.7]),
    seed("trace", real(2, 3, 2, dtype="float64")),
    seed("trace", [[1, 2, 3], [4, 5, 6]]),
    seed("transpose", real(3, 4, dtype="float64"), perm=[-1, 0]),
    seed("transpose", real(3, 4, dtype="float64"), array([1, 1], "int32")),
    seed("unique", array([b"b", b"a", b"b"], "string")),
    seed("unique_with_counts", [3, 1, 3, 2, 1], out_idx=hr.int64),
    seed("unravel_index", [12], [3, 4]),
    seed("unsorted_segment_mean", array([-1, -2, 5, 4], "int64"), [0, 0, 1, 1], 2),
    seed(
        "unsorted_segment_sqrt_n",
        real(5, 2, dtype="float64"),
        array([1, 1, 1, 1, 1], "int32"),
        num_segments=4,
    ),
    seed("unstack", real(3, 4, dtype="float64"), axis=1),
    seed("unstack", real(2, 3, dtype="float64"), 3, 1),
    seed("verify_tensor_all_finite", x=[1.0], message="loss"),
    seed("where", array(True, "bool"), real(dtype="float64"), real(dtype="float64")),
    seed("where", [True, False], real(2, 3, dtype="float64"), real(2, 3, dtype="float64")),
    seed("zeros", array(1, "int32")),
    seed("zeros", [array(1, "int32"), 3], hr.int64),
]
