"""Input pipelines: datasets, and iterators whose position is saved with the variables."""

from __future__ import annotations

from typing import TYPE_CHECKING

from headrace.extend.plugins import added_names

if TYPE_CHECKING:
    from headrace_data import experimental as experimental
    from headrace_data.dataset import Dataset as Dataset
    from headrace_data.inspection import get_output_classes as get_output_classes
    from headrace_data.inspection import get_output_shapes as get_output_shapes
    from headrace_data.inspection import get_output_types as get_output_types
    from headrace_data.iterators.iterator import Iterator as Iterator
    from headrace_data.iterators.iterator import (
        make_initializable_iterator as make_initializable_iterator,
    )
    from headrace_data.iterators.iterator import make_one_shot_iterator as make_one_shot_iterator
    from headrace_data.options import Options as Options
    from headrace_data.sources.records import FixedLengthRecordDataset as FixedLengthRecordDataset
    from headrace_data.sources.records import TextLineDataset as TextLineDataset
    from headrace_data.sources.records import TFRecordDataset as TFRecordDataset
    from headrace_data.structure import DatasetSpec as DatasetSpec

# Module -> its public names. Modules are imported when a program first names one of these.
_FOUND_IN = {
    "": "experimental",
    "dataset": "Dataset",
    "inspection": "get_output_classes get_output_shapes get_output_types",
    "iterators.iterator": "Iterator make_initializable_iterator make_one_shot_iterator",
    "options": "Options",
    "sources.records": "FixedLengthRecordDataset TFRecordDataset TextLineDataset",
    "structure": "DatasetSpec",
}

__all__: list[str] = []
__all__ += [name for names in _FOUND_IN.values() for name in names.split()]

if not TYPE_CHECKING:
    __getattr__, __dir__ = added_names("data", __name__, _FOUND_IN)
