"""How many floating-point operations ops take that compute more than one for each element.

Each function gets the shapes of the inputs and of the outputs, as tuples of numbers.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

Shapes = Sequence[tuple[int, ...]]


def of_matmul(inputs: Shapes, outputs: Shapes) -> float:
    """Return the operations of a product, whichever of its matrices are transposed."""
    # With a = [g, m, k], b = [g, k, n] and c = [g, m, n], sizes a b c / g are (g m k n) squared.
    a, b, c = (math.prod(shape) for shape in (*inputs[:2], outputs[0]))
    groups = math.prod(outputs[0][:-2])
    return 2.0 * math.sqrt(a * b * c / max(groups, 1))


def of_convolution(inputs: Shapes, outputs: Shapes) -> float:
    """Return the operations of a convolution: inputs and filters give its outputs."""
    return _convolution(outputs[0], inputs[1])


def of_convolution_input(inputs: Shapes, outputs: Shapes) -> float:
    """Return the operations of a convolution's gradient with respect to its input."""
    del outputs
    return _convolution(inputs[2], inputs[1])


def of_convolution_filter(inputs: Shapes, outputs: Shapes) -> float:
    """Return the operations of a convolution's gradient with respect to its filters."""
    return _convolution(inputs[2], outputs[0])


def of_decomposition(inputs: Shapes, outputs: Shapes) -> float:
    """Return the operations of an algorithm on matrices [..., m, n], about ``m n min(m, n)``."""
    del outputs
    *batch, m, n = inputs[0]
    return float(math.prod(batch)) * m * n * min(m, n)


def _convolution(result: tuple[int, ...], filters: tuple[int, ...]) -> float:
    # Each element of the forward pass's result sums over the filter of its channel.
    return 2.0 * math.prod(result) * math.prod(filters) / max(filters[-1], 1)
