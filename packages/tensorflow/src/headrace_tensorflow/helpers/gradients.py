"""``ops.gradient_checker_v2``: Jacobians of functions, computed twice, and how far they differ."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import headrace as hr
from headrace.errors import GraphError

Jacobians = tuple[np.ndarray, ...]


def compute_gradient(
    f: Callable[..., Any], x: list[Any], delta: float = 1e-3
) -> tuple[Jacobians, Jacobians]:
    """Compute the Jacobian of a function with respect to each argument, in the default session.

    Args:
        f: Takes tensors, and returns one.
        x: The arguments: floating or complex arrays or tensors.
        delta: How far their elements are moved to either side.

    Returns:
        The Jacobians from gradients, and those from central differences, each
        [elements of an argument, elements of the result]. Complex numbers count as two.

    Raises:
        ValueError: if ``x`` is no list.
        GraphError: if there is no default session, or the result does not depend on an argument.
        DTypeError: if an argument or the result is neither floating nor complex.
    """
    if not isinstance(x, list):
        raise ValueError(f"x must be a list of the arguments of f, got {type(x).__name__}")
    session = hr.get_default_session()
    if session is None:
        raise GraphError("compute_gradient runs in the default session: call it in 'with session:'")
    starts = session.run([hr.convert_to_tensor(value) for value in x])
    shapes = [start.shape for start in starts]
    given = [hr.placeholder(start.dtype, start.shape) for start in starts]
    y = f(*given)
    feeds = dict(zip(given, starts, strict=True))
    shape = session.run(y, feeds).shape
    found = hr.test.compute_gradient(given, shapes, y, shape, starts, delta, extra_feed_dict=feeds)
    exact, moved = zip(*found, strict=True)
    return exact, moved


def max_error(grad1: Sequence[np.ndarray], grad2: Sequence[np.ndarray]) -> float:
    """Return the largest difference of elements of Jacobians, pair by pair; 0 if there are none.

    Args:
        grad1: Arrays.
        grad2: As many, of the same shapes.
    """
    pairs = zip(grad1, grad2, strict=True)
    return max((float(np.abs(one - two).max()) for one, two in pairs if one.size), default=0.0)
