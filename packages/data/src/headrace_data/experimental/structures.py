"""What elements are made of, under TensorFlow's experimental names; and data sets as handles."""

from __future__ import annotations

from typing import Any

import headrace as hr
from headrace.errors import DTypeError, shown
from headrace_data import structure
from headrace_data.dataset import Dataset
from headrace_data.iterators.iterator import Iterator
from headrace_data.structure import DatasetSpec as DatasetSpec

DatasetStructure = DatasetSpec
Structure = hr.TypeSpec

__all__ = [
    "DatasetStructure",
    "RaggedTensorStructure",
    "SparseTensorStructure",
    "Structure",
    "TensorArrayStructure",
    "TensorStructure",
    "copy_to_device",
    "from_variant",
    "get_structure",
    "prefetch_to_device",
    "to_variant",
]


def TensorStructure(dtype: Any, shape: Any) -> Any:  # noqa: N802 - TensorFlow's name
    """Return ``hr.TensorSpec(shape, dtype)``."""
    return hr.TensorSpec(shape, dtype)


def SparseTensorStructure(dtype: Any, shape: Any) -> Any:  # noqa: N802 - likewise
    """Return ``hr.SparseTensorSpec(shape, dtype)``."""
    return hr.SparseTensorSpec(shape, dtype)


def RaggedTensorStructure(dtype: Any, shape: Any, ragged_rank: int) -> Any:  # noqa: N802 - likewise
    """Return ``hr.RaggedTensorSpec(shape, dtype, ragged_rank)``."""
    return hr.RaggedTensorSpec(shape, dtype, ragged_rank)


def TensorArrayStructure(  # noqa: N802 - likewise
    dtype: Any, element_shape: Any, dynamic_size: bool, infer_shape: bool
) -> Any:
    """Return ``hr.TensorArraySpec(element_shape, dtype, dynamic_size, infer_shape)``."""
    return hr.TensorArraySpec(element_shape, dtype, dynamic_size, infer_shape)


def get_structure(dataset_or_iterator: Any) -> Any:
    """Return what is known of the components of a data set's or iterator's elements.

    Args:
        dataset_or_iterator: The data set, or an iterator.

    Raises:
        DTypeError: if it is something else.
    """
    if not isinstance(dataset_or_iterator, Dataset | Iterator):
        raise DTypeError(f"expected a data set or an iterator, got {shown(dataset_or_iterator)}")
    return dataset_or_iterator.element_spec


def to_variant(dataset: Dataset) -> Any:
    """Return the handle that stands for a data set in its graph.

    Args:
        dataset: The data set.
    """
    return dataset.variant


def from_variant(variant: Any, structure: Any) -> Dataset:
    """Return the data set for which a handle stands.

    Args:
        variant: The handle.
        structure: What is known of the components of its elements.
    """
    return Dataset(variant, _components(structure))


_components = structure.from_specs


def copy_to_device(target_device: Any, source_device: str = "/cpu:0") -> Any:
    """Return a transformation into the same data set: iterators hand elements to any device.

    Args:
        target_device: Ignored.
        source_device: Ignored.
    """
    del target_device, source_device
    return lambda dataset: dataset.prefetch(0)


def prefetch_to_device(device: Any, buffer_size: Any = None) -> Any:
    """Return a transformation that takes elements ahead, for whatever device asks for them.

    Args:
        device: Ignored.
        buffer_size: [], how many elements; chosen for the user if None.
    """
    del device
    return lambda dataset: dataset.prefetch(-1 if buffer_size is None else buffer_size)
