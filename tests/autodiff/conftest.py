"""Fixtures of the autodiff tests: a fresh graph, and a check against finite differences."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import headrace as hr

Check = Callable[..., None]


def placeholder_for(array: np.ndarray[Any, Any], known: str) -> hr.Tensor:
    """Return a placeholder that knows all, the rank only, or nothing of its shape."""
    shapes: dict[str, Any] = {"dims": array.shape, "rank": [None] * array.ndim, "nothing": None}
    return hr.placeholder(array.dtype, shapes[known])


def check_gradients(
    build: Callable[..., Any],
    *arrays: Any,
    known: str = "dims",
    order: int = 2,
    tolerance: float = 1e-6,
) -> None:
    """Compare derivatives with finite differences along one random direction.

    Args:
        build: Makes a tensor, or a list of tensors, of placeholders.
        arrays: Where to differentiate, as float64.
        known: What the placeholders know of their shapes: "dims", "rank" or "nothing".
        order: How often to differentiate.
        tolerance: Allowed relative error.
    """
    points = [np.asarray(a, np.float64) for a in arrays]
    rng = np.random.default_rng(7)
    with hr.Graph().as_default():
        xs = [placeholder_for(p, known) for p in points]
        made = build(*xs)
        outputs = made if isinstance(made, list | tuple) else [made]
        feeds = dict(zip(xs, points, strict=True))
        with hr.Session() as session:
            value: Any = 0.0
            for y in outputs:
                weights = rng.standard_normal(session.run(y, feeds).shape)
                value = value + hr.reduce_sum(y * weights)
            for n in range(1, order + 1):
                directions = [rng.standard_normal(p.shape) for p in points]
                slopes = hr.gradients(value, xs, unconnected_gradients="zero")
                derivative: Any = 0.0
                for slope, point, direction in zip(slopes, points, directions, strict=True):
                    assert slope.dtype == hr.float64
                    tensor = hr.convert_to_tensor(slope)
                    assert tensor.shape.is_compatible_with(point.shape)
                    derivative = derivative + hr.reduce_sum(tensor * direction)
                expected = _difference(session, value, xs, points, directions)
                got = session.run(derivative, feeds)
                scale = max(1.0, abs(expected))
                assert abs(got - expected) <= tolerance * scale, (n, got, expected)
                value = derivative


def _difference(
    session: hr.Session, value: Any, xs: Any, points: Any, directions: Any, step: float = 1e-4
) -> float:
    """Return the derivative of ``value`` along ``directions`` by four-point differences."""

    def at(distance: float) -> float:
        moved = [p + distance * d for p, d in zip(points, directions, strict=True)]
        return float(session.run(value, dict(zip(xs, moved, strict=True))))

    near, far = at(step) - at(-step), at(2 * step) - at(-2 * step)
    return (8 * near - far) / (12 * step)


@pytest.fixture
def check() -> Check:
    """The comparison with finite differences."""
    return check_gradients
