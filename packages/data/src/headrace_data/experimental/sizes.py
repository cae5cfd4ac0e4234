"""How many elements a data set has."""

from __future__ import annotations

from headrace import Tensor
from headrace_data.dataset import Dataset
from headrace_data.ops.pipelines import dataset_cardinality

INFINITE_CARDINALITY = -1
UNKNOWN_CARDINALITY = -2


def cardinality(dataset: Dataset) -> Tensor:
    """Return how many elements a data set has, as far as that is known without taking them.

    Args:
        dataset: The data set.

    Returns:
        [], int64: the number, ``INFINITE_CARDINALITY`` or ``UNKNOWN_CARDINALITY``.
    """
    found: Tensor = dataset_cardinality(dataset.variant)
    return found
