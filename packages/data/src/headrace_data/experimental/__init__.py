"""What TensorFlow calls experimental in its input pipelines."""

from __future__ import annotations

from headrace_data.experimental.bucketing import (
    bucket_by_sequence_length as bucket_by_sequence_length,
)
from headrace_data.experimental.sizes import INFINITE_CARDINALITY as INFINITE_CARDINALITY
from headrace_data.experimental.sizes import UNKNOWN_CARDINALITY as UNKNOWN_CARDINALITY
from headrace_data.experimental.sizes import cardinality as cardinality
from headrace_data.experimental.transformations import Counter as Counter
from headrace_data.experimental.transformations import enumerate_dataset as enumerate_dataset
from headrace_data.experimental.transformations import get_single_element as get_single_element
from headrace_data.experimental.transformations import group_by_window as group_by_window
from headrace_data.experimental.transformations import ignore_errors as ignore_errors
from headrace_data.experimental.transformations import map_and_batch as map_and_batch
from headrace_data.experimental.transformations import parallel_interleave as parallel_interleave
from headrace_data.experimental.transformations import scan as scan
from headrace_data.experimental.transformations import shuffle_and_repeat as shuffle_and_repeat
from headrace_data.experimental.transformations import take_while as take_while
from headrace_data.experimental.transformations import unbatch as unbatch
from headrace_data.experimental.transformations import unique as unique
from headrace_data.state.saveable import (
    make_saveable_from_iterator as make_saveable_from_iterator,
)

# Stands for a number of parallel calls, or of elements to fetch ahead, that is chosen for the user.
AUTOTUNE = -1

__all__ = [
    "AUTOTUNE",
    "INFINITE_CARDINALITY",
    "UNKNOWN_CARDINALITY",
    "Counter",
    "bucket_by_sequence_length",
    "cardinality",
    "enumerate_dataset",
    "get_single_element",
    "group_by_window",
    "ignore_errors",
    "make_saveable_from_iterator",
    "map_and_batch",
    "parallel_interleave",
    "scan",
    "shuffle_and_repeat",
    "take_while",
    "unbatch",
    "unique",
]
