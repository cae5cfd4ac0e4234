"""The direction of search, and the history from which it comes.

References:
    J. Nocedal, Updating quasi-Newton matrices with limited storage, Mathematics of Computation 35,
    1980; J. Nocedal and S. Wright, Numerical Optimization, 2nd edition, Algorithm 7.4.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

import headrace as hr
from headrace import Tensor


class History(NamedTuple):
    """The latest changes of the point and of the gradient, the latest last.

    Attributes:
        steps: [m, n], changes of the point, zeros where there is none yet.
        changes: [m, n], the changes of the gradient along them.
        scales: [m], ``1 / (step . change)``, 0 where there is none.
    """

    steps: Tensor
    changes: Tensor
    scales: Tensor

    @classmethod
    def empty(cls, like: History) -> History:
        """Return a history without entries."""
        return cls(*(hr.zeros_like(t) for t in like))


def direction(gradient: Tensor, history: History) -> Tensor:
    """Return the product of the negative inverse Hessian that the history implies and a gradient.

    Args:
        gradient: [n].
        history: Where it is empty, the result is the negative gradient.
    """
    steps, changes = hr.unstack(history.steps), hr.unstack(history.changes)
    scales = hr.unstack(history.scales)
    pairs = list(zip(steps, changes, scales, strict=True))
    q = gradient
    weights = []
    for step, change, scale in reversed(pairs):
        weight = scale * _dot(step, q)
        weights.append(weight)
        q -= weight * change
    newest = _dot(changes[-1], changes[-1])
    is_empty = hr.equal(scales[-1], 0)
    one = hr.ones_like(newest)
    # The curvature along the latest step, as the scale of the first guess of the Hessian.
    r = q * hr.where(is_empty, one, 1 / hr.where(is_empty, one, scales[-1] * newest))
    for (step, change, scale), weight in zip(pairs, reversed(weights), strict=True):
        r += step * (weight - scale * _dot(change, r))
    return -r


def extended(history: History, step: Tensor, change: Tensor) -> History:
    """Return a history with one more entry, the oldest of which is gone.

    A pair along which the curvature is not positive tells nothing, and is left out.
    """
    curvature = _dot(step, change)
    epsilon = float(np.finfo(step.dtype.numpy).eps)
    is_good = curvature > epsilon * _dot(change, change)
    scale = hr.where(is_good, 1 / hr.where(is_good, curvature, hr.ones_like(curvature)), 0.0)
    longer = History(
        hr.concat([history.steps[1:], step[None]], 0),
        hr.concat([history.changes[1:], change[None]], 0),
        hr.concat([history.scales[1:], scale[None]], 0),
    )
    return History(*(hr.where(is_good, new, old) for new, old in zip(longer, history, strict=True)))


def _dot(a: Tensor, b: Tensor) -> Tensor:
    product: Tensor = hr.reduce_sum(a * b)
    return product
