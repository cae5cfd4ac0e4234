"""``ops.ragged``: functions whose public ones take ragged tensors as well as others."""

from __future__ import annotations

from typing import Any

import headrace as hr

concat = hr.concat
stack = hr.ragged.stack
where = hr.where
tile = hr.tile
expand_dims = hr.expand_dims
squeeze = hr.squeeze
size = hr.size
rank = hr.rank
gather = hr.gather
gather_nd = hr.gather_nd
batch_gather = hr.batch_gather
reduce_sum = hr.reduce_sum
reduce_prod = hr.reduce_prod
reduce_min = hr.reduce_min
reduce_max = hr.reduce_max
reduce_mean = hr.reduce_mean
reduce_all = hr.reduce_all
reduce_any = hr.reduce_any
# Those take the number of segments, and ids in any order.
segment_sum = hr.math.unsorted_segment_sum
segment_prod = hr.math.unsorted_segment_prod
segment_min = hr.math.unsorted_segment_min
segment_max = hr.math.unsorted_segment_max
segment_mean = hr.math.unsorted_segment_mean
segment_sqrt_n = hr.math.unsorted_segment_sqrt_n
from_tensor = hr.RaggedTensor.from_tensor
from_sparse = hr.RaggedTensor.from_sparse
to_tensor = hr.RaggedTensor.to_tensor
to_sparse = hr.RaggedTensor.to_sparse


def is_ragged(value: Any) -> bool:
    """Whether something is a ragged tensor, or the value of one."""
    return isinstance(value, hr.RaggedTensor | hr.ragged.RaggedTensorValue)


def convert_to_tensor_or_ragged_tensor(
    value: Any, dtype: Any = None, preferred_dtype: Any = None, name: str | None = None
) -> Any:
    """Return a ragged tensor for one, or the value of one, and a tensor for what else there is.

    Args:
        value: What to convert.
        dtype: The dtype that it has or gets.
        preferred_dtype: The dtype that it gets if it can.
        name: The name of a new tensor.

    Raises:
        ValueError: if a ragged tensor has another dtype.
    """
    if isinstance(value, hr.ragged.RaggedTensorValue):
        flat = hr.convert_to_tensor(value.flat_values, dtype, preferred_dtype=preferred_dtype)
        return hr.RaggedTensor.from_nested_row_splits(flat, value.nested_row_splits, name=name)
    if not isinstance(value, hr.RaggedTensor):
        return hr.convert_to_tensor(value, dtype, name, preferred_dtype)
    if dtype is not None and hr.as_dtype(dtype) != value.dtype:
        raise ValueError(f"{value} has dtype {value.dtype}, expected {hr.as_dtype(dtype)}")
    return value
