"""What TensorFlow calls experimental in its input pipelines."""

from __future__ import annotations

from headrace_data.experimental.bucketing import (
    bucket_by_sequence_length as bucket_by_sequence_length,
)
from headrace_data.experimental.csv import CsvDataset as CsvDataset
from headrace_data.experimental.csv import make_csv_dataset as make_csv_dataset
from headrace_data.experimental.examples import TFRecordWriter as TFRecordWriter
from headrace_data.experimental.examples import (
    make_batched_features_dataset as make_batched_features_dataset,
)
from headrace_data.experimental.examples import parse_example_dataset as parse_example_dataset
from headrace_data.experimental.grouping import Reducer as Reducer
from headrace_data.experimental.grouping import group_by_reducer as group_by_reducer
from headrace_data.experimental.optional import Optional as Optional
from headrace_data.experimental.optional import OptionalSpec as OptionalStructure
from headrace_data.experimental.optional import get_next_as_optional as get_next_as_optional
from headrace_data.experimental.sampling import RandomDataset as RandomDataset
from headrace_data.experimental.sampling import choose_from_datasets as choose_from_datasets
from headrace_data.experimental.sampling import rejection_resample as rejection_resample
from headrace_data.experimental.sampling import sample_from_datasets as sample_from_datasets
from headrace_data.experimental.sizes import INFINITE_CARDINALITY as INFINITE_CARDINALITY
from headrace_data.experimental.sizes import UNKNOWN_CARDINALITY as UNKNOWN_CARDINALITY
from headrace_data.experimental.sizes import cardinality as cardinality
from headrace_data.experimental.structures import DatasetStructure as DatasetStructure
from headrace_data.experimental.structures import RaggedTensorStructure as RaggedTensorStructure
from headrace_data.experimental.structures import SparseTensorStructure as SparseTensorStructure
from headrace_data.experimental.structures import Structure as Structure
from headrace_data.experimental.structures import TensorArrayStructure as TensorArrayStructure
from headrace_data.experimental.structures import TensorStructure as TensorStructure
from headrace_data.experimental.structures import copy_to_device as copy_to_device
from headrace_data.experimental.structures import from_variant as from_variant
from headrace_data.experimental.structures import get_structure as get_structure
from headrace_data.experimental.structures import prefetch_to_device as prefetch_to_device
from headrace_data.experimental.structures import to_variant as to_variant
from headrace_data.experimental.transformations import Counter as Counter
from headrace_data.experimental.transformations import (
    dense_to_sparse_batch as dense_to_sparse_batch,
)
from headrace_data.experimental.transformations import enumerate_dataset as enumerate_dataset
from headrace_data.experimental.transformations import get_single_element as get_single_element
from headrace_data.experimental.transformations import group_by_window as group_by_window
from headrace_data.experimental.transformations import ignore_errors as ignore_errors
from headrace_data.experimental.transformations import map_and_batch as map_and_batch
from headrace_data.experimental.transformations import (
    map_and_batch_with_legacy_function as map_and_batch_with_legacy_function,
)
from headrace_data.experimental.transformations import parallel_interleave as parallel_interleave
from headrace_data.experimental.transformations import scan as scan
from headrace_data.experimental.transformations import shuffle_and_repeat as shuffle_and_repeat
from headrace_data.experimental.transformations import take_while as take_while
from headrace_data.experimental.transformations import unbatch as unbatch
from headrace_data.experimental.transformations import unique as unique
from headrace_data.options import DistributeOptions as DistributeOptions
from headrace_data.options import MapVectorizationOptions as MapVectorizationOptions
from headrace_data.options import OptimizationOptions as OptimizationOptions
from headrace_data.options import ThreadingOptions as ThreadingOptions
from headrace_data.sources.sql import SqlDataset as SqlDataset
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
    "CsvDataset",
    "DatasetStructure",
    "DistributeOptions",
    "MapVectorizationOptions",
    "OptimizationOptions",
    "Optional",
    "OptionalStructure",
    "RaggedTensorStructure",
    "RandomDataset",
    "Reducer",
    "SparseTensorStructure",
    "SqlDataset",
    "Structure",
    "TFRecordWriter",
    "TensorArrayStructure",
    "TensorStructure",
    "ThreadingOptions",
    "bucket_by_sequence_length",
    "cardinality",
    "choose_from_datasets",
    "copy_to_device",
    "dense_to_sparse_batch",
    "enumerate_dataset",
    "from_variant",
    "get_next_as_optional",
    "get_single_element",
    "get_structure",
    "group_by_reducer",
    "group_by_window",
    "ignore_errors",
    "make_batched_features_dataset",
    "make_csv_dataset",
    "make_saveable_from_iterator",
    "map_and_batch",
    "map_and_batch_with_legacy_function",
    "parallel_interleave",
    "parse_example_dataset",
    "prefetch_to_device",
    "rejection_resample",
    "sample_from_datasets",
    "scan",
    "shuffle_and_repeat",
    "take_while",
    "to_variant",
    "unbatch",
    "unique",
]
