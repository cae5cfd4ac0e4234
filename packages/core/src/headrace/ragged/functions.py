"""What functions of tensors do with ragged tensors, by the names under which they ask.

Functions of each element need no entry: they are computed on the flat values.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from headrace.ragged import arranging, gathering, joining, reducing, text

FUNCTIONS: dict[str, Callable[..., Any]] = {
    "UnicodeEncode": text.encode_rows,
    "UnsortedSegmentMax": reducing.segment_max,
    "UnsortedSegmentMin": reducing.segment_min,
    "UnsortedSegmentProd": reducing.segment_prod,
    "UnsortedSegmentSum": reducing.segment_sum,
    "batch_gather": gathering.batch_gather,
    "concat": joining.concat,
    "dynamic_partition": arranging.dynamic_partition,
    "expand_dims": joining.expand_dims,
    "gather": gathering.gather,
    "gather_nd": gathering.gather_nd,
    "one_hot": arranging.one_hot,
    "rank": arranging.rank,
    "reduce_all": reducing.reduce_all,
    "reduce_any": reducing.reduce_any,
    "reduce_join": reducing.reduce_join,
    "reduce_max": reducing.reduce_max,
    "reduce_mean": reducing.reduce_mean,
    "reduce_min": reducing.reduce_min,
    "reduce_prod": reducing.reduce_prod,
    "reduce_sum": reducing.reduce_sum,
    "size": arranging.size,
    "squeeze": joining.squeeze,
    "stack": joining.stack,
    "strings_split": text.split,
    "tile": joining.tile,
    "unsorted_segment_mean": reducing.segment_mean,
    "unsorted_segment_sqrt_n": reducing.segment_sqrt_n,
    "where": arranging.where,
}
