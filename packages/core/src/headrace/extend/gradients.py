"""Gradient rules: the table to fill, and helpers with which rules are written."""

from headrace.graph.indexed_slices import (
    IndexedSlices,
)
from headrace.ops.constant import (
    shape_of,
)
from headrace.ops.reduce import (
    sum_to_shape,
)
from headrace.plugins.registries.gradients import GradientRegistry
from headrace.plugins.tables import (
    GradientRule,
    GradientTable,
)

__all__ = [
    "GradientRegistry",
    "GradientRule",
    "GradientTable",
    "IndexedSlices",
    "shape_of",
    "sum_to_shape",
]
