"""Labels beside predictions, of one shape."""

from __future__ import annotations

from typing import Any

from headrace.errors import AttributeValueError, ShapeError
from headrace.graph.tensor import Tensor
from headrace.ops.losses.weighted import as_float

LABELS = ("labels", "predictions")


def pair(labels: Any, predictions: Any, names: tuple[str, str]) -> tuple[Tensor, Tensor]:
    """Return labels and predictions as float32 of one shape, or refuse them."""
    for value, name in zip((labels, predictions), names, strict=True):
        if value is None:
            raise AttributeValueError(f"{name} must not be None")
    one, two = as_float(labels), as_float(predictions)
    check_pair(one, two, names)
    return one, two


def check_pair(one: Tensor, two: Tensor, names: tuple[str, str]) -> None:
    """Refuse tensors of two shapes."""
    if not one.shape.is_compatible_with(two.shape):
        raise ShapeError(
            f"{names[0]} {one.spec.shape} and {names[1]} {two.spec.shape} must have one shape"
        )
