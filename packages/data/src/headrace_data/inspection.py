"""Types, shapes and classes of the elements of data sets and iterators."""

from __future__ import annotations

from typing import Any

from headrace_data.dataset import Dataset
from headrace_data.iterators.iterator import Iterator


def get_output_types(dataset_or_iterator: Dataset | Iterator) -> Any:
    """Return the dtypes of the components of elements, in their structure.

    Args:
        dataset_or_iterator: A data set or an iterator.
    """
    return dataset_or_iterator.output_types


def get_output_shapes(dataset_or_iterator: Dataset | Iterator) -> Any:
    """Return the shapes of the components of elements, in their structure.

    Args:
        dataset_or_iterator: A data set or an iterator.
    """
    return dataset_or_iterator.output_shapes


def get_output_classes(dataset_or_iterator: Dataset | Iterator) -> Any:
    """Return the classes of the components of elements, in their structure.

    Args:
        dataset_or_iterator: A data set or an iterator.
    """
    return dataset_or_iterator.output_classes
