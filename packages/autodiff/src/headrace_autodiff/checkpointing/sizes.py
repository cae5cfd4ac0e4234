"""What values take, and what operations cost, as far as that is known before a step.

Costs are relative: only their proportions matter to what is kept and what is computed again.
"""

from __future__ import annotations

import math
from collections.abc import Iterable

from headrace import Operation, Tensor

# Stands for a dimension that is known in the step only. Where it is the batch in all tensors, as
# it mostly is, the proportions of their sizes do not depend on it.
ASSUMED = 128


def bytes_of(tensor: Tensor) -> int:
    """Return the size of a tensor in bytes."""
    return elements_of(tensor) * tensor.dtype.size


def total_bytes(tensors: Iterable[Tensor]) -> int:
    """Return the size of several tensors in bytes."""
    return sum(map(bytes_of, tensors))


def elements_of(tensor: Tensor) -> int:
    """Return how many elements a tensor has, 1 where not even its rank is known."""
    dims = tensor.spec.shape.dims
    return math.prod(ASSUMED if d is None else d for d in dims) if dims is not None else 1


def is_known(tensor: Tensor) -> bool:
    """Whether the size of a tensor is known before the step."""
    return tensor.shape.is_fully_defined()


def is_cheap(op: Operation) -> bool:
    """Whether an operation looks at each element once, so that memory bounds it."""
    return op.schema.elementwise or op.schema.view


def cost_of(op: Operation) -> float:
    """Return what a run of an operation costs, in elements that it moves or multiplies.

    Of what is not elementwise, and takes two tensors or more, the product is estimated: the
    multiplication of [m, k] and [k, n] has ``m * k * n = sqrt(mk * kn * mn)`` of them, and a
    convolution has a few times more.
    """
    if op.schema.view:
        return 1.0
    made = sum(map(elements_of, op.outputs))
    taken = sorted((elements_of(t) for t in op.inputs), reverse=True)
    moved = float(made + sum(taken))
    if is_cheap(op) or op.schema.reduction or len(taken) < 2:
        return moved
    return max(moved, math.sqrt(float(taken[0]) * taken[1] * made) / 8)
