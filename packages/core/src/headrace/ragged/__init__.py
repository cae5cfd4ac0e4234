"""Ragged tensors, as ``hr.ragged``."""

from typing import TYPE_CHECKING as _TYPE_CHECKING

from headrace.plugins.namespaces import added_names as _added_names
from headrace.ragged import calls as _calls
from headrace.ragged import conversion as _conversion
from headrace.ragged import indexing as _indexing
from headrace.ragged.arranging import stack_dynamic_partitions as stack_dynamic_partitions
from headrace.ragged.constants import constant as constant
from headrace.ragged.constants import constant_value as constant_value
from headrace.ragged.constants import placeholder as placeholder
from headrace.ragged.gathering import boolean_mask as boolean_mask
from headrace.ragged.making import map_flat_values as map_flat_values
from headrace.ragged.making import range as range
from headrace.ragged.making import row_splits_to_segment_ids as row_splits_to_segment_ids
from headrace.ragged.making import segment_ids_to_row_splits as segment_ids_to_row_splits
from headrace.ragged.making import stack as stack
from headrace.ragged.value import RaggedTensorValue as RaggedTensorValue

__all__ = [
    "RaggedTensorValue",
    "boolean_mask",
    "constant",
    "constant_value",
    "map_flat_values",
    "placeholder",
    "range",
    "row_splits_to_segment_ids",
    "segment_ids_to_row_splits",
    "stack",
    "stack_dynamic_partitions",
]

# What ragged tensors do themselves; these modules enter it in tables.
del _calls, _conversion, _indexing

if not _TYPE_CHECKING:
    __getattr__, __dir__ = _added_names("ragged", __name__)
