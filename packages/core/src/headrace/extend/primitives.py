"""Ops without a public name, and compositions of ops, with which gradient rules are written.

Public functions are names of ``headrace`` itself; any other op is called by
``headrace.extend.ops.call_op``.
"""

from headrace.ops.accumulator import (
    accumulator_apply_gradient,
    accumulator_num_accumulated,
    accumulator_place_gradient,
    accumulator_set_global_step,
    accumulator_take_gradient,
    accumulator_take_placed,
    conditional_accumulator,
    sparse_accumulator_apply_gradient,
    sparse_accumulator_place_gradient,
    sparse_accumulator_take_gradient,
    sparse_accumulator_take_placed,
    sparse_conditional_accumulator,
)
from headrace.ops.barrier import (
    barrier_close,
    barrier_handle,
    barrier_incomplete_size,
    barrier_insert_many,
    barrier_ready_size,
    barrier_take_many,
)
from headrace.ops.complex import complex_
from headrace.ops.control import tuple_
from headrace.ops.cumulative import (
    linear_recurrence,
)
from headrace.ops.decompositions import (
    permutation_matrix,
    svd_op,
)
from headrace.ops.elementwise import (
    power,
    real_abs,
    real_sign,
    select,
)
from headrace.ops.fourier import rfft_of
from headrace.ops.function import (
    call_function,
)
from headrace.ops.image import (
    resize_grad,
    resize_op,
)
from headrace.ops.indexing import (
    strided_slice_grad,
)
from headrace.ops.joining import (
    tile_grad,
)
from headrace.ops.linalg import (
    adjoint,
    choose,
    diagonal_matrix,
    imaginary_part,
    lower_part,
    on_diagonal,
    real_part,
    swap_last_axes,
    upper_part,
)
from headrace.ops.matrix_functions import (
    matrix_exponential,
    matrix_logarithm,
)
from headrace.ops.nn import (
    log_softmax,
    softmax,
)
from headrace.ops.padding import (
    mirror_pad_grad,
)
from headrace.ops.pool import (
    avg_pool_grad,
    avg_pool_op,
    extract_patches_grad,
    extract_patches_op,
    max_pool_grad,
    max_pool_grad_grad,
)
from headrace.ops.quantization import (
    fake_quant_gradient,
)
from headrace.ops.queue import (
    fifo_queue,
    padding_fifo_queue,
    priority_queue,
    queue_close,
    queue_contents,
    queue_dequeue,
    queue_dequeue_many,
    queue_dequeue_up_to,
    queue_enqueue,
    queue_enqueue_many,
    queue_is_closed,
    queue_select,
    queue_size,
    random_shuffle_queue,
    restore_queue_contents,
)
from headrace.ops.sampling import (
    random_gamma_grad,
)
from headrace.ops.sparse import (
    sparse_dense_matmul_values,
    sparse_to_dense_values,
)
from headrace.ops.special import (
    igamma_grad_a,
)
from headrace.ops.staging import (
    stage,
    stage_clear,
    stage_peek,
    stage_size,
    staging_area_handle,
    unstage,
)
from headrace.ops.state import (
    read_variable,
)
from headrace.ops.tensor_list import (
    list_accumulate,
    list_add,
    list_clear,
    list_concat,
    list_gather,
    list_get,
    list_length,
    list_pop,
    list_push,
    list_reserve,
    list_resize,
    list_scatter,
    list_set,
    list_split,
    list_stack,
    list_unstack,
    list_zeros_like,
)

__all__ = [
    "accumulator_apply_gradient",
    "accumulator_num_accumulated",
    "accumulator_place_gradient",
    "accumulator_set_global_step",
    "accumulator_take_gradient",
    "accumulator_take_placed",
    "adjoint",
    "avg_pool_grad",
    "avg_pool_op",
    "barrier_close",
    "barrier_handle",
    "barrier_incomplete_size",
    "barrier_insert_many",
    "barrier_ready_size",
    "barrier_take_many",
    "call_function",
    "choose",
    "complex_",
    "conditional_accumulator",
    "diagonal_matrix",
    "extract_patches_grad",
    "extract_patches_op",
    "fake_quant_gradient",
    "fifo_queue",
    "igamma_grad_a",
    "imaginary_part",
    "linear_recurrence",
    "list_accumulate",
    "list_add",
    "list_clear",
    "list_concat",
    "list_gather",
    "list_get",
    "list_length",
    "list_pop",
    "list_push",
    "list_reserve",
    "list_resize",
    "list_scatter",
    "list_set",
    "list_split",
    "list_stack",
    "list_unstack",
    "list_zeros_like",
    "log_softmax",
    "lower_part",
    "matrix_exponential",
    "matrix_logarithm",
    "max_pool_grad",
    "max_pool_grad_grad",
    "mirror_pad_grad",
    "on_diagonal",
    "padding_fifo_queue",
    "permutation_matrix",
    "power",
    "priority_queue",
    "queue_close",
    "queue_contents",
    "queue_dequeue",
    "queue_dequeue_many",
    "queue_dequeue_up_to",
    "queue_enqueue",
    "queue_enqueue_many",
    "queue_is_closed",
    "queue_select",
    "queue_size",
    "random_gamma_grad",
    "random_shuffle_queue",
    "read_variable",
    "real_abs",
    "real_part",
    "real_sign",
    "resize_grad",
    "resize_op",
    "restore_queue_contents",
    "rfft_of",
    "select",
    "softmax",
    "sparse_accumulator_apply_gradient",
    "sparse_accumulator_place_gradient",
    "sparse_accumulator_take_gradient",
    "sparse_accumulator_take_placed",
    "sparse_conditional_accumulator",
    "sparse_dense_matmul_values",
    "sparse_to_dense_values",
    "stage",
    "stage_clear",
    "stage_peek",
    "stage_size",
    "staging_area_handle",
    "strided_slice_grad",
    "svd_op",
    "swap_last_axes",
    "tile_grad",
    "tuple_",
    "unstage",
    "upper_part",
]
